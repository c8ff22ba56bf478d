// Package diagnose finds out why a job makes no progress. Its input is the state of every process
// (the call it waits in, for which process, since when, its queues, its stack), and it finds
// deadlocks, processes that are missing in a collective, mismatched collectives, messages that are
// not received, receives without a matching message, and waits for processes that have ended
// (docs/diagnosis.md).
//
// It is pure: launch/inspect collects the data. It serves no section of MPI-5.0; what a call may
// wait for follows from 3.4, 3.5, 3.7 and 6.1.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is where a process stands.
type State string

// States.
const (
	Starting  State = "before MPI_Init"
	Running   State = "running"
	Waiting   State = "waiting" // in an MPI call
	Stopped   State = "stopped" // by a signal
	Finalized State = "after MPI_Finalize"
	Ended     State = "ended"
	Dead      State = "dead"
	Silent    State = "not known" // its host does not answer
)

// gone: it will take part in nothing any more.
func (s State) gone() bool { return s == Finalized || s == Ended || s == Dead }

// What a call waits for.
const (
	Event   = "event"   // anything
	Recv    = "receive" // a message
	Send    = "send"    // its message to be received
	Coll    = "collective"
	Probe   = "probe"
	Any     = "any" // one of several requests
	Request = "request"
)

// Anybody stands for MPI_ANY_SOURCE, AnyTag for MPI_ANY_TAG, Nobody for no process or rank in
// particular.
const (
	Anybody = -1
	AnyTag  = -2
	Nobody  = -1000
)

// ClusterIn stands for MPISP_CLUSTER_IN: the I/O processes that lead to a cluster.
const ClusterIn = -16385

// ClusterOut stands for MPISP_CLUSTER_OUT: the I/O processes that lead away from a cluster.
const ClusterOut = -16386

// A Proc is the known state of a process.
type Proc struct {
	Proc  int    `json:"proc"` // its number in the job
	Rank  int    `json:"rank"` // in its MPI_COMM_WORLD
	World int    `json:"world"`
	Part  string `json:"part,omitempty"` // of a system: "cluster NAME", or "link NAME"
	// it is an I/O process of that link, and rank is its number there
	IO bool `json:"io,omitempty"`
	// it waits to take a rank over, and rank is its number among those
	Standby bool `json:"standby,omitempty"`
	// seconds since it was started, of one that has not called MPI_Init
	Age   float64 `json:"age,omitempty"`
	Host  string  `json:"host"`
	Pid   int     `json:"pid"`
	State State   `json:"state"`
	// running: the MPI call in which it was a moment ago, and for which it has not slept for long
	In       string `json:"in,omitempty"`
	End      string `json:"end,omitempty"`      // how it has ended
	Multiple bool   `json:"multiple,omitempty"` // MPI_THREAD_MULTIPLE: other threads may go on
	Waits    []Wait `json:"waits,omitempty"`
	// of the thread that waits, else of the first; the innermost frame first
	Stack   []Frame `json:"stack,omitempty"`
	Missing string  `json:"stack_missing,omitempty"`
	Queues  *Queues `json:"queues,omitempty"` // nil: not known
	Traffic Traffic `json:"traffic"`
	Place   *Place  `json:"place,omitempty"` // nil: not known
}

// Place is where a process is, as the choice of algorithms uses it (docs/collectives.md).
type Place struct {
	Host    int  `json:"host"`              // its number in the job
	CPUs    int  `json:"processors"`        // that the job may use there
	Node    int  `json:"node,omitempty"`    // 1 + the memory that it is bound to; 0: to none
	Cache   int  `json:"cache,omitempty"`   // 1 + the last-level cache
	Network bool `json:"network,omitempty"` // it talks over the network with those of its host, too
}

// Traffic is what a process has counted since it began. All is 0 before MPI_Init.
type Traffic struct {
	// seconds of its host's clock, when this was read; 0: it was not
	At float64 `json:"at"`
	// of its number in the job: grows when another process takes that, which counts from 0
	Life            uint32  `json:"life"`
	Sent            uint64  `json:"messages_sent"` // those of collectives included
	SentBytes       uint64  `json:"bytes_sent"`
	Received        uint64  `json:"messages_received"`
	ReceivedBytes   uint64  `json:"bytes_received"`
	Collectives     uint64  `json:"collectives"`    // begun
	Waited          float64 `json:"seconds_waited"` // in MPI calls, of all threads
	Sleeps          uint64  `json:"sleeps"`         // of these waits
	Failures        uint64  `json:"failures_noticed"`
	Unexpected      uint64  `json:"unexpected_messages"` // before their receive
	UnexpectedBytes uint64  `json:"unexpected_bytes"`
	Peers           uint64  `json:"peers"`       // processes that it has sent to
	Connections     uint64  `json:"connections"` // to processes of other hosts, open
	SentAgain       uint64  `json:"frames_sent_again"`
	// an I/O process: what it reports to hold
	HeldMessages uint64 `json:"messages_held,omitempty"`
	HeldBytes    uint64 `json:"bytes_held,omitempty"`
}

