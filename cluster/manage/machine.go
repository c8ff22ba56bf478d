package manage

import "slices"

// Machine is one agent's part of the management tree.
type Machine struct {
	cfg    Config
	routes *routes
	now    int64

	clusters map[int]*seat // those of this agent's clusters
	// as a candidate, and as the voter for the clusters whose master this agent is
	system *seat
	// by cluster: its promise for the system's seat, while this agent speaks for it
	votes   map[int]*seat
	own     map[int]Count         // this host's, by cluster
	reports map[int]map[int]Count // to the master of a cluster: by cluster and agent
	whole   map[int]Count         // to the system's master: by cluster

	view    View
	masters []int         // the agent assumed to be the master of each cluster; -1: none yet
	tries   []int         // candidates that were queried instead
	top     uint64        // the highest term of a view received from any agent
	heard   map[int]int64 // by seat: when its holder last was
	silent  []bool        // to the system's master: silent clusters
	// term and version of the view that an agent is known to have, by seat and voter
	has map[[2]int]View
	// agents that are gone for certain: from when on their promises have run out
	gone   map[int]int64
	word   int64 // when the system's master last sent something
	fenced bool
	// agents that belong to no cluster: the system's master notifies them itself
	apart []int
	// seats for which it stands behind all others: it was revived, and no agent has held them since
	behind  map[int]bool
	quiet   int64          // then: until when that one was not to promise anything
	started map[int]uint32 // incarnations of clusters that this host had to start
	ended   map[int]uint32 // and to end

	out      []Action
	loop     []Message // to itself
	Handled  uint64    // messages, for measurements
	Relayed  uint64
	SentSize uint64
}

// Resume makes the machine of an agent of a system that has run before with other agents, or
// clusters elsewhere. view is the last view of that run. Earlier promises have to expire before any
// new promise is made; messages of that run must not be passed to the machine.
func Resume(cfg Config, view View, now int64) *Machine {
	m := New(cfg, now)
	if view.Clusters == nil {
		return m
	}
	m.view = view
	m.view.Clusters = slices.Clone(view.Clusters)
	for i, c := range view.Clusters {
		m.started[i] = c.Life
		if s := m.clusters[i]; s != nil {
			s.term, s.until = 1, now+cfg.LimitMS
		}
	}
	m.system.until, m.view.Master = now+cfg.LimitMS, -1
	for i := range m.view.Clusters {
		m.view.Clusters[i].Master = -1
	}
	return m
}

// New makes the machine of an agent that begins at time now.
func New(cfg Config, now int64) *Machine {
	m := &Machine{cfg: cfg, routes: newRoutes(&cfg), now: now, word: now, clusters: map[int]*seat{},
		votes: map[int]*seat{}, own: map[int]Count{},
		reports: map[int]map[int]Count{}, whole: map[int]Count{}, heard: map[int]int64{},
		has: map[[2]int]View{}, gone: map[int]int64{}, behind: map[int]bool{},
		started: map[int]uint32{}, ended: map[int]uint32{}, silent: make([]bool, len(cfg.Clusters)),
		tries: make([]int, len(cfg.Clusters))}
	var all []int
	belongs := make([]bool, len(cfg.Agents))
	for i, c := range cfg.Clusters {
		if len(c.Agents) > 0 {
			all = append(all, i)
		}
		for _, a := range c.Agents {
			belongs[a] = true
		}
		m.masters = append(m.masters, -1)
		m.view.Clusters = append(m.view.Clusters, ClusterView{Life: 1, Master: -1})
		m.heard[i] = now
		if slices.Contains(c.Agents, cfg.Self) {
			m.clusters[i] = newSeat(c.Agents, c.Candidates)
			m.started[i] = 1
		}
	}
	for a, is := range belongs {
		if !is && a != cfg.Self {
			m.apart = append(m.apart, a)
		}
	}
	m.view.Master = -1
	m.heard[System] = now
	m.system = newSeat(all, nil)
	return m
}

// View is the system as known to this agent.
func (m *Machine) View() View { return *m.copyView() }

// Holds reports whether this agent may act in a seat at time now.
func (m *Machine) Holds(seat int, now int64) bool {
	if seat == System {
		return m.system.lease(m.cfg.LimitMS) > now
	}
	s := m.clusters[seat]
	return s != nil && s.lease(m.cfg.LimitMS) > now
}

