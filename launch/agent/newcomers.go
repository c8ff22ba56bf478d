package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/process"
	"libspx/launch/service"
	"libspx/shm"
)

// What every host does so that processes are added to the job: see control.Step. The agent that
// decides does it itself for its own host.

// mostBegot is how many spawned worlds an agent knows by what their parents have said; all but the
// latest were met long ago.
const mostBegot = 256

// batch is a spawned world that is being made.
type batch struct {
	world     uint32
	question  *service.Message
	members   []control.Member   // by rank
	files     []string           // by program; empty where none of its processes runs here
	listeners map[int]listener   // by number of the process
	life      uint32             // of a system's part: which start of it
	cold      int                // of the members, the last: they are started when a rank has died
	externals []control.External // in place of a world
}

// newcomers takes a step. nil: it is not answered.
func (a *agent) newcomers(w *control.World) *control.Made {
	made := &control.Made{Number: w.Number, Step: w.Step}
	a.noteNumbers(w)
	var err error
	switch b := a.batch; {
	case w.Step == control.Prepare && w.Externals != nil:
		err = a.prepareExternals(w, made)
	case w.Step == control.Prepare:
		err = a.prepareBatch(w, made)
	case b == nil || b.world != w.Number:
		if w.Step == control.Drop {
			return nil
		}
		err = fmt.Errorf("spawned world %d is not known", w.Number)
	case w.Step == control.Enter && b.externals != nil:
		err = a.enterExternals(b)
		a.batch = nil
	case w.Step == control.Enter:
		err = a.enterBatch(b, w.Addresses)
	case w.Step == control.Start:
		err = a.startBatch(b)
		a.batch = nil
	default:
		for _, l := range b.listeners {
			l.close()
		}
		a.batch = nil
		return nil
	}
	if err != nil {
		made.Text = err.Error() + a.onHost()
	}
	return made
}

// prepareBatch finds the programs, and makes the sockets.
func (a *agent) prepareBatch(w *control.World, made *control.Made) error {
	q, err := service.Decode(w.Question)
	if err != nil {
		return err
	}
	a.ownPrograms(q)
	b := &batch{world: w.Number, question: q, members: w.Members,
		files: make([]string, len(q.Programs)), listeners: map[int]listener{}, life: w.Life,
		cold: w.Cold}
	a.batch = b
	if a.spec.Succeeds && q.Text != "" {
		if len(a.begot) >= mostBegot {
			clear(a.begot)
		}
		if a.begot == nil {
			a.begot = map[string]uint32{}
		}
		a.begot[q.Text] = w.Number
	}
	for _, m := range b.members {
		if m.Proc < 0 || m.Proc >= a.segment.MaxProcs() || m.Program < 0 ||
			m.Program >= len(q.Programs) {
			return fmt.Errorf("process %d of program %d is beyond what this host knows", m.Proc,
				m.Program)
		}
		if inUse := m.Proc < len(a.ranks) && a.ranks[m.Proc].alive &&
			a.ranks[m.Proc].host == a.self; inUse || !a.segment.IsFree(m.Proc) &&
			a.segment.AgentState(m.Proc) != shm.AgentEmpty {
			made.Held = append(made.Held, m.Proc)
		}
		p := &q.Programs[m.Program]
		if m.Host != a.self {
			continue
		}
		if b.files[m.Program] == "" {
			if a.several() {
				p.Env = adapt(p.Env, os.Environ())
			}
			if b.files[m.Program], _, err = process.Look(p.Argv[0], p.Dir, p.Path,
				p.Env); err != nil {
				return err
			}
		}
		l, err := a.newListener()
		if err != nil {
			return err
		}
		b.listeners[m.Proc] = l
		if l.fd != 0 {
			made.Addresses = append(made.Addresses, control.Address{Proc: m.Proc, At: l.at})
		}
	}
	return nil
}

// enterBatch enters all processes of the world into the memory file: from now on they may be
// called, and wait in the queues of their sockets until they are there.
func (a *agent) enterBatch(b *batch, addresses []control.Address) error {
	for rank, m := range b.members {
		member := shm.Member{World: b.world, Rank: uint32(rank), Serial: m.Serial,
			Host: uint32(m.Host), Life: m.Life, Near: a.near(m.Proc, m.Host)}
		if err := a.segment.AddProc(m.Proc, member); err != nil {
			return err
		}
		*a.rank(m.Proc) = rank0(m.Host)
		part, _, _ := partOf(a.spec, b.question)
		a.ranks[m.Proc].spawned, a.ranks[m.Proc].world, a.ranks[m.Proc].in,
			a.ranks[m.Proc].part = part == 0, b.world, rank, part
		a.ranks[m.Proc].life, a.ranks[m.Proc].spare = b.life, b.isSpare(rank)
		a.ranks[m.Proc].newcomer = slices.Contains(b.question.Programs[m.Program].Env, newcomerMark)
		a.assign(m.Proc, b.listeners[m.Proc])
		delete(b.listeners, m.Proc)
	}
	a.meet(addresses)
	a.segment.Announce() // ranks may outnumber processors now
	return nil
}