// A Wait is a call in which a thread sleeps.
type Wait struct {
	Thread   int     `json:"thread"`
	Call     string  `json:"call"`
	What     string  `json:"what"`
	For      float64 `json:"seconds"`
	Comm     string  `json:"comm,omitempty"`
	Context  uint64  `json:"context,omitempty"` // of the communicator, the same for all its members
	CommRank int     `json:"comm_rank"`
	CommSize int     `json:"comm_size"`
	PeerRank int     `json:"peer_rank"` // in the communicator, Anybody or Nobody
	Peer     int     `json:"peer"`      // its process, or Nobody
	Tag      int     `json:"tag"`
	Root     int     `json:"root"` // Nobody: there is none
	Coll     string  `json:"collective,omitempty"`
	Seq      uint32  `json:"operation"` // its number on the communicator
	Count    int64   `json:"count"`
	Bytes    uint64  `json:"bytes"`
	Type     string  `json:"datatype,omitempty"`
	Members  []int   `json:"members,omitempty"` // processes that it may wait for
	More     bool    `json:"more_members,omitempty"`
}

// A Frame is a call on a stack.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Object   string `json:"object,omitempty"` // the program or library, where there is no file
	PC       uint64 `json:"pc"`
}

// Queues are the messages and receives of a process that have not found each other.
type Queues struct {
	Posted     int     `json:"posted"`
	Unexpected int     `json:"unexpected"`
	Pending    int     `json:"pending"`
	Entries    []Entry `json:"entries,omitempty"` // the first of them
}

// Kinds of entries.
const (
	PostedReceive = "posted"
	Unexpected    = "unexpected"
	Announced     = "sent"   // announced to the receiver, and not received
	NoRoom        = "queued" // waits for room
)

// An Entry is a receive, a message that has arrived, or one under way.
type Entry struct {
	Kind    string `json:"kind"`
	Peer    int    `json:"peer"`
	Rank    int    `json:"rank"`
	Tag     int    `json:"tag"`
	Context uint64 `json:"context"`
	Comm    string `json:"comm,omitempty"`
	Bytes   uint64 `json:"bytes"`
}

// name is what a process is called.
// Name is what the process is called in texts: rank 2 of cluster a.
func (p *Proc) Name() string { return p.name() }

func (p *Proc) name() string { return names([]*Proc{p}) }

// kind is what a process's number counts, and of what.
func (p *Proc) kind() (what, of string) {
	switch {
	case p.IO:
		what = "I/O process"
	case p.Standby:
		what = "standby"
	default:
		what = "rank"
	}
	switch {
	case p.Part != "":
		of = " of " + p.Part
	case p.World != 0:
		of = fmt.Sprintf(" of world %d", p.World)
	}
	return what, of
}

// plural is the plural of what.
func plural(what string) string {
	switch what {
	case "I/O process":
		return "I/O processes"
	case "standby":
		return "standbys"
	}
	return what + "s"
}

// tag is what a process is called before its output (spxrun -l).
// Tag is how spxctl ps calls the process: its rank, or "CLUSTER.RANK" in a system.
func (p *Proc) Tag() string { return p.tag() }

func (p *Proc) tag() string {
	_, part, system := strings.Cut(p.Part, " ")
	switch {
	case !system && p.World == 0:
		return fmt.Sprint(p.Rank)
	case !system:
		return fmt.Sprintf("%d/%d", p.World, p.Rank)
	case p.IO:
		return fmt.Sprintf("%s.iop%d", part, p.Rank)
	case p.Standby:
		return fmt.Sprintf("%s.standby%d", part, p.Rank)
	}
	return fmt.Sprintf("%s.%d", part, p.Rank)
}

// Names lists processes shortly, as names does.
func Names(list []*Proc) string { return names(list) }

// names lists processes shortly: ranks 0-3,7 of cluster a and I/O processes 0-1 of link a-b.
func names(list []*Proc) string {
	slices.SortFunc(list, func(a, b *Proc) int {
		if a.IO && b.IO { // each is a world of its own
			return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Rank, b.Rank))
		}
		order := func(p *Proc) int {
			switch {
			case p.IO:
				return 2
			case p.Standby:
				return 1
			}
			return 0
		}
		if a.IO != b.IO {
			return cmp.Compare(order(a), order(b))
		}
		return cmp.Or(cmp.Compare(a.World, b.World), cmp.Compare(order(a), order(b)),
			cmp.Compare(a.Rank, b.Rank))
	})
	var parts []string
	for i := 0; i < len(list); {
		what, of := list[i].kind()
		var numbers []int
		for ; i < len(list); i++ {
			if w, o := list[i].kind(); w != what || o != of {
				break
			}
			numbers = append(numbers, list[i].Rank)
		}
		if len(numbers) > 1 {
			what = plural(what)
		}
		parts = append(parts, what+" "+Ranges(numbers)+of)
	}
	return strings.Join(parts, " and ")
}

// Ranges writes ascending numbers shortly: 0-3,7.
func Ranges(list []int) string {
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

// Alive: it has not ended, as far as known.
func (p *Proc) Alive() bool { return p.State != Ended && p.State != Dead }
