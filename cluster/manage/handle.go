package manage

import "slices"

// handle takes a message that has come to this agent.
func (m *Machine) handle(msg Message) {
	switch {
	case msg.Seat == Watch && msg.Beat:
		m.word = m.now
		m.learn(msg.View)
		m.send(Message{To: msg.From, Seat: Watch, Sent: msg.Sent, Way: msg.Way, Voter: m.cfg.Self,
			Holder: -1, Promised: -1, Term2: m.view.Term, Version: m.view.Version})
	case msg.Seat == Watch:
		m.has[[2]int{Watch, msg.Voter}] = View{Term: msg.Term2, Version: msg.Version}
	case msg.Beat && msg.Seat == System:
		m.systemBeat(msg)
	case msg.Beat:
		m.clusterBeat(msg)
	default:
		m.answered(msg)
	}
}

// clusterBeat answers a master, or a candidate, of a cluster on this host.
func (m *Machine) clusterBeat(msg Message) {
	s := m.clusters[msg.Seat]
	if s == nil {
		return
	}
	answer := Message{To: msg.From, Seat: msg.Seat, Sent: msg.Sent, Way: msg.Way, Voter: m.cfg.Self}
	answer.Granted = s.grant(msg.From, msg.Term, m.now, m.cfg.LimitMS)
	answer.Term, answer.Promised = s.term, s.taken(m.now)
	if answer.Granted {
		m.heard[msg.Seat] = m.now
		m.masters[msg.Seat] = msg.From
		if msg.From != m.cfg.Self {
			s.standing = false
		}
		if msg.Held {
			delete(m.behind, msg.Seat)
		}
		if msg.View != nil {
			m.learn(msg.View)
		}
		m.word = max(m.word, m.now-msg.Age)
		answer.Clusters, answer.Counts = []int{msg.Seat}, []Count{m.own[msg.Seat]}
	}
	answer.Term2, answer.Version = m.view.Term, m.view.Version
	m.send(answer)
}

// systemBeat answers the system's master, for the clusters whose master this agent is.
func (m *Machine) systemBeat(msg Message) {
	c := msg.Voter
	answer := Message{To: msg.From, Seat: System, Sent: msg.Sent, Way: msg.Way, Voter: c,
		Holder: -1, Promised: -1}
	s, vote := m.clusters[c], m.votes[c]
	if s == nil || !s.held || vote == nil {
		if c >= 0 && c < len(m.masters) && m.masters[c] >= 0 && m.masters[c] != m.cfg.Self {
			answer.Holder = m.masters[c] // query that agent
		}
		answer.Term = m.view.Term
		m.send(answer)
		return
	}
	vote.term = max(vote.term, m.view.Term, m.top) // a host may know a later view than its masters
	answer.Granted = vote.grant(msg.From, msg.Term, m.now, m.cfg.LimitMS)
	answer.Term, answer.Promised, answer.Holder = vote.term, vote.taken(m.now), m.cfg.Self
	if answer.Granted {
		m.heard[System] = m.now
		// else it only wants the seat, as one of a part that is cut off does all the time
		if msg.Held {
			m.word = m.now
			delete(m.behind, System)
		}
		if msg.From != m.cfg.Self {
			m.system.standing = false
			m.system.term = max(m.system.term, msg.Term)
		}
		if before := m.view; msg.View != nil && m.learn(msg.View) && m.view.differs(&before) {
			m.hurry()
		}
		answer.Clusters, answer.Counts = []int{c}, []Count{m.sum(c)}
	}
	answer.Term2, answer.Version = m.view.Term, m.view.Version
	m.send(answer)
}

// hurry has the masters' news go down at once. All seats that this agent holds have it.
func (m *Machine) hurry() {
	for _, s := range m.clusters {
		if s.held {
			s.nextBeat = m.now
		}
	}
}

