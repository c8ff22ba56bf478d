package manage

import (
	"fmt"
	"testing"
)

func all(state State) func(View) bool {
	return func(v View) bool {
		for _, c := range v.Clusters {
			if c.State != state {
				return false
			}
		}
		return true
	}
}

func (w *world) must(t *testing.T, what string, limit int64, is func(View) bool) int64 {
	t.Helper()
	took := w.within(limit, is)
	if took < 0 {
		t.Fatalf("%s: not after %d ms: %s", what, limit, w.settled(is))
	}
	for _, text := range w.wrong {
		t.Error(text)
	}
	return took
}

var shapes = map[string]shape{
	"one":     {clusters: 1, hosts: 1, procs: 4},
	"two":     {clusters: 2, hosts: 1, procs: 4, onDeath: GoOn},
	"chain":   {clusters: 4, hosts: 3, procs: 4, apart: true},
	"paper":   {clusters: 4, hosts: 3, procs: 4, apart: true, iop: true},
	"restart": {clusters: 5, hosts: 4, procs: 2, apart: true, onDeath: RestartIt, restarts: 2},
	"large":   {clusters: 8, hosts: 6, procs: 10, onDeath: GoOn},
}

// The tree comes about by itself, and every agent learns that all clusters run.
func TestBegin(t *testing.T) {
	for name, s := range shapes {
		w := build(s, 1)
		t.Logf("%s: %d agents agree after %d ms", name, len(w.machines),
			w.must(t, name, 3000, all(Running)))
	}
}

// A cluster that cannot go on is known everywhere within a second, also where networks do not meet,
// and its policy is applied.
func TestClusterDies(t *testing.T) {
	for name, s := range shapes {
		for seed := range uint64(5) {
			w := build(s, seed)
			w.must(t, name, 3000, all(Running))
			victim := s.clusters - 1
			agent := w.cfg.Clusters[victim].Agents[0]
			w.count(agent, victim, Count{Life: 1, Lost: 1, Alive: s.procs - 1})
			is := func(v View) bool {
				switch s.onDeath {
				case StopSystem:
					return v.Stopping
				case RestartIt:
					return v.Clusters[victim].Life == 2
				}
				return v.Clusters[victim].State == Dead && !v.Stopping
			}
			took := w.must(t, name+": a cluster has died", 1000, is)
			if seed == 0 {
				t.Logf("%s: known everywhere after %d ms", name, took)
			}
			if s.onDeath == RestartIt {
				w.must(t, name+": it is back", 2000, all(Running))
				for _, a := range w.cfg.Clusters[victim].Agents {
					if w.starts[a][victim] != 1 {
						t.Errorf("%s: agent %d was told %d times to start cluster %d again", name,
							a, w.starts[a][victim], victim)
					}
				}
			}
			for i := range w.machines {
				for c := range w.cfg.Clusters {
					here := w.machines[i].clusters[c] != nil
					want := here && (s.onDeath == StopSystem || s.onDeath == GoOn && c == victim)
					if w.stopped[i][c] != want {
						t.Errorf("%s: agent %d, cluster %d: told to end: %v", name, i, c,
							w.stopped[i][c])
					}
				}
			}
		}
	}
}

// Restarts are counted: then the cluster's death stops the system.
func TestRestartsEnd(t *testing.T) {
	s := shapes["restart"]
	w := build(s, 3)
	w.must(t, "begin", 3000, all(Running))
	for life := uint32(1); life <= 3; life++ {
		w.count(w.cfg.Clusters[1].Agents[1], 1, Count{Life: life, Failed: true, Lost: 2})
		w.must(t, fmt.Sprint("death ", life), 2000, func(v View) bool {
			if life == 3 {
				return v.Stopping
			}
			return v.Clusters[1].Life == life+1 && v.Clusters[1].State == Running
		})
	}
}

// Masters die, one after the other, also the system's; other agents take their places, and no seat
// has two holders.
func TestMastersDie(t *testing.T) {
	for seed := range uint64(20) {
		w := build(shape{clusters: 5, hosts: 5, procs: 2, apart: seed%2 == 0, iop: seed%4 < 2,
			onDeath: GoOn}, seed)
		for i := range w.cfg.Clusters {
			w.cfg.Clusters[i].Degrade = true
		}
		w.must(t, "begin", 3000, all(Running))
		var worst int64
		for range 2 {
			master := w.machines[0].View().Master
			if len(w.cfg.Agents[master].Networks) > 1 { // the only way between two networks
				break
			}
			w.die(master)
			if seed%3 == 0 {
				w.certain(master)
			}
			worst = max(worst, w.must(t, fmt.Sprint("seed ", seed, ": agent ", master, " is dead"),
				6000, func(v View) bool { return v.Master != master }))
		}
		if seed == 1 {
			t.Logf("a new system's master after at most %d ms", worst)
		}
	}
}

