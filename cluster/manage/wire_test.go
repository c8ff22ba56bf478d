package manage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fuzzed is a system with an agent between two others, for whose messages agent 1 is tested.
func fuzzed() Config {
	return Config{Self: 1, BeatMS: 100, LimitMS: 400, SilentMS: 700, FenceMS: 3000,
		Agents: []Agent{{Networks: []int{0, 1}, Last: true}, {Networks: []int{0}},
			{Networks: []int{1}}, {Networks: []int{0}}},
		Clusters: []Cluster{{Name: "a", Agents: []int{0, 1}, Candidates: []int{1, 0}, Want: 2,
			OnDeath: RestartIt, Restarts: 2}, {Name: "b", Agents: []int{2}, Candidates: []int{2},
			Want: 1, Told: true}, {Name: "c"}}}
}

func messages() []Message {
	view := &View{Term: 3, Version: 9, Master: 2, Stopping: true,
		Clusters: []ClusterView{{State: Running, Life: 1, Alive: 2, Master: 1},
			{State: Dead, Life: 4, Master: -1}, {Life: 1, Master: -1}}}
	return []Message{
		{From: 1, To: 2, Seat: System, Term: 3, Sent: 1234, Beat: true, Held: true, Voter: 2,
			Age: 20, View: view, Promised: -1, Holder: -1},
		{From: 2, To: 1, Seat: 0, Term: 3, Sent: 1234, Granted: true, Voter: 1, Promised: 0,
			Holder: 2, Clusters: []int{0, 2}, Counts: []Count{{Life: 1, Alive: 2},
				{Life: 2, Lost: 3, Done: 1, Failed: true}}, Term2: 7, Version: 8},
		{From: 0, To: 1, Seat: 1, Voter: 3, Way: 5, Hops: 2},
		{From: 0, To: 1, Seat: Watch, Beat: true, Voter: 1, View: view},
	}
}

// What is sent is what arrives.
func TestWire(t *testing.T) {
	cfg := fuzzed()
	for _, m := range messages() {
		got, err := Decode(m.Encode(), &cfg)
		if err != nil {
			t.Errorf("%+v: %v", m, err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Error(d)
		}
		if s, ok := SlotOf(m.Encode()); !ok || s != m.Slot() {
			t.Errorf("%+v is about %+v (%v), not %+v", m, s, ok, m.Slot())
		}
	}
	for i, b := range [][]byte{nil, {wireVersion}, {wireVersion, 1, 0, 0},
		{wireVersion + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if s, ok := SlotOf(b); ok {
			t.Errorf("%d: what is no message is about %+v", i, s)
		}
	}
	wrong := messages()[0]
	wrong.To = 4 // there are four
	if _, err := Decode(wrong.Encode(), &cfg); err == nil {
		t.Error("a message to an agent that is not there was taken")
	}
	if _, err := Decode([]byte{wireVersion + 1}, &cfg); err == nil {
		t.Error("a message of another version was taken")
	}
}

// Whatever comes is a message that the machine takes, or an error; a message stays what it is.
func FuzzDecode(f *testing.F) {
	for _, m := range messages() {
		f.Add(m.Encode(), m.Encode())
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		cfg := fuzzed()
		machine := New(cfg, 0)
		now := int64(0)
		for _, b := range [][]byte{one, other, one} {
			m, err := Decode(b, &cfg)
			if err != nil {
				continue
			}
			if s, ok := SlotOf(b); !ok || s != m.Slot() {
				t.Errorf("%+v is about %+v (%v), not %+v", m, s, ok, m.Slot())
			}
			again, err := Decode(m.Encode(), &cfg)
			if err != nil || !cmp.Equal(m, again) {
				t.Errorf("%v: %s", err, cmp.Diff(m, again))
			}
			for now += 150; machine.Deadline() < now; {
				machine.Step(Tick{}, machine.Deadline())
			}
			machine.Step(Received{m}, now)
		}
	})
}
