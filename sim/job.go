package sim

import (
	"fmt"

	"libspx/ft/place"
	"libspx/ft/rankset"
)

// Job is a schedule: a job of processes on hosts that all carry out the same operations, and what befalls them. Delays, flags and
// everything else that the schedule leaves open follow from Seed, each from its own number: a fault that is taken out changes nothing
// but its consequences.
type Job struct {
	Hosts, Ranks int // rank i begins on host i*Hosts/Ranks
	Width        int // of the trees in which agreements go; 0: as in the library. With few ranks only narrow ones are deep
	Detach       bool
	Seed         uint64
	Ops          []Op
	Faults       []Fault
	Defect       Defect // a deliberate bug
	Trace        bool   // tell what happens
	Rounds       bool   // every message takes 1 us, and nothing else takes time: times are counts of messages one after another
}

// Op is a collective operation of the program on the current communicator, at first that of all ranks.
type Op struct {
	Kind string
	N    int
}

// Operations.
const (
	Agree  = "agree"
	Shrink = "shrink" // and go on with the communicator of those who are left
	Both   = "both"   // shrink this communicator and one of its members of even rank, at the same time
	Inter  = "inter"  // make an intercommunicator of the members of even rank and the others, shrink it, and go on with both sides merged
	Grow   = "grow"   // N new processes are started, and join those who are left
	Leave  = "leave"  // the last N members finalize; the others go on
)

// Fault is something that happens.
type Fault struct {
	Kind  string
	Who   int   // process (a new one has the next number), or host
	At    Time  // when
	Step  int   // Kill: instead of the process's send of this number, from 1; 0: at At
	For   Time  // Pause, PauseHost, Cut
	Hosts []int // Cut: this side
}

// Faults.
const (
	Kill         = "kill"
	Pause        = "pause"         // a process stands still
	Revoke       = "revoke"        // a process revokes its current communicator
	KillAgent    = "kill-agent"    // the agent of a host; its processes die with it, and its connections end
	KillHost     = "kill-host"     // everything on it at once, without a word to anybody
	KillLauncher = "kill-launcher" // spxrun
	Cut          = "cut"           // the network between some hosts and the others
	PauseHost    = "pause-host"    // agent and processes stand still
)

// Defect is a bug that is put in on purpose, to show that the checks see it.
type Defect struct {
	NoFence   bool // hosts without contact go on
	NoDrop    bool // what a fenced process sends is taken
	NoEarly   bool // messages for communicators that do not exist yet are thrown away
	NoWelcome bool // of the members only the lowest greets new processes
}

const (
	longest  = Time(100000)
	subgroup = 0x5b // makes the context of a communicator of even ranks
	bridge   = 0x1c // and of an intercommunicator of these and the others
)

// Outcome is what a run came to.
type Outcome struct {
	Messages   int
	Took       Time
	Returned   Time // when the last agreement returned
	Revoked    Time // when the last member got to know of a revocation
	Agreements int
	Busiest    int  // of the messages: sent and taken in by one process, at most
	Agent      int  // the same of an agent
	Beats      int  // messages of the detectors
	AgentBeats int  // of these, sent and taken in by one agent, at most
	GivenUp    Time // when the last host was given up
	Deaths     int
	Ended      bool     // the job was ended: its launcher died, or no majority of its hosts was left
	Trace      []string // what happened, in words
}

// agreement names an agreement: of a communicator, numbered from 1.
type agreement struct {
	ctx uint64
	num int
}

// jobRun is a run of a Job.
type jobRun struct {
	*World
	job    Job
	procs  []*proc
	onHost [][]*proc // the same by host
	agents []*hostAgent

	decider  int    // the host whose agent decides; -1: the job has ended
	gone     []bool // by process: dead, finalized or fenced
	fenced   []bool
	declared map[int]bool        // published by the agent that decides
	side     map[int]bool        // hosts on one side of the present cut
	cuts     int                 // so far
	held     map[[2]int][]func() // what waits for the cut's end
	heldAt   [][2]int            // its pairs, in the order of their first message
	ends     []int               // hosts whose connections have ended, which the cut hides
	paused   []Time              // until when, by node
	inbox    [][]func()          // of a node that stands still
	groups   map[uint64]*group
	newcomer map[uint64][]int // started for the communicator with this context
	decided  map[agreement]*outcome

	out     Outcome
	failure error
}

// RunJob carries out a schedule. The error names the property that was violated.
func RunJob(job Job) (Outcome, error) {
	most := job.Ranks
	for _, op := range job.Ops {
		if op.Kind == Grow {
			most += op.N * job.Ranks // several may take themselves for the spawner
		}
	}
	r := newJobRun(job, most)
	for h := range job.Hosts {
		r.agents = append(r.agents, &hostAgent{host: h, alive: true, member: true})
		r.onHost = append(r.onHost, nil)
	}
	r.startWatches()
	world := make([]int, job.Ranks)
	for i := range world {
		world[i] = i
	}
	for i := range world {
		r.start(i*job.Hosts/job.Ranks, 0)
	}
	g := r.newGroup(1, world)
	for i, p := range r.procs {
		p.cur = r.join(p, g)
		r.later(p, Time(r.fate(1, i, 0)%30)-r.Now, func() { r.next(p) })
	}
	for _, f := range job.Faults {
		if f.Kind == Kill && f.Step > 0 {
			continue // the process itself sees to it
		}
		r.After(f.At-r.Now, func() { r.befall(f) })
	}
	for r.failure == nil && r.Step() {
		if r.Now > longest {
			r.violated("it does not come to its end")
		}
	}
	if r.failure == nil {
		r.failure = r.ended()
	}
	for node, n := range r.Load {
		if node < len(r.gone) {
			r.out.Busiest = max(r.out.Busiest, n)
		} else {
			r.out.Agent = max(r.out.Agent, n)
		}
	}
	for _, a := range r.agents {
		r.out.AgentBeats = max(r.out.AgentBeats, a.beats+a.heard)
	}
	r.out.Messages, r.out.Took, r.out.Agreements, r.out.Ended = r.Sent, r.Now, len(r.decided), r.decider < 0
	return r.out, r.failure
}