// answered takes an answer to a beat of this agent, or a report.
func (m *Machine) answered(msg Message) {
	s := m.system
	if msg.Seat != System {
		s = m.clusters[msg.Seat]
	}
	if s == nil {
		return
	}
	m.top = max(m.top, msg.Term2)
	for i, c := range msg.Clusters {
		if seat := msg.Seat; seat != System && c != seat || seat == System && c != msg.Voter {
			continue // never reported
		}
		m.take(msg.Seat, c, msg.Voter, msg.Counts[i])
	}
	switch {
	case msg.Sent == 0: // a report: not requested
	case msg.Granted:
		s.acked[msg.Voter] = max(s.acked[msg.Voter], min(msg.Sent, m.now))
		if msg.Seat == System {
			m.tries[msg.Voter] = 0
			if m.masters[msg.Voter] != msg.From {
				m.masters[msg.Voter] = msg.From
				m.judge(false)
			}
		}
		m.has[[2]int{msg.Seat, msg.Voter}] = View{Term: msg.Term2, Version: msg.Version}
	case msg.Seat == System && msg.Holder >= 0 && msg.Holder != msg.From:
		m.masters[msg.Voter], m.tries[msg.Voter] = msg.Holder, 0
	case msg.Promised >= 0 && msg.Promised != m.cfg.Self && !s.held: // another was first
		m.yield(s, msg.Seat)
	case msg.Term > s.term:
		s.term = msg.Term // and once more, with a higher one
		if s.held && msg.Seat == System {
			s.term = m.ownTerm(s.term + 1)
			m.view.Term, m.view.Version = s.term, m.view.Version+1
			m.tell()
		}
	}
}

// yield ends a candidacy for a seat: another agent has promises for it.
func (m *Machine) yield(s *seat, seat int) {
	s.yield(m.cfg.Self, m.now)
	m.heard[seat] = m.now
	if seat == System {
		for _, vote := range m.votes {
			vote.yield(m.cfg.Self, m.now)
		}
	}
}

// take notes what a host, or a cluster, has.
func (m *Machine) take(seat, cluster, from int, c Count) {
	if seat == System {
		if m.whole[cluster] != c {
			m.whole[cluster] = c
			m.judge(false)
		}
		return
	}
	if m.reports[cluster] == nil {
		m.reports[cluster] = map[int]Count{}
	}
	if m.reports[cluster][from] != c {
		m.reports[cluster][from] = c
		if m.clusters[cluster].held && from != m.cfg.Self {
			m.report(cluster)
		}
	}
}

// report sends changes up the tree: to this host's master of the cluster or, for the whole cluster,
// to the system's master.
func (m *Machine) report(cluster int) {
	s := m.clusters[cluster]
	if s == nil {
		return
	}
	if m.reports[cluster] == nil {
		m.reports[cluster] = map[int]Count{}
	}
	m.reports[cluster][m.cfg.Self] = m.own[cluster]
	up := Message{Seat: cluster, To: m.masters[cluster], Voter: m.cfg.Self,
		Clusters: []int{cluster}, Counts: []Count{m.own[cluster]}}
	if s.held {
		up = Message{Seat: System, To: m.view.Master, Voter: cluster, Clusters: []int{cluster},
			Counts: []Count{m.sum(cluster)}}
	}
	if up.To >= 0 {
		m.send(up)
	}
}

// listen records, as the system's master, the clusters that have been silent for too long.
func (m *Machine) listen() {
	if !m.system.held {
		return
	}
	m.word = m.now
	changed := false
	for i := range m.cfg.Clusters {
		last := max(m.system.since, m.system.acked[i])
		if silent := m.now-last >= m.cfg.SilentMS; silent != m.silent[i] {
			m.silent[i], changed = silent, true
		}
	}
	if changed {
		m.judge(false)
	}
}

// sum is the total over all hosts of a cluster, for its latest incarnation.
func (m *Machine) sum(cluster int) (total Count) {
	for _, c := range m.reports[cluster] {
		total.Life = max(total.Life, c.Life)
	}
	for agent, c := range m.reports[cluster] {
		if c.Life != total.Life {
			continue
		}
		if _, gone := m.gone[agent]; gone {
			c = Count{Lost: c.Alive + c.Lost, Done: c.Done, Failed: c.Failed}
		}
		total.add(c)
	}
	return total
}

// learn adopts a newer view, and performs its changes for this host.
func (m *Machine) learn(v *View) bool {
	if !v.newer(&m.view) {
		return false
	}
	m.view = *v
	m.view.Clusters = slices.Clone(v.Clusters)
	for i := range m.masters {
		if c := v.Clusters[i]; c.Master >= 0 && m.clusters[i] == nil {
			m.masters[i] = c.Master
		}
	}
	m.tell()
	return true
}

