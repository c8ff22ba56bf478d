package agent

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"libspx/cluster/manage"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/muster"
	"libspx/launch/reach"
	"libspx/launch/service"
)

// A cluster of several hosts that is attached to a system. The agent of its spxrun's host starts
// the agents of the other hosts, as that of a job does, before it calls the deciding agent (package
// muster); they are hosts of the job then, and exchange the messages of a job's hosts through this
// agent: the deciding agent may have no route to them, and has no use for their output. So reports
// go up, and orders come down, by a tree: host, host of the cluster's spxrun, deciding host. The
// output of their processes is printed here. When this agent goes, its shells go, and they end
// their processes.

// company is what this agent has of the other hosts of its cluster.
type company struct {
	// guarded by mu: by number in the cluster, from 1, and clusters that have called (callers.go)
	hosts   []*remoteHost
	machine *muster.Machine
	done    bool  // all are there, or will not be
	failure error // then: why
	called  bool  // the one that decides is called again

	mu  sync.Mutex
	up  upper    // guarded by mu: to the one that decides; nil: none is known yet
	key [32]byte // guarded by mu: of the job
	job []int    // guarded by mu: numbers of the hosts in the job; 0: not known yet

	over   map[int]bool // guarded by mu: those whose agents have ended
	behind passages     // when this agent has come to decide: to those hosts

	beating *heartbeat // guarded by mu: of this host
	callers []net.Conn // guarded by mu: with clusters that have called
	// guarded by mu: after which the kernel ends one of these; 0: as after the call
	patience time.Duration
}

// memberSaid is what another host of the cluster has said of itself, before all were there, or its
// end.
type memberSaid struct {
	from *remoteHost
	here bool // its agent has answered; else it has ended
}

// arrival describes this agent's cluster to the deciding agent.
func (a *agent) arrival() *control.Arrival {
	j := a.spec.Join
	out := &control.Arrival{Version: control.Version, Host: a.host, Cluster: j.Cluster,
		Whole: j.Whole, Declared: j.Declared, Offer: j.Offer, Reach: a.describeOwn()}
	if a.spec.Iface != "" && len(out.Reach.Addresses) > 0 {
		out.At = out.Reach.Addresses[0].Addr
	}
	if len(a.spec.Slots) > 0 {
		out.Slots = a.spec.Slots[0]
	}
	for n, name := range a.spec.Hosts {
		if n > 0 {
			out.Hosts = append(out.Hosts, control.Host{Name: name, Slots: a.spec.Slots[n]})
		}
	}
	proc := 0
	for k := range a.spec.Programs {
		p := &a.spec.Programs[k]
		if d := j.Declared[p.Part-1]; d.Cluster == j.Cluster {
			on := control.Placed{Part: d.Name}
			for i := range p.Procs {
				on.On = append(on.On, a.spec.Host(proc+i))
			}
			out.Placed = append(out.Placed, on)
		}
		proc += p.Procs
	}
	return out
}

// describeOwn describes this host to an agent that does not have the interface options of this
// cluster's spxrun.
func (a *agent) describeOwn() reach.Host {
	h := a.describe()
	if a.spec.Iface != "" && (a.local != nil || a.spec.Join != nil) {
		h.Addresses = reach.Named(a.spec.Iface, h.Addresses)
		for i := range h.Addresses {
			h.Addresses[i].Inner = false // it was named
		}
	}
	return h
}

// callTogether starts the agents of the other hosts.
func (a *agent) callTogether() error {
	if err := a.makeOutput(); err != nil {
		return err
	}
	starters := hosts.Starters(len(a.spec.Hosts), a.spec.Fanout)
	c := &company{hosts: make([]*remoteHost, len(a.spec.Hosts)),
		job: make([]int, len(a.spec.Hosts))}
	for n, name := range a.spec.Hosts {
		if n > 0 {
			c.hosts[n] = newRemoteHost(n, name)
		}
	}
	c.machine = muster.New(muster.Config{Cluster: a.spec.Join.Cluster, Hosts: a.spec.Hosts,
		Starters: starters, Limit: a.spec.StartLimit})
	a.company = c
	c.step(a, muster.Began{})
	return nil
}

// timeout is how long to wait for something to happen, in ms.
func (c *company) timeout(now time.Duration) int {
	if c == nil {
		return -1
	}
	at, ok := c.machine.Deadline()
	if !ok {
		return -1
	}
	return max(0, int((at-now+time.Millisecond-1)/time.Millisecond))
}

