// Package agent is the process that holds a host's part of a job: the memory file, the processes
// with their pidfds, and their output. It carries out what the pure machine of launch/job decides
// (MPI-5.0, 11.5; docs/running.md).
//
// In a job of several hosts each has its agent. That of spxrun's host decides for all: it starts
// the others and hears what happens there (remote_hosts.go), has processes spawned on all hosts in
// steps that each takes (newcomers.go), adds and removes hosts while the job runs (growth.go), and
// answers what the processes of other hosts ask (relay.go). The others decide nothing
// (remote_agent.go), and end their processes when they lose the one that does. How the processes
// reach each other is not the agents' matter, but where they listen is (address.go). In jobs that
// are to survive failures, agents of several hosts keep copies of what decides (sequence.go), and
// reach each other for that directly (mesh.go).
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
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
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
	// for output that nobody takes, when the user wants the end or spxrun is gone
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
	// how much does not come again (job.Machine.Over), as all have been told
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
	listeners  []int        // of those who ask
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
	unsent  []*remoteHost // whose agents are to be started by others that are not there yet
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
	beats      *control.Beats           // as all hosts were told; nil: there are none
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
	met       bool       // the others are known: the processes may start
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

// decider says what events mean: the machine of launch/job, or the way to the host where that is.
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
	away     bool   // of a cluster that somebody else starts: it is nobody yet
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

func (a *agent) watch(fd int) error {
	if err := unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// listen turns messages from spxrun and signals into events of the inbox.
func (a *agent) listen() {
	go func() {
		for a.conn != nil {
			m, err := a.conn.Receive()
			if err != nil {
				a.inbox.put(job.FrontLost{})
				return
			}
			if m.Signal != 0 {
				a.inbox.put(job.Signalled{Signal: m.Signal})
			}
			if m.Release != nil {
				a.inbox.put(released{m.Release})
			}
			if m.Ping != 0 {
				a.inbox.put(pinged(m.Ping))
			}
		}
	}()
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // else the ranks inherit that, as under nohup without a launcher
			signal.Notify(signals, s)
		}
	}
	go func() {
		for s := range signals {
			a.inbox.put(job.Signalled{Signal: int(s.(syscall.Signal))})
		}
	}()
}

// pinged: spxrun asks whether the main thread runs.
type pinged int

func (a *agent) answerPing(e pinged) { a.tell(&control.Message{Ping: int(e)}) }

// loop waits for events and steps the machine until the job is over.
func (a *agent) loop() {
	for !a.done {
		a.poll(a.timeout())
	}
}

// poll waits at most timeout ms (-1: for ever) and handles what has happened.
func (a *agent) poll(timeout int) {
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(a.epoll, events[:], timeout)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("agent: epoll_wait: %v", err))
	}
	for _, e := range events[:max(n, 0)] {
		if int(e.Fd) == a.inbox.fd {
			a.messages()
		} else {
			a.ended(int(e.Pad)) // the rank's number, from launch
		}
	}
	a.periodic()
	a.noteComing()
	a.arrivedEarly()
	a.step(job.Tick{})
}

func (a *agent) messages() {
	for _, e := range a.inbox.take() {
		a.answerAhead()
		switch e := e.(type) {
		case job.Signalled:
			if a.takesQuit(e) || a.ownSignal(e) {
				continue
			}
			a.step(e)
			if syscall.Signal(e.Signal) == syscall.SIGTSTP {
				a.tell(&control.Message{Stopped: e.Signal})
			}
		case *question:
			a.serve(e)
		case *looking:
			if a.inbox.answers(e) {
				a.serve(e.question)
			}
		case mayBegin:
			a.letBegin(e)
		case hungUp:
			a.hungUp(e.conn)
		case fromHost:
			a.heard(e.from, e.m)
		case launcherLost:
			a.lostLauncher(e.rank)
		case notEnded:
			a.endUnnoticed()
		case decided:
			if a.up != nil && e.era == a.succession.era {
				a.obey(e.m)
			}
		case silence:
			a.fellSilent(e)
		case unanswered:
			a.unanswered(e.from)
		case fenced:
			a.fence(e)
		case inspected:
			a.hasInspected(e)
		case released:
			a.release(e.r)
		case exporterEnded:
			a.lostExporter(e)
		case masterSaid:
			a.heardMaster(e)
		case masterEnded:
			a.lostMaster(e)
		case pinged:
			a.answerPing(e)
		case arrival:
			a.welcome(e)
		case seated:
			a.startParts(e.h)
		case turned:
			a.refusal(e)
		case moved:
			a.hasMoved(e)
		case memberSaid:
			a.heardMember(e)
		case memberManages:
			a.manages(e)
		case notMade:
			a.notMade(e)
		case waiting:
			a.tellAway()
		case treeDecided:
			a.step(e.e)
		case leadLost:
			a.lostLead(e.err)
		case rolled:
			a.endRoll(e)
		case upLost:
			a.lostUp(e)
		case termed:
			a.heedsTerm(e)
		case mayDecide:
			a.succeed()
		case mustLeave:
			a.mustLeave(e)
		case calledBy:
			a.follow(e)
		case hasCalled:
			a.begins(e)
		case uncalled:
			a.uncalled(e)
		case gathered:
			a.goesOn()
		case moreOutput:
			a.tellClients()
		case job.FrontLost:
			a.loseFront()
			a.step(e)
		case linkEvent:
			e.happen(a)
		default:
			a.step(e)
		}
	}
}

