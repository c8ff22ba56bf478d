package agree

import (
	"testing"

	"libspx/ft/place"
	"libspx/ft/rankset"
)

func equal(a, b message) bool {
	return a.kind == b.kind && a.ballot == b.ballot && a.decision.Flags == b.decision.Flags &&
		a.decision.Context == b.decision.Context &&
		a.decision.Acked.Equal(b.decision.Acked) && a.decision.Failed.Equal(b.decision.Failed)
}

func TestWire(t *testing.T) {
	d := Decision{Flags: 0xfffffffe, Context: 1<<40 | 5, Acked: rankset.Of(1, 2, 3),
		Failed: rankset.Of(1, 2, 3, 8)}
	for _, msg := range []message{
		{kind: kindGather, ballot: 4, decision: d},
		{kind: kindPropose, ballot: 9, decision: d},
		{kind: kindAccept, ballot: 0},
		{kind: kindCommit, decision: d},
	} {
		back, err := decode(msg.append(nil), 10)
		if err != nil || !equal(back, msg) {
			t.Errorf("%+v came back as %+v, error %v", msg, back, err)
		}
	}
	// golden bytes: the wire form of a release does not change
	if got, want := string(message{kind: kindPropose, ballot: 1,
		decision: Decision{Flags: 3, Context: 7, Failed: rankset.Of(0)}}.append(nil)),
		"\x02\x01\x03\x07\x00\x01\x00\x00"; got != want {
		t.Errorf("Propose is %x, want %x", got, want)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{kindAccept, 0}, 3)
	f.Add(message{kind: kindGather, ballot: 1,
		decision: Decision{Flags: 1, Failed: rankset.Of(0, 2)}}.append(nil), 1)
	f.Fuzz(func(t *testing.T, data []byte, from int) {
		const n = 5
		if msg, err := decode(data, n); err == nil {
			if back, err := decode(msg.append(nil), n); err != nil || !equal(back, msg) {
				t.Fatalf("%+v does not survive the wire: %+v, %v", msg, back, err)
			}
		}
		m := New(place.New(n, nil, 0, 0), 0, rankset.Set{})
		m.Call(Contribution{Flags: 1})
		m.Receive(from, data) // must not panic
		m.Failed(rankset.Of(1, 2, 3, 4))
	})
}