// A silent cluster is dead for the other clusters; when it is heard again it joins.
func TestSilentCluster(t *testing.T) {
	w := build(shape{clusters: 4, hosts: 3, procs: 2, apart: true, onDeath: RestartIt, restarts: 3},
		5)
	w.must(t, "begin", 3000, all(Running))
	w.cut[3] = true // the network of the last cluster
	took := w.must2(t, 1000, func(v View) bool { return v.Clusters[3].State == Dead },
		w.cfg.Clusters[3].Agents)
	t.Logf("a silent cluster is known to be dead after %d ms", took)
	w.run(w.now + 4000)
	for _, a := range w.cfg.Clusters[3].Agents {
		if w.fences[a] == 0 {
			t.Errorf("agent %d of the cluster that is cut off goes on", a)
		}
	}
	w.cut[3] = false
	w.must(t, "joined again", 5000, func(v View) bool {
		return v.Clusters[3].Life == 2 &&
			all(Running)(v)
	})
}

// The system breaks in two, and its master is in the smaller part: the larger part has another one,
// and never do two act at a time (check). The smaller part decides nothing more, whatever dies
// there, and ends its processes; the larger one goes on. When they meet again there is one system,
// with the decisions of the larger part.
func TestSplitBrain(t *testing.T) {
	for seed := range uint64(20) {
		const hosts, small = 3, 2 // clusters of the smaller part
		s := shape{clusters: 5, hosts: hosts, procs: 2, apart: seed%2 == 0, iop: seed%4 < 2,
			onDeath: RestartIt, restarts: 3}
		w := build(s, seed)
		w.must(t, "begin", 3000, all(Running))
		old := w.machines[0].View().Master
		if old >= small*hosts {
			t.Fatalf("seed %d: the master is agent %d, of a cluster of the larger part", seed, old)
		}
		var one, other []int
		for i := range w.machines {
			if i < small*hosts {
				one = append(one, i)
			} else {
				other = append(other, i)
			}
		}
		w.split = small * hosts
		w.run(w.now + w.cfg.LimitMS) // its lease has run out
		before := w.machines[old].View()
		// no agent may decide about this cluster here
		w.count(one[0], 0, Count{Life: 1, Alive: 1, Lost: 1})
		took := w.must2(t, 3000, func(v View) bool {
			return v.Master >= small*hosts &&
				v.Clusters[0].State != Running
		}, one)
		if seed < 4 {
			t.Logf("seed %d: the larger part has decided after %d ms more", seed, took)
		}
		w.run(w.now + w.cfg.FenceMS)
		for _, i := range one {
			if v := w.machines[i].View(); v.newer(&before) {
				t.Errorf(
					"seed %d: agent %d of the smaller part has the view %d.%d, decided after %d.%d",
					seed, i, v.Term, v.Version, before.Term, before.Version)
			}
			if w.fences[i] == 0 || w.starts[i][0]+w.starts[i][1] != 0 {
				t.Errorf(
					"seed %d: agent %d of the smaller part was told %d times to end its "+
						"processes, and %d times to start some", seed, i, w.fences[i],
					w.starts[i][0]+w.starts[i][1])
			}
		}
		for _, i := range other {
			if w.fences[i] != 0 || len(w.stopped[i]) != 0 {
				t.Errorf("seed %d: agent %d of the larger part was told to end processes", seed, i)
			}
		}
		w.split = 0
		w.must(t, fmt.Sprint("seed ", seed, ": they meet again"), 6000, func(v View) bool {
			return all(Running)(v) && v.Clusters[0].Life == 2 && v.Clusters[1].Life == 2 &&
				v.Clusters[2].Life == 1
		})
	}
}

// must2 is must for agents that are not cut off.
func (w *world) must2(t *testing.T, limit int64, is func(View) bool, but []int) int64 {
	t.Helper()
	begin := w.now
	for ; w.now-begin <= limit; w.run(w.now + 10) {
		ok := true
		for i := range w.machines {
			off := false
			for _, b := range but {
				off = off || b == i
			}
			ok = ok && (off || is(w.machines[i].View()))
		}
		if ok {
			return w.now - begin
		}
	}
	t.Fatalf("not after %d ms", limit)
	return 0
}

// Whatever is lost, late, cut or dead: two never act in one seat, views never go back; and when it
// ends all agree again.
func TestStorm(t *testing.T) {
	for seed := range uint64(40) {
		s := shape{clusters: 2 + int(seed%4), hosts: 1 + int(seed%5), procs: 2, apart: seed%2 == 1,
			iop: seed%3 == 0, onDeath: GoOn}
		w := build(s, seed)
		w.cfg.FenceMS = 0
		for range 30 {
			w.lossy, w.slowMS = w.rand.Float64()*0.5, 1+w.rand.Int64N(600)
			for n := range s.clusters {
				w.cut[n] = w.rand.IntN(4) == 0
			}
			w.run(w.now + w.rand.Int64N(1500))
		}
		clear(w.cut)
		w.lossy, w.slowMS = 0, 3
		w.must(t, fmt.Sprint("seed ", seed, " after the storm"), 8000,
			func(v View) bool { return v.Master >= 0 })
	}
}
