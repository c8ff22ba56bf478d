package agent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"libspx/ft/replica"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/service"
)

// The agents of the other hosts are started: each by a remote shell (shell.go) of this agent, or of
// another host's (branches.go), until all are ready or the job cannot be.

// Times of that.
const (
	// for hosts to be ready, before the user is told which are not
	readyPatience = 5 * time.Second
	readyAgain    = 15 * time.Second       // and then again
	readyLook     = 200 * time.Millisecond // between looks at who is late
)

// mostNamed is how many hosts are named in one line.
const mostNamed = 8

// Descriptors that an agent has open: for itself, for each process, each host whose shell it has,
// and each host that it talks with.
const (
	filesOwn   = 48
	filesProc  = 6
	filesShell = 3
	filesHost  = 6
	filesMesh  = 2 // for each of those that keep copies, in jobs where some do
)

// reach starts the agents of the other hosts and waits until all are ready, or one is not.
func (a *agent) reach() error {
	if _, err := beatsOf(a.spec); err != nil {
		return err
	}
	starters := hosts.Starters(len(a.spec.Hosts), a.spec.Fanout)
	if err := a.enoughFiles(starters); err != nil {
		return err
	}
	for n, name := range a.spec.Hosts {
		if n == 0 {
			continue
		}
		h := newRemoteHost(n, name)
		if h.starter = starters[n]; h.starter > 0 {
			a.unsent = append(a.unsent, h)
			continue
		}
		a.others = append(a.others, h)
		a.send(h)
	}
	a.awaitReady()
	return nil
}

// enoughFiles tells, before anything is started, when this process may not open as many files as
// the job takes.
func (a *agent) enoughFiles(starters []int) error {
	procs, direct := 0, 0
	for i := range a.ranks {
		procs += boolInt(a.ranks[i].host == a.self)
	}
	for n, by := range starters {
		direct += boolInt(n > 0 && by == 0)
	}
	others := max(0, len(starters)-1)
	need, limit := filesOwn+procs*filesProc+direct*filesShell+others*filesHost, openFiles()
	if a.spec.Sequence {
		need += filesMesh * min(others, replica.MostVoters+replica.MostFollowers)
	}
	if others == 0 || need <= limit {
		return nil
	}
	return fmt.Errorf(
		"for %d other hosts and %d processes here, the agent of host %s has to open about %d "+
			"files, and may open %d: raise the limit (ulimit -Hn; LimitNOFILE of a systemd "+
			"unit), or start fewer",
		others, procs, a.host, need, limit)
}

// send starts the agent of a host from here.
func (a *agent) send(h *remoteHost) {
	l := a.newLink(h)
	a.introduceTo(h, a.segment.Key())
	l.startHere()
}

// startBelow has an agent that is there start those that are its to start.
func (a *agent) startBelow(by *remoteHost) {
	if a.machine.Ending() {
		return
	}
	a.unsent = slices.DeleteFunc(a.unsent, func(h *remoteHost) bool {
		if h.starter != by.number {
			return false
		}
		a.others = append(a.others, h)
		l := a.newLink(h)
		a.introduceTo(h, a.segment.Key())
		l.startAt(by)
		return true
	})
}

// notFrom tells that a host could not be reached from another one: once in a job, since the reason
// is mostly the same for all.
func (a *agent) notFrom(by *remoteHost, host, why string) {
	if a.strayed.Swap(true) && !a.spec.Verbose {
		return
	}
	a.say(fmt.Sprintf(
		"host %s cannot be started from host %s (%s); the agent of spxrun's host starts it "+
			"itself, and others that fail so. (--fanout 0, or %s=0, has it start all.)", host,
		by.name, why, service.EnvFanout))
}

// shellOf is the command that starts the agent of a host.
func (a *agent) shellOf(host string) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	if a.spec.Prefix != "" {
		self = filepath.Join(a.spec.Prefix, "bin/spxrun")
	}
	return hosts.Shell(a.spec.Rsh, host, "exec "+hosts.Quote(self)+" "+control.HostWord)
}

// awaitReady waits until all other hosts are ready, or the job is being ended because one is not.
func (a *agent) awaitReady() {
	tell := time.Now().Add(readyPatience)
	for (len(a.unsent) > 0 || a.waitsFor(func(h *remoteHost) bool { return !h.ready })) &&
		!a.machine.Ending() {
		a.poll(min(a.timeout(), int(readyLook/time.Millisecond)))
		now := time.Now()
		if a.machine.Ending() || a.tooLate(now) || now.Before(tell) {
			continue
		}
		tell = now.Add(readyAgain)
		a.tellAwaited()
	}
	a.unsent = nil
}

// isAwaited: the host is not ready, and does not only wait for what others say.
func (a *agent) isAwaited(h *remoteHost) bool {
	return !h.gone && !h.ready && (h.reach == nil || a.places.chosen)
}

// tellAwaited names the hosts that are not ready.
func (a *agent) tellAwaited() {
	var names []string
	for _, h := range a.others {
		if a.isAwaited(h) {
			names = append(names, h.name)
		}
	}
	if len(names) == 0 {
		return
	}
	text := "waiting for " + listed(names)
	if n := len(a.unsent); n > 0 {
		text += fmt.Sprintf(", which are to start those of %d more hosts", n)
	}
	a.say(text)
}

// tooLate ends the job when the agent of a host has not answered in time.
func (a *agent) tooLate(now time.Time) bool {
	var names []string
	why := ""
	for _, h := range a.others {
		if !a.isAwaited(h) || h.link == nil || a.spec.StartLimit <= 0 {
			continue
		}
		if since, trouble, ok := h.link.awaits(); ok && now.Sub(since) > a.spec.StartLimit {
			names, why = append(names, h.name), cmp.Or(why, trouble)
		}
	}
	if len(names) == 0 {
		return false
	}
	if why == "" {
		why = fmt.Sprintf(
			"%s has not ended and brought no agent: does it ask for something, or does what "+
				"runs there at login wait? Try it by hand with the command true; %s, in s, "+
				"allows more", a.spec.Rsh[0], service.EnvStartLimit)
	}
	a.step(job.NotStarted{Text: fmt.Sprintf("host %s: its agent has not answered within %v; %s",
		listed(names), a.spec.StartLimit, why), Status: job.StatusFailed})
	return true
}

// listed are names in a sentence.
func listed(names []string) string {
	if more := len(names) - mostNamed; more > 1 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
