package agent

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/process"
)

// The main thread's loop: it waits for pidfds, for messages (the inbox) and for points in time, and
// each goes to its handler, as a rule as an event to the machine (carryout.go). It never waits
// for anything else.

func (a *agent) watch(fd int) error {
	if err := unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// listen turns messages from spxrun and signals into events of the inbox.
func (a *agent) listen() {
	go func() {
		for a.conn != nil {
			m, err := a.conn.Receive()
			if err != nil {
				a.inbox.put(job.FrontLost{})
				return
			}
			if m.Signal != 0 {
				a.inbox.put(job.Signalled{Signal: m.Signal})
			}
			if m.Release != nil {
				a.inbox.put(released{m.Release})
			}
			if m.Ping != 0 {
				a.inbox.put(pinged(m.Ping))
			}
		}
	}()
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // else the ranks inherit that, as under nohup without a launcher
			signal.Notify(signals, s)
		}
	}
	go func() {
		for s := range signals {
			a.inbox.put(job.Signalled{Signal: int(s.(syscall.Signal))})
		}
	}()
}

// pinged: spxrun asks whether the main thread runs.
type pinged int

func (a *agent) answerPing(e pinged) { a.tell(&control.Message{Ping: int(e)}) }

// loop waits for events and steps the machine until the job is over.
func (a *agent) loop() {
	for !a.done {
		a.poll(a.timeout())
	}
}

// poll waits at most timeout ms (-1: for ever) and handles what has happened.
func (a *agent) poll(timeout int) {
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(a.epoll, events[:], timeout)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("agent: epoll_wait: %v", err))
	}
	for _, e := range events[:max(n, 0)] {
		if int(e.Fd) == a.inbox.fd {
			a.messages()
		} else {
			a.ended(int(e.Pad)) // the rank's number, from launch
		}
	}
	a.periodic()
	a.noteComing()
	a.arrivedEarly()
	a.step(job.Tick{})
}

func (a *agent) messages() {
	for _, e := range a.inbox.take() {
		a.answerAhead()
		switch e := e.(type) {
		case job.Signalled:
			if a.takesQuit(e) || a.ownSignal(e) {
				continue
			}
			a.step(e)
			if syscall.Signal(e.Signal) == syscall.SIGTSTP {
				a.tell(&control.Message{Stopped: e.Signal})
			}
		case *question:
			a.serve(e)
		case *looking:
			if a.inbox.answers(e) {
				a.serve(e.question)
			}
		case mayBegin:
			a.letBegin(e)
		case hungUp:
			a.hungUp(e.conn)
		case fromHost:
			a.heard(e.from, e.m)
		case launcherLost:
			a.lostLauncher(e.rank)
		case notEnded:
			a.endUnnoticed()
		case decided:
			if a.up != nil && e.era == a.succession.era {
				a.obey(e.m)
			}
		case silence:
			a.fellSilent(e)
		case unanswered:
			a.unanswered(e.from)
		case fenced:
			a.fence(e)
		case inspected:
			a.hasInspected(e)
		case released:
			a.release(e.r)
		case exporterEnded:
			a.lostExporter(e)
		case masterSaid:
			a.heardMaster(e)
		case masterEnded:
			a.lostMaster(e)
		case pinged:
			a.answerPing(e)
		case arrival:
			a.welcome(e)
		case seated:
			a.startParts(e.h)
		case turned:
			a.refusal(e)
		case moved:
			a.hasMoved(e)
		case memberSaid:
			a.heardMember(e)
		case memberManages:
			a.manages(e)
		case notMade:
			a.notMade(e)
		case waiting:
			a.tellAway()
		case treeDecided:
			a.step(e.e)
		case leadLost:
			a.lostLead(e.err)
		case rolled:
			a.endRoll(e)
		case upLost:
			a.lostUp(e)
		case termed:
			a.heedsTerm(e)
		case mayDecide:
			a.succeed()
		case mustLeave:
			a.mustLeave(e)
		case calledBy:
			a.follow(e)
		case hasCalled:
			a.begins(e)
		case uncalled:
			a.uncalled(e)
		case gathered:
			a.goesOn()
		case moreOutput:
			a.tellClients()
		case job.FrontLost:
			a.loseFront()
			a.step(e)
		case linkEvent:
			e.happen(a)
		default:
			a.step(e)
		}
	}
}

// timeout is how long poll may sleep, in ms.
func (a *agent) timeout() int {
	until := a.nextStray
	if a.watchJoin {
		until = time.Now().Add(joinPoll)
	}
	if len(a.judging) > 0 && a.judging[0].until.Before(until) {
		until = a.judging[0].until
	}
	for _, w := range a.wrapped {
		if w.until.Before(until) {
			until = w.until
		}
	}
	if at, ok := a.machine.Deadline(); ok && a.began.Add(at).Before(until) {
		until = a.began.Add(at)
	}
	if at, ok := a.beginning.deadline(); ok && a.began.Add(at).Before(until) {
		until = a.began.Add(at)
	}
	if at, ok := a.tree.masterDue(); ok && at.Before(until) {
		until = at
	}
	if at, ok := a.watchDue(); ok && at.Before(until) {
		until = at
	}
	if a.tree.dirty && a.tree.master != nil {
		until = a.began
	}
	return max(0, int((time.Until(until)+time.Millisecond-1)/time.Millisecond))
}

func (a *agent) periodic() {
	if now := time.Now(); !now.Before(a.nextStray) {
		a.nextStray = now.Add(strayPoll)
		process.ReapStrays(a.isRank)
		if a.allMPI() { // while processes start, it is these that have to get on
			hurryAll()
		}
	}
	if a.watchJoin && a.anyMPI(-1) {
		a.watchJoin = false
		a.step(job.Joined{})
	}
	a.endWrappers()
	a.hurryJudgements()
	a.tendTree()
	a.watchProcesses()
	a.beginning.tick(a.now())
}

func (a *agent) isRank(pid int) bool {
	for i := range a.ranks {
		if r := &a.ranks[i]; r.pid == pid && r.host == a.self && (r.alive || r.held) {
			return true
		}
	}
	return a.isExporter(pid) || a.isMaster(pid) || a.shells.has(pid)
}
