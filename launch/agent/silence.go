package agent

import (
	"fmt"
	"os"
	"strings"
	"time"

	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// What follows from silence (heartbeat.go). The host that decides gives silent hosts up, with their
// processes, or ends the job when they are the majority. A host that was given up, or that has lost
// the one that decides, ends its processes: whoever goes on can rely on that.

// beginBeats tells all hosts where the others' heartbeats are, and begins this one's.
func (a *agent) beginBeats() {
	b, err := beatsOf(a.spec)
	if err != nil {
		a.step(job.NotStarted{Text: err.Error(), Status: job.StatusFailed})
		return
	}
	if len(a.others) == 0 || b.Period == 0 {
		return
	}
	if a.beating == nil {
		if err := a.openHeartbeat(); err != nil {
			if a.spec.Verbose {
				a.say(fmt.Sprintf("no heartbeats, so a host that falls silent is not noticed: %v",
					err))
			}
			return
		}
	}
	for range a.spec.Hosts {
		b.At = append(b.At, a.beating.at) // overwritten below
	}
	for _, h := range a.others {
		b.At[h.number] = h.beat
	}
	a.growTree(&b, nil)
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Beats: a.beatsFor(h.number, &b)})
		}
	}
	a.beats = &b
	a.beating.start(a.beatsFor(a.self, &b))
	for _, h := range a.others {
		if h.gone {
			a.beating.hasGone(h.number, h.goneFor())
		}
	}
}

// heed begins the heartbeats of a host that decides nothing.
func (a *agent) heed(b *control.Beats) {
	if a.beating != nil && a.beating.machine == nil && len(b.At) == len(a.spec.Hosts) &&
		b.Period > 0 && b.Limit/beatShare >= b.Period && b.Most >= b.Limit {
		a.beats = b
		a.beating.start(b)
		a.leaveSilence(b)
		if a.succession.era > 0 {
			a.turnBeats(a.spec.Lost)
		}
	}
}

// fellSilent gives hosts up.
func (a *agent) fellSilent(s silence) {
	silent := map[int]bool{}
	for _, n := range s.hosts {
		silent[n] = true
	}
	var list []*remoteHost
	var names []string
	for _, h := range a.others {
		if silent[h.number] && !h.gone {
			list, names = append(list, h), append(names, h.name)
			h.gone = true // none of them is asked about the ends of the others' processes
		}
	}
	if len(list) == 0 {
		return
	}
	if s.split && a.waitsForOthers() {
		a.leave(fmt.Sprintf(
			"%d hosts of this job (%s) have been silent for %s: they may go on, cut off from "+
				"here, but this side has fewer hosts%s", len(list), strings.Join(names, ", "),
			a.beating.waits(), a.allowMore()))
		return
	}
	if s.split {
		a.step(job.Split{Text: fmt.Sprintf(
			"%d hosts of this job (%s) have been silent for %s: they may go on, cut off from "+
				"here, but this side has fewer hosts; the job is ended with exit status %d. (To "+
				"let this side go on: %s=launcher.)%s",
			len(list), strings.Join(names, ", "), a.beating.waits(), job.StatusFailed,
			service.EnvPartition, a.allowMore())})
	}
	how := fmt.Sprintf("nothing was heard of it for %s%s", a.beating.waits(), a.allowMore())
	for _, h := range list {
		h.hangUp()
	}
	a.loseHosts(list, how, job.FaultNetwork)
}

// allowMore is advice for jobs that a silence has ended.
func (a *agent) allowMore() string {
	return fmt.Sprintf(" (%s; %s=%d, in ms, allows ten times as much, %s=0 any silence)",
		service.EnvHeartbeatLimit, service.EnvHeartbeatLimit,
		10*a.beating.allowed.Load()/1000, service.EnvHeartbeat)
}

// hangUp breaks the connection with a host's agent, if it still stands: what that one hears last is
// that its time is over.
func (h *remoteHost) hangUp() {
	if h.link != nil {
		h.link.hangUp()
	} else if h.conn != nil {
		h.conn.Close()
	}
}

// fencedLimit is how long an agent that has ended its processes, and that is cut off, waits for its
// last messages to leave.
const fencedLimit = 200 * time.Millisecond

// fence ends the processes of this host: the others go on without them, or may.
func (a *agent) fence(f fenced) {
	if a.fenced || a.up == nil || f.era != a.succession.era {
		return
	}
	if f.why == detect.LostContact && a.mayBeCalled() {
		a.lostUp(upLost{era: f.era})
		return
	}
	a.fenced = true
	text := a.fencedFor(f.why) + a.beating.kept()
	atMost(fencedLimit, func() {
		fmt.Fprintf(os.Stderr, "libspx: host %s: %s; its processes are ended\n", a.host, text)
	})
	a.up.window.close()
	a.step(job.FrontLost{})
}

// fencedFor says why this host has to end its processes.
func (a *agent) fencedFor(why detect.Reason) string {
	lead := "the host that decides"
	if n := a.succession.decider; n < len(a.spec.Hosts) && a.spec.Hosts[n] != "" {
		lead += ", " + a.spec.Hosts[n] + ","
	}
	switch why {
	case detect.LostContact:
		return fmt.Sprintf("%s has not been heard of for %s%s", lead, a.beating.waits(),
			a.allowMore())
	case detect.OutChanged:
		return fmt.Sprintf("%s goes on without this one: %v", lead, errChanged)
	case detect.OutClosed:
		return fmt.Sprintf(
			"%s goes on without this one: its connection with the agent here has ended, or is "+
				"broken", lead)
	default:
		return fmt.Sprintf("%s goes on without this one, of which nothing was heard for %s%s", lead,
			a.beating.waits(), a.allowMore())
	}
}

// atMost waits for the end of do, but not for ever: it may be held by a connection that leads
// nowhere.
func atMost(limit time.Duration, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
