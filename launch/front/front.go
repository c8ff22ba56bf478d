// Package front is spxrun itself, the process that the user sees: it reads the command line, starts
// the agent of this host, hands signals and standard input on, watches the agent, and ends with the
// job's exit status.
//
// It decides nothing about the job; that is the agent's and launch/job's.
package front

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/launch/agent"
	"libspx/launch/command"
	"libspx/launch/control"
	"libspx/launch/cpus"
	"libspx/launch/hosts"
	"libspx/launch/inspect"
	"libspx/launch/job"
	"libspx/launch/names"
	"libspx/launch/process"
	"libspx/launch/service"
)

// Exit statuses of spxrun's own.
const (
	statusUsage  = 2
	statusFailed = 1
)

// Main runs a command line and returns the exit status.
func Main(args []string) int {
	j, err := command.Parse(args, os.Environ())
	if err != nil {
		return complain(statusUsage, err)
	}
	switch {
	case j.Help:
		fmt.Print(command.Help())
		return 0
	case j.Version:
		fmt.Println(version())
		return 0
	}
	if j.Attach != "" {
		return attachTo(j)
	}
	for _, n := range j.Notes {
		fmt.Fprintf(os.Stderr, "spxrun: %s\n", n)
	}
	spec, err := specFor(j)
	if err != nil {
		return complain(statusUsage, err)
	}
	if err := tellTopology(spec, j); err != nil {
		return complain(statusFailed, err)
	}
	if j.Detach {
		status, err := detach(spec, j)
		if err != nil {
			return complain(status, err)
		}
		return status
	}
	debug, err := newDebugging(j, spec)
	if err != nil {
		return complain(statusUsage, err)
	}
	tracing, err := newTracing(j, spec)
	if err != nil {
		return complain(statusUsage, err)
	}
	status, err := run(spec, debug, nil)
	tracing.ended()
	if err != nil {
		return complain(statusFailed, err)
	}
	return status
}

func complain(status int, err error) int {
	fmt.Fprintf(os.Stderr, "spxrun: %v%s\n", err, process.Advice(err))
	return status
}

func version() string {
	text := "spxrun (libspx)"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return text
}

// specFor makes the agent's job of the command line's, or of a system file.
func specFor(j *command.Job) (*control.Job, error) {
	if j.MoreHosts && (j.System != "" || j.Layout != "") {
		return nil, errors.New("--more-hosts: the hosts of a system of clusters stay the same")
	}
	var server *names.Place
	if file := cmp.Or(j.NameServer, os.Getenv(service.EnvNameServer)); file != "" {
		var err error
		if server, err = names.Read(file); err != nil {
			return nil, fmt.Errorf("--name-server: %w (spxctl names serve %s)", err, file)
		}
	}
	of := specOf
	if j.System != "" {
		of = systemOf
	}
	spec, err := of(j)
	if err == nil {
		spec.NameServer = server
	}
	return spec, err
}

// optionsOf are the job's options, without its programs and hosts.
func optionsOf(j *command.Job) *control.Job {
	return &control.Job{
		Version:           control.Version,
		Tag:               j.Tag,
		OutputDir:         j.OutputDir,
		Timeout:           j.Timeout,
		Report:            j.Report,
		Metrics:           j.Metrics,
		HangAfter:         j.HangAfter,
		Bind:              string(j.Bind),
		OnDeath:           string(j.OnDeath),
		CountDeaths:       j.CountDeaths,
		WithFT:            j.WithFT,
		StdinAll:          j.Stdin.All,
		StdinRank:         j.Stdin.Rank,
		InitialErrhandler: j.InitialErrhandler,
		Universe:          j.Universe,
		Verbose:           j.Verbose,
		Cores:             j.Cores,
		Ignored:           uint64(process.IgnoredAtStart()),
	}
}

