package manage

import "slices"

// A Past is the state that survives a machine whose process dies. The shell that carries its
// messages has seen its promises and views, and starts the next machine of the same agent with them
// (Revive): state on which other agents rely is kept, and state that only the dead machine had, its
// seats and the reports to it, is void.
type Past struct {
	View     View      // the latest that it has published
	Top      uint64    // the highest term for the system's seat of which it has spoken
	Promises []Promise // the last to other agents, by seat and voter
	// until then it was not to promise anything: that of a machine that was resumed
	Quiet int64
}

// A Promise is a promise to support no other agent in a seat until then.
type Promise struct {
	Seat, Voter, To int
	Term            uint64
	Until           int64
}

// Sent records a message of the machine that is forwarded at time now. A message that is not
// forwarded promises nothing.
func (p *Past) Sent(m *Message, cfg *Config, now int64) {
	if m.From != cfg.Self {
		return
	}
	p.Top = max(p.Top, m.Term2)
	if m.Seat == System {
		p.Top = max(p.Top, m.Term)
	}
	if m.View != nil {
		p.Top = max(p.Top, m.View.Term)
	}
	if m.Beat || !m.Granted || m.Seat == Watch || m.To == m.From {
		return
	}
	is := func(o Promise) bool { return o.Seat == m.Seat && o.Voter == m.Voter }
	p.Promises = append(slices.DeleteFunc(p.Promises, is),
		Promise{m.Seat, m.Voter, m.To, m.Term, now + cfg.LimitMS})
}

// Told records a view that the machine has passed to the shell; false: it is not newer than the one
// before.
func (p *Past) Told(v *View) bool {
	if !v.newer(&p.View) {
		return false
	}
	p.View, p.Top = *v, max(p.Top, v.Term)
	return true
}

// Revive makes the machine of an agent in the place of one that ended before now and can no longer
// be heard. It holds no seat, keeps the promises of that one to other agents, and stands for seats
// behind all others, as an agent that has died once may die again. Messages for the dead machine
// may be passed to it. The shell then passes Gone and Counted events to it.
func Revive(cfg Config, past Past, now int64) *Machine {
	m := New(cfg, now)
	m.top = past.Top
	if past.View.Clusters != nil {
		m.view = past.View
		m.view.Clusters = slices.Clone(past.View.Clusters)
	}
	for i, c := range m.view.Clusters {
		if c.Master != cfg.Self {
			m.masters[i] = c.Master
		}
		m.started[i] = max(m.started[i], c.Life)
		if c.State == Dead || m.view.Stopping {
			m.ended[i] = c.Life
		}
	}
	if m.view.Master == cfg.Self {
		m.view.Master = -1
	}
	others := false
	for i, c := range cfg.Clusters {
		if s := m.clusters[i]; s != nil {
			s.term, s.until = 1, past.Quiet
			m.behind[i] = !m.sole(i)
			if m.sole(i) {
				m.heard[i] = now - cfg.LimitMS // there is no agent to wait for
				m.votes[i] = newSeat(nil, nil)
				m.votes[i].until = past.Quiet
			}
		}
		others = others || slices.ContainsFunc(c.Agents, func(a int) bool { return a != cfg.Self })
	}
	m.system.term, m.system.until = max(1, past.Top), past.Quiet
	m.behind[System] = others
	if !others {
		m.heard[System] = now - cfg.LimitMS
	}
	for _, p := range past.Promises {
		s := m.clusters[p.Seat]
		if p.Seat == System {
			s = m.votes[p.Voter]
		}
		if s != nil {
			s.term, s.promised, s.until = max(p.Term, s.term), p.To, max(p.Until, s.until)
		}
	}
	return m
}

// sole: no other agent than this one has ever been the master of a cluster.
func (m *Machine) sole(cluster int) bool {
	a := m.cfg.Clusters[cluster].Agents
	return len(a) == 1 && a[0] == m.cfg.Self
}

// voteOf is the vote of a cluster whose master this agent has become. The promises of the previous
// master have to expire first.
func (m *Machine) voteOf(cluster int, s *seat) *seat {
	if vote := m.votes[cluster]; vote != nil {
		return vote
	}
	vote := newSeat(nil, nil)
	if m.view.Term > 0 || s.term > 1 { // else there was none before
		vote.until = m.now + m.cfg.LimitMS
	}
	return vote
}
