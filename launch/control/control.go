// Package control is what spxrun and the agent of a host say to each other: messages on a stream
// socket.
//
// It owns the form of the messages alone. The first message to the agent is the Job; then Signals
// follow. The agent answers with Stopped and, last, Done. The form is that of encoding/gob:
// arguments and variables may hold any bytes, and a reader passes over fields that it does not
// know.
//
// In the same form the agent of spxrun's host, which decides, talks with those of the job's other
// hosts, over the standard input and output of the command that has started them (ssh). Theirs
// begins with the Job too; they answer Ready; Start tells all addresses. Then Events go up and
// Actions come down, until Finish (an Action) and Done. What processes ask (package service) goes
// up as Questions, and is answered by Answers. The master of a host, a process that its agent has
// started, gets Begin first. Processes are spawned in steps (World), each of which all hosts have
// Made before the next one begins. A host that is added to a running job gets Hosts and Present in
// place of Start; the others get Hosts.
//
// Agents of one job that keep copies of what decides (Mesh) reach each other directly, and say
// Sequence there, and nothing else, or Lead: then the connection is what that with the agent of
// spxrun's host was, which is lost, and begins with Stand. The agents that decide for two jobs
// whose processes are connected talk in this form as well: Link, then Abroad, Questions and
// Answers.
package control

import (
	"encoding/gob"
	"net/netip"
	"time"

	"libspx/cluster/manage"
	"libspx/cluster/start"
	"libspx/ft/detect"
	"libspx/launch/abroad"
	"libspx/launch/job"
	"libspx/launch/names"
	"libspx/launch/reach"
)

func init() {
	for _, v := range []any{job.Started{}, job.Spawned{}, job.NotStarted{}, job.AllStarted{},
		job.Ended{}, job.Joined{}, job.Signalled{},
		job.Publish{}, job.Say{}, job.Where{}, job.Send{}, job.SendTo{}, job.WatchJoin{},
		job.Finish{}, job.RestartPart{}, job.StartCold{},
		job.Hung{}, job.Slowed{}, job.WentOn{}, job.Shun{}, job.ExternalAborted{}} {
		gob.Register(v)
	}
}

// Version of the messages; both ends are the same binary on one host, and will not always be
// between hosts.
const Version = 18

// HostWord is the first argument of an agent for a host that is not spxrun's.
const HostWord = "spx-host-agent"

// KeeperWord is the argument of the spxrun that runs a job with --detach.
const KeeperWord = "spx-keeper"

// MemoryFD is the number under which a rank inherits the memory file: out of the way of shells and
// of programs that count from 3.
const MemoryFD = 62

// GateFD is the number under which a rank inherits the pipe at whose end it waits for a Release.
const GateFD = 61

// DoorFD is the number under which a rank inherits the way to its agent that does not depend on
// network namespaces.
const DoorFD = 60

// MsgLogFD is the least number of those under which ranks inherit the files of their message logs
// (Program.MsgLogs).
const MsgLogFD = 64

// ListenFD is the number under which a rank inherits the socket on which it listens, if it is
// reached over the network.
const ListenFD = 63