// specOf checks the hosts, and makes the agent's job of the command line's.
func specOf(j *command.Job) (*control.Job, error) {
	list, rsh, err := hosts.Find(j.Hosts, j.HostFiles, j.Rsh, os.Getenv)
	if err != nil {
		return nil, err
	}
	j.Rsh = rsh
	self := hosts.Self()
	list = hosts.Merge(list, self)
	slots := 0
	for _, h := range list {
		slots += h.Slots
	}
	spec := optionsOf(j)
	total := 0
	for _, p := range j.Programs {
		n := p.Procs
		if n == 0 {
			n = 1
			if len(j.Programs) == 1 && slots > 0 {
				n = slots
			}
		}
		if total += n; total > command.MaxProcs {
			return nil, fmt.Errorf("%d processes; at most %d are possible", total, command.MaxProcs)
		}
		spec.Programs = append(spec.Programs, control.Program{Procs: n, Argv: p.Argv, Dir: p.Dir,
			Path: p.Path, Env: p.Env})
	}
	var place *hosts.Layout
	if len(list) > 0 {
		place = hosts.Place(list, self, total, j.PerHost)
	}
	if spec.MoreHosts = j.MoreHosts || j.Layout == "" &&
		os.Getenv(service.EnvMoreHosts) == "1"; place == nil && spec.MoreHosts {
		place = &hosts.Layout{Hosts: []string{self.Host},
			Slots: []int{cmp.Or(slots, cpus.Usable())}, Where: make([]int, total)}
	}
	err = spread(spec, place, j)
	if err == nil && j.Layout != "" {
		err = attach(spec, j.Layout)
	}
	return spec, err
}

// attach makes the job a system of clusters.
func attach(spec *control.Job, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--layout: %w", err)
	}
	l, err := layout.Decode(string(text))
	if err != nil {
		return fmt.Errorf("--layout %s: %w", file, err)
	}
	return control.Attach(spec, l)
}

// spread makes the job one of several hosts, if it is.
func spread(spec *control.Job, l *hosts.Layout, j *command.Job) (err error) {
	if l == nil {
		return nil
	}
	spec.Hosts, spec.Slots, spec.Where, spec.Prefix, spec.Iface = l.Hosts, l.Slots, l.Where,
		j.Prefix, cmp.Or(j.Iface, os.Getenv(service.EnvIface))
	spec.Rsh = j.Rsh
	if err := startsOf(spec, j); err != nil {
		return err
	}
	if spec.Dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	return nil
}

// startsOf is how the agents of other hosts are started.
func startsOf(spec *control.Job, j *command.Job) (err error) {
	if spec.Fanout, err = hosts.ParseFanout(cmp.Or(j.Fanout, os.Getenv(service.EnvFanout)),
		spec.Rsh); err != nil {
		return fmt.Errorf("%s: %w", service.EnvFanout, err)
	}
	spec.StartLimit = startLimit
	if text := os.Getenv(service.EnvStartLimit); text != "" {
		s, err := strconv.ParseFloat(text, 64)
		if err != nil || !(s >= 0 && s < 1e6) {
			return fmt.Errorf("%s=%s: a number of seconds is expected; 0: no limit",
				service.EnvStartLimit, text)
		}
		spec.StartLimit = time.Duration(s * float64(time.Second))
	}
	return nil
}

// startLimit is the preset of SPX_START_LIMIT.
const startLimit = 60 * time.Second

// front is a running job as spxrun sees it.
type front struct {
	conn     *control.Conn
	pid      int                   // the agent's
	messages chan *control.Message // closed when the agent has closed its end
	done     *control.Done
	signals  chan os.Signal

	debugging *debugging // nil: no debugger is wanted
	keeper    *keeper    // nil: this is spxrun, and no keeper
	dog       watchdog
	queues    [2]inspect.Queue // the agent's and this process's
	hung      bool             // the agent was abandoned
	succeeds  bool             // other hosts may go on when this one is lost
}

// run starts the agent and waits for the end of the job.
func run(spec *control.Job, debug *debugging, keeper *keeper) (status int, err error) {
	if err := process.Subreaper(); err != nil {
		return 0, err
	}
	f := &front{messages: make(chan *control.Message, 8), signals: make(chan os.Signal, 16),
		debugging: debug, keeper: keeper, succeeds: agent.Succeeds(spec)}
	if f.dog.limit, err = watchLimit(os.Getenv); err != nil {
		return 0, err
	}
	f.catch()
	in, err := openInput(spec)
	if err != nil {
		return 0, err
	}
	if err := f.startAgent(in.fd); err != nil {
		return 0, err
	}
	in.started()
	if err := f.conn.Send(&control.Message{Job: spec}); err != nil &&
		!errors.Is(err, syscall.EPIPE) {
		return 0, fmt.Errorf("agent: %w", err)
	}
	go f.receive()
	keeper.listen()
	f.serve()
	status = f.end()
	debug.ended(status)
	return status, nil
}

