package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/output"
	"libspx/launch/process"
	"libspx/launch/progress"
	"libspx/launch/service"
)

// start makes all ranks, in order, and handles what happens meanwhile. When the machine ends the
// job, no more are made.
func (a *agent) start(files []string) {
	a.files = files
	env := newEnvironment(a)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		a.step(job.NotStarted{Text: fmt.Sprintf("cannot open /dev/null: %v", err),
			Status: job.StatusFailed})
	}
	started := 0
	bar := a.startBar()
	defer bar.End()
	for i := range a.ranks {
		if a.machine.Ending() {
			break
		}
		r := &a.ranks[i]
		if r.host != a.self || r.away || a.isCold(i) {
			continue
		}
		program := &a.spec.Programs[r.program]
		s := &process.Spec{File: files[r.program], Argv: program.Argv, Env: env.of(i),
			Dir: program.Dir, Share: a.shared()}
		a.gate.behind(s)
		a.bind(i, s)
		if err := a.startRank(i, s, null); err != nil {
			a.step(job.NotStarted{Proc: i, Text: notStarted(i, s.File, err) + a.onHost(),
				Status: statusOf(err)})
			break
		}
		started++
		bar.Step()
		a.poll(0)
	}
	bar.End()
	a.made = true
	if a.up != nil {
		a.step(job.AllStarted{})
	} else {
		a.allMade()
	}
	a.closeStdin(null)
	unix.Close(null)
	if a.spec.Verbose {
		a.say(fmt.Sprintf("%d processes started in %.0f ms", started,
			float64(a.now().Microseconds())/1000))
	}
}

// manyRanks take long enough to start that a user may look.
const manyRanks = 32

// startBar shows how many ranks of this host have been started, until the first of them writes
// something.
func (a *agent) startBar() *progress.Bar {
	n := 0
	for i := range a.ranks {
		if a.ranks[i].host == a.self {
			n++
		}
	}
	if a.up != nil || a.spec.Verbose || n < manyRanks {
		return nil
	}
	bar := progress.Start("spxrun: starting ranks", n)
	if bar != nil {
		a.out.Before(bar.End)
		a.err.Before(bar.End)
	}
	return bar
}

// onHost says where, if that is not where spxrun is.
func (a *agent) onHost() string {
	if a.up == nil {
		return ""
	}
	return " (on host " + a.host + ")"
}

func notStarted(i int, file string, err error) string {
	text := fmt.Sprintf("rank %d: cannot start %s: %v", i, file, err)
	if errors.Is(err, syscall.ENOENT) {
		return text + "; does the interpreter in its first line exist?"
	}
	return text + process.Advice(err)
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return process.StatusNotFound
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC):
		return process.StatusNotExecutable
	}
	return job.StatusFailed
}

// startRank gives a rank its standard input and output and makes it.
func (a *agent) startRank(i int, s *process.Spec, null int) error {
	var mine []int // descriptors that only the child needs
	defer func() {
		for _, fd := range mine {
			unix.Close(fd)
		}
	}()
	s.Stdio[0] = null
	switch {
	case a.spec.StdinAll, a.spec.StdinRank == i && a.up != nil:
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		s.Stdio[0] = p[0]
		mine = append(mine, p[0])
		a.feeding = append(a.feeding, p[1])
	case a.spec.StdinRank == i:
		s.Stdio[0] = 0
	}
	r := &a.ranks[i]
	if err := a.giveMsgLogs(r.program, s); err != nil {
		return err
	}
	name := a.tagOf(r.program, i, r.in)
	pid, err := a.launch(i, s, name, len(a.ranks) == 1)
	if err != nil {
		return err
	}
	a.step(job.Started{Proc: i, Pid: pid, Host: a.host, Part: a.spec.Programs[r.program].Part,
		Rank: r.in})
	if a.spec.Verbose {
		a.say(fmt.Sprintf("rank %s is pid %d on %s: %s%s", name, pid, a.host, s.File,
			boundTo(s.CPUs)))
	}
	return nil
}

