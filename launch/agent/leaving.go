package agent

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"libspx/core/mpierr"
	"libspx/launch/job"
)

// A host that is excluded, while the job continues on others: its agent has lost the deciding one
// and is not called by another one, or the host is no member of the sequence any more. It ends its
// processes, and decides nothing from then on (docs/decisions/leaders.md).

// termPatience is how long an agent that got SIGTERM waits for the end of the shell that has
// started it, which forwards the signal as it dies.
const termPatience = time.Second

// heedsTerm handles SIGTERM: as a rule it is forwarded by the remote shell that has started this
// agent, and whose own agent is lost.
func (a *agent) heedsTerm(e termed) {
	switch s := &a.succession; {
	case !a.mayBeCalled():
		a.step(job.FrontLost{})
	case a.up == nil || s.waits || s.era > a.spec.Era: // it is known, or over
	case !e.again:
		time.AfterFunc(termPatience, func() { a.inbox.put(termed{again: true}) })
	default:
		a.step(job.FrontLost{})
	}
}

// mustLeave: by the sequence this host is excluded. A removed one is ordered to end by the deciding
// agent, in the same moment.
func (a *agent) mustLeave(e mustLeave) {
	if a.up != nil && !a.succession.waits && !e.again {
		time.AfterFunc(termPatience, func() { a.inbox.put(mustLeave{e.why, true}) })
		return
	}
	a.leave(e.why)
}

// leave ends the processes of this host, without notice to the others: these continue without it,
// or may.
func (a *agent) leave(why string) {
	s := &a.succession
	if a.done || a.fenced || s.left {
		return
	}
	s.left = true
	text := cmp.Or(why, a.whyLeft(), "no majority knows any more of what is decided here")
	if a.up != nil {
		a.fenced = true
		atMost(fencedLimit, func() {
			fmt.Fprintf(os.Stderr, "libspx: host %s: %s; its processes are ended\n", a.host, text)
		})
		a.up.window.close()
		a.step(job.FrontLost{})
		return
	}
	for _, q := range a.waiters {
		q.reply(refuse(mpierr.Other, "host %s is out of job %016x, which may go on at others",
			a.host, a.jobNumber()))
	}
	a.waiters = nil
	a.refuseClients(refuse(mpierr.Other, "host %s is out of job %016x, which may go on at others",
		a.host, a.jobNumber()))
	for _, h := range a.others {
		h.gone = true
	}
	a.say(fmt.Sprintf(
		"host %s: %s; its processes are ended, and the job goes on at other hosts if these can",
		a.host, text))
	a.machine = departed{}
	a.carryOut(job.Send{Signal: job.SIGKILL})
	a.carryOut(job.Finish{Status: job.StatusFailed})
}

// departed stands where the machine stood of an agent that decides nothing any more.
type departed struct{}

// Step does nothing.
func (departed) Step(job.Event, time.Duration) []job.Action { return nil }

// Deadline: there is none.
func (departed) Deadline() (time.Duration, bool) { return 0, false }

// Ending reports that the processes end.
func (departed) Ending() bool { return true }

// Hurried reports that no reader of the output is left.
func (departed) Hurried() bool { return true }

// whyLeft is why this host is out, as far as that is known.
func (a *agent) whyLeft() string {
	if a.sequence == nil {
		return ""
	}
	why, next := a.sequence.whyLeft()
	if next > 0 && next < len(a.spec.Hosts) {
		why = fmt.Sprintf("host %s decides about the job now", a.hostName(next))
	}
	return why
}
