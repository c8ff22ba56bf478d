package manage

import "testing"

// star makes a system as spxrun starts it: agent 0 reaches all others, which reach only it, and is
// indispensable.
func star(hosts int, clusters ...Cluster) *world {
	w := build(shape{clusters: len(clusters), hosts: 1, procs: 1}, 7)
	w.cfg = Config{BeatMS: 100, LimitMS: 400, SilentMS: 1 << 40, Agents: make([]Agent, hosts),
		Clusters: clusters}
	w.cfg.Agents[0].Last = true
	for i := 1; i < hosts; i++ {
		w.cfg.Agents[i].Networks = []int{i}
		w.cfg.Agents[0].Networks = append(w.cfg.Agents[0].Networks, i)
	}
	return w.again(nil)
}

// again makes all machines anew, of the present configuration.
func (w *world) again(view *View) *world {
	w.machines, w.queue, w.terms = nil, nil, map[uint64][2]int{}
	w.alive, w.seen, w.counts = nil, nil, nil
	w.stopped, w.starts, w.fences, w.lastTick, w.shells = nil, nil, nil, nil, nil
	for i := range w.cfg.Agents {
		own := w.cfg
		own.Self = i
		m := New(own, w.now)
		if view != nil {
			m = Resume(own, *view, w.now)
		}
		w.machines, w.alive, w.seen = append(w.machines, m), append(w.alive, true),
			append(w.seen, View{})
		w.counts, w.stopped, w.starts = append(w.counts, make([]Count, len(w.cfg.Clusters))),
			append(w.stopped, map[int]bool{}), append(w.starts, map[int]uint32{})
		w.fences, w.lastTick = append(w.fences, 0), append(w.lastTick, -1)
		past := Past{}
		if view != nil {
			past.View, past.Quiet = *view, w.now+w.cfg.LimitMS
		}
		w.shells = append(w.shells, shell{past: past, dying: -1})
		w.post(w.now, i, -1, Tick{})
	}
	return w
}

func goesOn(name string, agents ...int) Cluster {
	return Cluster{Name: name, Agents: agents, Candidates: agents, Want: 2, Told: true,
		OnDeath: GoOn}
}

func (w *world) running() {
	for c, cl := range w.cfg.Clusters {
		for _, a := range cl.Agents {
			w.count(a, c, Count{Life: 1, Alive: 2})
		}
	}
}

// The indispensable agent is the master when no other is left; the others die one after the other,
// with their clusters, and each time one is found within a second.
func TestStar(t *testing.T) {
	w := star(4, goesOn("a", 0), goesOn("b", 1), goesOn("c", 2), goesOn("d", 3))
	w.running()
	w.must(t, "begin", 1500, all(Running))
	for i, want := range []int{1, 2, 3, 0} {
		if got := w.machines[0].View().Master; got != want {
			t.Fatalf("the master is agent %d, not %d", got, want)
		}
		if want == 0 {
			break
		}
		w.die(want)
		for k := range w.machines {
			w.post(w.now+1, k, -1, Gone{want})
		}
		took := w.must(t, "its death", 1300, func(v View) bool {
			return v.Master != want &&
				v.Clusters[want].State == Dead && !v.Stopping
		})
		t.Logf("death %d: another master has judged after %d ms", i, took)
	}
}

// A cluster on two hosts loses its master, and has another one; an agent that belongs to no cluster
// learns it, too. The counting agent reports a cluster that cannot continue.
func TestToldAndApart(t *testing.T) {
	w := star(4, goesOn("a", 1, 2), Cluster{Name: "b", Agents: []int{3}, Candidates: []int{3},
		Want: 2, Told: true, OnDeath: RestartIt, Restarts: 1})
	w.running()
	w.must(t, "begin", 1500, all(Running))
	w.count(2, 0, Count{Life: 1, Alive: 1, Lost: 1})
	w.must(t, "a rank is lost", 300, func(v View) bool { return v.Clusters[0].State == Degraded })
	w.die(1)
	for k := range w.machines {
		w.post(w.now+1, k, -1, Gone{1})
	}
	w.must(t, "the master of a cluster has died", 1300, func(v View) bool {
		return v.Clusters[0].Master == 2 && v.Master == 2 && v.Clusters[0].State == Degraded
	})
	w.count(3, 1, Count{Life: 1, Lost: 2, Failed: true})
	w.must(t, "it cannot go on", 300, func(v View) bool {
		return v.Clusters[1].Life == 2 &&
			v.Clusters[1].State == Starting
	})
	w.die(3)
	for k := range w.machines {
		w.post(w.now+1, k, -1, Gone{3})
	}
	w.run(w.now + 1000)
	if v := w.machines[0].View(); v.Clusters[1].Life != 2 || v.Stopping {
		t.Errorf("nobody could start it again, and the view is %+v", v)
	}
}

// Agents are added to a system: no promise is made before the old ones have expired, and the view
// continues from the old one.
func TestResume(t *testing.T) {
	w := star(1, goesOn("a", 0), goesOn("b"))
	w.running()
	w.must(t, "alone", 100, func(v View) bool { return v.Clusters[0].State == Running })
	view := w.machines[0].View()
	w.cfg.Agents[0].Networks = []int{1}
	w.cfg.Agents = append(w.cfg.Agents, Agent{Networks: []int{1}})
	w.cfg.Clusters[1] = goesOn("b", 1)
	began := w.now
	w.again(&view).running()
	for w.now-began < w.cfg.LimitMS {
		if w.machines[0].Holds(System, w.now) || w.machines[1].Holds(System, w.now) {
			t.Fatalf("there is a master %d ms after the change", w.now-began)
		}
		w.run(w.now + 10)
	}
	w.must(t, "together", 1500, func(v View) bool {
		return v.newer(&view) && all(Running)(v) &&
			v.Master == 1
	})
}
