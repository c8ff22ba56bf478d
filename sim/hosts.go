package sim

import (
	"slices"

	"libspx/ft/detect"
)

// The hosts of a job: what an agent does, as far as the failure protocols of the processes depend on it. The agents report deaths to that of host 0,
// and it has them published on every host. Which hosts have been silent for too long, and who goes on then, decides the detector (watch.go).

// hostAgent is the agent of a host.
type hostAgent struct {
	host   int
	alive  bool
	member bool  // of the hosts that go on
	known  []int // ended processes that it has published, in this order
	watch  *detect.Machine
	wake   Time // when it is looked after next
	beats  int
	heard  int  // of others
	ticked Time // when it was last told that host 0 goes on
	word   Time // when host 0 heard the newest of its datagrams
	said   int  // the number of that
	missed Time // when a datagram for it was last lost by chance
}

// befall lets a fault happen.
func (r *jobRun) befall(f Fault) {
	exists := f.Who < len(r.procs)
	switch f.Kind {
	case Kill:
		if exists && r.Alive[f.Who] {
			r.trace("process %d dies", f.Who)
			r.die(f.Who)
		}
	case Pause:
		if exists {
			r.pause(f.Who, f.For)
		}
	case Revoke:
		if exists && r.Alive[f.Who] && !r.procs[f.Who].left && r.procs[f.Who].cur != nil {
			p := r.procs[f.Who]
			r.trace("process %d revokes communicator %d", p.id, p.cur.name)
			r.awake(p.id, func() { r.act(p, p.cur, p.cur.m.Revoke()) })
		}
	case KillAgent:
		r.killAgent(f.Who)
	case KillHost:
		r.trace("host %d fails", f.Who)
		r.agents[f.Who].alive = false
		r.Kill(r.node(f.Who))
		r.endHost(f.Who)
	case KillLauncher:
		if !r.job.Detach {
			r.end("spxrun dies")
		}
	case Cut:
		r.cutOff(f)
	case PauseHost:
		r.pause(r.node(f.Who), f.For)
		for _, p := range r.procs {
			if p.host == f.Who {
				r.pause(p.id, f.For)
			}
		}
	}
}

// cutOff divides the network, one cut at a time.
func (r *jobRun) cutOff(f Fault) {
	if r.side != nil {
		return
	}
	r.trace("hosts %v are cut off for %d us", f.Hosts, f.For)
	r.side = map[int]bool{}
	r.cuts++
	for _, h := range f.Hosts {
		r.side[h] = true
	}
	r.After(f.For, r.heal)
}

// die ends a process; its agent notices.
func (r *jobRun) die(p int) {
	if !r.Alive[p] {
		return
	}
	r.Kill(p)
	r.out.Deaths++
	r.gone[p] = true
	r.noticed(p)
}

// noticed lets the agent of a host learn that a process has ended.
func (r *jobRun) noticed(p int) {
	a := r.agents[r.procs[p].host]
	r.After(1+Time(r.fate(6, p, 0)%5), func() {
		r.awake(r.node(a.host), func() {
			r.report(a, p)
		})
	})
}

// report brings an end to the agent that decides.
func (r *jobRun) report(a *hostAgent, p int) {
	switch {
	case r.decider < 0 || !a.member:
	case a.host == r.decider:
		r.publish(p)
	default:
		r.post(r.node(a.host), r.node(r.decider), func() { r.publish(p) })
	}
}

// publish tells all hosts of an end.
func (r *jobRun) publish(p int) {
	if r.decider < 0 || r.declared[p] {
		return
	}
	r.declared[p] = true
	for _, a := range r.agents {
		switch {
		case !a.alive || !a.member:
		case a.host == r.decider:
			r.told(a, p)
		default:
			r.post(r.node(r.decider), r.node(a.host), func() { r.told(a, p) })
		}
	}
}