func newJobRun(job Job, most int) *jobRun {
	nodes := most + job.Hosts
	r := &jobRun{World: NewWorld(nodes, job.Seed), job: job, gone: make([]bool, most), fenced: make([]bool, most), declared: map[int]bool{}, held: map[[2]int][]func(){},
		paused: make([]Time, nodes), inbox: make([][]func(), nodes), groups: map[uint64]*group{},
		newcomer: map[uint64][]int{}, decided: map[agreement]*outcome{}}
	r.Fate = func(from, to int, nth uint64) uint64 { return r.fate(nth<<8|2, from, to) }
	for p := range most {
		r.Alive[p] = false
	}
	for n := range nodes {
		r.paused[n] = -before
	}
	return r
}

// fate is a random number that follows from its arguments.
func (r *jobRun) fate(what uint64, a, b int) uint64 {
	if r.job.Rounds {
		return 0
	}
	return mix(r.job.Seed, what, uint64(a), uint64(b))
}

// mix is a random number that follows from a seed and some others.
func mix(x uint64, numbers ...uint64) uint64 {
	for _, v := range numbers {
		x = (x ^ v) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// node is the number of a host's agent in the network, behind those of all processes.
func (r *jobRun) node(host int) int { return len(r.gone) + host }

func (r *jobRun) hostOf(node int) int {
	if node >= len(r.gone) {
		return node - len(r.gone)
	}
	return r.procs[node].host
}

// post sends a message: it waits while the network is cut, and while the receiver stands still.
func (r *jobRun) post(from, to int, deliver func()) {
	r.Send(from, to, func() {
		pair := [2]int{from, to}
		if len(r.held[pair]) == 0 && r.side[r.hostOf(from)] == r.side[r.hostOf(to)] {
			r.awake(to, deliver)
			return
		}
		if len(r.held[pair]) == 0 {
			r.heldAt = append(r.heldAt, pair)
		}
		r.held[pair] = append(r.held[pair], deliver)
	})
}

// heal ends the cut. What the dead had sent is lost.
func (r *jobRun) heal() {
	r.side = nil
	ends := r.ends
	r.ends = nil
	for _, h := range ends {
		r.connectionEnds(h)
	}
	pairs := r.heldAt
	r.heldAt = nil
	for _, pair := range pairs {
		waiting := r.held[pair]
		delete(r.held, pair)
		for _, deliver := range waiting {
			if r.Alive[pair[0]] {
				r.awake(pair[1], deliver)
			}
		}
	}
}

// awake does something on a node as soon as it does not stand still.
func (r *jobRun) awake(node int, do func()) {
	switch {
	case !r.Alive[node]:
	case r.paused[node] > r.Now || len(r.inbox[node]) > 0:
		r.inbox[node] = append(r.inbox[node], do)
	default:
		do()
	}
}

// pause lets a node stand still.
func (r *jobRun) pause(node int, d Time) {
	r.paused[node] = max(r.paused[node], r.Now+d)
	r.After(d, func() {
		for r.paused[node] <= r.Now && len(r.inbox[node]) > 0 {
			do := r.inbox[node][0]
			if r.Alive[node] {
				do()
			}
			r.inbox[node] = r.inbox[node][1:]
		}
	})
}

// later lets a process do something, unless it is dead then.
func (r *jobRun) later(p *proc, d Time, do func()) {
	r.After(d, func() { r.awake(p.id, do) })
}

func (r *jobRun) trace(format string, args ...any) {
	if r.job.Trace {
		r.out.Trace = append(r.out.Trace, fmt.Sprintf("%4d ", r.Now)+fmt.Sprintf(format, args...))
	}
}

func (r *jobRun) violated(format string, args ...any) {
	if r.failure == nil {
		r.failure = fmt.Errorf("at %d us: "+format, append([]any{r.Now}, args...)...)
	}
}

// group is what all processes know of a communicator.
type group struct {
	ctx   uint64
	name  int // communicators are numbered as they come
	procs []int
	rank  map[int]int // by process
	where *place.Map
}

func (r *jobRun) newGroup(ctx uint64, procs []int) *group {
	g := &group{ctx: ctx, name: len(r.groups), procs: procs, rank: make(map[int]int, len(procs))}
	hosts := make([]int, len(procs))
	for rank, p := range procs {
		g.rank[p] = rank
		hosts[rank] = r.procs[p].host
	}
	g.where = place.New(len(procs), hosts, r.job.Width, r.job.Width)
	r.groups[ctx] = g
	return g
}

// ranksOf gives the places of some processes in a communicator.
func (g *group) ranksOf(procs map[int]bool) rankset.Set {
	var ranks []int
	for p := range procs {
		if rank, in := g.rank[p]; in {
			ranks = append(ranks, rank)
		}
	}
	return rankset.Of(ranks...)
}
