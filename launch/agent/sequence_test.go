package agent

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"libspx/ft/replica"
	"libspx/launch/control"
	"libspx/launch/follow"
	"libspx/launch/job"
	"libspx/net/tcp"
)

// copies are agents on this host that keep copies of a job's machine.
type copies struct {
	t    *testing.T
	list []*sequence
	mesh control.Mesh
	cfg  job.Config
}

func newCopies(t *testing.T, n int) *copies {
	c := &copies{t: t, mesh: control.Mesh{Name: "h"},
		cfg: job.Config{Host: "h", Procs: n, OnDeath: job.Continue, Detach: true}}
	for range n {
		c.add()
	}
	c.mesh.First = c.mesh.Members
	for _, s := range c.list {
		s.begin(replica.Config{Self: s.self, First: c.mesh.First, Seed: 7}, c.cfg, &c.mesh)
	}
	return c
}

// add makes one more, that has not begun.
func (c *copies) add() *sequence {
	here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	fd, port, err := portRange{}.listen(here, 8)
	if err != nil {
		c.t.Fatal(err)
	}
	s := &sequence{self: len(c.list), began: time.Now()}
	if s.mesh, err = openMesh(fd, netip.AddrPortFrom(here, port), [16]byte{1}, [32]byte{2}, s.self,
		s.hear); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(s.mesh.close)
	c.list = append(c.list, s)
	c.mesh.At, c.mesh.Members = append(slices.Clone(c.mesh.At), s.mesh.at),
		append(slices.Clone(c.mesh.Members), s.self)
	return s
}

// await waits until something is so of all agents of a list.
func (c *copies) await(what string, list []int, is func(*control.Copy) bool) {
	c.t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		i := slices.IndexFunc(list, func(n int) bool { return !is(c.list[n].state()) })
		if i < 0 {
			return
		}
		if time.Now().After(limit) {
			c.t.Fatalf("%s: host %d is %+v", what, list[i], c.list[list[i]].state())
		}
	}
}

// awaitVoters waits until so many of those that are there vote.
func (c *copies) awaitVoters(want int) {
	c.t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		n := 0
		for _, i := range c.mesh.Members {
			n += boolInt(c.list[i].state().Votes)
		}
		if n == want {
			return
		}
		if time.Now().After(limit) {
			c.t.Fatalf("%d of %d hosts vote, want %d", n, len(c.mesh.Members), want)
		}
	}
}

// Copies follow the machine of the agent that decides, over real connections: when one comes late,
// when a minority goes, and when the host goes on whose agent gives the entries their order.
func TestSequenceOfAgents(t *testing.T) {
	c := newCopies(t, 4)
	machine, events := job.New(c.cfg), uint64(0)
	happens := func(e job.Event) {
		events++
		now := time.Duration(events) * time.Millisecond
		machine.Step(e, now)
		c.list[0].note(follow.Note(e, now))
	}
	alike := func(list ...int) {
		t.Helper()
		digest := shortDigest(machine.Digest())
		c.await("the same copy", list, func(s *control.Copy) bool {
			return s.Has && s.Events == events && s.Digest == digest
		})
	}
	for i := range 4 {
		happens(job.Started{Proc: i, Pid: 100 + i, Host: "h"})
	}
	happens(job.AllStarted{})
	alike(0, 1, 2, 3)
	c.await("a leader", []int{0, 1, 2, 3}, func(s *control.Copy) bool { return s.Leader >= 0 })
	c.awaitVoters(3)

	late := c.add()
	late.begin(replica.Config{Self: late.self, Seed: 7}, c.cfg, &c.mesh)
	for _, s := range c.list[:4] {
		s.meet(&c.mesh)
	}
	happens(job.Ended{Proc: 1, Owner: job.OwnerInit, Wait: job.Wait{Signal: job.SIGKILL},
		OtherMPI: true})
	alike(0, 1, 2, 3, 4)
	c.awaitVoters(5)

	// one that follows, as a rule, and the one that leads, if that is not the one that writes
	// events down
	for _, gone := range []int{1, c.list[0].state().Leader} {
		if gone == 0 || !slices.Contains(c.mesh.Members, gone) {
			continue
		}
		c.list[gone].mesh.close()
		c.mesh.At = slices.Clone(c.mesh.At)
		c.mesh.At[gone] = netip.AddrPort{}
		c.mesh.Members = slices.DeleteFunc(slices.Clone(c.mesh.Members),
			func(n int) bool { return n == gone })
		for _, n := range c.mesh.Members {
			c.list[n].meet(&c.mesh)
		}
		happens(job.Signalled{Signal: 10})
		alike(c.mesh.Members...)
		c.awaitVoters(3)
	}

	// The agent that decides is gone: the others agree who leads.
	c.list[0].mesh.close()
	left := slices.DeleteFunc(slices.Clone(c.mesh.Members), func(n int) bool { return n == 0 })
	leader := -1
	c.await("another leader", left, func(s *control.Copy) bool {
		leader = c.list[left[0]].state().Leader
		return leader > 0 && s.Leader == leader
	})
	alike(left...)
}

