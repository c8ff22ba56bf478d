package manage

import (
	"fmt"
	"testing"
)

// The process of a machine dies, and another one begins 20 ms later, without its memory: that of
// the system's master, or of a cluster's. Another agent has the seat within about a second if there
// is one, and else the same, and a cluster that cannot go on from the same moment is decided about,
// once.
func TestProcessDies(t *testing.T) {
	alone := func() *world { return star(1, goesOn("a", 0), goesOn("b", 0)) }
	three := func() *world { return star(3, goesOn("a", 0), goesOn("b", 1), goesOn("c", 2)) }
	two := func() *world { return star(2, goesOn("a", 0), goesOn("b", 1)) }
	wide := func() *world {
		return star(4, goesOn("a", 1, 2, 3), goesOn("b", 0),
			goesOn("c", 2, 3))
	}
	for name, build := range map[string]func() *world{"alone": alone, "two": two, "three": three,
		"wide": wide} {
		for seed := range uint64(20) {
			w, most := build(), 5 // messages that it still sends
			if name == "alone" {
				most, w.now, w.cfg.BeatMS, w.cfg.LimitMS = 2, 1, 10000, 40000
				w.again(nil)
			}
			w.running()
			w.must(t, name+": begin", 1500, all(Running))
			var worst int64
			for k, c := range []int{0, 1} {
				before := w.machines[0].View()
				master := before.Master
				w.count(w.cfg.Clusters[c].Agents[0], c,
					Count{Life: 1, Alive: 1, Lost: 1, Failed: true})
				w.kill(master, int(seed)%most, 20)
				took := w.must(t, fmt.Sprint(name, ", ", seed, ": its process is dead ", k), 1300,
					func(v View) bool {
						return v.Term > before.Term && v.Master >= 0 && v.Clusters[c].State == Dead
					})
				worst = max(worst, took)
				if after := w.machines[0].View(); name == "three" || name == "wide" {
					if after.Master == master || after.Master == 0 {
						t.Errorf("%s: agent %d is the master behind %d", name, after.Master, master)
					}
				}
			}
			if seed == 0 {
				t.Logf("%s: another master has judged after at most %d ms", name, worst)
			}
		}
	}
}

// A restarted process keeps the promises of its predecessor, and requests nothing that other agents
// hold.
func TestPastKeeps(t *testing.T) {
	w := star(3, goesOn("a", 0), goesOn("b", 1), goesOn("c", 2))
	w.running()
	w.must(t, "begin", 1500, all(Running))
	before := w.machines[0].View()
	for range 30 { // none of these has the system's seat, and its holder needs the vote of one
		for _, a := range []int{0, 2} {
			w.kill(a, 0, 5)
			w.run(w.now + 70)
		}
		if !w.machines[before.Master].Holds(System, w.now) {
			t.Fatal("the system's master has lost its seat by the death of others")
		}
	}
	w.must(t, "the end", 300, func(v View) bool {
		return v.Term == before.Term &&
			v.Master == before.Master
	})
}

// Promises to other agents hold beyond the death, for as long as they would have; the agent that
// has the promise need not wait. Promises of the dead machine to itself are void.
func TestPastPromises(t *testing.T) {
	cfg := star(4, goesOn("a", 1, 2, 3), goesOn("b", 0)).cfg
	cfg.Self = 1
	var past Past
	ask := func(m *Machine, from int, now int64) bool {
		for _, a := range m.Step(Received{Message{From: from, To: 1, Seat: 0, Term: 9, Sent: now,
			Beat: true}}, now) {
			if s, ok := a.(Send); ok && !s.Message.Beat && s.Message.To == from {
				past.Sent(&s.Message, &cfg, now)
				return s.Message.Granted
			}
		}
		t.Fatal("no answer")
		return false
	}
	m := New(cfg, 0)
	m.Step(Tick{}, 1) // it is the first candidate, and promises itself
	m = Revive(cfg, past, 2)
	if !ask(m, 2, 3) {
		t.Error("a promise of the dead to itself holds")
	}
	for now := int64(10); now < 3+cfg.LimitMS; now += 50 {
		m = Revive(cfg, past, now)
		if ask(m, 3, now) {
			t.Fatalf("the promise is broken after %d ms", now-3)
		}
	}
	m = Revive(cfg, past, 350)
	if !ask(m, 2, 351) {
		t.Error("the one to whom it was promised is refused")
	}
	if m = Revive(cfg, past, 400); ask(m, 3, 750) || !ask(m, 3, 752) {
		t.Error("the promise was renewed at 351 ms, and is to hold until 751 ms")
	}
	if m = Revive(cfg, Past{Quiet: 500}, 400); ask(m, 3, 499) || !ask(m, 3, 500) {
		t.Error("it has promised something before what was promised before it has run out")
	}
}

// A process is stopped, and continues when other agents have its seats: it no longer acts in them
// (check).
func TestProcessStops(t *testing.T) {
	for pause := int64(50); pause < 1500; pause += 75 {
		w := star(3, goesOn("a", 0), goesOn("b", 1), goesOn("c", 2))
		w.running()
		w.must(t, "begin", 1500, all(Running))
		w.stop(w.machines[0].View().Master, pause)
		w.run(w.now + pause)
		w.must(t, fmt.Sprint("behind ", pause, " ms"), 1500, all(Running))
	}
}

// Processes of machines die between their messages, and are stopped, while messages are
// lost and late, networks cut and clusters started again: two never act in one seat, no view goes
// back, and when it ends all agree, on as many starts as there were deaths.
func TestStormOfProcesses(t *testing.T) {
	lives := 0
	for seed := range uint64(60) {
		s := shape{clusters: 1 + int(seed%5), hosts: 1 + int(seed%4), procs: 2, apart: seed%2 == 1,
			iop: seed%3 == 0, onDeath: RestartIt, restarts: 1000}
		w := build(s, seed)
		w.cfg.FenceMS, w.cfg.SilentMS = 0, 1<<40
		for i := range w.machines {
			w.machines[i].cfg.FenceMS, w.machines[i].cfg.SilentMS = 0, 1<<40
		}
		w.must(t, "begin", 3000, all(Running))
		for range 40 {
			w.lossy, w.slowMS = w.rand.Float64()*0.4, 1+w.rand.Int64N(300)
			for n := range s.clusters {
				w.cut[n] = w.rand.IntN(6) == 0
			}
			for range 1 + w.rand.IntN(3) {
				switch a := w.rand.IntN(len(w.machines)); w.rand.IntN(4) {
				case 0:
					w.stop(a, w.rand.Int64N(700))
				case 1:
					a = max(w.machines[a].View().Master, 0)
					fallthrough
				default:
					if !w.shells[a].down {
						w.kill(a, w.rand.IntN(8), w.rand.Int64N(700))
					}
				}
			}
			w.run(w.now + w.rand.Int64N(700))
		}
		clear(w.cut)
		w.lossy, w.slowMS = 0, 3
		w.run(w.now + 1000)
		for c, cl := range w.cfg.Clusters { // the deaths that are to be decided about
			if w.rand.IntN(2) == 0 {
				n := w.counts[cl.Agents[0]][c]
				w.count(cl.Agents[0], c, Count{Life: n.Life, Alive: 1, Lost: 1})
				w.kill(cl.Agents[0], w.rand.IntN(4), w.rand.Int64N(300))
			}
		}
		w.must(t, fmt.Sprint("seed ", seed, " after the storm"), 8000,
			func(v View) bool { return v.Master >= 0 && all(Running)(v) })
		for i := range w.shells {
			lives += w.shells[i].lives
		}
	}
	t.Logf("%d processes began anew", lives)
}
