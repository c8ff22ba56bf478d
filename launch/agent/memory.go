package agent

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/diagnose"
	"libspx/launch/control"
	"libspx/launch/cpus"
	"libspx/launch/inspect"
	"libspx/launch/job"
	"libspx/launch/process"
	"libspx/shm"
)

// spareProcs is how many processes more than those of the command line a job has room for at least,
// at one time: those that it spawns, and those of other jobs that are connected with it. --usize
// makes it more.
const spareProcs = 256

// makeSegment makes the memory file, with a slot for every rank, under the number that ranks know
// it by.
func (a *agent) makeSegment() (err error) {
	var flags uint32
	if a.spec.WithFT {
		flags |= shm.WithFT
	}
	transports, err := transports(a.spec.Programs)
	if err != nil {
		return err
	}
	if !transports.sharedMemory {
		flags |= shm.TCP
	}
	if a.several() {
		flags |= shm.Hosts
	}
	n := len(a.ranks)
	if a.segment, err = shm.Create(shm.Room(max(n, a.spec.Universe), spareProcs), n, cpus.Usable(),
		flags); err != nil {
		return err
	}
	a.segment.SetUniverse(a.spec.Universe)
	a.segment.SetHost(a.self)
	if a.self > 0 || a.spec.Detached {
		a.segment.SetJobID(a.spec.ID)
	}
	if a.self > 0 {
		a.segment.SetKey(a.spec.Key)
	}
	if a.meeting != nil {
		a.segment.SetKey(jobKey(a.spec.Join.Key, a.segment.JobID()))
	}
	a.shareOut()
	for i := range a.ranks {
		if a.spec.Late { // they come by Present
			break
		}
		if err := a.segment.AddProc(i, shm.Member{World: a.ranks[i].world,
			Rank: uint32(a.ranks[i].in), Serial: uint32(i), Host: uint32(a.ranks[i].host),
			Near: a.near(i, a.ranks[i].host)}); err != nil {
			return err
		}
		if a.ranks[i].away { // as one that has died, and is to be started again
			a.segment.MarkDead(i, syscall.WaitStatus(syscall.SIGKILL))
		}
	}
	a.serial = uint32(n)
	if err := unix.Dup3(int(a.segment.File().Fd()), control.MemoryFD, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("dup3: %w", err)
	}
	return nil
}

func (a *agent) now() time.Duration { return time.Since(a.began) }

// ended handles a process whose pidfd is readable. What is to be published is published before the
// process is reaped.
func (a *agent) ended(i int) {
	r := &a.ranks[i]
	if !r.alive {
		return
	}
	status, ended := r.peek(a.segment.OwnerState(i))
	if !ended {
		a.wrapperLeft(i)
		return
	}
	if !a.endInside(i) {
		return
	}
	a.dropInside(i)
	wait := waitOf(status)
	if wait.Signal == job.SIGKILL {
		wait.Memory = a.lackOfMemory()
	}
	if r.cut { // by this agent
		wait = job.Wait{Unknown: true}
	}
	r.alive = false
	a.stopWatching(r.pidfd) // perhaps it is held until other hosts have judged
	if r.external {
		a.externalEnded(i)
		return
	}
	a.cores.died(a, i, wait)
	spawning := r.spawned && !a.segment.Met(i)
	state := owner(a.segment.OwnerState(i))
	claimed, _, code := a.segment.AbortCode()
	if r.joined {
		if wait = (job.Wait{Unknown: state != job.OwnerFinalized}); state == job.OwnerNone {
			state = job.OwnerInit // it is in MPI_Init, or it would not have joined
		}
	}
	e := job.Ended{Proc: i, Wait: wait, Owner: state, Call: inspect.CallName(a.segment.Call(i)),
		Returns:  a.anyReturns(),
		OtherMPI: a.anyMPI(i), Aborted: claimed, Code: code, Spawning: spawning}
	if r.joined {
		e.Also = a.endedToo(i)
	}
	if state == job.OwnerAborted && !claimed {
		e.Others = a.abortedToo()
	}
	if a.several() { // connections are not known across hosts: all processes count as connected
		r.held = true
		a.judge(e)
		return
	}
	if claimed && state == job.OwnerAborted {
		e.Connected = a.connected(i)
	}
	gone := *r // what follows may start a process in its place
	a.step(e)
	if len(e.Connected) > 0 && !a.machine.Ending() {
		a.segment.ClearAbort()
	}
	gone.reap()
}