// told lets an agent tell the processes of its host.
func (r *jobRun) told(a *hostAgent, p int) {
	if slices.Contains(a.known, p) {
		return
	}
	a.known = append(a.known, p)
	for _, q := range r.onHost[a.host] {
		if r.job.Rounds && q.looks == r.Now+1 {
			continue // it will see all that has been published at once
		}
		q.looks = r.Now + 1
		if r.Alive[q.id] {
			r.later(q, 1+Time(r.fate(7, p, q.id)%40), func() { r.look(q) })
		}
	}
}

// killAgent: the processes have asked the kernel to die with it, and its connections end.
func (r *jobRun) killAgent(h int) {
	a := r.agents[h]
	if !a.alive {
		return
	}
	r.trace("the agent of host %d dies", h)
	a.alive = false
	r.Kill(r.node(h))
	for _, p := range r.procs {
		if p.host == h {
			r.After(1+Time(r.fate(8, p.id, 0)%5), func() { r.die(p.id) })
		}
	}
	if h == 0 {
		r.After(10+Time(r.fate(9, h, 0)%30), func() { r.end("the agent that decides is dead") })
	} else {
		r.connectionEnds(h)
	}
}

// endHost ends the processes of a host.
func (r *jobRun) endHost(h int) {
	for _, p := range r.procs {
		if p.host == h {
			r.die(p.id)
		}
	}
}

// end ends the job.
func (r *jobRun) end(why string) {
	if r.decider < 0 {
		return
	}
	r.trace("the job ends: %s", why)
	r.decider = -1
	for _, a := range r.agents {
		r.fence(a, 2*fenceMax)
	}
}

// fenceMax is how long an agent takes at most to end its processes.
const fenceMax = Time(20)

// fence lets an agent end its processes within some time after it is awake.
func (r *jobRun) fence(a *hostAgent, within Time) {
	if a.alive && !r.job.Defect.NoFence {
		r.awake(r.node(a.host), func() { r.After(Time(r.fate(10, a.host, 0)%uint64(within)), func() { r.endHost(a.host) }) })
	}
}

// mayRun is how long a host that was just given up may still run, if it does not stand still: not at all, unless host 0 got no answer to what it told
// it last.
func (r *jobRun) mayRun(a *hostAgent) Time {
	return max(a.ticked+Time(a.watch.Limit())-2*period-r.Now, 0) + fenceMax
}

// toldWithin is how long a host may still run that was given up, and gets every datagram: it is told at once, or when it does not stand still any more.
const toldWithin = 2 * period

// lose gives a host up: its processes count as ended.
func (r *jobRun) lose(h int) {
	a := r.agents[h]
	if !a.member || r.decider < 0 {
		return
	}
	r.trace("host %d is given up", h)
	r.out.GivenUp = r.Now
	a.member = false
	whole, cuts, given, still := r.side == nil, r.cuts, r.Now, r.paused[r.node(h)]
	for _, p := range r.procs {
		if p.host != h {
			continue
		}
		r.After(r.mayRun(a), func() { // what it sends until then is refused, and for longer if it stands still
			if r.Alive[p.id] && !p.left && r.paused[r.node(h)] < 0 {
				r.violated("process %d was given up with its host, and still runs", p.id)
			}
		})
		r.After(max(still-r.Now, 0)+toldWithin, func() {
			if r.Alive[p.id] && !p.left && whole && r.cuts == cuts && a.missed < given && r.paused[r.node(h)] == still {
				r.violated("process %d was given up with its host, which was told, and still runs", p.id)
			}
		})
		r.fenced[p.id] = r.fenced[p.id] || !r.gone[p.id]
		r.gone[p.id] = true
		r.publish(p.id)
	}
}

// room is a host for a new process, at or behind h.
func (r *jobRun) room(h int) int {
	for k := range r.agents {
		a := r.agents[(h+k)%len(r.agents)]
		n := r.node(a.host)
		if r.decider >= 0 && a.alive && a.member && r.paused[n] <= r.Now && r.side[a.host] == r.side[r.decider] && len(r.procs) < len(r.gone) {
			return a.host
		}
	}
	return -1
}
