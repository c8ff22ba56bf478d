// Package agent is the process that holds a host's part of a job: the memory file, the processes
// with their pidfds, and their output. It performs the decisions of the pure machine of launch/job
// (MPI-5.0, 11.5; docs/running.md).
//
// In a job of several hosts each has its agent. That of spxrun's host decides for all: it starts
// the others and receives their reports (remote_hosts.go), has processes spawned on all hosts in
// steps that each takes (newcomers.go), adds and removes hosts while the job runs (growth.go), and
// answers questions of processes of other hosts (relay.go). The others decide nothing
// (remote_agent.go), and end their processes when they lose the deciding one. Connections between
// processes are not the agents' work, but the addresses where these listen are (address.go). In
// jobs that are to survive failures, agents of several hosts keep copies of the machine
// (sequence.go), and reach each other for that directly (mesh.go).
//
// One thread, the main thread of the process, does everything but output and the reading of
// messages: it starts the ranks (whose parent-death signal follows that thread), waits for pidfds,
// and steps the machine. It must not block on anything else.
package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/ident"
	"libspx/launch/control"
	"libspx/launch/cpus"
	"libspx/launch/inspect"
	"libspx/launch/job"
	"libspx/launch/output"
	"libspx/launch/process"
	"libspx/launch/service"
	"libspx/shm"
)

// Name is what the agent is called in the list of processes.
const Name = service.AgentName

// ControlFD is the descriptor of the agent's socket to spxrun.
const ControlFD = 3

// Limits on the end, in time.
const (
	// between SIGTERM and SIGKILL for what processes have left behind
	strayGrace = 100 * time.Millisecond
	strayLimit = 2 * time.Second
	// for output without a reader, when the user wants the end or spxrun is gone
	drainHurry = 300 * time.Millisecond
	// how often to look whether a process has called MPI_Init, when that matters
	joinPoll  = 100 * time.Millisecond
	strayPoll = time.Second // how often ended orphans are removed
)

type agent struct {
	spec  *control.Job
	conn  *control.Conn
	host  string
	began time.Time
	kills process.OOMKills // those that are known, or were there before the job

	ranks []rank
	files []string // of the programs
	// how many parts and ranks do not return (job.Machine.Over), as last published
	over     int
	msglogs  map[int][]int   // by program: files for what its ranks keep, by rank
	spares   map[int]*spares // by part
	segment  *shm.Segment
	machine  decider
	out, err *output.Mux
	epoll    int
	inbox    inbox
	feeding  []int // write ends of the pipes of --stdin all

	serial     uint32     // of the next process
	worlds     uint32     // the largest number of one
	domains    [][]int    // that ranks are bound to, in turn; none: they are not
	processors []cpus.CPU // of this host, as far as it may use them
	listener   int
	listeners  []int        // of connections that ask
	unheard    atomic.Int32 // connections with them over which nothing has been read yet
	door       bool         // processes inherit a second way to this agent
	externals  map[ident.ProcID]int
	ports      ports
	abroad     abroadState
	naming     nameService
	steering   steering
	sayings    sayings

	beginning beginning
	wrapped   []wrapped
	spawnings []*spawning       // worlds that are being made, the first now
	batch     *batch            // what is being made of one on this host
	lives     map[int]uint32    // incarnations that numbers were given with spawned processes
	begot     map[string]uint32 // worlds by what the process has said that has spawned them

	gate      gate
	watchJoin bool
	nextStray time.Time
	status    int
	done      bool // the machine has finished the job

	// several hosts
	self    int        // number of this one
	address netip.Addr // on which its processes listen
	places  places
	others  []*remoteHost
	unsent  []*remoteHost // whose agents are to be started by agents that are not there yet
	shells  shells
	// the user knows that an agent was not started from where it should have been
	strayed   atomic.Bool
	printing  sync.WaitGroup    // of their output
	addresses []control.Address // where processes of all hosts listen
	// of the agent that decides: where processes listen, as their hosts say
	listens    map[int]netip.AddrPort
	made       bool // the processes of this host are
	judging    []*judgement
	surveys    int // so far
	dismissed  bool
	beating    *heartbeat
	beats      *control.Beats           // as sent to all hosts; nil: there are none
	sequence   *sequence                // nil: this host keeps no copy of what decides
	copies     atomic.Pointer[sequence] // the same, for other threads
	succession succession
	kept       *keptOutput
	clients    clients
	notes      [][]byte // of the agent that decides: for the sequence, before that has begun
	rolls      map[int]*roll
	growth     growth
	waiters    []*question // for the end of the job

	departures []departure

	// on another host than spxrun's
	up        *uplink
	above     *uplink // what up is, or was before this agent came to decide
	branches  branches
	joined    *gathering // another launcher has started the processes
	met       bool       // the other hosts are known: the processes may start
	targets   []int      // write ends of the pipes that out and err write to
	input     inputQueue
	inputRest []byte
	asking    asking
	fenced    bool

	exporter exporter

	meeting  *meeting         // for clusters of the system that are started one by one
	attached *attached        // to the system of which a part runs here
	local    *control.Job     // what the spxrun of that part was given
	cameAs   *control.Arrival // and as which it has come
	leadsNow atomic.Bool      // this agent leads a system whose clusters are started one by one
	// the other hosts of that part, on that of its spxrun; nil: there are none
	company   *company
	announced string // the table of the system that processes may know

	tree        tree
	watching    watching
	tracing     tracing
	cores       cores
	inspections map[int]*inspection // under way, by number
	looks       int                 // so far
	quitAt      time.Time           // when SIGQUIT last came
}

