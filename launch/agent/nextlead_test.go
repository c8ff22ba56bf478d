package agent

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"libspx/ft/replica"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/reach"
)

// One agent begins alone, as that which leads a system whose clusters are started one by one: as
// long as it alone votes it can have no successor. With three, another one can. Who is to leave is
// heard until it votes no more: so all but one may end at once, and that one goes on.
func TestVotersLeave(t *testing.T) {
	c := &copies{t: t, mesh: control.Mesh{Name: "h"},
		cfg: job.Config{Host: "h", Procs: 3, OnDeath: job.Continue, Detach: true, Leads: true}}
	begin := func() *sequence {
		s := c.add()
		s.succeeds, s.tell = true, func(any) {}
		if c.mesh.First == nil {
			c.mesh.First = c.mesh.Members
		}
		cfg := replica.Config{Self: s.self, Seed: 7}
		if s.self == 0 {
			cfg.First = c.mesh.First
		}
		s.begin(cfg, c.cfg, &c.mesh)
		for _, o := range c.list[:s.self] {
			o.meet(&c.mesh)
		}
		return s
	}
	zero := begin()
	c.awaitVoters(1)
	begin()
	c.await("a copy", []int{1}, func(s *control.Copy) bool { return s.Has })
	for _, s := range c.list {
		if s.outlives(0) {
			t.Errorf("of two hosts %d says that one may follow the one that leads", s.self)
		}
	}
	begin()
	c.awaitVoters(3)
	c.await("three voters", []int{0, 1, 2}, func(s *control.Copy) bool { return s.Votes })
	for _, s := range c.list {
		for limit := time.Now().Add(time.Minute); !s.outlives(0) &&
			time.Now().Before(limit); time.Sleep(time.Millisecond) {
		}
		if !s.outlives(0) {
			t.Errorf("of three hosts %d says that none may follow the one that leads", s.self)
		}
	}
	c.mesh.Members = []int{0} // they are reached as before
	for _, s := range c.list {
		s.meet(&c.mesh)
	}
	began := time.Now()
	for _, s := range c.list[1:] {
		zero.without(s.self, time.Minute)
		s.mesh.close()
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	zero.note([]byte{0}) // no other agent has to know of it
	for limit := time.Now().Add(time.Minute); zero.machine.Open() > 0; time.Sleep(
		time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("what the last one writes down does not count")
		}
	}
	zero.without(7, time.Minute) // it was none
}

// leadsOn is an agent that has come to lead a system of which the first cluster, on two hosts, is
// lost; the others are on hosts 2 and 3, this one.
func leadsOn() (*agent, *legacy) {
	declared := []control.Declared{{Name: "cluster first", Cluster: "first"},
		{Name: "cluster other", Cluster: "other"}, {Name: "cluster own", Cluster: "own"},
		{Name: "I/O process x", Cluster: "other"}}
	spec := &control.Job{Hosts: []string{"m", "me@n", "other@o", "own@p", "own@q"},
		Slots: []int{1, 1, 2, 1, 1}, Self: 4,
		Programs: []control.Program{{Procs: 1, Part: 1}, {Procs: 2, Part: 2}, {Procs: 1, Part: 3},
			{Procs: 1, Part: 4}},
		Parts: []job.Part{{Name: "cluster first"}, {Name: "cluster other", Whole: job.Degrade,
			Away: true}, {Name: "cluster own", Away: true},
			{Name: "I/O process x", Serves: true, With: 2, Away: true}},
		System: &control.Join{System: "s", Cluster: "first", Hosts: 2, Declared: declared}}
	a := newAgent(spec, nil)
	a.self, a.local, a.cameAs = 4, &control.Job{Join: &control.Join{Cluster: "own"}},
		&control.Arrival{Cluster: "own"}
	a.spec.Join, a.meeting = &control.Join{Cluster: "own", Declared: declared}, &meeting{}
	for part, procs := range map[int][]int{1: {0}, 2: {1, 2}, 3: {3}, 4: {4}} {
		for _, p := range procs {
			*a.rank(p) = rank{pidfd: -1, part: part}
		}
	}
	m := job.New(job.Config{Procs: 5, Parts: spec.Parts, Leads: true})
	for _, e := range []job.Event{job.Attached{Part: 2}, job.Spawned{Proc: 1, Part: 2},
		job.Spawned{Proc: 2, Part: 2, Rank: 1},
		job.Ended{Proc: 1, Owner: job.OwnerFinalized, Wait: job.Wait{Code: 3}},
		job.Ended{Proc: 2, Owner: job.OwnerInit, Wait: job.Wait{Signal: 9}}} {
		m.Step(e, 0)
	}
	a.machine = m
	return a, &legacy{machine: m}
}