// A Job is all that an agent needs to know to run its part of a job.
type Job struct {
	Version           int
	Programs          []Program
	Tag               bool
	OutputDir         string
	Timeout           time.Duration
	Report            bool          // --report-on-timeout
	Metrics           string        // --metrics: address and port; empty: none
	HangAfter         time.Duration // --hang-after
	Bind              string
	OnDeath           string
	CountDeaths       bool // -disable-auto-cleanup
	WithFT            bool
	Detached          bool // --detach; the ID is given
	StdinAll          bool
	StdinRank         int // -1: nobody
	InitialErrhandler string
	Universe          int // MPI_UNIVERSE_SIZE, if the user has said it
	Verbose           bool
	// signals that the processes ignore from their beginning: bit s-1 for signal s
	Ignored uint64
	Parts   []job.Part // of a system of clusters; nil: the job is one whole
	// of such a system, by part: for whom MPI_Init waits; nil: for nobody
	Start []start.Member
	Join  *Join // of such a system one cluster is to be started; nil: all
	// to the agent of a cluster that has come: what is known of the system, in case that it comes
	// to lead; Cluster is that of the spxrun which was the first to lead
	System *Join
	// of such a system: its masters are the agents beside I/O processes
	IOPMasters bool

	// Several hosts. All processes have the same numbers everywhere.
	// their names; 0 is spxrun's, also when nothing runs there. nil: there is no other
	Hosts []string
	Slots []int    // of every host, for processes that are spawned
	Where []int    // host of every rank; nil: 0
	Self  int      // host that the reader of this is the agent of
	Dir   string   // spxrun's working directory
	ID    [16]byte // of the job
	Key   [32]byte // of the job
	// command that starts an agent elsewhere: as ssh, it is given the host and a line for its shell
	Rsh    []string
	Prefix string // where libspx is installed there; empty: where this one is
	Joined bool   // another launcher has started the processes, which have joined
	// name of the interface, or network, whose addresses are used; empty: chosen
	Iface string
	Near  []netip.Addr // addresses of spxrun's host

	Cores string // --cores: directory for core files; empty: they are left alone
	// directory on spxrun's host for what the processes do; empty: nothing is written down
	Trace     string
	TraceRoom int // records that each of them keeps
	// how many agents one agent starts at most; 0: spxrun's host starts all
	Fanout     int
	StartLimit time.Duration // for each of them to answer; 0: none
	NameServer *names.Place  // by which jobs on other hosts find what this one publishes; nil: none
	MoreHosts  bool          // hosts may be added although there is only one so far
	Late       bool          // the reader's host has been added to the running job
	Era        uint64        // then: how many agents have decided before the one that does,
	Decider    int           // the host of that one,
	Lost       []int         // and those that have gone
	Sequence   bool          // agents keep copies of what decides about the job (Mesh)
	Succeeds   bool          // and one of them goes on when the one that decides is lost (Lead)
	Beside     bool          // then: the reader keeps no copy, and is told who decides next
	// and: the host through whose agent it speaks with the one that decides, which that may be
	Above int

	Hold bool // a debugger is to see the processes in MPI_Init: they wait there until a Release
}

// Host is the host of a rank.
func (j *Job) Host(rank int) int {
	if j.Where == nil {
		return 0
	}
	return j.Where[rank]
}

// A Program is a part of the job's command line; processes are counted through all programs, and
// ranks through those of one world.
type Program struct {
	Procs int
	// number of its MPI_COMM_WORLD in the job: not 0 in systems of clusters alone (Attach)
	World uint32
	Argv  []string
	Dir   string
	Path  string
	Env   []string
	Part  int // from 1, of Job.Parts; 0: none
	// of a part that was added to the running system: its processes are none of those that the job
	// begins with
	Added bool

	Standbys int // of the processes, the last: they wait to take a rank over
	Cold     int // of these, the last: each is started when a rank has died
	// what ranks keep for their successors is in files that the agent has, since no successor may
	// be there yet
	MsgLogs bool
}

