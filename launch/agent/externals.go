package agent

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/shm"
)

// External processes are processes of other jobs that processes of this one are connected with.
// They have a number in the memory file, so that they can write to our processes, and are watched
// by pidfd, so that ours learn of their death.

// attach gives a process of another job the memory file and its number there.
func (a *agent) attach(who service.Peer) *service.Message {
	slot, err := a.external(who)
	if err != nil {
		return refuse(mpierr.NoMem, "%v", err)
	}
	return &service.Message{Slots: []uint32{uint32(slot)}, FD: int(a.segment.File().Fd())}
}

// receive tells a process of ours the numbers of its peers of other jobs.
func (a *agent) receive(peers []service.Peer) *service.Message {
	answer := &service.Message{FD: -1}
	for _, p := range peers {
		slot, err := a.external(p)
		if err != nil {
			return refuse(mpierr.NoMem, "%v", err)
		}
		answer.Slots = append(answer.Slots, uint32(slot))
	}
	return answer
}

// external finds or makes the number of a process of another job.
func (a *agent) external(who service.Peer) (int, error) {
	if slot, ok := a.externals[who.ID]; ok {
		return slot, nil
	}
	free := a.freeSlots(1, 0, nil)
	if len(free) == 0 {
		return 0, a.full(1)
	}
	if err := a.numbersLeft(1); err != nil {
		return 0, err
	}
	slot := free[0]
	member := shm.Member{World: who.ID.World, Rank: who.ID.Rank, Serial: a.serial, Job: who.ID.Job,
		Incarnation: who.ID.Incarnation}
	if err := a.segment.AddProc(slot, member); err != nil {
		return 0, err
	}
	a.serial++
	a.segment.SetAddress(slot, netip.AddrPort{}) // it is met in memory
	pidfd, err := unix.PidfdOpen(int(who.Pid), 0)
	a.segment.MarkStarted(slot, int(who.Pid))
	a.externals[who.ID] = slot
	r := a.rank(slot)
	*r = rank{external: true, pid: int(who.Pid), pidfd: pidfd, alive: err == nil}
	if err != nil || a.watchProcess(slot) != nil {
		r.alive = false
		a.externalEnded(slot)
		return slot, nil
	}
	a.segment.Announce()
	return slot, nil
}

// rank is the entry of a number, made if need be.
func (a *agent) rank(slot int) *rank {
	for slot >= len(a.ranks) {
		a.ranks = append(a.ranks, rank{pidfd: -1})
	}
	return &a.ranks[slot]
}

// freeSlots returns n numbers for new processes, or fewer, none of those that are in use elsewhere.
// Numbers that the table of a system has for another part than this one (from 1, 0: none) are not
// free either, although no process has them: it is to return.
func (a *agent) freeSlots(n, part int, taken map[int]bool) []int {
	kept := a.keptFor(part)
	free := a.segment.Free(n, func(i int) bool {
		return !taken[i] && !kept[i] &&
			(i >= len(a.ranks) || !a.ranks[i].alive)
	})
	for id, slot := range a.externals { // who it was is forgotten with the number
		for _, f := range free {
			if f == slot {
				delete(a.externals, id)
			}
		}
	}
	return free
}

func (a *agent) full(n int) error {
	return fmt.Errorf(
		"no room for %d more processes in the job's memory file, which holds %d at one time, "+
			"processes of other jobs that "+
			"are connected included; start the job with --usize N", n, a.segment.MaxProcs())
}

// externalEnded tells our processes of the end of one of another job. Its own agent decides what it
// means there; here, those who wait for it learn it, and an MPI_Abort ends those who are connected
// with it.
func (a *agent) externalEnded(i int) {
	r := &a.ranks[i]
	if r.pidfd >= 0 {
		defer unix.Close(r.pidfd)
	}
	switch a.segment.OwnerState(i) {
	case shm.OwnerFinalized, shm.OwnerDone:
		a.segment.MarkExited(i, 0)
	case shm.OwnerAborted:
		a.segment.MarkDead(i, 0)
		m := a.segment.Member(i)
		name := fmt.Sprintf("%v (pid %d)", ident.ProcID{Job: m.Job, World: m.World, Rank: m.Rank,
			Incarnation: m.Incarnation}, r.pid)
		a.step(job.ExternalAborted{Name: name, Connected: a.connected(i)})
	default:
		a.segment.MarkDead(i, 0)
	}
}