// tell passes a new view to the shell, after the actions for the processes here: a machine
// restarted with this view assumes them done.
func (m *Machine) tell() {
	for i := range m.cfg.Clusters {
		if m.clusters[i] == nil {
			continue
		}
		c := m.view.Clusters[i]
		if (c.State == Dead || m.view.Stopping) && m.ended[i] < c.Life && m.started[i] >= c.Life {
			m.ended[i] = c.Life
			m.out = append(m.out, End{i, c.Life})
		}
		if c.Life > m.started[i] && !m.view.Stopping {
			if m.ended[i] < m.started[i] {
				m.ended[i] = c.Life - 1
				m.out = append(m.out, End{i, c.Life - 1})
			}
			m.started[i] = c.Life
			m.out = append(m.out, Start{i, c.Life})
		}
	}
	m.out = append(m.out, Learned{*m.copyView()})
}

// judge evaluates the reports at the system's master, and decides the actions. A change of a
// cluster's state is sent down at once, a change of its number of living processes with the next
// heartbeat, as there may be many.
func (m *Machine) judge(anew bool) {
	if !m.system.held || !m.Holds(System, m.now) { // one that has just won has its own term first
		return
	}
	changed, urgent := anew, anew
	for i := range m.cfg.Clusters {
		c := &m.view.Clusters[i]
		before := *c
		if m.masters[i] >= 0 {
			c.Master = m.masters[i]
		}
		if m.isGone(c.Master) || len(m.cfg.Clusters[i].Agents) == 0 {
			c.Master = -1
		}
		m.judgeCluster(i, c)
		changed = changed || *c != before
		before.Alive = c.Alive
		urgent = urgent || *c != before
	}
	if !changed {
		return
	}
	m.view.Version++
	m.tell()
	if urgent || m.view.Stopping {
		m.system.nextBeat = m.now
		m.hurry()
	}
}

func (m *Machine) judgeCluster(i int, c *ClusterView) {
	cfg, n := &m.cfg.Clusters[i], m.whole[i]
	if n.Life > c.Life { // restarted by a master whose last view has not arrived here
		c.State, c.Life, c.Alive = Starting, n.Life, 0
	}
	if m.silent[i] {
		c.State, c.Alive = Dead, 0
		m.view.Stopping = m.view.Stopping || cfg.OnDeath == StopSystem
		return
	}
	if c.State == Dead && cfg.OnDeath == RestartIt { // it was silent, and is back
		m.clusterFailed(i, c)
		return
	}
	if n.Life == c.Life && n.Done > 0 && n.Alive == 0 && n.Lost == 0 && !n.Failed {
		c.State, c.Alive = Done, 0
		return
	}
	// else clusterFailed has handled it, and it waits for other clusters
	begun := c.State == Running || c.State == Degraded || c.State == Starting &&
		(c.Alive > 0 || c.Life == 1)
	if len(cfg.Agents) > 0 && m.isLost(i) && begun {
		c.State, c.Alive = Dead, 0
		m.clusterFailed(i, c)
		return
	}
	if n.Life != c.Life { // of an earlier incarnation
		return
	}
	c.Alive = n.Alive
	switch {
	case n.Failed, !cfg.Told && n.Lost > 0 && (!cfg.Degrade || n.Alive+n.Done == 0):
		c.State = Dead
		m.clusterFailed(i, c)
	case n.Done > 0 && n.Alive == 0:
		c.State = Done
	case n.Lost > 0:
		c.State = Degraded
	case n.Alive+n.Done >= cfg.Want:
		c.State = Running
	}
}

// clusterFailed: a cluster is dead, and its policy determines the effect on the system.
func (m *Machine) clusterFailed(i int, c *ClusterView) {
	switch cfg := &m.cfg.Clusters[i]; {
	case m.view.Stopping:
	case cfg.OnDeath == RestartIt && int(c.Life) <= cfg.Restarts:
		c.Life++
		c.State, c.Alive = Starting, 0
	case cfg.OnDeath != GoOn:
		m.view.Stopping = true
	}
}