// Who belongs to which cluster, which of them has begun, and with what its processes have ended, an
// agent knows that comes to lead; where they are to run the cluster's agent says, and nothing of
// another cluster.
func TestClusterOfHost(t *testing.T) {
	a, l := leadsOn()
	for n, name := range a.spec.Hosts[:4] {
		h := newRemoteHost(n, name)
		a.others = append(a.others, h)
		if n == 1 {
			a.enterHost(h, route{way: calls, home: 0})
			continue
		}
		a.ofCluster(h, l)
	}
	first, also, other, before := a.others[0], a.others[1], a.others[2], a.others[3]
	if g := first.attached; g == nil || g.cluster != "first" || !g.begun ||
		!slices.Equal(g.hosts, []*remoteHost{first, also}) || also.kin != g ||
		also.attached != nil || len(first.members()) > 0 {
		t.Errorf("hosts %s, %s: %+v, %+v", first.name, also.name, first, also)
	}
	if g := other.attached; g == nil || g.cluster != "other" ||
		!slices.Equal(g.parts, []int{2, 4}) || !g.begun {
		t.Errorf("%+v", g)
	} else if status, death := a.statusOf(g); status != 3 || death != 137 {
		t.Errorf("status %d, of the first death %d", status, death)
	}
	if before.isExternal() || a.homeOf(3) != nil || a.homeOf(4) != other || a.homeOf(1) == nil {
		t.Error("this agent's own cluster counts as another one's, or another one's as its own")
	}
	at := netip.MustParseAddr("10.0.0.7")
	a.standsAs(other, &control.Arrival{Cluster: "own", At: at})
	a.standsAs(other, nil)
	a.standsAs(before, &control.Arrival{Cluster: "other", At: at})
	if other.at.IsValid() || other.attached.at != nil {
		t.Error("what is not said of that cluster is taken")
	}
	a.standsAs(other, &control.Arrival{Cluster: "other", Host: "o", At: at,
		Reach: reach.Host{Name: "o"}})
	if d := cmp.Diff(map[string][]int{"cluster other": {0, 0}, "I/O process x": {0}},
		other.attached.at); d != "" || other.at != at || other.reach == nil {
		t.Errorf("at %v: (-want +got)\n%s", other.at, d)
	}
	if own := a.firstHosts(3); !slices.Equal(own, []int{4}) {
		t.Errorf("the own cluster runs on %v", own)
	}
	if a.ownPlaces(2) != nil {
		t.Error("another cluster is placed here")
	}
}

// Who may lead: the agent of a cluster's spxrun that has come by itself. Others in the network of
// all are told that they keep no copy, and by whom they hear of it when another one leads; and all,
// of a system, what is needed to lead it.
func TestMayLead(t *testing.T) {
	alone := func() *remoteHost {
		h := newRemoteHost(3, "other@o")
		h.attached = &externalCluster{cluster: "other", come: &control.Arrival{Cluster: "other"}}
		return h
	}
	a, _ := leadsOn()
	for what, c := range map[string]struct {
		change      func(*remoteHost)
		may, called bool
		above       int
	}{
		"alone": {func(*remoteHost) {}, true, true, 4},
		"of several hosts": {func(
			h *remoteHost) {
			h.attached.come.Hosts = make([]control.Host, 1)
		}, true, true, 4},
		"another host of that": {func(h *remoteHost) { h.of, h.attached = alone(), nil },
			false, true, 3},
		"it has come through another":   {func(h *remoteHost) { h.via = alone() }, false, false, 3},
		"of the cluster that has begun": {func(h *remoteHost) { h.attached = nil }, false, true, 4},
	} {
		h := alone()
		c.change(h)
		spec := &control.Job{Sequence: true, Succeeds: true}
		a.forExternal(spec, h)
		if h.mayLead() != c.may || spec.Beside == c.may || spec.Above != c.above ||
			spec.Sequence != c.called || !spec.Succeeds || (spec.System != nil) != h.isExternal() {
			t.Errorf("%s: %+v", what, spec)
		}
		if s := spec.System; s != nil && (s.Cluster != "first" || s.Hosts != 2 ||
			len(s.Declared) != 4 || s.Key != [32]byte{}) {
			t.Errorf("%s: %+v", what, s)
		}
	}
	apart := alone()
	apart.number = 2
	a.sequence, a.others = &sequence{}, []*remoteHost{apart}
	a.places.pairs = make([][]netip.Addr, 5)
	for _, n := range []int{3, 4} {
		a.places.pairs[n] = slices.Repeat([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, 5)
	}
	apart.copies, apart.mesh = true, netip.MustParseAddrPort("10.1.0.1:7")
	h := alone()
	if a.besideFor(&control.Job{}, h); !h.copies {
		t.Error("one that all voters reach keeps no copy")
	}
	a.places.pairs[2] = make([]netip.Addr, 5)
	if a.besideFor(&control.Job{}, h); h.copies {
		t.Error("one that a voter does not reach keeps a copy")
	}
	a.sequence = nil
	a.spec.System, a.others = nil, []*remoteHost{newRemoteHost(1, "n"), alone()} // as the first one
	spec := &control.Job{}
	if a.forExternal(spec, alone()); spec.System.Cluster != "own" || spec.System.Hosts != 2 {
		t.Errorf("%+v", spec.System)
	}
}

// A copy is of the job as it has begun: parts that were added come as events.
func TestPartsOfFirst(t *testing.T) {
	a := newAgent(&control.Job{Parts: make([]job.Part, 3),
		Programs: []control.Program{{}, {}, {Added: true}}}, nil)
	if n := len(a.partsOfFirst()); n != 2 {
		t.Errorf("%d parts, of 2", n)
	}
}