// rank0 is the entry of a process that is about to be made.
func rank0(host int) rank { return rank{pidfd: -1, spawned: true, host: host} }

// startBatch makes the processes of this host.
func (a *agent) startBatch(b *batch) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/null: %w", err)
	}
	defer unix.Close(null)
	here := 0
	for _, m := range b.members {
		if m.Host == a.self {
			here++
		}
	}
	a.keepSpares(b, here)
	local := 0
	envs := make([][]string, len(b.files))
	for rank, m := range b.members {
		if m.Host != a.self || b.isSpare(rank) {
			continue
		}
		if envs[m.Program] == nil {
			envs[m.Program] = a.spawnEnvironment(b, m.Program, here)
		}
		if err := a.startSpawned(b, rank, local, null, envs[m.Program]); err != nil {
			a.closeListeners(b)
			return errors.New(notStarted(rank, b.files[m.Program], err))
		}
		local++
	}
	return nil
}

// closeListeners closes those of processes that were never made.
func (a *agent) closeListeners(b *batch) {
	for _, m := range b.members {
		if r := &a.ranks[m.Proc]; r.host == a.self && !r.alive && r.listener != 0 {
			unix.Close(r.listener - 1)
			r.listener = 0
		}
	}
}

// startSpawned makes a process, which is number local of those of its world on this host.
func (a *agent) startSpawned(b *batch, rank, local, null int, env []string) error {
	m := b.members[rank]
	p := &b.question.Programs[m.Program]
	n, here := strconv.Itoa(rank), strconv.Itoa(local)
	s := &process.Spec{File: b.files[m.Program], Argv: p.Argv, Dir: p.Dir, Share: a.shared(),
		Env: append(env[:len(env):len(env)],
			service.EnvProc+"="+strconv.Itoa(m.Proc), service.EnvRank+"="+n,
			service.EnvLocalRank+"="+here,
			"OMPI_COMM_WORLD_RANK="+n, "OMPI_COMM_WORLD_LOCAL_RANK="+here)}
	s.Stdio[0] = null
	a.bind(m.Proc, s)
	name, tag := fmt.Sprintf("rank %d of spawned world %d", rank, b.world),
		fmt.Sprintf("w%d.%d", b.world, rank)
	part, whole, prefix := partOf(a.spec, b.question)
	if part > 0 {
		ranks := len(b.members) - a.spec.Programs[a.programOf(part)].Standbys
		name, tag = job.RankName(rank, ranks), prefix+rankWord(rank, ranks)
		if b.cold > 0 {
			if err := a.giveMsgLogs(a.programOf(part), s); err != nil {
				return err
			}
		}
	}
	pid, err := a.launch(m.Proc, s, tag, false)
	if err != nil {
		return err
	}
	a.step(job.Spawned{Proc: m.Proc, Pid: pid, Name: name, Host: a.host, Part: part, Rank: rank})
	if a.spec.Verbose {
		a.say(fmt.Sprintf("%s%s is pid %d on %s: %s%s", name, ofPart(whole), pid, a.host, s.File,
			boundTo(s.CPUs)))
	}
	return nil
}

// spawnEnvironment is what the processes of program k on this host have in common: the environment
// of the process that spawns, and what tells them where they are.
func (a *agent) spawnEnvironment(b *batch, k, here int) []string {
	p := &b.question.Programs[k]
	size, local := strconv.Itoa(len(b.members)), strconv.Itoa(here)
	env := append(append(append([]string(nil), p.Env...), a.placeOfJob()...),
		service.EnvSize+"="+size,
		service.EnvLocalSize+"="+local,
		service.EnvAppnum+"="+strconv.Itoa(k),
		service.EnvMaxprocs+"="+strconv.Itoa(int(p.Procs)),
		"OMPI_COMM_WORLD_SIZE="+size,
		"OMPI_COMM_WORLD_LOCAL_SIZE="+local)
	if part, _, _ := partOf(a.spec, b.question); part == 0 {
		env = append(env, service.EnvParent+"="+b.question.Text)
	}
	if a.spec.InitialErrhandler != "" {
		env = append(env, service.EnvErrhandler+"="+a.spec.InitialErrhandler)
	}
	if a.places.networks != "" {
		env = append(env, service.EnvNetworks+"="+a.places.networks)
	}
	return append(env, a.tracing.environment()...)
}

// abandon ends the processes of a world on this host that its parents have not met.
func (a *agent) abandon(world uint32) {
	for i := range a.ranks {
		if r := &a.ranks[i]; a.own(i) && r.spawned && a.segment.Member(i).World == world &&
			!a.segment.Met(i) {
			a.kill(i)
		}
	}
}
