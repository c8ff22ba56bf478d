package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Another agent decides when the deciding one is lost with its host (docs/decisions/leaders.md): in
// jobs with Job.Succeeds. The sequence (package launch/follow) elects it; it calls all others at
// the ports by which they keep the sequence, receives the states of their processes, and continues
// from its copy of the machine. The others have lost their superior meanwhile, wait to be called,
// and end their processes if no call comes.

// succession is this agent's part.
type succession struct {
	// how many agents have decided before the one that does, as far as this one knows
	era       uint64
	decider   int           // host of that one
	waits     bool          // it is lost, and no other one has called
	silent    bool          // then: nothing was heard of its host; else its agent has ended
	inherited bool          // this agent decides, and has not from the beginning
	left      bool          // this host is excluded, and others may continue
	before    int           // host of the one before it
	ends      []job.Publish // earlier reports of processes that have ended
	gathers   bool          // this agent decides, and not all hosts have said yet how they stand
	// the latest version of the table of the system that one of them has seen
	layout  uint64
	held    []*question      // that wait for that
	dropped []control.Member // of a world that was being made when the one before was lost
	keepers int              // how many agents keep copies, by the latest message
	// host through whose agent this one reaches the deciding one (control.Job.Above)
	through int
	// of a system whose clusters are started one by one, and that this agent leads: where they call
	meets string
	// of a system whose clusters are started one by one: where they have called so far, as this
	// agent knows
	met []string
}

// Events of its goroutines.
type (
	upLost struct { // nothing more comes from the agent that decides in an era
		era uint64
		err error // with which the connection has ended; nil: nothing was heard of its host
	}
	termed    struct{ again bool } // SIGTERM has come; again: some time ago
	mayDecide struct{}             // this agent is to decide
	mustLeave struct {             // this host is out; again: some time ago
		why   string
		again bool
	}
	calledBy struct { // another agent decides
		from  int
		era   uint64
		meets string
		conn  *control.Conn // nil: another agent has handed it on, which stays in between
	}
	hasCalled struct { // that agent has called a host, or cannot
		h    *remoteHost
		conn connection
		err  error
	}
)

// Succeeds reports whether another host continues this job when spxrun's is lost. All that is
// needed for that is known to others, and its user has asked for it, has a system file with a
// policy for each loss, or has detached it: then it ends if it had ranks there.
func Succeeds(spec *control.Job) bool {
	b, err := beatsOf(spec)
	wanted := len(spec.Parts) > 0 || spec.Detached || spec.WithFT && spec.OnDeath == "continue"
	return keepsCopies(spec) && wanted && spec.Trace == "" && !spec.Hold && err == nil && !b.Alone
}

// waitsForOthers: what this agent decides is done when a majority knows of it.
func (a *agent) waitsForOthers() bool {
	m, decides := a.machine.(*job.Machine)
	return decides && a.up == nil && a.spec.Succeeds && a.sequence != nil && !a.done &&
		m.Started() && (a.meeting == nil || a.sequence.outlives(a.self))
}

// mayBeCalled: another agent may come to decide.
func (a *agent) mayBeCalled() bool {
	if a.spec.Beside {
		return a.spec.Succeeds && !a.done && a.mayBeToldOf()
	}
	return a.spec.Succeeds && a.sequence != nil && a.sequence.begun() && !a.done &&
		(a.attached == nil || a.succession.waits || a.sequence.outlives(a.succession.decider))
}

// lostUp: the agent that decides is lost, as far as this one knows.
func (a *agent) lostUp(e upLost) {
	if a.done || a.up == nil || a.fenced || e.era != a.succession.era {
		return
	}
	if !a.mayBeCalled() || a.isBehind() && e.err != nil { // the one in between is lost
		a.up.window.close()
		if a.attached != nil {
			a.lostLead(e.err)
			return
		}
		if errors.Is(e.err, errChanged) {
			a.say(fmt.Sprintf("host %s has lost the one that decides: %v", a.host, e.err))
		}
		a.step(job.FrontLost{})
		return
	}
	if !a.succession.waits {
		a.succession.silent = e.err == nil
	}
	again := a.succession.waits
	a.succession.waits = true
	if !a.isBehind() {
		a.up.box.pause()
	}
	switch {
	case !a.spec.Beside:
		a.sequence.lose(e.era)
	case !again:
		a.awaitCall(e.era)
	}
}