// decider handles events: the machine of launch/job, or the connection to the host where that is.
type decider interface {
	Step(e job.Event, now time.Duration) []job.Action
	Deadline() (at time.Duration, ok bool)
	Ending() bool
	Hurried() bool
}

// rank is a process of the job; its index is that in the memory file, and, in jobs that begin with
// one world, for that its rank.
type rank struct {
	world    uint32
	in       int // rank in its world, of those that the job begins with
	program  int // index into spec.Programs, for the first world
	part     int // of a system, from 1; 0: there is none
	pid      int
	pidfd    int
	alive    bool
	spawned  bool
	external bool // of another job: watched, and nothing else
	joined   bool // another launcher has started it
	adopted  bool // the process without a launcher that has started this agent
	host     int
	begun    bool   // of another host: it has been made there, once
	called   bool   // it is to be started in the place of another one
	away     bool   // of a cluster that another spxrun starts: there is no process yet
	newcomer bool   // spawned to join its parents' program (steer.go)
	member   bool   // and does belong to it, or has
	life     uint32 // of a system's part: which start of it, from 1
	fate     fate
	// has ended, and is reaped when that was published: its pid is not given to another process
	// before
	held   bool
	inside *inside // the process that has called MPI_Init, if that is not the one of pid
	spare  bool    // of a cluster that was attached: it is started when a rank has died
	cut    bool    // its wrapper was ended after it
	passed bool    // it waits in MPI_Init for no other cluster any more

	// descriptor + 1 of the socket on which it will listen, before it is started; 0: none
	listener int
}

// Main runs the agent and returns its exit status. It is to be called on the main thread, from an
// init-locked goroutine.
func Main() int {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_NAME, uintptr(namePointer()), 0, 0, 0) //nolint:errcheck // cosmetic
	unix.CloseOnExec(ControlFD)
	reserve(control.MemoryFD, control.GateFD, control.DoorFD, control.ListenFD)
	if len(os.Args) > 1 && os.Args[1] == service.AdoptWord {
		return adopt()
	}
	if len(os.Args) > 1 && os.Args[1] == inspect.Word {
		return inspect.TraceMain(os.Args[2:])
	}
	if len(os.Args) > 1 && os.Args[1] == service.JoinWord {
		return join()
	}
	if len(os.Args) > 1 && os.Args[1] == control.HostWord {
		return remoteAgent()
	}
	conn := control.NewConn(os.NewFile(ControlFD, "control"))
	m, err := conn.Receive()
	if err != nil || m.Job == nil {
		fmt.Fprintf(os.Stderr, "%s: this program is started by spxrun (%v)\n", Name, err)
		return job.StatusFailed
	}
	a := newAgent(m.Job, conn)
	if m.Job.Join != nil {
		if status := a.findSystem(); status != nil {
			a.tell(&control.Message{Done: &control.Done{Status: *status}})
			return *status
		}
	}
	status, err := a.run()
	if err != nil {
		fmt.Fprintf(os.Stderr, "spxrun: %v%s\n", err, process.Advice(err))
		status = lookStatus(err)
	}
	a.endKept(status)
	a.tell(&control.Message{Done: &control.Done{Status: status, Left: a.succession.left}})
	return status
}

