package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"libspx/cluster/layout"
	"libspx/core/diagnose"
	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/inspect"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/shm"
)

// What the processes of the job do, on all hosts, for queries (docs/diagnosis.md). Each host
// inspects its own, beside its main thread; the deciding host combines the results.

// inspectLimit is how long hosts that do not answer are waited for; so many times as long, for a
// tool, those that are still heard: they are busy. Tools wait a little longer (launch/steer).
const (
	inspectLimit = 5 * time.Second
	inspectTimes = 5
)

// inspection is a look at all processes that is under way.
type inspection struct {
	open  map[*remoteHost]bool // hosts that have not answered; nil: this host
	procs []diagnose.Proc
	again int // so many more times they are waited for
	done  func([]diagnose.Proc)
}

// inspected is what a host has found; late: it is not waited for any more.
type inspected struct {
	number int
	from   *remoteHost // nil: this host
	procs  []diagnose.Proc
	late   bool
}

// inspect looks at the processes of all hosts, and calls done with them, on the main thread. Hosts
// that have not answered in time, and are heard, are waited for so many times more.
func (a *agent) inspect(stacks bool, again int, done func([]diagnose.Proc)) {
	a.looks++
	n := a.looks
	look := &inspection{open: map[*remoteHost]bool{nil: true}, again: again, done: done}
	if a.inspections == nil {
		a.inspections = map[int]*inspection{}
	}
	a.inspections[n] = look
	for _, h := range a.others {
		if !h.gone && h.ready {
			look.open[h] = true
			h.box.put(&control.Message{Inspect: &control.Inspect{Number: n, Stacks: stacks}})
		}
	}
	a.inspectHere(stacks, func(procs []diagnose.Proc) {
		a.inbox.put(
			inspected{number: n, procs: procs})
	})
	time.AfterFunc(inspectLimit, func() { a.inbox.put(inspected{number: n, late: true}) })
}

// inspectHere looks at the processes of this host, beside the main thread.
func (a *agent) inspectHere(stacks bool, done func([]diagnose.Proc)) {
	var list []inspect.Process
	for i := range a.ranks {
		r := &a.ranks[i]
		if r.host == a.self && !r.external && a.segment.AgentState(i) != shm.AgentEmpty &&
			(r.alive || r.pid != 0) {
			list = append(list, inspect.Process{Number: i, Pid: r.pid})
		}
	}
	go func() { done(inspect.Host(a.segment, a.host, list, stacks)) }()
}

// hasInspected adds what a host has found.
func (a *agent) hasInspected(in inspected) {
	look := a.inspections[in.number]
	if look == nil {
		return
	}
	if !in.late {
		delete(look.open, in.from)
		look.procs = append(look.procs, in.procs...)
		if len(look.open) > 0 {
			return
		}
	} else if look.again > 0 && a.hears(look.open) {
		look.again--
		time.AfterFunc(inspectLimit,
			func() { a.inbox.put(inspected{number: in.number, late: true}) })
		return
	}
	delete(a.inspections, in.number)
	look.done(a.complete(look.procs))
}

// hears: of all these hosts something is heard.
func (a *agent) hears(hosts map[*remoteHost]bool) bool {
	for h := range hosts {
		if h != nil && (h.gone || a.beating == nil || a.beating.wasQuiet(h.number) ||
			h.wasQuiet()) {
			return false
		}
	}
	return true
}

// complete adds the processes of hosts that have not answered, and orders all.
func (a *agent) complete(procs []diagnose.Proc) []diagnose.Proc {
	by := map[int]*diagnose.Proc{}
	for i := range procs {
		by[procs[i].Proc] = &procs[i]
	}
	var out []diagnose.Proc
	for i := range a.ranks {
		r := &a.ranks[i]
		switch p := by[i]; {
		case p != nil:
			out = append(out, *p)
		case r.external || a.segment.AgentState(i) == shm.AgentEmpty:
		default:
			m := a.segment.Member(i)
			p := diagnose.Proc{Proc: i, Rank: int(m.Rank), World: int(m.World),
				Host: a.hostName(r.host), Pid: r.pid, State: diagnose.Silent}
			switch a.segment.AgentState(i) {
			case shm.AgentDead:
				p.State = diagnose.Dead
			case shm.AgentExited:
				p.State = diagnose.Ended
			}
			out = append(out, p)
		}
	}
	a.namePart(out)
	return out
}

