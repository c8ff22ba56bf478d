package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/reach"
)

// Hosts that keep no copy of what decides, in a system whose clusters were started one by one and
// that another agent leads when the one that does is lost (nextlead.go). There are two kinds:
//
//   - Other hosts of a cluster that has come, and clusters that have come through another one, with
//     all their hosts. Their agents are reached through that of an spxrun, and stay so: the leader
//     changes above that agent, which forwards the notice (control.Lead, Relayed). When that agent
//     itself leads from now on, their messages end there.
//   - Other hosts of the cluster whose agent led. They have lost their superior, and are called, as
//     agents that keep copies are. Their spxrun is gone with its host, so their output goes to the
//     leading agent.
//
// The same host is of one kind and then of the other, as agents come to lead and are lost in turn.

// An access is how an agent that comes to decide reaches that of another host.
type access int

const (
	noWay access = iota // the host is not there
	calls               // it calls it
	// through the agent of another host, or as one of those that are behind its own
	behind
)

// route is the way to a host.
type route struct {
	way  access
	by   int // behind: the host in between, which this one may be
	home int // the first host of its cluster
}

// waysTo are the routes to all hosts, by the latest Mesh that an agent has. It is that of host
// self, and becomes the deciding one in place of host before.
func waysTo(m *control.Mesh, hosts, self, before int) []route {
	out := make([]route, hosts)
	within := func(list []int, n int) int {
		if n < len(list) && list[n] < hosts {
			return list[n]
		}
		return -1
	}
	for n := range out {
		r := &out[n]
		if r.home = within(m.Home, n); r.home < 0 {
			r.home = n
		}
		by := within(m.By, n)
		reached := n < len(m.At) && m.At[n].IsValid()
		switch {
		case n == self, n == before:
		case slices.Contains(m.Members, n):
			if reached {
				r.way = calls
			}
		case by < 0:
		case by == before, by == m.From: // it has lost the one above it
			if reached {
				r.way = calls
			}
		case by == self, by < n && out[by].way != noWay:
			r.way, r.by = behind, by
		}
	}
	return out
}

// isBehind: this agent keeps no copy, and speaks with the one that decides through another one.
func (a *agent) isBehind() bool {
	return a.spec.Beside && a.succession.through != a.succession.decider
}

// mayBeToldOf: this agent keeps no copy, and may hear of another one that decides.
func (a *agent) mayBeToldOf() bool {
	s := &a.succession
	return s.waits || s.keepers >= sequenceLeast && (a.isBehind() || a.sequence != nil)
}

// uncalled: an agent that keeps no copy was to be called by now.
type uncalled struct{ era uint64 }

// awaitCall has this agent, which keeps no copy, wait for another one that decides.
func (a *agent) awaitCall(era uint64) {
	time.AfterFunc(a.leadPatience(), func() { a.inbox.put(uncalled{era}) })
}

// leadPatience is how long an agent that has lost the one that decides waits for another one.
func (a *agent) leadPatience() time.Duration {
	silence := calmLimit
	if a.beating != nil && a.beating.silence() > 0 {
		silence = a.beating.silence()
	}
	return leadTicks*successionPeriod + silence
}

func (a *agent) uncalled(e uncalled) {
	if s := &a.succession; s.waits && s.era == e.era && a.up != nil {
		a.leave(fmt.Sprintf("no other host has said for %v that it decides", a.leadPatience()))
	}
}

// hearLead handles the notice, forwarded by another agent, that another one decides. The connection
// is the same.
func (a *agent) hearLead(m *control.Lead) {
	a.inbox.put(calledBy{from: m.Host, era: m.Era, meets: m.Meets})
}

// besideFor sets what is sent to a host that keeps no copy.
func (a *agent) besideFor(spec *control.Job, h *remoteHost) {
	h.copies = h.mayLead() && !slices.ContainsFunc(a.membersOf(),
		func(n int) bool { return !a.meets(h.number, n) || !a.meets(n, h.number) })
	spec.Beside, spec.Above = !h.copies, a.self
	if by := h.by(); by != nil {
		spec.Above = by.number
	}
}

