package agent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"libspx/core/ident"
	"libspx/ft/detect"
	"libspx/launch/abroad"
	"libspx/launch/control"
	"libspx/launch/service"
)

// Datagrams from any sender: one that was not sealed with the job's key for this host is dropped;
// any other is a message to a machine that stays sound.
func FuzzUnseal(f *testing.F) {
	h := &heartbeat{self: 1, job: [16]byte{1, 2, 3}, key: [32]byte{9}}
	f.Add(h.seal(1, []byte{5, 1, 1, 2}), false)
	f.Add([]byte{1, 9, 9, 1, 0}, true)
	f.Add(make([]byte, beatHead+beatProof), false)
	f.Fuzz(func(t *testing.T, b []byte, proved bool) {
		h := &heartbeat{self: 1, job: [16]byte{1, 2, 3}, key: [32]byte{9}}
		h.peers = append(h.peers, h.at, h.at, h.at)
		m := detect.New(detect.Config{Self: 1, Hosts: 3, Period: 10, Limit: 100}, 0)
		if proved { // by another host of the job, which is broken
			from := int(binary.LittleEndian.Uint32(append(bytes.Clone(b), 0, 0, 0, 0)))
			b = (&heartbeat{self: from, job: h.job, key: h.key}).seal(1, b)
		}
		from, text, ok := h.unseal(b)
		if !ok {
			return
		}
		if from < 0 || from >= len(h.peers) ||
			!bytes.Equal((&heartbeat{self: from, job: h.job, key: h.key}).seal(1, text), b) {
			t.Fatalf("host %d, %x of %x", from, text, b)
		}
		m.Receive(from, text, 1) //nolint:errcheck // must not panic
	})
}

// A core file is what a process has left, or any other file.
func FuzzCore(f *testing.F) {
	head := make([]byte, 64+56)
	copy(head, "\x7fELF\x02\x01\x01")
	for at, v := range map[int]uint16{16: 4, 18: 62, 52: 64, 54: 56, 56: 1} {
		binary.LittleEndian.PutUint16(head[at:], v)
	}
	binary.LittleEndian.PutUint32(head[20:], 1)
	binary.LittleEndian.PutUint64(head[32:], 64)
	binary.LittleEndian.PutUint32(head[64:], 4) // PT_NOTE
	binary.LittleEndian.PutUint64(head[64+8:], uint64(len(head)))
	note := []byte("\x05\x00\x00\x00\x28\x00\x00\x00ELIFCORE\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00")
	note = append(note, make([]byte, 24)...)
	binary.LittleEndian.PutUint64(head[64+32:], uint64(len(note)))
	f.Add(append(head, note...))
	f.Add([]byte("\x7fELF"))
	file := filepath.Join(f.TempDir(), "core")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		pidOfCore(file)
		programOfCore(file)
	})
}

// The name of a port comes from anywhere: a program has it from a file, or from a name service.
func FuzzWay(f *testing.F) {
	w := way{job: 7, port: 3, at: netip.MustParseAddrPort("10.0.0.1:80"), key: [32]byte{1, 2}}
	f.Add(fmt.Sprintf("%s%016x:%d%v", PortPrefix, w.job, w.port, w))
	f.Add("spx:0000000000000001:1@[fe80::1%eth0]:1#AAAA")
	f.Add("spx:0000000000000001:1")
	f.Fuzz(func(t *testing.T, name string) {
		portName(shorten(name))
		w, ok := parseWay(name)
		if !ok {
			return
		}
		if again, ok := parseWay(fmt.Sprintf("%s%016x:%d%v", PortPrefix, w.job, w.port, w)); !ok ||
			again != w {
			t.Errorf("%q is %+v, and comes back as %+v", name, w, again)
		}
		if !sameKey(name, name) {
			t.Errorf("%q has not its own key", name)
		}
	})
}