// A majority is lost at once: the agent that decides goes on, and does not keep what happens for
// ever.
func TestMajorityLost(t *testing.T) {
	c := newCopies(t, 3)
	note := func() { c.list[0].note(follow.Note(job.Signalled{Signal: 10}, time.Second)) }
	note()
	c.await("an event", []int{0, 1, 2}, func(s *control.Copy) bool { return s.Events == 1 })
	c.list[1].mesh.close()
	c.list[2].mesh.close()
	for range mostNotes + 100 {
		note()
	}
	s := c.list[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.machine.Open(); !s.hopeless || open != mostNotes {
		t.Errorf("%d events are kept, want %d", open, mostNotes)
	}
}

// The agent that decides is cut off from the others, and waits for them to have what it has noted;
// a host that it still hears says that another one decides. It waits no more, and knows who that
// is.
func TestSupersededWhileItWaits(t *testing.T) {
	c := newCopies(t, 3)
	s := c.list[0]
	told := make(chan any, 8)
	s.mu.Lock()
	s.tell = func(e any) { told <- e }
	s.mu.Unlock()
	s.note(follow.Note(job.Signalled{Signal: 10}, time.Second))
	c.await("an event", []int{0, 1, 2}, func(s *control.Copy) bool { return s.Events == 1 })
	c.list[1].mesh.close()
	c.list[2].mesh.close()
	s.note(follow.Note(job.Signalled{Signal: 12}, 2*time.Second))
	over := make(chan bool)
	go func() { over <- s.settled() }()
	s.superseded(&control.Lead{Era: 0, Host: 1})
	select {
	case settled := <-over:
		t.Fatalf("it does not wait: %v", settled)
	case <-time.After(50 * time.Millisecond):
	}
	s.superseded(&control.Lead{Era: 1, Host: 2})
	s.superseded(&control.Lead{Era: 1, Host: 2})
	select {
	case settled := <-over:
		if why, next := s.whyLeft(); settled || next != 2 || why == "" || len(told) != 1 ||
			<-told != any(mustLeave{}) {
			t.Errorf("settled: %v; out because %q, host %d decides", settled, why, next)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
}

// Who has not the job's key is refused, and counted; so is an agent of the job that says what
// another one would have to say.
func TestStrangersAtMesh(t *testing.T) {
	c := newCopies(t, 3)
	// of host 3, whose agent does not call
	c.mesh.At = append(slices.Clone(c.mesh.At), netip.MustParseAddrPort("127.0.0.1:1"))
	c.list[2].meet(&c.mesh)
	at := c.list[2].mesh.at.String()
	before := c.list[2].mesh.refusals()
	counted := func(what string, n uint64) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); c.list[2].mesh.refusals() < before+
			n; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s: %d refusals, want %d at least", what, c.list[2].mesh.refusals(),
					before+n)
			}
		}
	}
	call := func(id tcp.Identity) (verdict tcp.Verdict, err error) {
		conn, verdict, err := tcp.Dial(at, &id, tcp.Process{Number: 2})
		if err == nil && verdict == tcp.Taken {
			conn.Close()
		}
		return verdict, err
	}
	if v, err := call(meshIdentity([16]byte{1}, [32]byte{3}, 1)); err == nil {
		t.Errorf("another key: %v", v)
	}
	counted("another key", 1)
	if v, err := call(agentIdentity([16]byte{1}, [32]byte{2}, 1)); err == nil && v == tcp.Taken {
		t.Errorf("a call that is for another kind of port was taken")
	}
	before = c.list[2].mesh.refusals()
	for _, number := range []int{2, 4, 1 << 20} {
		if v, err := call(meshIdentity([16]byte{1}, [32]byte{2}, number)); err == nil &&
			v == tcp.Taken {
			t.Errorf("host %d was taken", number)
		}
	}
	counted("hosts that cannot be", 3)

	// What host 0 would say, from host 3.
	others := replica.New(replica.Config{Self: 0, First: []int{0, 1, 2}, Seed: 1,
		State: follow.NewMirror(c.cfg, 0)})
	var said []byte
	out, err := others.Step(replica.Tick{}, 1)
	for _, act := range out {
		if s, ok := act.(replica.Send); ok && s.Message.To == 2 {
			said = s.Message.Encode()
		}
	}
	if err != nil || said == nil {
		t.Fatalf("nothing to say: %v", err)
	}
	for _, text := range [][]byte{said, {1, 2, 3}, nil} {
		id := meshIdentity([16]byte{1}, [32]byte{2}, 3)
		conn, verdict, err := tcp.Dial(at, &id, tcp.Process{Number: 2})
		if err != nil || verdict != tcp.Taken {
			t.Fatalf("host 3 is not taken: %v, %v", verdict, err)
		}
		conn = sealedConn(conn)
		before = c.list[2].mesh.refusals()
		// what comes of it counts
		control.NewConn(conn).Send(&control.Message{Sequence: text}) //nolint:errcheck
		counted("false words", 1)
		// it would not end, which is seen
		conn.SetReadDeadline(time.Now().Add(time.Minute)) //nolint:errcheck
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("an answer to %q", text)
		}
		conn.Close()
	}
	c.await("the sequence goes on", []int{0, 1, 2},
		func(s *control.Copy) bool { return s.Leader >= 0 })
}