// follow has another agent decide, which has called.
func (a *agent) follow(e calledBy) {
	s := &a.succession
	if a.up == nil || a.fenced || e.from < 0 || e.from >= len(a.spec.Hosts) || !a.heeds(e) ||
		!a.heedsEra(e.era) {
		if e.conn != nil {
			e.conn.Close()
		}
		return
	}
	s.era, s.before, s.decider, s.waits = e.era, s.decider, e.from, false
	up, called := a.up, e.conn != nil
	if called {
		up.box.pause()
		a.tellBefore()
		up.over = e.conn
		s.through = e.from
	}
	a.dropBatch()
	kept := saidAgain(up.box.empty())
	a.company.leave()
	if called {
		up.box.start(e.conn)
	}
	up.box.put(&control.Message{Stand: a.stand()})
	for _, m := range kept {
		up.box.put(m)
	}
	if called {
		up.window.allow(control.Window)
		go a.hearUp(e.conn, e.era)
	}
	a.turnBeats(nil)
	if a.attached != nil {
		a.say(a.tookPlace(a.hostName(e.from), e.meets))
		s.met = append(s.met, e.meets)
	}
	if len(a.feeding) > 0 {
		a.input.put(nil) // standard input has gone with spxrun
	}
	a.tellStates()
	a.askAgain()
	a.attendHeld()
}

// tellBefore notifies the previously deciding agent which one decides now, if it can be reached: it
// is not to take the end of this agent's connection for a loss. Nothing waits for it: the peer may
// be gone.
func (a *agent) tellBefore() {
	lead := &control.Lead{Era: a.succession.era, Host: a.succession.decider}
	over := a.above.over
	a.above.lastWords.Go(func() {
		over.Send(&control.Message{Lead: lead}) //nolint:errcheck // as a rule it is gone
	})
}

// heeds reports whether this agent takes orders from one that claims to decide, or that another one
// has named as such.
func (a *agent) heeds(e calledBy) bool {
	if e.conn == nil {
		return a.spec.Beside && a.spec.Succeeds && !a.done
	}
	return a.mayBeCalled()
}

// heedsEra takes note of the era of the agent that decides now; false: that is over.
func (a *agent) heedsEra(era uint64) bool {
	if a.spec.Beside {
		return era > a.succession.era
	}
	return a.sequence.called(era)
}

// outputOnly is what waits of the output of processes: all else is said anew.
func outputOnly(list []*control.Message) []*control.Message {
	return slices.DeleteFunc(list, func(m *control.Message) bool { return m.Output == nil })
}

// saidAgain is that, and the lines for the user, which are in no state.
func saidAgain(list []*control.Message) []*control.Message {
	return slices.DeleteFunc(list, func(m *control.Message) bool {
		_, signal := m.Event.(job.Signalled)
		return m.Output == nil && !signal
	})
}

// tookPlace is the line about which host decides now.
func (a *agent) tookPlace(host, meets string) string {
	text := fmt.Sprintf(
		"host %s decides about job %016x now, in the place of host %s, which is lost", host,
		a.jobNumber(), a.hostName(a.succession.before))
	if meets != "" {
		text += "; clusters are attached at " + meets + " now (spxrun --join)"
	}
	return text
}

// turnBeats has heartbeats begin anew around the host that decides. gone are hosts that are not
// there.
func (a *agent) turnBeats(gone []int) {
	if a.beating != nil && a.beating.machine != nil {
		a.beating.turnTo(reroot{a.succession.decider, a.succession.era, gone})
	}
}

// stand is how the processes of this host are.
func (a *agent) stand() *control.Stand {
	out := &control.Stand{}
	for i := range a.ranks {
		r := &a.ranks[i]
		if r.host != a.self || r.external || r.pid == 0 {
			continue
		}
		s := control.Standing{Proc: i, Pid: r.pid, Passed: r.passed}
		if !r.alive {
			end := a.endOf(i)
			s.End = &end
		}
		out.Procs = append(out.Procs, s)
	}
	a.addNumbers(out)
	if a.attached != nil {
		out.Arrival, out.Behind = a.cameAs, a.company.behindHere()
	}
	if a.attached != nil || a.spec.Beside {
		out.Here = a.here()
	}
	return out
}

// endOf is how a process of this host has ended.
func (a *agent) endOf(i int) job.Ended {
	if end, ok := a.above.ends[i]; ok {
		return end
	}
	return lostEnd(i)
}

// lostEnd is the end of a process of which no more is known.
func lostEnd(i int) job.Ended {
	return job.Ended{Proc: i, Wait: job.Wait{Signal: job.SIGKILL}, Owner: job.OwnerInit,
		Fault: job.FaultHost, OtherMPI: true}
}