// lookStatus is the exit status of a job that could not be started.
func lookStatus(err error) int {
	var look *process.LookError
	if errors.As(err, &look) {
		return look.Status
	}
	return job.StatusFailed
}

// tell sends a message to spxrun, which may be gone.
func (a *agent) tell(m *control.Message) {
	if a.conn != nil {
		a.conn.Send(m) //nolint:errcheck // it may be gone
	}
}

func newAgent(spec *control.Job, conn *control.Conn) *agent {
	a := &agent{spec: spec, conn: conn, began: time.Now(), kills: process.ReadOOMKills("/"),
		externals: map[ident.ProcID]int{}, lives: map[int]uint32{}, kept: &keptOutput{}}
	a.ports.open()
	a.succession.era, a.succession.decider, a.succession.through = spec.Era, spec.Decider,
		spec.Above
	a.host, _ = os.Hostname()
	process.Ignore(process.Signals(spec.Ignored))
	return a
}

// run is the job. An error means that nothing was started.
func (a *agent) run() (status int, err error) {
	if err := process.Subreaper(); err != nil {
		return 0, err
	}
	files, near, err := a.lookUp()
	if err != nil {
		return 0, err
	}
	if err := a.makeSegment(); err != nil {
		return 0, err
	}
	if err := a.prepare(); err != nil {
		return 0, err
	}
	for _, text := range near {
		a.say(text)
	}
	if err := a.listenForMetrics(); err != nil {
		return 0, err
	}
	if err := a.tracing.begin(a); err != nil {
		return 0, err
	}
	if err := a.cores.begin(a); err != nil {
		return 0, err
	}
	if a.meeting == nil {
		a.listen()
	}
	a.spec.Sequence, a.spec.Succeeds = keepsCopies(a.spec), Succeeds(a.spec)
	if a.meeting != nil {
		a.spec.Sequence = a.spec.Succeeds
	}
	a.tellTooFew()
	if err := a.reach(); err != nil {
		return 0, err
	}
	if err := a.openListeners(); err != nil {
		return 0, err
	}
	if err := a.shut(); err != nil {
		return 0, err
	}
	a.begin()
	a.buildTree()
	if err := a.openService(); err != nil && a.spec.Verbose { // all else works without
		a.say(fmt.Sprintf("no processes can be spawned, and no ports opened: %v", err))
	}
	if err := a.startExporter(); err != nil { // all else works without
		a.say(err.Error())
	}
	a.start(files)
	a.openToOthers()
	a.loop()
	return a.finish(), nil
}

// lookUp finds every program before anything is started; near: what is to be said of those that
// were not in PATH.
func (a *agent) lookUp() (files, near []string, err error) {
	sizes := map[uint32]int{}
	for i, p := range a.spec.Programs {
		a.worlds = max(a.worlds, p.World)
		if p.Added {
			files = append(files, "")
			continue
		}
		here, first := false, -1
		for range p.Procs {
			host, away := a.spec.Host(len(a.ranks)), p.Part > 0 && a.spec.Parts[p.Part-1].Away
			here = here || host == a.self && !away
			if first < 0 {
				first = host
			}
			a.ranks = append(a.ranks, rank{life: uint32(boolInt(!away)), away: away, program: i,
				part: p.Part, pidfd: -1, host: host, world: p.World, in: sizes[p.World]})
			sizes[p.World]++
		}
		file, beside, err := "", false, error(nil)
		if here {
			file, beside, err = process.Look(p.Argv[0], p.Dir, p.Path, p.Env)
		}
		if err != nil {
			return nil, nil, err
		}
		if beside && first == a.self { // once, not for each host
			near = append(near, fmt.Sprintf(
				"program %s: not found in PATH; taken from the working directory (%s)", p.Argv[0],
				file))
		}
		files = append(files, file)
	}
	if a.spec.StdinRank >= len(a.ranks) {
		return nil, nil, fmt.Errorf("--stdin %d: there are only %d ranks", a.spec.StdinRank,
			len(a.ranks))
	}
	return files, near, nil
}

// prepare makes the multiplexers and the machine.
func (a *agent) prepare() (err error) {
	if a.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	if err = a.makeOutput(); err != nil {
		return err
	}
	if a.inbox.fd == 0 {
		if err = a.inbox.open(); err != nil {
			return err
		}
	}
	a.beginKept()
	if err = a.watch(a.inbox.fd); err != nil || a.up != nil {
		return err
	}
	a.machine = job.New(a.jobConfig(a.host))
	a.beginning.open(a.spec.Start)
	return nil
}