// tagOf is what process i, which a program has as its rank, is called in its output.
func (a *agent) tagOf(program, i, rank int) string {
	if part := a.spec.Programs[program].Part; part > 0 {
		p := &a.spec.Programs[program]
		return a.spec.Parts[part-1].Tag + rankWord(rank, p.Procs-p.Standbys)
	}
	return strconv.Itoa(i)
}

// rankWord is what a process is called in its output: its rank, or which standby it began as.
func rankWord(rank, ranks int) string {
	if rank >= ranks {
		return fmt.Sprintf("standby%d", rank-ranks)
	}
	return strconv.Itoa(rank)
}

// isStandby: process i of the command line has begun as one.
func (a *agent) isStandby(i int) bool {
	p := &a.spec.Programs[a.ranks[i].program]
	return p.Standbys > 0 && a.ranks[i].in >= p.Procs-p.Standbys
}

// isCold: process i of the command line is started when a rank has died.
func (a *agent) isCold(i int) bool {
	p := &a.spec.Programs[a.ranks[i].program]
	return p.Cold > 0 && a.ranks[i].in >= p.Procs-p.Cold
}

// startCold starts a process that was not to be started before now, if its place is on this host.
func (a *agent) startCold(act job.StartCold) {
	if s := a.spares[act.Part]; s != nil {
		a.startSpare(s, act)
		return
	}
	i := 0
	for k := range a.spec.Programs {
		if a.spec.Programs[k].Part == act.Part {
			break
		}
		i += a.spec.Programs[k].Procs
	}
	if i += act.Rank; i >= len(a.ranks) || a.ranks[i].away || a.ranks[i].spare {
		return
	}
	a.ranks[i].called = true
	if a.ranks[i].host != a.self {
		a.segment.SetOrder(i, act.Order)
		a.segment.MarkStarted(i, 0)
		return
	}
	if a.ranks[i].pid != 0 { // another agent has decided so before
		return
	}
	fail := func(file string, err error) {
		a.step(job.NotStarted{Proc: i, Text: notStarted(i, file, err) + a.onHost(),
			Status: statusOf(err)})
	}
	program := &a.spec.Programs[a.ranks[i].program]
	file := a.files[a.ranks[i].program]
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		fail(file, err)
		return
	}
	defer unix.Close(null)
	s := &process.Spec{File: file, Argv: program.Argv, Env: newEnvironment(a).of(i),
		Dir: program.Dir, Share: a.shared()}
	a.gate.behind(s)
	a.bind(i, s)
	a.segment.SetOrder(i, act.Order) // it asks for that itself
	if err := a.startRank(i, s, null); err != nil {
		fail(file, err)
	}
}

// giveMsgLogs has a process of a program with Message logs inherit the files of its ranks, by rank.
func (a *agent) giveMsgLogs(program int, s *process.Spec) error {
	p := &a.spec.Programs[program]
	if !p.MsgLogs {
		return nil
	}
	if a.msglogs == nil {
		a.msglogs = map[int][]int{}
	}
	for len(a.msglogs[program]) < p.Procs-p.Standbys {
		fd, err := unix.MemfdCreate("spx-vault", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return fmt.Errorf("a memory file for what a rank keeps: %w", err)
		}
		up, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, control.MsgLogFD)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("a descriptor for what a rank keeps (ulimit -n): %w", err)
		}
		a.msglogs[program] = append(a.msglogs[program], up)
	}
	var text []string
	for _, fd := range a.msglogs[program] {
		text = append(text, strconv.Itoa(fd))
	}
	s.Share = append(s.Share, a.msglogs[program]...)
	s.Env = append(s.Env[:len(s.Env):len(s.Env)], service.EnvMsgLogs+"="+strings.Join(text, ","))
	return nil
}