// A Message is one thing said; exactly one field is set.
type Message struct {
	Job    *Job // to the agent, first
	Signal int  // to the agent: spxrun has got this signal
	Ping   int  // to the agent, and back: a sign of life
	// from the agent, and from the keeper to spxrun: all processes of the job have been made
	Running bool
	Leave   bool  // to the keeper: spxrun has told its user what there is to tell, and leaves
	Stopped int   // from the agent: the signal that stops has been passed on
	Done    *Done // from the agent, last

	Reach   *reach.Host  // from another host, first: by what others may reach it
	Place   *Place       // to it: what was chosen from that
	Ready   *Ready       // from another host: its part of the job can start, or cannot
	Beats   *Beats       // to it: how the agents will hear of each other
	Start   []Address    // to it: all are ready; where every process listens
	Hosts   *Hosts       // to it: hosts have been added
	Grown   *Grown       // to it: the system of clusters has got more parts
	Present []Entry      // to one that was added: who is there
	Event   job.Event    // from it: what has happened to its processes
	Action  job.Action   // to it: what has been decided
	Actions []job.Action // to it: the ends of several processes, to be published together
	Mesh    *Mesh        // to it: where the agents reach each other
	Copies  int          // to it: how far is its copy of what decides? Numbers are not given twice
	Copy    *Copy        // from it: the answer
	Survey  int          // to it: how are things? Numbers are not given twice
	Facts   *Facts       // from it: the answer
	Output  *Output      // from it: what its processes have written
	Input   *Input       // to it: standard input
	Taken   *Taken       // both ways: so much of it was passed on

	// to it: of a shell that starts the agent of one more host; from it: what that says
	Branch *Branch

	// from a host that has found the system of which it is to run a cluster, before the Job
	Attach *Arrival

	Own     *Own     // to another host of such a cluster, first
	Relayed *Relayed // both ways: of, or for, one of these hosts

	Hello *Hello // from it, before the Job: who has come (jobs of other launchers)
	Off   string // to it, in place of the Job: why the job does not begin; who sends it has said so
	// to who leads a system at an address where another one has led it: where it is led now
	Moved string

	Question *Question // from it: what one of its processes asks
	Answer   *Answer   // to it
	World    *World    // to it: the next step of making processes that are spawned
	Made     *Made     // from it: that step is done, or cannot be done
	Abandon  uint32    // to it: end those of a spawned world that have not met their parents
	Parted   *Parted   // to it: a process of another job has ended

	// between any two agents of a job, on connections that carry nothing else: a message of package
	// ft/replica
	Sequence []byte
	// from another host, first on such a connection: it decides from now on; or from one that has
	// heard that, its last word to the agent that has decided before
	Lead  *Lead
	Stand *Stand // to it, first: how the processes of this host are

	// Between the agents that decide for two jobs whose processes are connected; Question and
	// Answer go there, too.
	Link   *Link           // first, both ways
	Abroad *abroad.Message // what they tell each other of their processes

	Layout string // to it: the system of clusters is like this now

	Tree    *Tree    // to it: who manages the system with it, from now on
	Managed *Managed // both ways: what one of these agents says to another
	Left    []int    // to it: these have ended for certain
	Failed  *Failed  // to it: a cluster cannot go on
	Master  *Master  // from it: which process is the master of that host

	// To and from the process of a host's master, with Managed, Left and Ping.
	Begin   *Begin          // to it: it has a part in a tree
	Counted *manage.Counted // to it: what lives there
	Learned *Learned        // from it: what the system is like

	Inspect   *Inspect   // to it: what do the processes do?
	Inspected *Inspected // from it: the answer

	// from the agent, when all processes of a job with Hold have been made: they wait, by rank
	Table   []Process
	Release *Release // to the agent, and to another host: they may go on

	Clock *Clock     // to another host, and back: what time is it there?
	Trace *TracePart // from it: a part of a file of Job.Trace
}

// A Branch is of the remote shell by which the agent of one host starts that of another, for the
// one that decides. First go Name and Words, then one field is set in each message.
type Branch struct {
	Host  int    // number of the other
	Name  string // the same by name, for messages
	Words []string

	Text  []byte // both ways: what the agents behind say to each other
	Close bool   // to it: no Text comes any more
	Kill  bool   // to it: end the shell

	Began bool       // from it: the shell runs
	Said  []byte     // from it: on its standard error
	Taken int        // from it: so many bytes of Text, more than before, have gone into the shell
	End   *BranchEnd // from it, last
}