// jobConfig is what the machine of the job knows beforehand, on every host the same. host is the
// one that decides.
func (a *agent) jobConfig(host string) job.Config {
	deaths := map[string]job.OnDeath{"auto": job.Auto, "kill": job.Kill, "continue": job.Continue}
	config := job.Config{Host: host, OnDeath: deaths[a.spec.OnDeath],
		CountDeaths: a.spec.CountDeaths, Detach: a.spec.Detached || a.staysWithoutFront(),
		Timeout: a.spec.Timeout, Report: a.spec.Report, Masters: true, HangAfter: a.spec.HangAfter,
		Parts: a.partsOfFirst(), Leads: a.meeting != nil || a.spec.System != nil}
	for i := range a.spec.Programs {
		if !a.spec.Programs[i].Added {
			config.Procs += a.spec.Programs[i].Procs
		}
	}
	if a.joined != nil {
		config.Grace = launcherGrace
	}
	return config
}

// finish ends what the processes have left behind, drains the output, and returns the exit status.
func (a *agent) finish() int {
	a.inbox.widen()
	a.stopExporter()
	a.leaveNames()
	a.endLinks()
	if !a.succession.inherited { // else some may not be called yet
		a.endSequence()
	}
	a.endMaster()
	a.tellOthers()
	a.endGrowth()
	a.tellEnd(true)
	if a.others != nil {
		a.dismiss()
	}
	a.endSequence()
	if a.above != nil {
		a.endBranches()
		a.company.finish(a.machine.Hurried())
	}
	if a.joined != nil {
		a.joined.leaving.Wait()
	}
	if a.beating != nil && a.spec.Verbose {
		a.say(fmt.Sprintf(
			"host %s: for at most %v nothing was heard of another host (%s is %v); %d datagrams "+
				"were none of the job's or found no room, %d were late or said again",
			a.host, time.Duration(a.beating.longest.Load())*time.Microsecond,
			service.EnvHeartbeatLimit, time.Duration(a.beating.allowed.Load())*time.Microsecond,
			a.beating.strange.Load()+a.beating.dropped.Load(), a.beating.again.Load()))
	}
	a.cores.end(a) // gdb is a descendant, too
	if left := process.EndDescendants(strayGrace, strayLimit); left > 0 {
		a.say(fmt.Sprintf("%d processes that the job has left behind cannot be ended", left))
	}
	a.checkOutput()
	drained := make(chan struct{})
	go func() {
		a.printing.Wait() // what other hosts have sent is in the pipes
		<-a.out.Drain()
		<-a.err.Drain()
		close(drained) // before the main thread is woken, or it would sleep again
		a.inbox.put(nil)
	}()
	a.waitDrained(drained)
	for _, m := range []*output.Mux{a.out, a.err} {
		if err := m.Err(); err != nil {
			fmt.Fprintf(os.Stderr, "spxrun: the output could not be written: %v%s\n", err,
				process.Advice(err))
			if a.status == 0 {
				a.status = job.StatusFailed
			}
			break
		}
	}
	for _, fd := range a.targets {
		unix.Close(fd)
	}
	if a.succession.inherited {
		a.above.pumps.Wait() // all is in the file
	}
	a.tellEnd(false)
	a.dismissClients()
	return a.status
}

// waitDrained waits for the readers of the output, unless the end is urgent.
func (a *agent) waitDrained(drained <-chan struct{}) {
	var limit time.Time
	hurry := a.machine.Hurried()
	for {
		select {
		case <-drained:
			return
		default:
		}
		timeout := -1
		if hurry {
			if limit.IsZero() {
				limit = time.Now().Add(drainHurry)
			}
			if timeout = int(time.Until(limit) / time.Millisecond); timeout <= 0 {
				return
			}
		}
		// the loop looks again
		unix.Poll([]unix.PollFd{{Fd: int32(a.inbox.fd), Events: unix.POLLIN}}, timeout) //nolint:errcheck
		for _, e := range a.inbox.take() {
			switch e := e.(type) {
			case job.Signalled, job.FrontLost:
				hurry = true
			case pinged:
				a.answerPing(e)
			}
		}
	}
}