// launch makes process i, called name in its output, and watches it. It has its standard input.
// alone: no other writes to the same place.
func (a *agent) launch(i int, s *process.Spec, name string, alone bool) (pid int, err error) {
	for n, mux := range []*output.Mux{a.out, a.err} {
		fd, err := a.outputOf(name, n+1, mux, alone && a.out != a.err)
		if err != nil {
			return 0, err
		}
		s.Stdio[n+1] = fd
		defer unix.Close(fd)
	}
	done, err := a.giveListener(i, s)
	if err != nil {
		return 0, err
	}
	s.Ignored = process.Signals(a.spec.Ignored)
	pid, pidfd, err := process.Start(s)
	done()
	if err != nil {
		return 0, err
	}
	a.segment.MarkStarted(i, pid)
	r := &a.ranks[i]
	r.pid, r.pidfd, r.alive = pid, pidfd, true
	return pid, a.watchProcess(i)
}

// watchProcess has the end of process i reported by poll.
func (a *agent) watchProcess(i int) error {
	return unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, a.ranks[i].pidfd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(a.ranks[i].pidfd), Pad: int32(i)})
}

func boundTo(list []int) string {
	if list == nil {
		return ""
	}
	return fmt.Sprintf(", processors %v", list)
}

// firstWorld is the number of processes of the command line.
func (a *agent) firstWorld() (n int) {
	for _, p := range a.spec.Programs {
		if !p.Added {
			n += p.Procs
		}
	}
	return n
}

// outputOf is the descriptor that a process writes its stream to: a pipe into the multiplexer, or
// its own file.
func (a *agent) outputOf(name string, stream int, mux *output.Mux, alone bool) (int, error) {
	if a.spec.OutputDir != "" {
		zeros := strings.Repeat("0", max(0, len(strconv.Itoa(a.firstWorld()-1))-len(name)))
		file := filepath.Join(a.spec.OutputDir, "rank."+zeros+name+
			[]string{1: ".out", 2: ".err"}[stream])
		fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_APPEND|
			unix.O_CLOEXEC, 0o666)
		if err != nil {
			return -1, fmt.Errorf("output file %s: %w", file, err)
		}
		return fd, nil
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, err
	}
	if err := mux.AddNamed(name, p[0], alone); err != nil {
		unix.Close(p[1])
		return -1, err
	}
	return p[1], nil
}

// checkOutput reports that files of --output may lack something. The processes write them
// themselves, and most do not look at what comes of that.
func (a *agent) checkOutput() {
	if a.spec.OutputDir == "" {
		return
	}
	var s unix.Statfs_t
	if err := unix.Statfs(a.spec.OutputDir, &s); err != nil {
		return
	}
	free := s.Bavail
	if unix.Geteuid() == 0 {
		free = s.Bfree
	}
	if s.Blocks > 0 && free == 0 {
		a.say(fmt.Sprintf(
			"--output %s: the file system is full on host %s: what the processes have written "+
				"last may be lost; make room, or use another directory",
			a.spec.OutputDir, a.host))
	}
}

// makeOutput makes a multiplexer per target, or one if both are the same file: their lines would
// mix.
func (a *agent) makeOutput() (err error) {
	if a.out != nil { // before this agent knew of the system
		return nil
	}
	if a.up != nil && a.attached == nil {
		if a.out, err = a.outputUp(1); err == nil {
			a.err, err = a.outputUp(2)
		}
		return err
	}
	if dir := a.spec.OutputDir; dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("--output %s: %v", dir, err)
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("--output %s: %v", dir, err)
		}
	}
	var out, errs unix.Stat_t
	same := unix.Fstat(1, &out) == nil && unix.Fstat(2, &errs) == nil && out.Dev == errs.Dev &&
		out.Ino == errs.Ino && out.Rdev == errs.Rdev
	alone := len(a.ranks) == 1 && !same
	if a.out, err = output.New(1, a.spec.Tag, alone); err != nil || same {
		a.err = a.out
		return err
	}
	a.err, err = output.New(2, a.spec.Tag, alone)
	return err
}