// What the agent of another job says over its link, and what its processes ask at a port: whatever
// bytes come.
func FuzzLink(f *testing.F) {
	const theirs = 77
	open := "spx:0000000000000000:1" + way{at: netip.MustParseAddrPort("10.0.0.1:80"),
		key: [32]byte{1}}.String()
	peer := ident.ProcID{Job: theirs, Rank: 1, Incarnation: 1}
	ours := ident.ProcID{}
	asks := func(kind service.Kind, text string) []byte {
		return packed(&service.Message{Kind: kind, Text: text, Name: "0",
			Peer: service.Peer{ID: peer}, FD: -1})
	}
	said := func(messages ...*control.Message) {
		s := stream{&bytes.Buffer{}}
		c := control.NewConn(s)
		for _, m := range messages {
			if err := c.Send(m); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(s.Bytes())
	}
	connects := &control.Message{Question: &control.Question{Number: 1,
		Text: asks(service.Connect, open)}}
	said(connects, connects, &control.Message{Question: &control.Question{Number: 1}})
	said(connects, &control.Message{Question: &control.Question{Number: 1,
		Text: asks(service.Withdraw, "")}}, connects)
	said(&control.Message{Question: &control.Question{Number: 2, Text: asks(service.Spawn, open)}},
		&control.Message{Question: &control.Question{Number: 1 << 63, Text: []byte{1}}})
	said(&control.Message{Answer: &control.Answer{Number: 1, Text: asks(service.Connect, "")}},
		&control.Message{Answer: &control.Answer{Number: 9}})
	at := netip.MustParseAddrPort("10.0.0.1:80")
	said(&control.Message{Abroad: &abroad.Message{Meet: &abroad.Meet{Number: 1,
		Asker: abroad.Person{ID: peer, Number: 1, Life: 1, At: at}, Wanted: []ident.ProcID{ours}}}},
		&control.Message{Abroad: &abroad.Message{Ended: &abroad.Ended{Who: peer,
			How: abroad.Aborted}}})
	// it wants to know none: the asker alone is to be entered
	said(&control.Message{Abroad: &abroad.Message{Meet: &abroad.Meet{Number: 2,
		Asker: abroad.Person{ID: peer, At: at}}}}, connects)
	said(&control.Message{Abroad: &abroad.Message{Met: &abroad.Met{Number: 1,
		People: []abroad.Person{{ID: peer, At: at}}}}}, &control.Message{Link: &control.Link{}})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, _ := twoHosts(t, 0)
		a.ports.open()
		a.ports.waiting[portID(open)] = &port{name: open}
		l := a.linkTo(theirs)
		raw, other := net.Pipe()
		defer other.Close()
		l.up, l.raw, l.hosts = true, raw, hostsAbroad
		a.carryAbroad(a.abroad.machine.Up(theirs))
		waits := &counter{}
		a.serve(&question{&service.Message{Kind: service.Accept, Text: open, Name: "0", FD: -1},
			waits})
		c := control.NewConn(stream{bytes.NewBuffer(b)})
		for {
			m, err := c.Receive()
			if err != nil {
				break
			}
			linkSaid{l, m}.happen(a)
		}
		a.endLink(l)
		at := a.ports.waiting[portID(open)]
		if waits.answers > 1 || waits.answers == 0 &&
			(len(at.accepting) != 1 || len(at.connecting) != 0) {
			t.Errorf(
				"%d answers to the process that accepts; %d wait still, and %d of a job that is "+
					"lost", waits.answers, len(at.accepting), len(at.connecting))
		}
		if a.abroad.links[theirs] != nil || len(a.abroad.callers) > 0 {
			t.Errorf("something of the link is left")
		}
	})
}

// counter is a process that counts what it is answered.
type counter struct{ answers int }

func (c *counter) Send(*service.Message) error {
	c.answers++
	return nil
}
func (c *counter) Gone() bool { return false }
func (c *counter) Close()     {}
