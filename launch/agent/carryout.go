package agent

import (
	"fmt"
	"os"
	"time"

	"libspx/launch/job"
)

// From an event to what is done about it: the machine of launch/job decides, and what it has
// decided is done on this host, and sent to all hosts.

// A decision is the machine's answer to an event.
type decision struct {
	event   job.Event
	actions []job.Action
}

// decide hands an event to the machine.
func (a *agent) decide(e job.Event) decision {
	a.tracing.note(e)
	a.noteFate(e)
	a.noteAbort(e)
	e = a.placed(e)
	now := time.Since(a.began)
	a.note(e, now)
	return decision{e, a.machine.Step(e, now)}
}

// step hands an event to the machine and carries out what it decides, here and on the other hosts.
func (a *agent) step(e job.Event) {
	waits := a.waitsForOthers()
	d := a.decide(e)
	if waits && job.Weighty(d.actions) && !a.sequence.settled() {
		a.leave("")
		return
	}
	a.perform(d)
}

// perform carries out what was decided, here and on the other hosts.
func (a *agent) perform(d decision) {
	for _, action := range d.actions {
		switch act := action.(type) {
		case job.Say:
			a.sayAttached(act)
		case job.Finish, job.RestartPart, job.Report, job.Look, job.Ask, job.Relist, job.Leaves:
		case job.StartCold:
			if !a.succession.gathers {
				a.toAll(action)
			}
		default:
			a.toAll(action)
		}
		if !a.succession.gathers || !comesAgain(action) {
			a.carryOut(action)
		}
	}
	a.follows(d)
}

// follows does what follows from an event when all has been carried out.
func (a *agent) follows(d decision) {
	a.startGoesOn(d.event)
	a.missing()
	switch d.event.(type) {
	case job.Ended, job.NotRestarted, job.Judged, job.Manned, job.Tick:
		a.seeOff()
	}
	a.tellDeparted()
}

// carryOut does what was decided, as far as it concerns this host.
func (a *agent) carryOut(action job.Action) {
	switch act := action.(type) {
	case job.Publish:
		a.publish(act)
	case job.Say:
		a.say(act.Text)
	case job.Where:
		a.where()
	case job.Report:
		a.report(act.Why, job.Reported{})
	case job.Look:
		a.lookForHang()
	case job.Send:
		a.signal(act.Signal)
	case job.SendTo:
		for _, i := range act.Procs {
			if i >= 0 && i < len(a.ranks) && a.own(i) {
				a.signalRank(i, act.Signal)
			}
		}
	case job.WatchJoin:
		a.watchJoin = true
	case job.Finish:
		a.done, a.status = true, act.Status
	case job.Ask:
		a.ask(act.Part)
	case job.RestartPart:
		a.restartPart(act.Part, act.Last)
	case job.StartCold:
		a.startCold(act)
	case job.Shun:
		a.shun(act)
	case job.Relist:
		a.relist(act.Part)
	case job.Leaves:
		a.leaves(act.Part)
	default:
		panic(fmt.Sprintf("agent: unknown action %T", action))
	}
}

func (a *agent) say(text string) {
	switch {
	// the launcher may be requested to end all directly after: it must have this line first
	case a.joined != nil && a.up == nil:
		fmt.Fprintf(os.Stderr, "libspx: %s\n", text)
	case a.joined != nil:
		a.err.Say("libspx: " + text)
	default:
		a.err.Say("spxrun: " + text)
	}
}

func (a *agent) signal(number int) {
	a.pauses(number)
	left := a.leaveToLauncher(number)
	for i := range a.ranks {
		if a.own(i) && !a.ranks[i].adopted && !(left && a.ranks[i].joined) {
			a.signalRank(i, number)
		}
	}
}