// handedOn are the signals that spxrun forwards to the agent, which ends the job or passes them to
// the ranks.
var handedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGTSTP, syscall.SIGCONT}

// catch registers for the forwarded signals. One that was ignored from the start (nohup, a
// shell's background job) stays so.
func (f *front) catch() {
	process.Ignore(process.IgnoredAtStart())
	for _, s := range handedOn {
		if !signal.Ignored(s) {
			signal.Notify(f.signals, s)
		}
	}
}

// startAgent starts this same program in its other role, in a process group of its own: what the
// terminal sends, spxrun handles.
func (f *front) startAgent(stdin int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{uintptr(stdin), 1, 2,
		uintptr(pair[1])}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	f.pid, _, err = syscall.StartProcess("/proc/self/exe", []string{agent.Name}, attr)
	if err != nil {
		return fmt.Errorf("cannot start the agent (/proc/self/exe): %w", err)
	}
	unix.Close(pair[1])
	f.conn = control.NewConn(os.NewFile(uintptr(pair[0]), "control"))
	return nil
}

func (f *front) receive() {
	defer close(f.messages)
	for {
		m, err := f.conn.Receive()
		if err != nil {
			return
		}
		f.messages <- m
	}
}

// serve hands signals on until the agent has closed its end, which it does by ending.
func (f *front) serve() {
	look, stop := f.watch()
	defer stop()
	for {
		select {
		case <-look:
			now := time.Now()
			ask, hangs := f.dog.look(now, f.kept(f.dog.passed(now)))
			if ask {
				// the agent is ending then
				f.conn.Send(&control.Message{Ping: f.dog.asked}) //nolint:errcheck
			}
			if hangs && !f.hung {
				f.hangs()
			}
		case left := <-f.keeper.leaving():
			if f.keeper.alone, f.keeper.left = true, left; !left {
				// the agent is ending then
				f.conn.Send(&control.Message{Signal: int(syscall.SIGTERM)}) //nolint:errcheck
			}
		case s := <-f.signals:
			if !f.debugging.keeps(s) {
				// the agent is ending then
				f.conn.Send(&control.Message{Signal: int(s.(syscall.Signal))}) //nolint:errcheck
			}
		case m, open := <-f.messages:
			switch {
			case !open:
				return
			case m.Stopped != 0:
				// the ranks have stopped; SIGCONT is caught and forwarded
				unix.Kill(os.Getpid(), unix.SIGSTOP) //nolint:errcheck
			case m.Ping != 0:
				f.dog.answered(m.Ping)
			case m.Running:
				f.keeper.running()
			case m.Table != nil:
				f.attach(m.Table)
			case m.Done != nil:
				f.done = m.Done
			}
		}
	}
}

// Limits for what the agent's processes leave behind if it dies.
const (
	orphanGrace = 0
	orphanLimit = 2 * time.Second
)

// end takes the agent's end, and cleans up behind it if it was killed.
func (f *front) end() int {
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(f.pid, &ws, 0, nil); err != unix.EINTR {
			break
		}
	}
	f.keeper.isElsewhere(f.done != nil && f.done.Left || f.done == nil && f.succeeds)
	if f.done != nil {
		return f.done.Status
	}
	left := process.EndDescendants(orphanGrace, orphanLimit)
	status := job.StatusFailed
	how := fmt.Sprintf("exited with status %d", ws.ExitStatus())
	if f.hung {
		status = 128 + int(unix.SIGKILL)
		how = fmt.Sprintf(
			"has not answered for %v (%s), because it hangs or was stopped, and was killed",
			f.dog.limit, service.EnvAgentLimit)
	} else if ws.Signaled() {
		status = 128 + int(ws.Signal())
		how = fmt.Sprintf("was killed by signal %d", ws.Signal())
	}
	text := fmt.Sprintf(
		"the agent of this host (%s, pid %d) %s; with it the job has ended, exit status %d",
		agent.Name, f.pid, how, status)
	if f.succeeds {
		text = fmt.Sprintf(
			"the agent of this host (%s, pid %d) %s; the job goes on at other hosts if these "+
				"can (spxctl jobs, there), exit status %d here", agent.Name, f.pid, how, status)
	}
	if left > 0 {
		text += fmt.Sprintf("; %d processes cannot be ended", left)
	}
	fmt.Fprintf(os.Stderr, "spxrun: %s\n", text)
	return status
}
