package job

import (
	"fmt"
	"time"
)

// A cluster leaves the system in good order, and may be attached again later (docs/systems.md, "A
// cluster that leaves"). First the table is changed (Leaves): from then on nothing more is sent to
// it. Its I/O processes forward their messages, and end; that shows its ranks that no more messages
// come, and they end; then the I/O processes end that carried the ranks' messages. Processes that
// have not ended in time are ordered to end. For the other clusters all of these are awaited.

// Depart: a cluster is to leave, by itself within a time. MayDepart reports whether it can.
type Depart struct {
	Part  int // from 1
	Limit time.Duration
	Gone  bool // it is not awaited then; also of one that has left before
}

// Leaves: the processes of the system are to be notified that a cluster leaves.
type Leaves struct{ Part int } // from 1

// StateLeaving is the state of a part that leaves in good order.
const StateLeaving = "leaving"

// MayDepart is why a part cannot leave now; empty: it can.
func (m *Machine) MayDepart(part int, gone bool) string {
	p := &m.parts[part-1]
	switch {
	case m.ending:
		return "the system is being ended"
	case p.Serves:
		return p.Name + " is no cluster; it leaves with the cluster with which it was started"
	case p.departs:
		return p.Name + " leaves already"
	case p.away && p.gone:
		return p.Name + " is gone"
	case p.away && gone:
		return ""
	case p.away:
		return p.Name + " is not there: it is awaited"
	case p.again || p.making:
		return p.Name + " is being started"
	case p.stopping:
		return p.Name + " is being ended"
	case p.alive == 0:
		return p.Name + " has ended"
	}
	return ""
}

func (m *Machine) depart(e Depart, now time.Duration) []Action {
	if m.MayDepart(e.Part, e.Gone) != "" {
		return nil
	}
	p := &m.parts[e.Part-1]
	if p.away {
		return m.gaveUp(p, m.carriers(e.Part))
	}
	p.departs, p.departBy, p.patience, p.forGood = true, now+e.Limit, e.Limit, e.Gone
	for _, o := range m.carriers(e.Part) {
		o.departs = true
	}
	return []Action{Say{fmt.Sprintf(
		"%s is to leave the system within %v: nothing more is sent to it, and its programs are "+
			"told so as soon as they have all.", p.Name, e.Limit)}, Leaves{e.Part}}
}

// carriers are the I/O processes that are started with a cluster.
func (m *Machine) carriers(part int) (out []*part) {
	for i := range m.parts {
		if o := &m.parts[i]; o.Serves && o.With == part {
			out = append(out, o)
		}
	}
	return out
}

// endedDeparting: a process has ended of a part that leaves. For the other clusters its I/O
// processes are dead: kept messages to them are sent through other I/O processes, or wait.
func (m *Machine) endedDeparting(p *part, e Ended, now time.Duration) (out []Action) {
	failed := e.Failed()
	out = []Action{Publish{Proc: e.Proc, Dead: failed || p.Serves, Wait: e.Wait}}
	if failed && !p.stopping {
		text := m.describe(e)
		if p.Serves {
			return append(out, Say{fmt.Sprintf("%s, while %s leaves the system.", text,
				m.parts[p.With-1].Name)})
		}
		p.stopping, p.departBy, p.deadline = true, 0, now+m.cfg.Grace
		out = append(out,
			Say{fmt.Sprintf("%s, while %s leaves the system; its other processes are ended.", text,
				p.Name)}, SendTo{m.livingOf(p), SIGTERM})
	}
	m.succeeded = m.succeeded || !failed
	return append(out, m.dismiss(p, now)...)
}

// departed looks how far those are that leave.
func (m *Machine) departed(now time.Duration) (out []Action) {
	for i := range m.parts {
		p := &m.parts[i]
		if !p.departs || p.Serves || p.alive > 0 {
			continue
		}
		carriers, left := m.carriers(i+1), 0
		for _, o := range carriers {
			left += o.alive
			if o.alive > 0 && o.departBy == 0 && !o.stopping {
				o.departBy = now + max(p.patience, serveGrace)
			}
		}
		if left > 0 {
			continue
		}
		p.gone = false
		for _, o := range append(carriers, p) {
			o.departs, o.departBy, o.stopping, o.deadline, o.away, o.again, o.making,
				o.standbys = false, 0, false, 0, true, false, false, nil
		}
		if p.forGood {
			p.forGood = false
			out = append(out, m.gaveUp(p, carriers)...)
			continue
		}
		out = append(out,
			Say{fmt.Sprintf(
				"%s has left the system; it may be attached again, on any host, and what was "+
					"sent to it and it had not received waits for that.", p.Name)})
	}
	return out
}

// gaveUp: a cluster that is away is awaited no more.
func (m *Machine) gaveUp(p *part, carriers []*part) []Action {
	for _, o := range append(carriers, p) {
		o.gone = true
	}
	return []Action{Say{fmt.Sprintf("%s has left the system, and is not awaited; the others go on.",
		p.Name)}}
}

// hurryDeparting orders the processes to end that have not ended in time.
func (m *Machine) hurryDeparting(p *part, now time.Duration) []Action {
	if !p.departs || p.departBy == 0 || now < p.departBy {
		return nil
	}
	p.departBy = 0
	if p.alive == 0 {
		return nil
	}
	p.stopping, p.deadline = true, now+GraceSignal
	return []Action{Say{fmt.Sprintf("%s has not ended by itself, and is told to (SIGTERM).",
		p.Name)}, SendTo{m.livingOf(p), SIGTERM}}
}