// endedToo lists the processes of another launcher that have ended by now besides process i: that
// launcher may have ended them when it saw the first, before this agent had its turn.
func (a *agent) endedToo(i int) (out []int) {
	for k := range a.ranks {
		if r := &a.ranks[k]; k != i && r.joined && r.alive && r.host == a.self {
			if _, ended := r.peek(a.segment.OwnerState(k)); ended {
				out = append(out, k)
			}
		}
	}
	return out
}

// connected lists the processes of this job that live and are connected with process i, that one
// left aside.
func (a *agent) connected(i int) []int {
	out := []int{}
	for _, k := range a.segment.Connected(i)[1:] {
		if a.own(k) {
			out = append(out, k)
		}
	}
	return out
}

// abortedToo lists the processes, here and on other hosts, that one of this host has ended by
// MPI_Abort on a communicator of a part of the job: it is noted in their entries here.
func (a *agent) abortedToo() (out []int) {
	for i := range a.ranks {
		live := a.own(i) || a.ranks[i].host != a.self && a.segment.AgentState(i) == shm.AgentStarted
		if live && a.segment.OwnerState(i) == shm.OwnerAborted {
			out = append(out, i)
		}
	}
	return out
}

// own: process i is one of this job on this host, and lives.
func (a *agent) own(i int) bool {
	return a.ranks[i].alive && !a.ranks[i].external && a.ranks[i].host == a.self
}

// peek reports whether the process has ended, and how. Of one that is not a child that is known
// only from what it has said of itself.
func (r *rank) peek(state uint32) (status syscall.WaitStatus, ended bool) {
	if !r.foreign() {
		status, ended, err := process.Peek(r.pidfd)
		return status, ended || err != nil
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(r.pidfd), Events: unix.POLLIN}}, 0)
	if state == shm.OwnerInit {
		status = syscall.WaitStatus(syscall.SIGKILL)
	}
	return status, n > 0 || err != nil && err != unix.EINTR
}

// foreign: not a child of the agent.
func (r *rank) foreign() bool { return r.external || r.adopted || r.joined }

func (r *rank) reap() {
	if r.foreign() {
		unix.Close(r.pidfd)
	} else {
		process.Reap(r.pid, r.pidfd)
	}
}

func waitOf(s syscall.WaitStatus) job.Wait {
	if s.Signaled() {
		return job.Wait{Signal: int(s.Signal()), Core: s.CoreDump()}
	}
	return job.Wait{Code: s.ExitStatus()}
}

// lackOfMemory reports whether the kernel has ended one more process for lack of memory. Each
// accounts for one process that SIGKILL has ended.
func (a *agent) lackOfMemory() job.Memory {
	now, before := process.ReadOOMKills("/"), &a.kills
	switch {
	case now.Group > before.Group:
		before.Group++
		before.Host++
		return job.MemoryUsedUp
	case now.Host > before.Host:
		before.Host++
		return job.MemoryPerhaps
	}
	return job.MemoryUnknown
}

func owner(state uint32) job.Owner {
	switch state {
	case shm.OwnerInit:
		return job.OwnerInit
	case shm.OwnerFinalized, shm.OwnerDone:
		return job.OwnerFinalized
	case shm.OwnerAborted:
		return job.OwnerAborted
	}
	return job.OwnerNone
}