// askAgain asks the agent that decides now what the lost one has not answered, where that can be,
// and refuses the rest.
func (a *agent) askAgain() {
	open := a.asking.open
	a.asking.open = nil
	if m := a.asking.granted.members; m != nil {
		a.serve(&question{m, noClient{}})
	}
	for n, q := range open {
		switch q.Kind {
		case service.AwaitEnd:
			q.Number = 0 // the signal has been sent, or its sender tries again
		case service.Hosts, service.Inspect, service.Describe, service.Say, service.Members,
			service.TookOver, service.Arrive, service.AwaitOrder, service.OrderDone, service.Lookup:
		default:
			q.reply(refuse(mpierr.Other, "host %s was lost before it had answered",
				a.hostName(a.succession.before)))
			if w := a.begot[q.Text]; q.Kind == service.Spawn && w > 0 {
				a.abandonFor(w)
			}
			continue
		}
		if a.up == nil {
			delete(a.asking.numbers, q.conn)
			delete(a.asking.clients, n)
		}
		a.serve(q)
	}
}

// succeed makes this agent the deciding one, as the sequence has elected it.
func (a *agent) succeed() {
	up, s := a.up, &a.succession
	if up == nil || a.done || a.fenced {
		return
	}
	legacy, err := a.sequence.inherit()
	if err != nil {
		a.leave(err.Error())
		return
	}
	s.before, s.decider, s.era, s.inherited, s.waits = s.decider, a.self, legacy.era, true, false
	a.began = time.Now().Add(-legacy.now)
	a.machine, a.up, a.made = legacy.machine, nil, true
	a.beginsNumbers()
	up.box.pause()
	a.tellBefore()
	meets := ""
	if a.attached != nil { // it prints what its processes write, and its spxrun is there
		meets = a.leadSystem()
		a.beginKept()
	} else {
		a.kept.use(a.outputFile())
	}
	up.window.close()
	up.flush()
	a.dropBatch()
	s.gathers, s.meets = true, meets
	gone := a.callAll(legacy)
	a.takeStock(legacy)
	a.turnBeats(gone)
	a.say(a.tookPlace(a.hostName(a.self), meets))
	if status, over := legacy.machine.Finished(); over {
		a.carryOut(job.Finish{Status: status})
		return
	}
	a.step(job.Inherited{})
	procs := legacy.machine.Procs()
	for i, p := range procs[:min(len(procs), len(a.ranks))] {
		switch r := &a.ranks[i]; {
		case r.host != a.self || r.external:
		case p.Pid == 0 && r.pid != 0 && a.isSpare(i): // its start was not heard of
			if a.step(a.asStarted(i, r.pid, a.host)); !r.alive {
				a.step(a.endOf(i))
			}
		case p.Alive && !r.alive:
			a.step(a.endOf(i))
		}
	}
	for _, h := range a.others {
		switch {
		case h.gone && h.number == s.before && s.silent:
			a.hostFailed(h, fmt.Sprintf("nothing was heard of it for %s%s", a.beating.waits(),
				a.allowMore()), job.FaultNetwork)
		case h.gone:
			a.hostFailed(h, "nothing comes from its agent any more", job.FaultHost)
		}
	}
	a.tellMesh()
	if legacy.machine.Looking() {
		a.step(job.Looked{})
	}
	if legacy.machine.Ending() {
		a.carryOut(job.Send{Signal: job.SIGTERM})
	}
	a.tellStates()
	a.askAgain()
	a.attendHeld()
	a.stood()
}

// callAll makes the other hosts those of this agent, and calls those that are there.
func (a *agent) callAll(l *legacy) (gone []int) {
	s := &a.succession
	a.others = nil
	ways := waysTo(&l.told, len(a.spec.Hosts), a.self, s.before)
	here := a.company.behindHere()
	for n, name := range a.spec.Hosts {
		if n == a.self {
			continue
		}
		h := newRemoteHost(n, name)
		h.led, h.made = true, true
		h.wait = func() string { return connectionEnd(h.failure) }
		a.others = append(a.others, h)
		r := ways[n]
		h.copies = slices.Contains(l.told.Members, n)
		if h.home = r.home; r.home == n {
			a.ofCluster(h, l)
			if r.way == behind {
				h.via = a.hostNumbered(r.by)
			}
		} else {
			a.enterHost(h, r)
		}
		at := slices.IndexFunc(here, func(b control.Behind) bool { return b.Host == n })
		if r.way == noWay || r.way == behind && r.by == a.self && at < 0 {
			h.gone = true
			gone = append(gone, n)
			continue
		}
		if n < len(l.told.At) {
			h.mesh = l.told.At[n]
		}
		switch {
		case r.way == calls:
			go func() {
				e := hasCalled{h: h}
				var conn *control.Conn
				if conn, e.err = a.sequence.mesh.lead(n,
					control.Lead{Era: l.era, Host: a.self, Meets: s.meets}); conn != nil {
					e.conn = conn
				}
				a.inbox.put(e)
			}()
		case r.by == a.self:
			a.beginBehind(h, a.company.behind.to(toBehind{a}, here[at].Index))
		}
		time.AfterFunc(2*leadLimit, func() { a.inbox.put(hasCalled{h: h, err: errNotReached}) })
	}
	return gone
}

