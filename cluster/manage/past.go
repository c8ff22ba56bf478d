package manage

import "slices"

// A Past is what outlives a machine whose process dies. The shell that carries its messages has
// seen what it has promised and told, and begins the next machine of the same agent with that
// (Revive): what others count on is kept, and what the dead one alone had, its seats and what was
// reported to it, is void.
type Past struct {
	View     View      // the latest that it has told
	Top      uint64    // the highest term for the system's seat of which it has spoken
	Promises []Promise // the last to others, by seat and voter
	// until then it was not to promise anything: that of a machine that was resumed
	Quiet int64
}

// A Promise is one to support nobody else in a seat until then.
type Promise struct {
	Seat, Voter, To int
	Term            uint64
	Until           int64
}

// Sent notes a message of the machine that is handed on at time now. One that is not handed on has
// promised nothing.
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

// Told notes a view that the machine has told the shell; false: it is not newer than the one
// before.
func (p *Past) Told(v *View) bool {
	if !v.newer(&p.View) {
		return false
	}
	p.View, p.Top = *v, max(p.Top, v.Term)
	return true
}

// Revive makes the machine of an agent in the place of one that has ended at some time before now
// and that nobody hears any more. It holds no seat, keeps what that one has promised to others, and
// stands for seats behind all others: who has died once may die again. Messages for the dead one
// may be handed to it. The shell then hands it what is Gone, and what is Counted.
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
				m.heard[i] = now - cfg.LimitMS // there is nobody to wait for
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

// voteOf is the vote of a cluster whose master this agent has become. What the one before has
// promised has to run out first.
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
