package agent

import (
	"fmt"
	"slices"
	"time"

	"libspx/cluster/start"
	"libspx/core/mpierr"
	"libspx/launch/job"
	"libspx/launch/service"
)

// The start of a system of clusters: processes that wait in MPI_Init until those are complete that
// they are to wait for. Package cluster/start decides; here is who waits, and what becomes of a
// process.

// beginning is kept by the agent that decides. Without a machine none waits.
type beginning struct {
	machine *start.Machine
	waiting map[int]client // by number of the process
	early   []*question    // of processes of parts of which not all processes have been made yet
}

func (b *beginning) open(list []start.Member) {
	if len(list) > 0 {
		b.machine, b.waiting = start.New(list), map[int]client{}
	}
}

// arrived: a process is in MPI_Init, and asks whether it may leave it.
func (a *agent) arrived(q *question) {
	b, i := &a.beginning, int(q.Number)
	if b.machine == nil || i >= len(a.ranks) || a.ranks[i].part == 0 {
		q.reply(&service.Message{FD: -1})
		return
	}
	if m, decides := a.machine.(*job.Machine); decides && m.Making(a.ranks[i].part) {
		b.early = append(b.early, q)
		return
	}
	b.waiting[i] = q.conn
	b.give(b.machine.Arrived(a.ranks[i].part-1, a.ranks[i].in, i, int64(a.now())))
}

// arrivedEarly takes those up whose parts have been made now: what happens to a process that has
// left MPI_Init happens to a cluster that is whole, with its standbys and its places for processes
// that are started later, on all its hosts.
func (a *agent) arrivedEarly() {
	early := a.beginning.early
	a.beginning.early = nil
	for _, q := range early {
		if a.ranks[int(q.Number)].alive { // else it has ended meanwhile
			a.arrived(q)
		}
	}
}

// give hands out answers.
func (b *beginning) give(list []start.Answer) {
	for _, x := range list {
		to := b.waiting[x.Proc]
		if to == nil {
			continue
		}
		delete(b.waiting, x.Proc)
		m := &service.Message{Kind: service.Arrive, FD: -1}
		if x.Missing != "" {
			m.Class = uint32(mpierr.Other)
			m.Text = fmt.Sprintf(
				"the system is not complete in time: %s missing ([start] of the system file "+
					"says for whom a cluster waits, and how long; spxctl system status shows "+
					"what runs)", x.Missing)
		}
		to.Send(m) //nolint:errcheck // it may be gone
	}
}

// forget: the process on this connection waits no more.
func (b *beginning) forget(conn client) {
	for i, c := range b.waiting {
		if c == conn {
			delete(b.waiting, i)
		}
	}
	b.early = slices.DeleteFunc(b.early, func(q *question) bool { return q.conn == conn })
}

// startGoesOn takes what happens to processes in.
func (a *agent) startGoesOn(e job.Event) {
	b := &a.beginning
	if b.machine == nil {
		return
	}
	if e, ok := e.(job.Ended); ok && e.Proc < len(a.ranks) && a.ranks[e.Proc].part > 0 {
		failed := e.Owner == job.OwnerInit || e.Owner == job.OwnerAborted || e.Wait.Status() != 0
		b.give(b.machine.Ended(a.ranks[e.Proc].part-1, a.ranks[e.Proc].in, e.Proc, failed,
			int64(a.now())))
	}
	if len(b.waiting) == 0 {
		return
	}
	if m, decides := a.machine.(*job.Machine); decides {
		for i, p := range m.Parts() {
			if p.State == job.StateGone {
				b.give(b.machine.Gone(i, int64(a.now())))
			}
		}
	}
}

// again: a part is about to be started again.
func (b *beginning) again(part int) {
	if b.machine != nil {
		b.machine.Again(part - 1)
	}
}

func (b *beginning) tick(now time.Duration) {
	if b.machine != nil {
		b.give(b.machine.Tick(int64(now)))
	}
}

func (b *beginning) deadline() (time.Duration, bool) {
	if b.machine == nil {
		return 0, false
	}
	at, ok := b.machine.Deadline()
	return time.Duration(at), ok
}
