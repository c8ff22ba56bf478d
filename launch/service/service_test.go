package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/core/ident"
)

func example() *Message {
	p := Peer{ID: ident.ProcID{Job: 1 << 63, World: 2, Rank: 3, Incarnation: 4}, Slot: 5, Pid: 6}
	return &Message{Kind: Spawn, Class: 7, World: 8, Number: 1 << 40, Name: "name",
		Text: "text\x00\n", Peer: p, Slots: []uint32{1, 2}, Codes: []uint32{0},
		Peers: []Peer{p, {}}, Programs: []Program{{Argv: []string{"a", ""}, Procs: 9,
			Soft: []uint32{1}, Dir: "/", Path: "x:y", Host: "h", Env: []string{"A=1"}},
			{Argv: []string{""}}}, FD: -1}
}

// What is decoded is what was encoded, and a message that is cut short anywhere is refused.
func TestEncodeAndDecode(t *testing.T) {
	for _, m := range []*Message{example(), {Kind: Lookup, FD: -1}} {
		b := m.Encode()[4:]
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Error(d)
		}
		for n := range b {
			if _, err := Decode(b[:n]); err == nil {
				t.Errorf("%d bytes of %d are taken for a message", n, len(b))
			}
		}
		if _, err := Decode(append(b, 0)); err == nil {
			t.Error("a byte too many is no error")
		}
	}
}

func TestNoCommand(t *testing.T) {
	m := &Message{Kind: Spawn, Programs: []Program{{Procs: 1}}, FD: -1}
	if got, err := Decode(m.Encode()[4:]); err == nil {
		t.Errorf("a program without a command is taken: %+v", got)
	}
}

// Whatever comes, decoding neither fails badly nor takes more memory than the message has.
func FuzzDecode(f *testing.F) {
	f.Add(example().Encode()[4:])
	f.Add([]byte{1, 255, 255, 255, 255})
	named := example()
	named.Server = "spx-names 10.0.0.1:80 AAAA\nnames of mine"
	f.Add(named.Encode()[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(m.Encode()[4:])
		if d := cmp.Diff(m, again); err != nil || d != "" {
			t.Error(err, d)
		}
	})
}