// Step takes an event at time now and returns what is to be done.
func (m *Machine) Step(e Event, now int64) []Action {
	m.now, m.out = max(now, m.now), nil
	switch e := e.(type) {
	case Tick:
	case Received:
		m.received(e.Message)
	case Counted:
		if m.own[e.Cluster] != e.Count {
			m.own[e.Cluster] = e.Count
			m.report(e.Cluster)
		}
	case Gone:
		if _, known := m.gone[e.Agent]; !known {
			m.gone[e.Agent] = m.now + m.cfg.LimitMS
			m.judge(false)
		}
	}
	m.work()
	for len(m.loop) > 0 {
		next := m.loop[0]
		m.loop = m.loop[1:]
		m.handle(next)
		m.work()
	}
	return m.out
}

// Deadline is when the machine wants the next Tick.
func (m *Machine) Deadline() int64 {
	at := m.now + m.cfg.BeatMS
	for i, s := range m.clusters {
		at = min(at, m.due(s, i))
	}
	return max(min(at, m.due(m.system, System)), m.now+1)
}

// due is when something is to be done in a seat: a beat, or to stand for it.
func (m *Machine) due(s *seat, seat int) int64 {
	if s.standing {
		return s.nextBeat
	}
	if turn := m.turn(s, seat); turn >= 0 {
		return m.vacant(s, seat, turn)
	}
	return m.now + m.cfg.BeatMS
}

// turn is this agent's position among the living candidates for a seat; -1: it is none. For the
// system's these are the masters of clusters, in their order.
func (m *Machine) turn(s *seat, seat int) int {
	turn, places := -1, 0
	if seat != System {
		for _, a := range s.candidates {
			if a == m.cfg.Self {
				turn = places
			}
			if !m.isGone(a) {
				places++
			}
		}
	} else {
		for i := range m.cfg.Clusters {
			if m.isLost(i) {
				continue
			}
			if c := m.clusters[i]; c != nil && c.held && turn < 0 {
				turn = places
			}
			if !m.isLast(i) {
				places++
			}
		}
	}
	switch {
	case turn < 0:
	case seat == System && m.cfg.Agents[m.cfg.Self].Last && m.hasCompany():
		// new masters of clusters wait for LimitMS before they vote
		turn += places + int(m.cfg.LimitMS/(2*m.cfg.BeatMS))
	case m.behind[seat]:
		turn += places
	}
	return turn
}

// isLast: the remaining agents of a cluster are only those that may be the system's master as a
// last resort.
func (m *Machine) isLast(cluster int) bool {
	return !slices.ContainsFunc(m.cfg.Clusters[cluster].Agents,
		func(a int) bool { return !m.isGone(a) && !m.cfg.Agents[a].Last })
}

// hasCompany: another agent that is not gone belongs to a cluster.
func (m *Machine) hasCompany() bool {
	return slices.ContainsFunc(m.cfg.Clusters, func(c Cluster) bool {
		return slices.ContainsFunc(c.Agents, func(a int) bool {
			return a != m.cfg.Self &&
				!m.isGone(a)
		})
	})
}

func (m *Machine) isGone(agent int) bool {
	_, is := m.gone[agent]
	return is
}

// isLost: no agent is left that could represent a cluster, if there ever was one.
func (m *Machine) isLost(cluster int) bool {
	return !slices.ContainsFunc(m.cfg.Clusters[cluster].Agents,
		func(a int) bool { return !m.isGone(a) })
}

// vacant is the time at which this agent stands for a seat if no holder is heard: the first
// candidate first.
func (m *Machine) vacant(s *seat, seat, turn int) int64 {
	return max(s.until, m.heard[seat]+m.cfg.LimitMS) + int64(turn)*m.cfg.BeatMS*2
}

// work does what is due.
func (m *Machine) work() {
	for agent := range m.cfg.Agents {
		if at, known := m.gone[agent]; known && at > 0 && m.now >= at {
			m.gone[agent] = 0
			for i := range m.cfg.Clusters {
				if s := m.clusters[i]; s != nil {
					s.drop(agent)
					m.report(i)
				}
				if slices.Contains(m.cfg.Clusters[i].Agents, agent) &&
					!slices.ContainsFunc(m.cfg.Clusters[i].Agents,
						func(a int) bool { return m.gone[a] != 0 || !m.isGone(a) }) {
					m.system.drop(i)
				}
			}
		}
	}
	for i := range m.cfg.Clusters {
		if s := m.clusters[i]; s != nil {
			m.attend(s, i)
		}
	}
	m.attend(m.system, System)
	m.listen()
	m.fence()
}

// attend stands for a seat that seems vacant, sends beats, and notes when it is won or lost.
func (m *Machine) attend(s *seat, seat int) {
	turn := m.turn(s, seat)
	switch {
	case turn < 0:
		s.standing = false
	case !s.standing && (m.now >= m.vacant(s, seat, turn) || m.first(s, turn)):
		s.standing, s.nextBeat = true, m.now
		s.term++
		clear(s.acked)
	}
	if s.standing && m.now >= s.nextBeat {
		s.nextBeat = m.now + m.cfg.BeatMS
		m.beat(s, seat)
	}
	holds := s.lease(m.cfg.LimitMS) > m.now
	if holds != s.held {
		s.held = holds
		m.changed(s, seat, holds)
	}
}