// takeStock takes over the list of living processes, and notifies the processes of this host of
// those that have ended. A process that was spawned a moment ago may be unknown to the machine: it
// is ended, and counts as dead then.
func (a *agent) takeStock(l *legacy) {
	procs := l.machine.Procs()
	a.succession.ends = slices.DeleteFunc(l.ends,
		func(e job.Publish) bool { return e.Proc < len(procs) && procs[e.Proc].Alive })
	for _, e := range slices.Clone(a.succession.ends) {
		if e.Proc < 0 || e.Proc >= len(a.ranks) || !a.own(e.Proc) {
			a.publish(e)
		}
	}
	for i := range a.ranks {
		r := &a.ranks[i]
		p := job.ProcState{}
		if i < len(procs) {
			p = procs[i]
		}
		spare := p.Pid == 0 && a.isSpare(i)
		switch {
		case r.external || spare && r.host == a.self:
			continue
		case spare:
			r.alive, r.pid, r.begun = false, 0, false
			continue
		case r.host != a.self:
			r.alive, r.pid, r.begun = p.Alive, p.Pid, true
		case r.alive && (!p.Alive || p.Ending):
			a.kill(i)
		}
	}
}

// disown reports to all that a process unknown to the machine is dead. It is: a living process is
// never reported dead on its own host, where peers may be in the middle of an operation of it on
// their memory.
func (a *agent) disown(i int) {
	act := job.Publish{Proc: i, Dead: true, Wait: job.Wait{Signal: job.SIGKILL}}
	a.toAll(act)
	a.publish(act)
}

// begins hears that a host was called, or cannot be.
func (a *agent) begins(e hasCalled) {
	h := e.h
	switch {
	case e.err != nil && h.stands.Load() || h.gone:
		if e.conn != nil {
			e.conn.Close()
		}
	case e.err != nil:
		h.gone = true
		if h.conn != nil {
			h.conn.Close()
		}
		if a.beating != nil && a.beating.machine != nil {
			a.beating.hasGone(h.number, h.goneFor())
		}
		a.hostFailed(h, e.err.Error(), job.FaultHost)
	default:
		a.speakWith(h, e.conn)
	}
}

// standing stores the states of the processes of a host that this agent has called. What was
// reported to others holds: a process that counts as dead is ended.
func (a *agent) standing(h *remoteHost, s *control.Stand) {
	if !h.led || h.ready || h.gone {
		return
	}
	h.ready = true
	a.heedNumbers(h, s)
	a.standsAs(h, s.Arrival)
	a.isHere(h, s)
	a.reachBehind(h, s.Behind)
	if a.sequence != nil {
		told := a.sequence.told
		h.box.put(&control.Message{Mesh: a.meshFor(h.number, &told)})
	}
	for _, say := range h.unsaid {
		h.box.put(&control.Message{Action: say})
	}
	h.unsaid = nil
	for _, e := range a.succession.ends {
		if !slices.ContainsFunc(s.Procs, func(p control.Standing) bool {
			return p.Proc == e.Proc &&
				p.End == nil
		}) {
			h.box.put(&control.Message{Action: e})
		}
	}
	known := map[int]bool{}
	var strays []int
	for _, p := range s.Procs {
		if !a.isAt(p.Proc, h) || known[p.Proc] {
			continue
		}
		known[p.Proc] = true
		r := &a.ranks[p.Proc]
		r.passed = p.Passed
		if !r.begun && a.isSpare(p.Proc) { // its start was not heard of
			a.happened(h, a.asStarted(p.Proc, p.Pid, h.name))
		}
		switch {
		case p.End != nil:
			p.End.Proc = p.Proc
			a.happened(h, *p.End)
		case !r.alive: // until it has ended
			r.alive, r.pid, r.begun = true, p.Pid, true
			strays = append(strays, p.Proc)
		}
	}
	for i := range a.ranks {
		if a.isAt(i, h) && a.ranks[i].alive && !known[i] { // it was not made
			a.happened(h, lostEnd(i))
		}
	}
	if len(strays) > 0 {
		h.box.put(&control.Message{Action: job.SendTo{Procs: strays, Signal: job.SIGKILL}})
	}
	if a.machine.Ending() {
		h.box.put(&control.Message{Action: job.Send{Signal: job.SIGTERM}})
	}
	a.stood()
}
