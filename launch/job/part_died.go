package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// What the end of a process means for its part: it is replaced, the part goes on without it, or
// stops; and what is done about a part that stops, by the system's master or the system file.

// endedInPart decides what the end of a process means for its part.
func (m *Machine) endedInPart(p *part, e Ended, now time.Duration) (out []Action) {
	p.alive--
	p.count(&e, m.procs[e.Proc].endedByJob)
	standby := slices.Contains(p.standbys, e.Proc)
	p.standbys = slices.DeleteFunc(p.standbys, func(i int) bool { return i == e.Proc })
	failed := e.Failed()
	switch {
	case m.procs[e.Proc].endedByJob:
		out = []Action{Publish{Proc: e.Proc, Wait: e.Wait}}
	case p.departs:
		out = m.endedDeparting(p, e, now)
	case p.stopping:
		out = []Action{Publish{Proc: e.Proc, Dead: failed, Wait: e.Wait}}
	case failed:
		out = m.diedInPart(p, e, standby, now)
	default:
		out = slices.Concat(m.wentOnAndEnded(e.Proc), m.exitedInPart(e))
		if !standby { // else it has had a rank, of which was not heard yet, and so may others
			p.done = true
			out = append(out, m.dismiss(p, now)...)
		}
	}
	if p.departs {
		return append(out, m.departed(now)...)
	}
	if p.alive == 0 && p.stopping && !m.ending {
		out = append(out, m.stopped(p, now)...)
	}
	return out
}

// count takes the status of a process of the part. One that the job itself ends has it from that,
// and wherever it is then: it says nothing about the part. What the part's user ends, or who lets
// it leave, is the user's matter.
func (p *part) count(e *Ended, dismissed bool) {
	if dismissed || p.stopping && !p.leaving && !p.departs {
		return
	}
	status := e.Wait.Status()
	if e.Owner == OwnerInit {
		status = cmp.Or(status, StatusFailed)
	}
	if e.Failed() {
		p.death = cmp.Or(p.death, status)
	} else {
		p.exit = cmp.Or(p.exit, status)
	}
}

// Failed: of a system's process, it has died: its cluster may depend on it.
func (e *Ended) Failed() bool {
	return e.Owner == OwnerInit || e.Owner == OwnerAborted || e.Owner == OwnerNone &&
		(e.OtherMPI || e.Wait.Status() != 0)
}

// dismiss ends standbys when no rank is left that they could take.
func (m *Machine) dismiss(p *part, now time.Duration) []Action {
	if len(p.standbys) == 0 || p.alive > len(p.standbys) {
		return nil
	}
	p.deadline = now + m.cfg.Grace
	for _, i := range p.standbys {
		m.procs[i].endedByJob = true
	}
	return []Action{SendTo{slices.Clone(p.standbys), SIGTERM}}
}

func (m *Machine) exitedInPart(e Ended) []Action {
	out := []Action{Publish{Proc: e.Proc, Wait: e.Wait}}
	status := e.Wait.Status()
	if status == 0 {
		m.succeeded = true
	} else if m.status == 0 {
		out = append(out, Say{fmt.Sprintf("%s; exit status %d.", m.describe(e), status)})
	}
	m.fail(status)
	return out
}

func (m *Machine) diedInPart(p *part, e Ended, standby bool, now time.Duration) []Action {
	status := e.Wait.Status()
	if e.Owner == OwnerAborted {
		status = abortStatus(e.Code)
	}
	if status == 0 {
		status = StatusFailed
	}
	published := Publish{Proc: e.Proc, Dead: true, Wait: e.Wait}
	text := m.describe(e)
	treatment := p.treatment(e.Fault)
	if m.procs[e.Proc].ended {
		treatment = p.Hang
	}
	others := p.alive + p.coming
	if treatment == Degrade && (others > 0 || p.done) {
		if m.death == 0 {
			m.death = status
		}
		p.lost = append(p.lost, e.Proc)
		if others == 0 {
			return []Action{published,
				Say{fmt.Sprintf("%s; the others of %s have ended before.", text, p.Name)}}
		}
		return []Action{published, Say{fmt.Sprintf("%s; %d others of %s are told and go on.", text,
			others, p.Name)}}
	}
	if out := m.startCold(p, e, standby, treatment, now); out != nil {
		return append(out, published)
	}
	if treatment == Replace && e.Owner != OwnerAborted && others+p.waking >= p.Ranks {
		what := "a standby takes its place"
		if standby {
			what = fmt.Sprintf("%s has %d standbys left", p.Name, len(p.standbys))
		}
		return []Action{published, Say{fmt.Sprintf("%s; %s.", text, what)}}
	}
	p.stopping, p.status, p.asked, p.deadline = true, status, text, now+m.cfg.Grace
	if !m.cfg.Masters || p.Serves {
		what := m.policy(p, now)
		if p.Serves && m.procs[e.Proc].ended {
			what = m.within(p, p.Hang, now)
		}
		return append([]Action{published}, m.judgedPart(p, what, now)...)
	}
	p.askUntil = now + AskLimit
	out := []Action{published, Ask{m.number(p)}}
	if living := m.livingOf(p); len(living) > 0 {
		out = append(out, SendTo{living, SIGTERM})
	}
	return out
}