// namePart sets the part of a system that each process belongs to.
func (a *agent) namePart(list []diagnose.Proc) {
	if len(a.spec.Programs) == 0 {
		return
	}
	text := a.layoutText()
	if text == "" {
		return
	}
	l, err := layout.Decode(text)
	if err != nil {
		return
	}
	for i := range list {
		p := &list[i]
		switch role, index, rank := l.Find(p.Proc); role {
		case layout.Compute:
			p.Part, p.Rank = "cluster "+l.Clusters[index].Name, rank
		case layout.Standby:
			c := &l.Clusters[index]
			p.Part, p.Standby, p.Rank = "cluster "+c.Name, true, max(p.Rank-len(c.Procs), 0)
		case layout.IO:
			p.IO = true
			if links := l.IOPs[index].Links; len(links) > 0 {
				first := slices.IndexFunc(l.IOPs,
					func(o layout.IOP) bool { return slices.Equal(o.Links, links) })
				p.Part, p.Rank = "link "+l.Links[links[0]].Name, index-first
			}
		case layout.Stranger: // it has died, and another process has its place in the table
			a.nameFormer(p)
		}
	}
}

// nameFormer names a process that is no longer in the system's table, by the name of its part.
func (a *agent) nameFormer(p *diagnose.Proc) {
	if p.Proc >= len(a.ranks) {
		return
	}
	r := &a.ranks[p.Proc]
	if r.part < 1 || r.part > len(a.spec.Parts) {
		return
	}
	part := &a.spec.Parts[r.part-1]
	if !part.Serves {
		p.Part, p.Rank = part.Name, r.in
		if p.Standby = part.Ranks > 0 && r.in >= part.Ranks; p.Standby {
			p.Rank -= part.Ranks
		}
		return
	}
	name := strings.TrimSuffix(part.Tag, ".") // LINK.iopK
	if at := strings.LastIndex(name, ".iop"); at > 0 {
		if k, err := strconv.Atoi(name[at+len(".iop"):]); err == nil {
			p.IO, p.Part, p.Rank = true, "link "+name[:at], k
		}
	}
}

func (a *agent) hostName(number int) string {
	if number < len(a.spec.Hosts) {
		return a.spec.Hosts[number]
	}
	return a.host
}

// report prints what the processes do, and why they stand still. Then it steps the machine.
func (a *agent) report(why string, then job.Event) {
	a.inspect(true, 0, func(procs []diagnose.Proc) {
		a.say(fmt.Sprintf("%s (job %016x):", why, a.jobNumber()))
		for _, line := range diagnose.Waits(procs) {
			a.say(line)
		}
		if then != nil {
			a.step(then)
		}
	})
}

// quitAgain is how soon SIGQUIT has to come again to go to the processes, which it ends.
const quitAgain = 3 * time.Second

// takesQuit: SIGQUIT (Ctrl-\) asks for a report, the first time, where MPI is used.
func (a *agent) takesQuit(e job.Signalled) bool {
	if syscall.Signal(e.Signal) != syscall.SIGQUIT || a.up != nil || a.machine.Ending() ||
		!a.anyMPI(-1) || time.Since(a.quitAt) < quitAgain {
		return false
	}
	a.quitAt = time.Now()
	a.report(fmt.Sprintf("SIGQUIT (a second one within %v goes to the processes)", quitAgain), nil)
	return true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// lookForHang looks how long processes have waited.
func (a *agent) lookForHang() {
	a.inspect(false, 0, func(procs []diagnose.Proc) {
		a.step(job.Looked{Waited: seconds(diagnose.Longest(procs)),
			Hangs: diagnose.Hangs(procs, a.spec.HangAfter.Seconds())})
	})
}

// inspectFor answers a query about what the processes do.
func (a *agent) inspectFor(q *question) {
	a.inspect(q.Number != 0, inspectTimes-1, func(procs []diagnose.Proc) {
		text, err := json.Marshal(procs)
		if err != nil {
			q.reply(refuse(mpierr.Intern, "%v", err))
			return
		}
		q.reply(&service.Message{Text: string(text), FD: -1})
	})
}

// inspectForAbove answers the host that decides.
func (a *agent) inspectForAbove(m *control.Inspect) {
	number, up := m.Number, a.up
	a.inspectHere(m.Stacks, func(procs []diagnose.Proc) {
		text, err := json.Marshal(procs)
		if err == nil {
			up.box.put(&control.Message{Inspected: &control.Inspected{Number: number, Procs: text}})
		}
	})
}

// inspectedThere adds what another host has found.
func (a *agent) inspectedThere(h *remoteHost, m *control.Inspected) {
	in := inspected{number: m.Number, from: h}
	var all []diagnose.Proc
	if json.Unmarshal(m.Procs, &all) != nil {
		all = nil
	}
	for _, p := range all {
		if a.isAt(p.Proc, h) { // that host may be broken
			in.procs = append(in.procs, p)
		}
	}
	a.hasInspected(in)
}