// step gives an event to the machine, and performs its actions.
func (c *company) step(a *agent, e muster.Event) {
	if c == nil || c.machine == nil {
		return
	}
	for _, act := range c.machine.Step(e, a.now()) {
		switch act := act.(type) {
		case muster.Start:
			c.start(a, act)
		case muster.Say:
			a.say(act.Text)
		case muster.Complete:
			c.done = true
		case muster.Fail:
			c.done, c.failure = true, errors.New(act.Text+c.cause(a, act.Late))
		}
	}
}

// cause is what is known of hosts that do not answer.
func (c *company) cause(a *agent, late []int) string {
	if len(late) == 0 {
		return ""
	}
	for _, n := range late {
		if _, trouble, _ := c.hosts[n].link.awaits(); trouble != "" {
			return "; " + trouble
		}
	}
	return fmt.Sprintf(
		"; %s has not ended and brought no agent: does it ask for something, or does what runs "+
			"there at login wait? Try it by hand with the command true; %s, in s, allows more",
		a.spec.Rsh[0], service.EnvStartLimit)
}

// start has an agent started, here or by one that is there.
func (c *company) start(a *agent, act muster.Start) {
	h := c.hosts[act.Host]
	c.mu.Lock()
	l := a.newLink(h)
	c.mu.Unlock()
	own := *a.spec
	join := *own.Join
	join.Key = [32]byte{} // the system's key is for callers; the job's comes with the job
	own.Join, own.Self = &join, h.number
	h.box.start(h.conn)
	h.box.put(&control.Message{Own: &control.Own{Job: &own}})
	go c.hearFrom(a, h)
	if act.From == 0 {
		l.startHere()
	} else {
		l.startAt(c.hosts[act.From])
	}
}

// hearFrom reads the messages of a host's agent, prints its processes' output, and forwards the
// rest.
func (c *company) hearFrom(a *agent, h *remoteHost) {
	var printers [3]*printer
	for described := false; ; {
		m, err := h.conn.Receive()
		if err != nil {
			h.failure = err
			break
		}
		switch {
		case m.Output != nil && (m.Output.Stream == 1 || m.Output.Stream == 2):
			p := &printers[m.Output.Stream]
			if *p == nil {
				*p = a.newPrinter(h, m.Output.Stream)
			}
			(*p).put(m.Output.Text)
		case m.Branch != nil:
			h.fromBelow(m.Branch)
		case !described:
			described = true
			a.inbox.put(memberSaid{h, true})
		case m.Managed != nil:
			a.inbox.hear(&h.room, place{from: h}, m, memberManages{h, m.Managed})
		default:
			c.handUp(&control.Relayed{Index: h.number, Message: m})
		}
	}
	for _, p := range printers {
		if p != nil {
			p.close()
		}
	}
	h.link.up.Close() // the writer of this box does not wait for this reader
	h.how = h.wait()
	c.ends(h.number)
	c.handUp(&control.Relayed{Index: h.number, End: &control.Ending{How: h.how,
		Changed: errors.Is(h.failure, errChanged), Quiet: c.wasQuiet(h.number)}})
	close(h.ended)
	a.inbox.put(memberSaid{h, false})
	h.loseBelow()
}

// heardMember takes note of a host that is there, or has gone. What that means for its processes is
// decided elsewhere.
func (a *agent) heardMember(e memberSaid) {
	if e.here {
		a.company.step(a, muster.Here{Host: e.from.number})
	} else {
		a.company.step(a, muster.Gone{Host: e.from.number, How: e.from.how})
	}
}

// join sets how the deciding agent is reached.
func (c *company) join(up upper, key [32]byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up, c.key = up, key
}

// hears sets the heartbeats of this host.
func (c *company) hears(h *heartbeat) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beating = h
}

// wasQuiet reports whether nothing was received from another host of the cluster for some time, as
// far as this one knows. The deciding agent may not reach it.
func (c *company) wasQuiet(index int) bool {
	c.mu.Lock()
	number, h := c.job[index], c.beating
	c.mu.Unlock()
	return number > 0 && h != nil && h.wasQuiet(number)
}

// handUp forwards a host's message.
func (c *company) handUp(r *control.Relayed) {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	if up != nil {
		up.put(&control.Message{Relayed: r})
	}
}