// tellSeats sets in a Mesh through which agents those of all hosts are reached, and to which
// cluster they belong.
func (a *agent) tellSeats(m *control.Mesh) {
	m.From = a.self
	m.By, m.Home = slices.Repeat([]int{-1}, len(m.At)), slices.Repeat([]int{-1}, len(m.At))
	m.By[a.self], m.Home[a.self] = a.self, a.self
	for _, h := range a.others {
		m.Home[h.number] = h.home
		switch {
		case h.gone:
		case h.by() != nil:
			m.By[h.number] = h.by().number
		default:
			m.By[h.number] = a.self
		}
	}
}

// enterHost enters a host into its cluster, which is another one than that of this agent.
func (a *agent) enterHost(h *remoteHost, r route) {
	first := a.hostNumbered(r.home)
	if first == nil || first == h || first.attached == nil {
		return
	}
	first.attached.hosts = append(first.attached.hosts, h)
	if r.way == behind {
		h.of = a.hostNumbered(r.by)
		return
	}
	h.kin = first.attached
}

// meshFor are the addresses by which a host reaches the other hosts' agents.
func (a *agent) meshFor(host int, m *control.Mesh) *control.Mesh {
	if a.places.pairs == nil {
		return m
	}
	out := *m
	out.At = make([]netip.AddrPort, len(m.At))
	for n, at := range m.At {
		out.At[n] = a.seen(host, n, at)
	}
	return &out
}

// here is how this host and its processes are reached.
func (a *agent) here() *control.Here {
	out := &control.Here{Reach: a.describeOwn(), At: a.address}
	if a.beating != nil {
		out.Beat = a.beating.at
	}
	if a.sequence != nil {
		out.Mesh = a.sequence.mesh.at
	}
	for i := range a.ranks {
		if at, ok := a.segmentAddress(i); ok {
			out.Addresses = append(out.Addresses, control.Address{Proc: i, At: at})
		}
	}
	return out
}

// isHere takes how a host and its processes are reached.
func (a *agent) isHere(h *remoteHost, s *control.Stand) {
	e := s.Here
	if e == nil || a.meeting == nil {
		return
	}
	if s.Arrival == nil {
		h.reach, h.at = &e.Reach, e.At
	}
	a.noteListens(slices.DeleteFunc(slices.Clone(e.Addresses),
		func(x control.Address) bool { return !a.isAt(x.Proc, h) }))
	a.beatsAt(h.number, e.Beat)
	h.mesh = e.Mesh
}

// beatsAt stores where a host receives heartbeats, by its own report: another host may reach it at
// another address.
func (a *agent) beatsAt(host int, at netip.AddrPort) {
	if a.beats != nil && host < len(a.beats.At) && at.IsValid() {
		b := *a.beats
		b.At = slices.Clone(b.At)
		b.At[host] = at
		a.beats = &b
	}
}

// inheritPlaces finds the addresses by which the hosts that are there reach each other, as they
// were chosen one after another (placeExternal).
func (a *agent) inheritPlaces() {
	if a.meeting == nil {
		return
	}
	hosts, self := len(a.spec.Hosts), a.describeOwn()
	known, numbers := []reach.Known{{Host: &self, At: a.address}}, []int{a.self}
	all, one := make([][]netip.Addr, hosts), true
	all[a.self] = slices.Repeat([]netip.Addr{a.address}, hosts)
	for _, h := range a.others {
		if h.gone || h.reach == nil || !h.at.IsValid() {
			continue
		}
		mine, theirs, err := reach.Late(known, *h.reach, h.at, func(int) bool { return false })
		if err != nil {
			continue
		}
		all[h.number] = slices.Repeat([]netip.Addr{h.at}, hosts)
		for i, n := range numbers {
			all[h.number][n], all[n][h.number] = mine[i], theirs[i]
			one = one && mine[i] == h.at && theirs[i] == known[i].At
		}
		known, numbers = append(known, reach.Known{Host: h.reach, At: h.at}),
			append(numbers, h.number)
	}
	if a.places.pairs = nil; !one {
		a.places.pairs = all
	}
	a.noteListens(a.here().Addresses)
	if a.beating != nil {
		a.beatsAt(a.self, a.beating.at)
	}
	a.sequence.told.At = nil // other hosts may reach them at other addresses
	a.tellMesh()
}

// losesBehind are the clusters that have come through a host which is lost, and that this agent,
// which has come to decide, has not spoken with yet.
func (a *agent) losesBehind(h *remoteHost) (out []*remoteHost) {
	for _, o := range a.others {
		if o.via == h && o.led && !o.gone && o.conn == nil {
			out = append(out, o)
		}
	}
	return out
}

