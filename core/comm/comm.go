// Package comm implements communicators (MPI-5.0, chapter 7): a context, one or two
// groups, and the algorithms by which processes create them together. Messages go over a Link, so
// that the algorithms run over the data plane and, in tests, between goroutines. The package owns
// no handles, attributes or descriptors, and takes no lock while it waits: two threads may create
// communicators at once.
//
// Every collective creation works alike: one process, the leader, decides the new context from its
// own counter and sends it to the other members along a binomial tree; data about members is
// gathered along the same tree before. An error, such as a dead process or a bad argument, travels
// along the tree in place of the data, so that no process waits for a message that will not come.
package comm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"libspx/core/group"
	"libspx/core/ident"
)

// CtxStep is the distance of two contexts: a context and the numbers up to the next are for the
// different sorts of messages of one communicator (capi/dataplane/base/spx.h, SPX_CTX_*).
const CtxStep = 8

// counterBits is the width of the counter in a context; the leader's process number stands above
// it.
const counterBits = 36

// contextMask selects a context without the step.
const contextMask = 1<<62 - 1

// Counters of the contexts that exist without having been created by a call.
const (
	worldCounter   = 1
	selfCounter    = 2
	systemCounter  = 3
	standbyCounter = 4 // and 5
	replayCounter  = 6
	copiesCounter  = 7
	firstCounter   = 16
)

// Origin is where the contexts of a job begin among all that there are: a random place, so that
// jobs that are connected later do not deal out the same ones. Addition wraps.
type Origin uint64

// Near reports whether jobs with these origins could deal out the same contexts: then they must not
// be connected. It is practically never so.
func (o Origin) Near(p Origin) bool {
	d := (uint64(o) - uint64(p)) & contextMask
	d = min(d, contextMask+1-d)
	// of the numbers that a job may have given, those that count
	const procs, used = 1 << 17, 1 << 27
	return d>>counterBits < procs && (d&(1<<counterBits-1) < used ||
		1<<counterBits-d&(1<<counterBits-1) < used)
}

// Contexts deals out context numbers that no process of the job ever deals out again.
type Contexts struct {
	origin Origin
	proc   uint64
	next   atomic.Uint64

	// OnTakeFor, unless nil, is called with each context that TakeFor deals out, before any other
	// process can have it. Set it before the first is dealt out.
	OnTakeFor func(ctx uint64)

	from   *Contexts
	settle func(first uint64) uint64
}

// Settled deals as x does, but settle chooses the contexts to take instead.
func (x *Contexts) Settled(settle func(first uint64) uint64) *Contexts {
	return &Contexts{from: x, settle: settle, OnTakeFor: x.OnTakeFor}
}

// NewContexts returns the dealer of a process. Process numbers are unique in the job, and never
// given twice (spx_proc.serial).
func NewContexts(o Origin, proc uint32) *Contexts {
	x := &Contexts{origin: o, proc: uint64(proc)}
	x.next.Store(firstCounter)
	return x
}

// Take returns the first of n new contexts, which lie CtxStep apart. A process has 2^36 of them,
// enough for days of only creating communicators.
func (x *Contexts) Take(n int) uint64 {
	if x.settle != nil {
		return x.settle(x.from.Take(n))
	}
	end := x.next.Add(uint64(n))
	if end > 1<<counterBits {
		panic(fmt.Sprintf(
			"this process has made %d communicators, windows and files, and there are no "+
				"numbers for more: start the job again", uint64(1)<<counterBits))
	}
	return x.ctx(end - uint64(n))
}

// BeginLate makes the numbers of collective creations, which go round, begin just before their end:
// for tests, in all processes alike.
func BeginLate() { seqFrom = seqTags - 3 }

var seqFrom uint32

// TakeFor is Take for n communicators of one group each, which are sure to be made.
func (x *Contexts) TakeFor(n int) uint64 {
	first := x.Take(n)
	for i := 0; i < n && x.OnTakeFor != nil; i++ {
		x.OnTakeFor(first + uint64(i)*CtxStep)
	}
	return first
}

// TakeLike is Take for one communicator that is an intercommunicator when c is one, which is sure
// to be made.
func (x *Contexts) TakeLike(c *Comm) uint64 {
	if c.Inter() {
		return x.Take(c.Contexts())
	}
	return x.TakeFor(1)
}

func (x *Contexts) ctx(counter uint64) uint64 {
	return (uint64(x.origin) + x.proc<<counterBits + counter) & contextMask * CtxStep
}

// WorldContext is the context of MPI_COMM_WORLD, known to all by the process number of its rank 0.
func WorldContext(o Origin, proc uint32) uint64 { return NewContexts(o, proc).ctx(worldCounter) }

// SelfContext is the context of a process's MPI_COMM_SELF.
func SelfContext(o Origin, proc uint32) uint64 { return NewContexts(o, proc).ctx(selfCounter) }

// SystemContext is the context of messages to the I/O processes of a system of clusters, in all of
// it.
func SystemContext(o Origin) uint64 { return NewContexts(o, 0).ctx(systemCounter) }

// ReplayContext is the context in which messages travel where standbys take over transparently.
func ReplayContext(o Origin) uint64 { return NewContexts(o, 0).ctx(replayCounter) }