func (a *agent) publish(p job.Publish) {
	if p.Proc < 0 || p.Proc >= len(a.ranks) {
		return
	}
	if p.Dead {
		a.segment.MarkDead(p.Proc, statusWord(p.Wait))
	} else {
		a.segment.MarkExited(p.Proc, statusWord(p.Wait))
	}
	a.tellAbroad(p.Proc, p.Dead)
	r := &a.ranks[p.Proc]
	if r.held {
		r.held = false
		r.reap()
	}
	if r.joined && r.host == a.self {
		a.leftJob(p.Proc)
	}
}

// statusWord is the wait status that waitOf has read.
func statusWord(w job.Wait) syscall.WaitStatus {
	if w.Unknown {
		return syscall.WaitStatus(syscall.SIGKILL)
	}
	if w.Signal == 0 {
		return syscall.WaitStatus(w.Code << 8)
	}
	status := syscall.WaitStatus(w.Signal)
	if w.Core {
		status |= 0x80
	}
	return status
}

// anyReturns: a rank that lives has an error handler that returns.
func (a *agent) anyReturns() bool {
	for i := range a.ranks {
		if a.own(i) && a.segment.FTReturns(i) {
			return true
		}
	}
	return false
}

// anyMPI: a rank other than this one has called MPI_Init; in a system, one of the same part: a
// cluster may know nothing of MPI.
func (a *agent) anyMPI(other int) bool {
	for i := range a.ranks {
		if i != other && (other < 0 || a.ranks[i].part == a.ranks[other].part) &&
			!a.ranks[i].external && a.segment.OwnerState(i) != shm.OwnerNone {
			return true
		}
	}
	return false
}

// partsWithMPI are the parts of which a process of this host has called MPI_Init.
func (a *agent) partsWithMPI() (out []int) {
	for i := range a.ranks {
		if r := &a.ranks[i]; r.host == a.self && !r.external &&
			a.segment.OwnerState(i) != shm.OwnerNone && !slices.Contains(out, r.part) {
			out = append(out, r.part)
		}
	}
	return out
}

// allMPI: all ranks of this host have called MPI_Init.
func (a *agent) allMPI() bool {
	for i := range a.ranks {
		if a.own(i) && !a.ranks[i].external && a.segment.OwnerState(i) == shm.OwnerNone {
			return false
		}
	}
	return true
}

// where prints in which MPI calls the ranks are: of a job that hangs, what its user wants to know.
func (a *agent) where() {
	if !a.anyMPI(-1) {
		return
	}
	in := map[string][]int{}
	var order []string
	for i := range a.ranks {
		if !a.own(i) {
			continue
		}
		what := "running, in no MPI call that waits"
		switch state := a.segment.OwnerState(i); {
		case state == shm.OwnerNone:
			what = "before MPI_Init"
		case state == shm.OwnerFinalized:
			what = "after MPI_Finalize"
		case inspect.CallName(a.segment.Call(i)) != "":
			what = "in " + inspect.CallName(a.segment.Call(i))
		}
		if in[what] == nil {
			order = append(order, what)
		}
		in[what] = append(in[what], i)
	}
	for _, what := range order {
		a.say(fmt.Sprintf("%s: %s", a.called(in[what]), what))
	}
}

// called names processes: those of a system as their clusters and links do.
func (a *agent) called(list []int) string {
	if len(a.spec.Parts) == 0 {
		return "ranks " + ranges(list)
	}
	procs := make([]diagnose.Proc, len(list))
	all := make([]*diagnose.Proc, len(list))
	for k, i := range list {
		m := a.segment.Member(i)
		procs[k] = diagnose.Proc{Proc: i, Rank: int(m.Rank), World: int(m.World)}
		all[k] = &procs[k]
	}
	a.namePart(procs)
	return diagnose.Names(all)
}

// ranges writes ascending numbers shortly: 0-3,7.
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d", list[i])
		if j > i {
			fmt.Fprintf(&b, "-%d", list[j])
		}
		i = j + 1
	}
	return b.String()
}