// timeout is how long poll may sleep, in ms.
func (a *agent) timeout() int {
	until := a.nextStray
	if a.watchJoin {
		until = time.Now().Add(joinPoll)
	}
	if len(a.judging) > 0 && a.judging[0].until.Before(until) {
		until = a.judging[0].until
	}
	for _, w := range a.wrapped {
		if w.until.Before(until) {
			until = w.until
		}
	}
	if at, ok := a.machine.Deadline(); ok && a.began.Add(at).Before(until) {
		until = a.began.Add(at)
	}
	if at, ok := a.beginning.deadline(); ok && a.began.Add(at).Before(until) {
		until = a.began.Add(at)
	}
	if at, ok := a.tree.masterDue(); ok && at.Before(until) {
		until = at
	}
	if at, ok := a.watchDue(); ok && at.Before(until) {
		until = at
	}
	if a.tree.dirty && a.tree.master != nil {
		until = a.began
	}
	return max(0, int((time.Until(until)+time.Millisecond-1)/time.Millisecond))
}

func (a *agent) periodic() {
	if now := time.Now(); !now.Before(a.nextStray) {
		a.nextStray = now.Add(strayPoll)
		process.ReapStrays(a.isRank)
		if a.allMPI() { // while processes start, it is these that have to get on
			hurryAll()
		}
	}
	if a.watchJoin && a.anyMPI(-1) {
		a.watchJoin = false
		a.step(job.Joined{})
	}
	a.endWrappers()
	a.hurryJudgements()
	a.tendTree()
	a.watchProcesses()
	a.beginning.tick(a.now())
}

func (a *agent) isRank(pid int) bool {
	for i := range a.ranks {
		if r := &a.ranks[i]; r.pid == pid && r.host == a.self && (r.alive || r.held) {
			return true
		}
	}
	return a.isExporter(pid) || a.isMaster(pid) || a.shells.has(pid)
}

// A decision is what the machine says to an event.
type decision struct {
	event   job.Event
	actions []job.Action
}

// decide hands an event to the machine.
func (a *agent) decide(e job.Event) decision {
	a.tracing.note(e)
	a.noteFate(e)
	a.noteAbort(e)
	e = a.placed(e)
	now := time.Since(a.began)
	a.note(e, now)
	return decision{e, a.machine.Step(e, now)}
}

// step hands an event to the machine and carries out what it decides, here and on the other hosts.
func (a *agent) step(e job.Event) {
	waits := a.waitsForOthers()
	d := a.decide(e)
	if waits && job.Weighty(d.actions) && !a.sequence.settled() {
		a.leave("")
		return
	}
	a.perform(d)
}

// perform carries out what was decided, here and on the other hosts.
func (a *agent) perform(d decision) {
	for _, action := range d.actions {
		switch act := action.(type) {
		case job.Say:
			a.sayAttached(act)
		case job.Finish, job.RestartPart, job.Report, job.Look, job.Ask, job.Relist, job.Leaves:
		case job.StartCold:
			if !a.succession.gathers {
				a.toAll(action)
			}
		default:
			a.toAll(action)
		}
		if !a.succession.gathers || !comesAgain(action) {
			a.carryOut(action)
		}
	}
	a.follows(d)
}

// follows does what follows from an event when all has been carried out.
func (a *agent) follows(d decision) {
	a.startGoesOn(d.event)
	a.missing()
	switch d.event.(type) {
	case job.Ended, job.NotRestarted, job.Judged, job.Manned, job.Tick:
		a.seeOff()
	}
	a.tellDeparted()
}

// carryOut does what was decided, as far as it concerns this host.
func (a *agent) carryOut(action job.Action) {
	switch act := action.(type) {
	case job.Publish:
		a.publish(act)
	case job.Say:
		a.say(act.Text)
	case job.Where:
		a.where()
	case job.Report:
		a.report(act.Why, job.Reported{})
	case job.Look:
		a.lookForHang()
	case job.Send:
		a.signal(act.Signal)
	case job.SendTo:
		for _, i := range act.Procs {
			if i >= 0 && i < len(a.ranks) && a.own(i) {
				a.signalRank(i, act.Signal)
			}
		}
	case job.WatchJoin:
		a.watchJoin = true
	case job.Finish:
		a.done, a.status = true, act.Status
	case job.Ask:
		a.ask(act.Part)
	case job.RestartPart:
		a.restartPart(act.Part, act.Last)
	case job.StartCold:
		a.startCold(act)
	case job.Shun:
		a.shun(act)
	case job.Relist:
		a.relist(act.Part)
	case job.Leaves:
		a.leaves(act.Part)
	default:
		panic(fmt.Sprintf("agent: unknown action %T", action))
	}
}

func (a *agent) say(text string) {
	switch {
	// the launcher may be told to end all right behind: it must have this line first
	case a.joined != nil && a.up == nil:
		fmt.Fprintf(os.Stderr, "libspx: %s\n", text)
	case a.joined != nil:
		a.err.Say("libspx: " + text)
	default:
		a.err.Say("spxrun: " + text)
	}
}

func (a *agent) signal(number int) {
	a.pauses(number)
	left := a.leaveToLauncher(number)
	for i := range a.ranks {
		if a.own(i) && !a.ranks[i].adopted && !(left && a.ranks[i].joined) {
			a.signalRank(i, number)
		}
	}
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

// waitDrained waits for the readers of the output, as long as nobody is in a hurry.
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