// StandbyContexts are those of the two communicators of a cluster with its standbys, known to all
// as WorldContext is.
func StandbyContexts(o Origin, proc uint32) (base, pool uint64) {
	x := NewContexts(o, proc)
	return x.ctx(standbyCounter), x.ctx(standbyCounter + 1)
}

// CopiesContext is that in which the processes of such a cluster keep copies for each other.
func CopiesContext(o Origin, proc uint32) uint64 { return NewContexts(o, proc).ctx(copiesCounter) }

// Table maps ranks to processes. A standby may take a rank over: then the version grows.
type Table struct {
	mu      sync.Mutex
	members *group.Group
	version uint32
}

// NewTable returns the table of a group.
func NewTable(g *group.Group) *Table { return &Table{members: g} }

// Group returns the processes as they are now.
func (t *Table) Group() *group.Group {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.members
}

// Version returns the number of ranks taken over so far.
func (t *Table) Version() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// Set gives all ranks to processes.
func (t *Table) Set(g *group.Group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members = g
	t.version++
}

// Replace gives a rank to another process.
func (t *Table) Replace(rank int, by ident.ProcID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := t.members.IDs()
	ids[rank] = by
	t.members = group.Of(ids...)
	t.version++
}

// Made is the outcome of a creation: all that is needed to build the communicator. A nil *Made
// stands for MPI_COMM_NULL.
type Made struct {
	Ctx    uint64
	Local  *group.Group
	Rank   int          // in Local
	Remote *group.Group // intercommunicator: the other group; else nil
	First  bool         // intercommunicator: this side decides for both
}

// NewFromGroup is the outcome for a member of a group whose members have agreed on a context by
// other means (shrink, spawn, sessions). It is nil for other processes.
func NewFromGroup(g *group.Group, ctx uint64, me ident.ProcID) *Made {
	rank := g.Rank(me)
	if rank == group.Undefined {
		return nil
	}
	return &Made{Ctx: ctx, Local: g, Rank: rank}
}

// Comm is a communicator. Link and LocalLink must be set before it is used in a creation.
type Comm struct {
	Ctx   uint64 // 0 when it is still to be agreed upon, as in MPI_Comm_idup
	Rank  int    // in the local group
	First bool
	Link  Link // to the ranks that messages are sent to: the remote group of an intercommunicator
	// LocalLink leads to the local group. It is Link unless the communicator is an
	// intercommunicator; then it belongs to context LocalCtx.
	LocalLink Link

	// OfPair, in the communicator of two leaders (Bridge, Settle), translates an error caused by
	// the other leader, or its group; nil: unchanged.
	OfPair func(error) error

	local, remote *Table // the same unless it is an intercommunicator
	seq           atomic.Uint32
}

// New builds the communicator that a creation made.
func New(m *Made) *Comm {
	c := &Comm{Ctx: m.Ctx, Rank: m.Rank, First: m.First, local: NewTable(m.Local)}
	c.seq.Store(seqFrom)
	c.remote = c.local
	if m.Remote != nil {
		c.remote = NewTable(m.Remote)
	}
	return c
}

// LocalCtx is the context for messages inside the local group of an intercommunicator. Both groups
// use the same number: they are disjoint.
func LocalCtx(ctx uint64) uint64 { return ctx + CtxStep }

// Contexts is the number of contexts that a communicator takes.
func (c *Comm) Contexts() int {
	if c.Inter() {
		return 2
	}
	return 1
}

// Inter reports whether c is an intercommunicator.
func (c *Comm) Inter() bool { return c.local != c.remote }

// LocalTable maps the ranks of the local group to processes.
func (c *Comm) LocalTable() *Table { return c.local }

// RemoteTable maps destination ranks to processes.
func (c *Comm) RemoteTable() *Table { return c.remote }

// Group returns the local group (MPI_Comm_group).
func (c *Comm) Group() *group.Group { return c.local.Group() }

// RemoteGroup returns the group that messages are sent to (MPI_Comm_remote_group).
func (c *Comm) RemoteGroup() *group.Group { return c.remote.Group() }

// Me returns the calling process.
func (c *Comm) Me() ident.ProcID { return c.Group().At(c.Rank) }

// Compare is MPI_Comm_compare.
func Compare(a, b *Comm) group.Relation {
	if a == b {
		return group.Ident
	}
	if a.Inter() != b.Inter() {
		return group.Unequal
	}
	result := max(group.Compare(a.Group(), b.Group()), group.Congruent)
	if a.Inter() {
		result = max(result, group.Compare(a.RemoteGroup(), b.RemoteGroup()))
	}
	return result
}

// Tags of the engine's messages, which have a context of their own (SPX_CTX_ENGINE). Collective
// creations of one communicator are numbered by all its processes alike. Two calls name their
// messages by the user's tag instead: threads may make them at the same time, in any order.
const (
	seqTags        = 1 << 29
	createGroupTag = 1 << 30
	interCreateTag = -1024 // minus the user's tag
)

// nextTag numbers a collective creation.
func (c *Comm) nextTag() int { return int(c.seq.Add(1) % seqTags) }
