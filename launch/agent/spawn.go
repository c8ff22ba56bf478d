package agent

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/process"
	"libspx/launch/service"
	"libspx/shm"
)

// Processes that are added to the running job (MPI-5.0, 11.8): a new world each time. Its members find their parents by SPX_PARENT, and
// meet them in MPI_Init. Who dies before that is reported to the parents, and to nobody else.

// spawning is a world that is being made.
type spawning struct {
	world uint32
	slots []int
	files []string // by program
	procs []uint32 // by program
	codes []uint32 // MPI error classes by process asked for
}

// spawn makes the processes that are asked for, all or none.
func (a *agent) spawn(m *service.Message) *service.Message {
	if answer := a.ending(mpierr.Spawn); answer != nil {
		return answer
	}
	w, err := a.plan(m)
	if err == nil {
		err = a.populate(w, m)
	}
	if err != nil {
		return refuse(mpierr.Spawn, "%v", err)
	}
	answer := &service.Message{World: w.world, Codes: w.codes, FD: -1}
	for _, s := range w.slots {
		answer.Slots = append(answer.Slots, uint32(s))
	}
	return answer
}

// plan finds the programs, the numbers of processes, and room for them.
func (a *agent) plan(m *service.Message) (*spawning, error) {
	w := &spawning{}
	total := 0
	var failed error
	for i := range m.Programs {
		p := &m.Programs[i]
		n, err := p.Procs, error(nil)
		if len(p.Soft) > 0 {
			n = p.Soft[len(p.Soft)-1]
		}
		if total += int(n); total > a.segment.MaxProcs() || p.Procs > shm.MaxProcsLimit {
			return w, a.full(int(p.Procs))
		}
		w.codes = append(w.codes, make([]uint32, n)...)
		w.codes = append(w.codes, slices.Repeat([]uint32{uint32(mpierr.Spawn)}, int(p.Procs-n))...)
		w.procs = append(w.procs, n)
		var file string
		if file, err = find(p); err != nil && failed == nil {
			failed = err
		}
		w.files = append(w.files, file)
	}
	if failed != nil {
		return w, failed
	}
	if w.slots = a.freeSlots(total); len(w.slots) < total {
		return w, a.full(total)
	}
	a.worlds++
	w.world = a.worlds
	return w, nil
}

// find looks a program up. Unlike on the command line, one without a slash may also lie in its working directory.
func find(p *service.Program) (string, error) {
	if p.Host != "" {
		list, err := hosts.List([]string{p.Host}, nil)
		if err != nil {
			return "", fmt.Errorf("host: %v", err)
		}
		for _, h := range list {
			if self := hosts.Self(); !self.Local(h.Name) {
				return "", fmt.Errorf("host %s is not this host (%s); processes can be started on this host only", h.Name, self.Host)
			}
		}
	}
	file, err := process.Look(p.Argv[0], p.Dir, p.Path, p.Env)
	var look *process.LookError
	if errors.As(err, &look) && look.Status == process.StatusNotFound {
		if file, err := process.Look("./"+p.Argv[0], p.Dir, "", nil); err == nil {
			return file, nil
		}
	}
	return file, err
}

// populate enters the processes into the memory file and makes them.
func (a *agent) populate(w *spawning, m *service.Message) error {
	for rank, slot := range w.slots {
		if err := a.segment.AddProc(slot, shm.Member{World: w.world, Rank: uint32(rank), Serial: a.serial}); err != nil {
			a.vacate(w.slots[:rank])
			return err
		}
		a.serial++
		*a.rank(slot) = rank0
		if err := a.openListener(slot); err != nil {
			a.vacate(w.slots[:rank+1])
			return err
		}
	}
	a.segment.Announce() // ranks may outnumber processors now
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		a.vacate(w.slots)
		return fmt.Errorf("/dev/null: %w", err)
	}
	defer unix.Close(null)
	rank := 0
	for k := range m.Programs {
		env := a.spawnEnvironment(w, m, k)
		for range w.procs[k] {
			if err := a.startSpawned(w, &m.Programs[k], w.files[k], rank, null, env); err != nil {
				err = fmt.Errorf("%s", notStarted(rank, w.files[k], err))
				a.abandon(w.world)
				a.vacate(w.slots[rank:])
				return err
			}
			rank++
		}
	}
	return nil
}

// rank0 is the entry of a process that is about to be made.
var rank0 = rank{pidfd: -1, spawned: true}

func (a *agent) startSpawned(w *spawning, p *service.Program, file string, rank, null int, env []string) error {
	slot, n := w.slots[rank], strconv.Itoa(rank)
	s := &process.Spec{File: file, Argv: p.Argv, Dir: p.Dir, Share: []int{control.MemoryFD}, Env: append(env[:len(env):len(env)],
		service.EnvProc+"="+strconv.Itoa(slot), service.EnvRank+"="+n, service.EnvLocalRank+"="+n,
		"OMPI_COMM_WORLD_RANK="+n, "OMPI_COMM_WORLD_LOCAL_RANK="+n)}
	s.Stdio[0] = null
	a.bind(slot, s)
	pid, err := a.launch(slot, s, fmt.Sprintf("w%d.%d", w.world, rank), false)
	if err != nil {
		return err
	}
	a.step(job.Spawned{Proc: slot, Pid: pid, Name: fmt.Sprintf("rank %d of spawned world %d", rank, w.world)})
	if a.spec.Verbose {
		a.say(fmt.Sprintf("rank %d of spawned world %d is pid %d on %s: %s%s", rank, w.world, pid, a.host, file, boundTo(s.CPUs)))
	}
	return nil
}

// spawnEnvironment is what the processes of program k have in common: the environment of the process that spawns, and what tells them
// where they are.
func (a *agent) spawnEnvironment(w *spawning, m *service.Message, k int) []string {
	id, size := a.segment.JobID(), strconv.Itoa(len(w.slots))
	env := append(append([]string(nil), m.Programs[k].Env...),
		service.EnvFD+"="+strconv.Itoa(control.MemoryFD),
		service.EnvAgent+"="+strconv.Itoa(os.Getpid()),
		service.EnvJob+"="+hex.EncodeToString(id[:]),
		service.EnvSize+"="+size,
		service.EnvLocalSize+"="+size,
		service.EnvAppnum+"="+strconv.Itoa(k),
		service.EnvMaxprocs+"="+strconv.Itoa(int(m.Programs[k].Procs)),
		service.EnvParent+"="+m.Text,
		"OMPI_COMM_WORLD_SIZE="+size,
		"OMPI_COMM_WORLD_LOCAL_SIZE="+size)
	if a.spec.InitialErrhandler != "" {
		env = append(env, service.EnvErrhandler+"="+a.spec.InitialErrhandler)
	}
	return env
}

// vacate gives slots back whose processes were never made.
func (a *agent) vacate(slots []int) {
	for _, s := range slots {
		if !a.ranks[s].alive {
			a.segment.MarkExited(s, 0)
		}
	}
}

// abandon ends the processes of a world that its parents have not met.
func (a *agent) abandon(world uint32) {
	for i := range a.ranks {
		if r := &a.ranks[i]; a.own(i) && r.spawned && a.segment.Member(i).World == world && !a.segment.Met(i) {
			process.Signal(r.pid, job.SIGKILL)
		}
	}
}