// reachBehind begins to speak with the hosts that are reached through one which has said how it
// stands. Those that it does not name have gone meanwhile.
func (a *agent) reachBehind(h *remoteHost, list []control.Behind) {
	for _, m := range a.others {
		if m.by() != h || !m.led || m.gone || m.conn != nil {
			continue
		}
		if i := slices.IndexFunc(list,
			func(b control.Behind) bool { return b.Host == m.number }); i >= 0 {
			a.beginBehind(m, h.behind.to(&h.box, list[i].Index))
			continue
		}
		m.gone = true
		if a.beating != nil && a.beating.machine != nil {
			a.beating.hasGone(m.number, detect.OutClosed)
		}
		a.hostFailed(m, "its agent has ended, or the connection with it is broken", job.FaultHost)
	}
}

// beginBehind begins to speak with a host by the agent in between.
func (a *agent) beginBehind(h *remoteHost, way *passage) {
	s := &a.succession
	h.wait = way.how
	a.speakWith(h, way)
	h.box.put(&control.Message{Lead: &control.Lead{Era: s.era, Host: a.self, Meets: s.meets}})
}

// speakWith begins to speak with a host that had another one that decides.
func (a *agent) speakWith(h *remoteHost, conn connection) {
	h.conn = conn
	h.box.start(conn)
	if a.dismissed {
		h.box.put(&control.Message{Action: job.Finish{}})
	}
	go a.hearFrom(h)
}

// incomplete: not all hosts of a cluster had become the job's when the agent was lost that led the
// system.
func (g *externalCluster) incomplete() bool {
	return len(g.hosts) != 1+len(g.come.Hosts)
}

// isLeft: a host of a cluster whose spxrun was lost with the host that led the system.
func (h *remoteHost) isLeft() bool { return h.kin != nil && h.of == nil }

// dismissLeft dismisses the hosts of a cluster whose spxrun was lost, when nothing runs there any
// more: it may be attached again, or has ended.
func (a *agent) dismissLeft(states []job.PartState, busy func(parts []int) bool) {
	changed := false
	for _, h := range a.others {
		if !h.isLeft() || h.gone || !h.ready || a.succession.gathers {
			continue
		}
		if busy(h.kin.parts) {
			a.endServers(h.kin, states)
			continue
		}
		a.sendAway(h)
		changed = true
		h.box.put(&control.Message{Action: job.Finish{}})
		h.box.close()
		go func() {
			select {
			case <-h.ended:
			case <-time.After(dismissLimit):
				h.hangUp()
			}
		}()
	}
	if changed {
		a.tellMesh()
	}
}

// endServers ends the remaining I/O processes of a cluster that is gone, and whose spxrun was lost:
// they return with it.
func (a *agent) endServers(g *externalCluster, states []job.PartState) {
	if s := states[g.parts[0]-1].State; g.swept || s != job.StateAway && s != job.StateGone {
		return
	}
	g.swept = true
	var procs []int
	for i := range a.ranks {
		if r := &a.ranks[i]; r.alive && slices.Contains(g.parts[1:], r.part) {
			procs = append(procs, i)
		}
	}
	a.sayToAll(fmt.Sprintf(
		"the I/O processes of cluster %s that are left are ended, since its spxrun is gone",
		g.cluster))
	a.toAll(job.SendTo{Procs: procs, Signal: job.SIGKILL})
}

// The ways between this agent, which has come to decide, and those behind it.
type (
	fromBehind struct{ a *agent } // what they hand up
	toBehind   struct{ a *agent } // what is for them
)

func (w fromBehind) put(m *control.Message) {
	if r := m.Relayed; r != nil {
		w.a.company.behind.to(toBehind(w), r.Index).take(r)
	}
}

func (w toBehind) put(m *control.Message) { w.a.company.handDown(w.a, m.Relayed) }

// decidesHere has what agents behind this one say end here.
func (a *agent) decidesHere() {
	if c := a.company; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.up = fromBehind{a}
	}
}

// behindHere are the hosts of the job whose agents are reached through this one.
func (c *company) behindHere() (out []control.Behind) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.job {
		if n > 0 && !c.over[i] && c.hosts[i] != nil {
			out = append(out, control.Behind{Host: n, Index: i})
		}
	}
	return out
}

// ends notes that an agent behind this one has ended.
func (c *company) ends(index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = map[int]bool{}
	}
	c.over[index] = true
}
