// Package start decides when MPI_Init returns in a system of clusters (MPI/SPx, section 3.4 and its
// open problem of synchronised start): when the clusters that it waits for are complete, or with
// the names of the missing ones at its timeout.
//
// Times are in ns since the job began. It is a pure state machine: the shell around it
// (launch/agent) supplies arrivals, departures and the time, and delivers the answers to the
// waiting processes. Processes are identified by their number in the job.
package start

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Member is a cluster, or an I/O process.
type Member struct {
	Name   string // for messages: "cluster input"
	Procs  int    // processes that have to come: ranks, not standbys
	Awaits []int  // members that have to be complete as well, by their place in the list
	Limit  int64  // ns that its processes wait at most
	Heals  bool   // dead ranks are taken over: no process has to arrive for them
}

// An Answer is for a process that waits in MPI_Init.
type Answer struct {
	Proc    int
	Missing string // the missing processes, in words; empty: continue
}

// waiter is a process that waits.
type waiter struct {
	proc, member int
	since        int64
}

type member struct {
	Member
	come  map[int]int // rank by process
	ready bool        // has been complete, or is not waited for
	// some of its processes have continued: a process that arrives now has the rank of a dead one,
	// and does not wait
	begun bool
}

// Machine is the state of a start.
type Machine struct {
	members []member
	waiting []waiter
}

// New makes the machine of a system none of whose processes has arrived.
func New(list []Member) *Machine {
	m := &Machine{}
	m.Add(list)
	return m
}

// Add appends members: the existing ones have not waited for them, and will not.
func (m *Machine) Add(list []Member) {
	for _, x := range list {
		m.members = append(m.members, member{Member: x, come: map[int]int{}})
	}
}

// Arrived: process proc, which has a rank in a member, is in MPI_Init. It is answered now or later,
// once.
func (m *Machine) Arrived(in, rank, proc int, now int64) []Answer {
	if in < 0 || in >= len(m.members) {
		return []Answer{{Proc: proc}}
	}
	m.members[in].comes(rank, proc)
	if m.members[in].begun {
		return []Answer{{Proc: proc}}
	}
	m.waiting = append(m.waiting, waiter{proc, in, now})
	return m.answers(now)
}

// Ended: a process is gone, whether it had come or not. A process that ended without failure before
// it arrived counts as arrived: programs need not use MPI. So does a rank that is taken over,
// because its successor may wait for the other ranks.
func (m *Machine) Ended(in, rank, proc int, failed bool, now int64) []Answer {
	m.waiting = slices.DeleteFunc(m.waiting, func(w waiter) bool { return w.proc == proc })
	if in < 0 || in >= len(m.members) {
		return nil
	}
	x := &m.members[in]
	if failed && !x.ready && !x.Heals {
		delete(x.come, proc)
	} else if !failed || x.Heals {
		x.comes(rank, proc)
	}
	return m.answers(now)
}

// Passed: a process continued before this machine was made. So its member was complete then, and
// those for which it waits; a process that arrives now does not wait.
func (m *Machine) Passed(in, rank, proc int, now int64) []Answer {
	if in < 0 || in >= len(m.members) {
		return nil
	}
	x := &m.members[in]
	x.comes(rank, proc)
	x.ready, x.begun = true, true
	for i := range m.members {
		m.members[i].ready = m.members[i].ready || slices.Contains(x.Awaits, i)
	}
	return m.answers(now)
}

// comes: a rank has arrived, possibly in place of another process that had it.
func (x *member) comes(rank, proc int) {
	maps.DeleteFunc(x.come, func(_, r int) bool { return r == rank })
	x.come[proc] = rank
	x.ready = x.ready || len(x.come) >= x.Procs
}

// Again: a member is started again, and is to be complete again before those go on that have not
// yet.
func (m *Machine) Again(in int) {
	x := &m.members[in]
	x.come, x.ready, x.begun = map[int]int{}, false, false
}

// Gone: a member will not come any more, and the other members continue without it.
func (m *Machine) Gone(in int, now int64) []Answer {
	m.members[in].ready = true
	return m.answers(now)
}

// Tick answers the waiters whose timeout has passed.
func (m *Machine) Tick(now int64) []Answer { return m.answers(now) }

// Deadline is when the machine wants the next Tick, if ok.
func (m *Machine) Deadline() (at int64, ok bool) {
	for _, w := range m.waiting {
		if due := w.since + m.members[w.member].Limit; !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// answers are those that can be given.
func (m *Machine) answers(now int64) (out []Answer) {
	missing := make([]*string, len(m.members))
	m.waiting = slices.DeleteFunc(m.waiting, func(w waiter) bool {
		if missing[w.member] == nil {
			text := m.missing(w.member)
			missing[w.member] = &text
		}
		text := *missing[w.member]
		if text != "" && now < w.since+m.members[w.member].Limit {
			return false
		}
		m.members[w.member].begun = m.members[w.member].begun || text == ""
		out = append(out, Answer{w.proc, text})
		return true
	})
	return out
}

// missing describes the processes that have not arrived of those that a member waits for.
func (m *Machine) missing(in int) string {
	var words []string
	for i := range m.members {
		x := &m.members[i]
		if x.ready || i != in && !slices.Contains(m.members[in].Awaits, i) {
			continue
		}
		if len(x.come) == 0 {
			words = append(words, "all of "+x.Name)
			continue
		}
		var ranks []string
		there := make([]bool, x.Procs)
		for _, rank := range x.come {
			if rank >= 0 && rank < x.Procs {
				there[rank] = true
			}
		}
		for first := 0; first < x.Procs; first++ {
			last := first
			for last < x.Procs && !there[last] {
				last++
			}
			switch last - first {
			case 0:
				continue
			case 1:
				ranks = append(ranks, fmt.Sprint(first))
			default:
				ranks = append(ranks, fmt.Sprintf("%d-%d", first, last-1))
			}
			first = last
		}
		words = append(words, fmt.Sprintf("%s %s of %s", map[bool]string{true: "rank",
			false: "ranks"}[len(x.come)+1 == x.Procs], strings.Join(ranks, ","), x.Name))
	}
	return strings.Join(words, ", ")
}