// BranchEnd is how a shell has ended.
type BranchEnd struct {
	How      string
	Passing  bool // it can be otherwise when it is tried again
	Answered bool // there was some Text before
}

// A Tree says who is in the management tree of a system (package cluster/manage). Each has a
// number; View is what the system was as of the one before.
type Tree struct {
	Epoch  uint32
	Config manage.Config
	View   manage.View
}

// Managed is a message of package cluster/manage between agents of the tree with that number.
type Managed struct {
	Epoch uint32
	Text  []byte
}

// Master names the process of a host's master; 0: none is there now.
type Master struct{ Pid int }

// Begin has such a process begin its machine: a new one, or with Past in the place of one whose
// process has died. The tree's times are those since Origin, in ns of CLOCK_MONOTONIC.
type Begin struct {
	Tree   Tree
	Past   *manage.Past
	Origin uint64
}

// Learned is what such a process knows of the system, in the tree with that number.
type Learned struct {
	Epoch uint32
	View  manage.View
}

// Failed says of a part of a system that its processes have stopped, and that it cannot go on as it
// is.
type Failed struct {
	Part int    // from 1
	Life uint32 // which start of it, from 1
}

// Clock asks for the time of another host: Before is when it was asked; the answer says There. Both
// are ns of CLOCK_MONOTONIC.
type Clock struct{ Before, There uint64 }

// TracePart is a part of a file; what lies between the parts is empty.
type TracePart struct {
	Name string
	At   int64
	Data []byte
}

// Inspect asks what the processes of a host do; numbers are not given twice.
type Inspect struct {
	Number int
	Stacks bool // and where they are
}

// Inspected answers it. Procs are those of package core/diagnose, in JSON.
type Inspected struct {
	Number int
	Procs  []byte
}

// A Process is one of the job's, for debuggers.
type Process struct {
	Host, File string
	Pid        int
	Here       bool // on spxrun's host
}

// Release lets processes go that wait in MPI_Init, as soon as all of the ranks Traced have a
// debugger.
type Release struct{ Traced []int }

// Done says that the job is over, or that this host is out of it, and others go on.
type Done struct {
	Status int
	Left   bool
}

// Hello is what the agent of a host says that has found spxrun's place taken by an agent like
// itself: that of rank 0's host.
type Hello struct {
	Version int
	Host    string
	Ranks   []int // that have joined there
}

// A Join says where one cluster of a system finds the others.
type Join struct {
	System, Cluster string
	Address         string   // HOST:PORT
	Through         []string // more of these, at agents that hand on what is said
	Key             [32]byte
	Limit           time.Duration // for an agent to be there
	Calls           bool          // it never leads: the system runs already
	Hosts           int           // as Job.System: so many hosts, from 0, are those of Cluster
	Whole           Declared      // what the system file says of the system
	Declared        []Declared    // by part: what it says of them
	Offer           Offer         // the same as a plan
}

// Declared is what a system file says of a part, and with which cluster it is started.
type Declared struct {
	Name, Cluster, Text string
	Place               string // FILE:LINE
	Host                string // on which that file is; empty: that of the agent that decides
}

// Arrival says which cluster of a system comes, what its system file says, and where it runs.
type Arrival struct {
	Version  int
	Host     string
	Cluster  string
	Whole    Declared   // what it says of the system
	Declared []Declared // all parts
	Slots    int        // of this host, for the cluster
	Hosts    []Host     // the other ones of the cluster
	Placed   []Placed   // its parts
	Reach    reach.Host // what this host has of interfaces
	At       netip.Addr // by which address it has come
	Offer    Offer
}

// An Offer is the plan of a system file: what a running system is given of it that it does not have
// (launch/system, Merge).
type Offer struct {
	Parts    []job.Part
	Programs []Program      // one for each part, without its environment
	Start    []start.Member // by part
	// by part: the names of those for which it waits, be they described by another file
	Awaits [][]string
	// the layout (cluster/layout). The numbers of processes and worlds mean nothing; clusters that
	// another file describes are Gone
	Table string
}