// startCold starts one more process when too few are left, and there is one; nil: not so.
func (m *Machine) startCold(p *part, e Ended, standby bool, treatment Treatment,
	now time.Duration) []Action {
	place := e.Place - 1
	if e.Place == 0 {
		place = p.unused()
	}
	if treatment != Replace || e.Owner == OwnerAborted || p.alive+p.coming+p.waking != p.Ranks-1 ||
		place < 0 || place >= p.Cold || slices.Contains(p.started, place) ||
		p.ranks.left(now) == 0 {
		return nil
	}
	p.started = append(p.started, place)
	p.ranks.spend(now)
	p.waking++
	what := "a process is started that takes its place"
	if standby {
		what = "another one is started"
	}
	return []Action{Say{fmt.Sprintf("%s; %s (%d of at most %d).", m.describe(e), what,
		p.ranks.used(now), p.ranks.most)}, StartCold{m.number(p), p.Ranks + p.Waiting + place,
		len(p.started)}}
}

// unused is the first place that is left for a process that is started in the place of a rank, from
// 0; -1: there is none.
func (p *part) unused() int {
	for k := range p.Cold {
		if !slices.Contains(p.started, k) {
			return k
		}
	}
	return -1
}

// Unused are the places that a part has left for processes that are started in the place of ranks,
// from 0.
func (m *Machine) Unused(part int) (out []int) {
	p := &m.parts[part-1]
	for k := range p.Cold {
		if !slices.Contains(p.started, k) {
			out = append(out, k)
		}
	}
	return out
}

// all are the numbers below n.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// policy is what the system file says about a part that stops.
func (m *Machine) policy(p *part, now time.Duration) Treatment { return m.within(p, p.Whole, now) }

// within is a treatment, or Stop where a part has been started again too often.
func (m *Machine) within(p *part, t Treatment, now time.Duration) Treatment {
	if t == Restart && !p.mayStart(now) {
		return Stop
	}
	return t
}

// judged: the system's master has answered.
func (m *Machine) judged(e Judged, now time.Duration) []Action {
	if e.Part < 1 || e.Part > len(m.parts) {
		return nil
	}
	p := &m.parts[e.Part-1]
	if p.askUntil == 0 || m.ending {
		return nil
	}
	what := e.What
	// the master does not know what counts no more, and so leaves it to this machine to count
	if what == Restart {
		what = m.policy(p, now)
	}
	return m.judgedPart(p, what, now)
}

// judgedPart does what was decided about a part that stops; when it is to be started again, when it
// has stopped.
func (m *Machine) judgedPart(p *part, what Treatment, now time.Duration) []Action {
	text, asked := p.asked, p.askUntil > 0
	p.asked, p.askUntil, p.what = "", 0, what
	if what == Stop {
		m.fail(p.status)
		why := "and with it the system"
		if p.whole.left(now) == 0 && (p.Whole == Restart || p.whole.used(now) > 0) {
			why = "and with it the system, since it " + p.whole.overdrawn()
		}
		return m.end(now, SIGTERM, m.cfg.Grace,
			Say{fmt.Sprintf("%s; %s is ended %s; exit status %d.", text, p.Name, why, p.status)})
	}
	out := []Action{Say{fmt.Sprintf("%s; %s stops.", text, p.Name)}}
	switch {
	case !asked:
		out = append(out, SendTo{m.livingOf(p), SIGTERM})
	case p.alive == 0:
		out = append(out, m.stopped(p, now)...)
	}
	return out
}

// livingOf lists the processes of a part that exist.
func (m *Machine) livingOf(p *part) (out []int) {
	for i := range m.procs {
		if m.procs[i].alive && m.partOf(i) == p {
			out = append(out, i)
		}
	}
	return out
}

// stopped: nothing of the part is left, and the job goes on without it, or it is started again.
func (m *Machine) stopped(p *part, now time.Duration) []Action {
	if p.askUntil > 0 { // it is not known yet what is done about it
		return nil
	}
	p.stopping, p.deadline = false, 0
	if p.Serves && m.served() { // there is no cluster that it could serve
		return nil
	}
	if p.what == Restart && !p.leaving {
		p.again, p.making, p.standbys, p.waking, p.done = true, false, nil, 0, false
		p.started = all(p.Cold) // those that are not yet started are, with the others, and wait
		return []Action{RestartPart{m.number(p), p.Serves && !m.carried(p) || p.crowds}}
	}
	p.gone, p.leaving = true, false
	if m.death == 0 {
		m.death = p.status
	}
	return []Action{Say{fmt.Sprintf("%s is gone; the others go on.", p.Name)}}
}
