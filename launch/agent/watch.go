package agent

import (
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/inspect"
	"libspx/launch/job"
	"libspx/launch/watch"
	"libspx/shm"
)

// Each agent watches the processes of its host, in a system (package watch), and tells the one that
// decides which hang.

// watching is an agent's part.
type watching struct {
	machine *watch.Machine // nil: nothing is watched yet
	paused  bool           // the user has stopped all processes
	doubts  map[int]*doubt // of the processes here
}

// A doubt is whether a process waits for a processor that seems to do nothing, or nothing for
// others.
type doubt struct {
	queue inspect.Queue
	moves uint64
	at    time.Duration // of the last look
}

// kept is for how long it has waited since the look before; only those are looked at more closely
// that would be taken for hanging.
func (w *watching) kept(s *watch.Sight, now time.Duration) time.Duration {
	if w.doubts == nil {
		w.doubts = map[int]*doubt{}
	}
	d := w.doubts[s.Proc]
	if d == nil {
		d = &doubt{}
		w.doubts[s.Proc] = d
	}
	moved, passed := s.Moves != d.moves, now-d.at
	d.moves, d.at = s.Moves, now
	if moved || !s.Pending || s.Sleeps || s.Stopped {
		return 0
	}
	return d.queue.Look(s.Pid, passed)
}

// watchDue is when to look next.
func (a *agent) watchDue() (at time.Time, ok bool) {
	if len(a.spec.Parts) == 0 || a.machine.Ending() || a.watching.paused {
		return at, false
	}
	if a.watching.machine == nil {
		return a.began, true
	}
	return a.began.Add(a.watching.machine.Due()), true
}

// watchProcesses looks at those of this host, when it is time.
func (a *agent) watchProcesses() {
	at, ok := a.watchDue()
	now := a.now()
	if !ok || now < at.Sub(a.began) {
		return
	}
	w := &a.watching
	if w.machine == nil {
		w.machine = watch.New(watch.Every(a.shortestLimit()))
	}
	for _, c := range w.machine.Look(a.sights(now), now) {
		a.tellState(c)
	}
}

// tellState tells who decides how a process is.
func (a *agent) tellState(c watch.Change) {
	pid := a.ranks[c.Proc].pid
	switch c.To {
	case watch.Works:
		a.step(job.WentOn{Proc: c.Proc, Pid: pid, For: c.For})
	case watch.Slow:
		a.step(job.Slowed{Proc: c.Proc, Pid: pid})
	case watch.Hangs:
		a.step(job.Hung{Proc: c.Proc, Pid: pid, Why: c.Why, For: c.For})
	}
}

func (a *agent) shortestLimit() time.Duration {
	shortest := time.Hour
	for i := range a.spec.Parts {
		p := &a.spec.Parts[i]
		for _, d := range []time.Duration{p.HangLimit, p.SilentLimit} {
			if d > 0 {
				shortest = min(shortest, d)
			}
		}
	}
	return shortest
}

// sights are what is to be seen of the processes of this host.
func (a *agent) sights(now time.Duration) (out []watch.Sight) {
	for i := range a.ranks {
		r := &a.ranks[i]
		if !a.own(i) || r.part == 0 || r.pid == 0 {
			continue
		}
		part, pid := &a.spec.Parts[r.part-1], r.pid
		if r.inside != nil && !r.inside.gone {
			pid = r.inside.pid
		}
		activity, ok := inspect.ActivityOf(pid)
		if !ok { // it has ended
			continue
		}
		s := watch.Sight{Proc: i, Pid: pid, Limits: watch.Limits{Still: part.HangLimit,
			Silent: part.SilentLimit}, Stopped: activity.State == 'T', Held: activity.State == 't',
			Used: activity.Used, Joined: a.segment.OwnerState(i) == shm.OwnerInit}
		if s.Joined {
			p := a.segment.Pulse(i)
			s.Moves, s.Sleeps, s.Pending = p.Moves, p.Sleeps, p.Pending
			s.Promises, s.Promise, s.PromisedAt = p.Promises,
				time.Duration(p.PromiseMS)*time.Millisecond, p.PromisedAt
			s.Kept = a.watching.kept(&s, now)
		}
		out = append(out, s)
	}
	return out
}

// shun notes for the processes of this host whether an I/O process hangs.
func (a *agent) shun(act job.Shun) {
	if act.Proc >= 0 && act.Proc < len(a.ranks) {
		a.segment.SetHangs(act.Proc, act.Hangs)
		a.segment.RingAll() // those that wait for room on the way to it
	}
}

// pauses: the user has stopped all processes, from the terminal say, or has them go on. That is no
// fault of theirs.
func (a *agent) pauses(signal int) {
	w := &a.watching
	switch unix.Signal(signal) {
	case unix.SIGTSTP, unix.SIGSTOP, unix.SIGTTIN, unix.SIGTTOU:
		w.paused = true
	case unix.SIGCONT:
		w.paused = false
		if w.machine != nil {
			w.machine.Forget(a.now())
		}
	}
}