// first: at the very beginning the first candidate does not wait.
func (m *Machine) first(s *seat, turn int) bool {
	return turn == 0 && s.term == 0 &&
		s.promised < 0
}

// changed: this agent has won or lost a seat.
func (m *Machine) changed(s *seat, seat int, holds bool) {
	s.since = m.now
	switch {
	case seat == System && holds: // a new view of a higher term
		m.view.Term = m.ownTerm(max(s.term, m.view.Term+1, m.top+1))
		s.term = m.view.Term
		m.view.Version, m.view.Master = 1, m.cfg.Self
		m.word = m.now
		m.judge(true)
	case seat != System && !holds:
		if !m.sole(seat) { // else no agent makes a promise for it meanwhile
			delete(m.votes, seat)
		}
		if m.turn(m.system, System) < 0 {
			m.system.standing = false
		}
	case seat != System:
		m.masters[seat] = m.cfg.Self
		m.votes[seat] = m.voteOf(seat, s)
		m.report(seat)
	}
	if holds {
		delete(m.behind, seat)
	}
}

// ownTerm is the next term, from one on, that no other agent ever has: the terms of other agents
// are not known for certain.
func (m *Machine) ownTerm(least uint64) uint64 {
	n, self := uint64(len(m.cfg.Agents)), uint64(m.cfg.Self)
	return least + (self+n-least%n)%n
}

// fence ends the processes of an agent that no longer receives messages.
func (m *Machine) fence() {
	cut := m.cfg.FenceMS > 0 && m.now-m.word >= m.cfg.FenceMS
	if cut && !m.fenced {
		m.out = append(m.out, Fence{})
	}
	m.fenced = cut
}

// beat sends heartbeats to the voters of a seat, with the view for those not known to have it.
func (m *Machine) beat(s *seat, seat int) {
	for _, v := range s.voters {
		to := v
		if seat == System {
			if to = m.masterOf(v); to < 0 {
				continue
			}
		}
		b := Message{To: to, Seat: seat, Term: s.term, Sent: m.now, Beat: true, Held: s.held,
			Voter: v, Age: m.now - m.word}
		if has := m.has[[2]int{seat, v}]; m.view.newer(&has) && (seat != System || s.held) {
			b.View = m.copyView()
		}
		// no answer
		if last, ok := s.acked[v]; to != m.cfg.Self && (!ok || m.now-last > 2*m.cfg.BeatMS) {
			m.routes.other(to)
			if seat == System {
				m.tries[v]++
			}
		}
		m.send(b)
	}
	if seat == System && s.held {
		m.tellApart()
	}
}

// tellApart sends the view to the agents that belong to no cluster.
func (m *Machine) tellApart() {
	for _, a := range m.apart {
		if has := m.has[[2]int{Watch, a}]; m.view.newer(&has) && !m.isGone(a) {
			m.send(Message{To: a, Seat: Watch, Sent: m.now, Beat: true, Held: true, Voter: a,
				View: m.copyView()})
		}
	}
}

func (m *Machine) copyView() *View {
	v := m.view
	v.Clusters = slices.Clone(v.Clusters)
	return &v
}

// masterOf is the agent to contact for a cluster: its master or, if that does not answer, each of
// its candidates in turn.
func (m *Machine) masterOf(cluster int) int {
	candidates := m.cfg.Clusters[cluster].Candidates
	if m.masters[cluster] >= 0 && m.tries[cluster] < 3 {
		return m.masters[cluster]
	}
	if len(candidates) == 0 {
		return -1
	}
	return candidates[m.tries[cluster]%len(candidates)]
}

// send hands a message on, or to itself.
func (m *Machine) send(msg Message) {
	msg.From = m.cfg.Self
	msg.Way = max(msg.Way, m.routes.turns[msg.To])
	m.forward(msg)
}

func (m *Machine) forward(msg Message) {
	if msg.To == m.cfg.Self {
		m.loop = append(m.loop, msg)
		return
	}
	if to := m.routes.to(msg.To, msg.Way); to >= 0 {
		m.SentSize += uint64(msg.Size())
		m.out = append(m.out, Send{to, msg})
	}
}

// mostHops ends a message that goes round in circles.
const mostHops = 64

func (m *Machine) received(msg Message) {
	if msg.To == m.cfg.Self {
		m.Handled++
		m.handle(msg)
		return
	}
	if msg.Hops++; msg.Hops <= mostHops {
		m.Relayed++
		m.forward(msg)
	}
}
