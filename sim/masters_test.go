package sim

import "testing"

// The management tree of many clusters: it comes about, all learn of a death within a second, and nobody is asked for more than a master of few clusters.
func TestMasters(t *testing.T) {
	loads := map[int]Loads{}
	for _, iop := range []bool{false, true} {
		for _, clusters := range []int{2, 8, 32} {
			l, err := Masters{Clusters: clusters, Processes: 2000, PerHost: 16, IOP: iop, Changes: 50}.Run(2000, 1)
			if err != nil {
				t.Fatalf("%d clusters, beside I/O processes: %v: %v", clusters, iop, err)
			}
			t.Logf("%d clusters, beside I/O processes: %v: %+v", clusters, iop, l)
			if l.Delay > 1000 {
				t.Errorf("a death was known everywhere after %.0f ms", l.Delay)
			}
			loads[clusters] = l
		}
		if few, many := loads[2], loads[32]; many.System.Messages > 1.5*max(few.System.Messages, few.Cluster.Messages) {
			t.Errorf("the system's master of 32 clusters has %.0f messages in a second, that of 2 has %.0f", many.System.Messages, few.System.Messages)
		}
	}
}

// All messages of the masters pass through one agent, as those of a system do that spxrun has started. Where that hands them on more slowly than they come, or not at all for a while, it holds no more of them than there are masters that
// have something to say to each other; and when it goes on, all agree again.
func TestMastersThroughOne(t *testing.T) {
	m := Masters{Clusters: 8, Processes: 2000, PerHost: 16, Hub: 20}
	g := m.build(1)
	hosts := 0
	bound := 3 * m.Clusters * m.Clusters // what masters of clusters say to each other: beats, answers, reports
	for _, c := range g.cfg.Clusters {
		hosts += len(c.Agents)
		bound += 3 * len(c.Agents) * len(c.Agents) // all of a cluster may want to be its master
	}
	g.until(3000)
	if err := g.agree(); err != nil {
		t.Fatal(err)
	}
	if g.hub.Most() > 4*hosts {
		t.Errorf("%d messages of %d hosts waited for an agent that hands on as many as come", g.hub.Most(), hosts)
	}

	g.still = true
	g.until(g.now + 10000)
	most := g.hub.Most()
	g.until(g.now + 30000)
	spared := g.hub.Spared()
	t.Logf("%d hosts: %d messages wait after 10 s in which none was handed on, %d after 40 s, and %d were replaced by newer ones", hosts, most, g.hub.Most(), spared)
	if g.hub.Most() > bound || g.hub.Most() > most+most/10 || spared < uint64(10*most) {
		t.Errorf("%d messages wait after 10 s, %d after 40 s; there are %d different ones at most, and %d were replaced", most, g.hub.Most(), bound, spared)
	}

	g.still = false
	g.turnHub()
	g.until(g.now + 5000)
	if err := g.agree(); err != nil {
		t.Errorf("5 s after it goes on: %v", err)
	}
	slow := Masters{Clusters: 8, Processes: 2000, PerHost: 16, Hub: 1} // a third of what comes
	g = slow.build(1)
	g.until(40000)
	if g.hub.Most() > bound {
		t.Errorf("%d messages wait for one that hands on 1,000 in a second; there are %d different ones at most", g.hub.Most(), bound)
	}
	t.Logf("of %d a second, %d wait at most", 1000*slow.Hub, g.hub.Most())
}