// closeStdin gives standard input away: only who was meant to read it has it now. With --stdin all
// it is copied to all ranks.
func (a *agent) closeStdin(null int) {
	if a.up != nil {
		if len(a.feeding) > 0 {
			go feed(readerFunc(a.readInput), a.feeding)
		}
		return
	}
	in, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return
	}
	source := os.NewFile(uintptr(in), "stdin")
	switch reader := a.readerElsewhere(); {
	case a.spec.StdinAll:
		for _, h := range a.others {
			if r, w, err := os.Pipe(); err == nil {
				go sendInput(h, r)
				fd, _ := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 3)
				w.Close()
				a.feeding = append(a.feeding, fd)
			}
		}
		go feed(source, a.feeding)
	case reader != nil:
		go sendInput(reader, source)
	default:
		source.Close()
	}
	unix.Dup2(null, 0) //nolint:errcheck // cannot fail with these arguments
}

// readerElsewhere is the host of the rank that reads standard input, if it is not this one.
func (a *agent) readerElsewhere() *remoteHost {
	for _, h := range a.others {
		if a.spec.StdinRank >= 0 && a.isAt(a.spec.StdinRank, h) {
			return h
		}
	}
	return nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// feed copies standard input to the pipes of all ranks. The slowest reader sets the pace; one who
// has closed is left out.
func feed(in io.Reader, pipes []int) {
	var out []*os.File
	for _, fd := range pipes {
		out = append(out, os.NewFile(uintptr(fd), "stdin pipe"))
	}
	b := make([]byte, 64<<10)
	for len(out) > 0 {
		n, err := in.Read(b)
		var still []*os.File
		for _, o := range out {
			if _, err := o.Write(b[:n]); err != nil {
				o.Close()
				continue
			}
			still = append(still, o)
		}
		if out = still; err == io.EOF || err != nil {
			break
		}
	}
	for _, o := range out {
		o.Close()
	}
}

// environment makes the environments of ranks: a program's, and what is the rank's own.
type environment struct {
	a      *agent
	common []string
	base   [][]string // per program
}

func newEnvironment(a *agent) *environment {
	e := &environment{a: a, common: a.placeOfJob()}
	if a.spec.InitialErrhandler != "" {
		e.common = append(e.common, service.EnvErrhandler+"="+a.spec.InitialErrhandler)
	}
	e.common = append(e.common, a.tracing.environment()...)
	if a.places.networks != "" {
		e.common = append(e.common, service.EnvNetworks+"="+a.places.networks)
	}
	for n, p := range a.spec.Programs {
		base := append(append([]string(nil), p.Env...), e.common...)
		size, here := e.sizes(p.World)
		e.base = append(e.base, append(base, service.EnvAppnum+"="+strconv.Itoa(n),
			service.EnvMaxprocs+"="+strconv.Itoa(p.Procs),
			service.EnvSize+"="+size, service.EnvLocalSize+"="+here, "OMPI_COMM_WORLD_SIZE="+size,
			"OMPI_COMM_WORLD_LOCAL_SIZE="+here))
	}
	return e
}

// sizes counts the processes of a world, and those of them on this host.
func (e *environment) sizes(world uint32) (all, here string) {
	n, local := 0, 0
	for i := range e.a.ranks {
		if r := &e.a.ranks[i]; r.world == world && !e.a.isStandby(i) {
			n++
			if r.host == e.a.self {
				local++
			}
		}
	}
	return strconv.Itoa(n), strconv.Itoa(local)
}

// of is the environment of process i.
func (e *environment) of(i int) []string {
	r, before := &e.a.ranks[i], 0
	base, n := e.base[r.program], strconv.Itoa(r.in)
	for k := range i {
		if other := &e.a.ranks[k]; other.host == e.a.self && other.world == r.world {
			before++
		}
	}
	local := strconv.Itoa(before)
	return append(base[:len(base):len(base)],
		service.EnvProc+"="+strconv.Itoa(i),
		service.EnvRank+"="+n,
		service.EnvLocalRank+"="+local,
		"OMPI_COMM_WORLD_RANK="+n,
		"OMPI_COMM_WORLD_LOCAL_RANK="+local)
}