// handDown forwards a message to a host. It does not wait: the next message may be for another one.
func (c *company) handDown(a *agent, r *control.Relayed) {
	if c == nil {
		return
	}
	c.mu.Lock()
	var h *remoteHost
	if r.Index < len(c.hosts) {
		h = c.hosts[r.Index]
	}
	if m := r.Message; h != nil && m != nil && m.Job != nil {
		if c.job[r.Index] = m.Job.Self; h.link != nil { // else it has the key
			m.Job.Key = c.key
		}
	}
	c.mu.Unlock()
	switch {
	case h == nil:
	case r.Kill && h.link != nil:
		h.hangUp()
	case r.Kill: // it is to hear why
		h.box.close()
		go func() {
			atMost(hangUpLimit, func() { <-h.box.done })
			h.hangUp()
		}()
	case r.Message != nil:
		h.box.put(r.Message)
	}
}

// memberManages is a message of the master of another host of the cluster to another master
// (tree.go).
type memberManages struct {
	from *remoteHost
	m    *control.Managed
}

// manages forwards a message of the master of another host of the cluster: to those of the cluster
// directly.
func (a *agent) manages(e memberManages) {
	msg, err := manage.Decode(e.m.Text, &a.tree.cfg)
	switch c := a.company; {
	case err != nil || e.m.Epoch != a.tree.epoch || msg.To != a.self && c.numbered(msg.To) == nil:
		c.handUp(&control.Relayed{Index: e.from.number, Message: &control.Message{Managed: e.m}})
	case c.numbered(msg.From) != e.from: // it is not that one's
	case msg.To == a.self:
		a.hearTree(nil, e.m)
	default:
		c.numbered(msg.To).box.put(&control.Message{Managed: e.m})
	}
}

// numbered is another host of the cluster by its number in the job; nil: it is none.
func (c *company) numbered(host int) *remoteHost {
	if c == nil || host < 1 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.job {
		if n == host {
			return c.hosts[i]
		}
	}
	return nil
}

// numberOf is the number in the job of a host of the cluster; 0: it is none of the job's.
func (c *company) numberOf(index int) int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if index >= len(c.job) {
		return 0
	}
	return c.job[index]
}

// list are the hosts whose agents have been started, or have called.
func (c *company) list() (out []*remoteHost) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		if h != nil && h.conn != nil {
			out = append(out, h)
		}
	}
	return out
}

// tell sends a message to all hosts of the cluster.
func (c *company) tell(m *control.Message) {
	for _, h := range c.list() {
		if h.link != nil {
			h.box.put(m)
		}
	}
}

// finish waits until the agents of the other hosts have said all. In a hurry, or when they do not
// end, the connections with them are closed, and they end their processes.
func (c *company) finish(hurry bool) {
	if c == nil {
		return
	}
	if hurry {
		// that they end has one reason, of which the one that decides learns by this agent's end
		c.join(nil, [32]byte{})
	} else {
		c.await(time.After(dismissLimit))
	}
	for _, h := range c.list() {
		h.conn.Close()
	}
	c.await(time.After(hangUpLimit))
	for _, h := range c.list() {
		h.hangUp()
		h.box.close()
	}
	c.await(time.After(hangUpLimit))
}

// await waits for their ends.
func (c *company) await(limit <-chan time.Time) {
	for _, h := range c.list() {
		select {
		case <-h.ended:
		case <-limit:
			return
		}
	}
}

// follower is the life of the agent of another host of an attached cluster: own is what the
// cluster's spxrun was given.
func follower(conn *control.Conn, own *control.Job) int {
	a := newAgent(own, nil)
	a.local = own
	a.up = &uplink{conn: conn}
	a.above, a.branches.lost = a.up, make(chan struct{})
	here := a.describeOwn()
	conn.Send(&control.Message{Reach: &here}) //nolint:errcheck // if it is gone, the next says so
	var spec *control.Job
	for spec == nil {
		m, err := conn.Receive()
		switch {
		case err != nil:
			close(a.branches.lost)
			a.endBranches()
			return job.StatusFailed
		case m.Branch != nil:
			a.hearBranch(m.Branch)
		case m.Job != nil && m.Job.Self > 0:
			spec = m.Job
		}
	}
	a.keepOwn(spec)
	a.spec = spec
	a.succession.era, a.succession.decider, a.succession.through = spec.Era, spec.Decider,
		spec.Above
	settle := func() error {
		_, err := a.settle()
		a.heedTerm()
		return err
	}
	return a.underOrders(conn, settle, func() { a.start(make([]string, len(a.spec.Programs))) })
}