// What cannot be said of who keeps copies is left aside; what can begins the sequence, once.
func TestNonsenseMesh(t *testing.T) {
	a, _ := twoHosts(t, 1)
	// this host listens nowhere
	a.heedMesh(&control.Mesh{At: make([]netip.AddrPort, 3), First: []int{0, 1, 2},
		Members: []int{0, 1, 2}})
	a.spec.Sequence, a.address = true, netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if err := a.openSequence(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.endSequence)
	at, all := make([]netip.AddrPort, 3), []int{0, 1, 2}
	for _, m := range []control.Mesh{
		{},
		{At: at, First: all},
		{At: at, Members: all},
		{At: at, First: []int{0, 1, 3}, Members: all},
		{At: at, First: []int{0, 1, 1}, Members: all},
		{At: at, First: all, Members: []int{-1}},
		{At: at[:2], First: all, Members: all},
		{At: at, First: []int{0, 2}, Members: all}, // without this one
	} {
		if a.heedMesh(&m); a.sequence.begun() {
			t.Fatalf("%+v has begun it", m)
		}
	}
	a.heedMesh(&control.Mesh{At: at, First: all, Members: all, Name: "h"})
	if !a.sequence.begun() {
		t.Error("it has not begun")
	}
	a.heedMesh(&control.Mesh{At: append(at, at...), First: []int{5}, Members: []int{1, 5}})
	if s := a.sequence.state(); !s.Has || !s.Votes || s.Events != 0 {
		t.Errorf("%+v", s)
	}
}

// Which jobs keep copies: those of three hosts and more of which something is to survive a failure,
// and systems whose clusters are started one by one, to which hosts come.
func TestKeepsCopies(t *testing.T) {
	three := []string{"a", "b", "c"}
	for _, c := range []struct {
		spec control.Job
		want bool
	}{
		{control.Job{WithFT: true, Hosts: three}, true},
		{control.Job{Detached: true, Hosts: three}, true},
		{control.Job{Parts: make([]job.Part, 1), Hosts: three}, true},
		{control.Job{Hosts: three}, false},
		{control.Job{OnDeath: "continue", Hosts: three}, false},
		{control.Job{WithFT: true, Hosts: three[:2]}, false},
		{control.Job{WithFT: true}, false},
		{control.Job{WithFT: true, Joined: true, Hosts: three}, false},
		{control.Job{Parts: make([]job.Part, 1), Join: &control.Join{}}, true},
	} {
		if keepsCopies(&c.spec) != c.want {
			t.Errorf("%+v: want %v", c.spec, c.want)
		}
	}
}