// Grown are parts that a running system has got, with the processes that stand for them until they
// are started.
type Grown struct {
	Parts    []job.Part
	Programs []Program
	Present  []Entry
	Start    []start.Member
	Declared []Declared
}

// Place says by which of its addresses a host is reached.
type Place struct {
	At       netip.Addr // where its processes listen
	Beat     netip.Addr // where its agent takes heartbeats; not valid: there, too
	Networks string     // others that all hosts are in; empty: there are none
	// where its sockets are made, if not at these: it has other addresses for some hosts
	Listen netip.Addr
}

// Ready says that a host's part of a job can start.
type Ready struct {
	Text      string // why it cannot, and what to do; empty: it can
	Status    int    // then, for spxrun
	Addresses []Address
	Beat      netip.AddrPort // where its agent takes heartbeats; not valid: nowhere
	// where the agents of other hosts reach its agent (Job.Sequence); not valid: nowhere
	Mesh netip.AddrPort
}

// A Mesh is who keeps the sequence of the job's events (packages ft/replica and launch/follow), and
// where they are reached. It comes again whenever that has changed.
type Mesh struct {
	At []netip.AddrPort // by host; not valid: nowhere
	// hosts that have begun it, in the order in which they should vote; of a host that was added
	// (Job.Late) this is left aside
	First   []int
	Members []int  // hosts that are there now, in that order
	Name    string // of the host that decides, as its machine calls it

	// Of a system whose clusters are started one by one.
	From int // host that says this, which decides
	// by host: the one through whose agent its agent is reached, which that one is that decides
	// where it reaches it itself; -1: it is not there
	By   []int
	Home []int // by host: the first one of its cluster, as that has come
}

// Beats says how the agents hear of each other (package ft/detect).
type Beats struct {
	At            []netip.AddrPort // where they are heard, by host; not valid: nowhere
	Period, Limit time.Duration    // the limit is at least 5 periods
	Most          time.Duration    // up to which the limit follows the silences that were seen
	Alone         bool             // the side of host 0 goes on without a majority
	Tree          detect.Tree      // who beats for whom
}

// Hosts are those of a job that has got more: names, slots and, as in Beats, where their heartbeats
// are heard (nil: nowhere), and who beats for whom.
type Hosts struct {
	Names []string
	Slots []int
	At    []netip.AddrPort
	Tree  detect.Tree
}

// An Entry is a process in the memory file of every host, as one that is added has to enter it.
type Entry struct {
	Proc, Host          int
	World, Rank, Serial uint32
	Life                uint32
	// AgentStarted, AgentDead or AgentExited of package shm, and the wait status
	State, Status uint32
	// of a place for one that is started in the place of a rank: its position in the order in which
	// they are started, from 1; 0: it is not used yet
	Order int
	Part  int    // of a system, from 1: the part that it is of,
	Start uint32 // and which start of that
	// and: it is only a place, for one that another spxrun starts,
	Away  bool
	Spare bool           // or for one that is started in the place of a rank
	At    netip.AddrPort // where it listens
}

// An Address is where a process listens.
type Address struct {
	Proc int
	At   netip.AddrPort
}

// Facts answers a Survey.
type Facts struct {
	Survey  int
	Returns bool  // a process that lives has an error handler that returns
	MPI     []int // parts of which a process has called MPI_Init; 0: one of a job that has no parts
}

// Output is text of a host's processes: whole lines, as a rule. Stream is 1 or 2.
type Output struct {
	Stream int
	Text   []byte
}

// Input is standard input for those processes of a host that read it. An empty Text ends it.
type Input struct{ Text []byte }

// Taken allows so many bytes more of output (from spxrun's host) or input (from the other).
type Taken struct{ Bytes int }

// Window is how many bytes of output, or of input, may be under way: more are not sent before some
// are Taken.
const Window = 1 << 20
