package coll

import "fmt"

// Kind is a collective operation. Its values are those of SPX_COLL_* in capi/dataplane/coll/plan.h.
type Kind uint8

// The collective operations.
const (
	Barrier Kind = iota
	Bcast
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	Alltoallw
	Reduce
	Allreduce
	ReduceScatterBlock
	ReduceScatter
	Scan
	Exscan
	NeighborAllgather
	NeighborAllgatherv
	NeighborAlltoall
	NeighborAlltoallv
	NeighborAlltoallw
	Kinds
)

var names = [Kinds]string{"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv",
	"allgather", "allgatherv",
	"alltoall", "alltoallv", "alltoallw", "reduce", "allreduce", "reduce_scatter_block",
	"reduce_scatter", "scan", "exscan",
	"neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
	"neighbor_alltoallw"}

func (k Kind) String() string {
	if k < Kinds {
		return names[k]
	}
	return fmt.Sprintf("collective %d", uint8(k))
}

// Type describes a datatype as far as a schedule needs it, in bytes. MPI-5.0 5.1.
type Type struct {
	Size       int64 // data
	Extent     int64
	TrueLB     int64
	TrueExtent int64
	Contig     bool // no gaps, and elements follow each other: Size == Extent, TrueLB == 0
}

// Roots of intercommunicators, for the group that has the root.
const (
	RootSelf = -4 // MPI_ROOT: this process
	RootNone = -3 // MPI_PROC_NULL: another process of this group
)

// Args is a call, as one rank sees it. "Everywhere" marks what is equal at all ranks of a correct
// program.
type Args struct {
	Kind   Kind // everywhere
	Rank   int  // in the local group
	Size   int  // of the local group; everywhere
	Remote int  // intercommunicator: size of the remote group; 0 for an intracommunicator
	Root   int  // everywhere (intercommunicator: RootSelf, RootNone, or rank in the remote group)
	// InPlace: MPI_IN_PLACE was given; the data are in the receive buffer (Scatter, Scatterv: stay
	// in the send buffer).
	InPlace bool
	// SCount elements of SType per peer (Reduce and Scan families: in all) in the send buffer,
	// RCount of RType in the receive buffer. Bcast has its buffer as receive buffer. Reductions:
	// both types are the datatype. Zero where not significant, and in v forms, where the caller's
	// own count is bound when the plan is run.
	SCount, RCount int64
	SType, RType   Type
	// SizeClass: base-2 logarithm, rounded up, of the sum of all receive counts in bytes for
	// Allgatherv and ReduceScatter, whose counts are bound when the plan is run; everywhere.
	SizeClass int
	Commute   bool // the operation commutes; everywhere
	// processors that the ranks of a host share; alike at those of one host, and everywhere unless
	// Several
	CPUs int
	// the ranks are on several hosts, or of several jobs, which may use other processors;
	// everywhere
	Several bool
	Wired   bool // ranks of a host talk over the network, too; everywhere
	// Shared is the size of a part of the communicator's shared memory (shared.go), 0 when it has
	// none; everywhere.
	Shared int64
	// Levels groups ranks that are near each other (levels.go), nil: unknown, or all are;
	// everywhere.
	Levels [][]int32
	// Switched: the outermost of them are switches, with several hosts behind some of them;
	// everywhere.
	Switched bool
	// Near is the switch of each rank, numbered from 0, where messages between switches are relayed
	// (byswitch.go); nil: no relaying, or unknown; everywhere.
	Near []int32
	// Slice is how many bytes of a vector are reduced at once; 0: SliceBytes. Everywhere.
	Slice int64
	// Persistent: the call makes a persistent request. Everywhere.
	Persistent bool
	// Force names an algorithm; empty: the table chooses. Everywhere. ForcedBy is the setting that
	// does: ByTool, ByVariable, ByTuning; ForceFrom: the file, for people.
	Force     string
	ForcedBy  Reason
	ForceFrom string
	// Sources and Dests are the ranks from which this rank receives and to which it sends in
	// neighbourhood collectives, in the order of the blocks; RootNone (MPI_PROC_NULL) where there
	// is none. Paired: they are those of a grid, two for each dimension.
	Sources, Dests []int
	Paired         bool
}

// Data is the number of bytes that the choice of the algorithm rests on, equal at all ranks: for
// rooted and symmetric operations with blocks, one block; for Bcast and reductions, the whole; for
// v forms, the total by its class.
func (a *Args) Data() int64 {
	switch a.Kind {
	case Barrier, Gatherv, Scatterv, Alltoallv, Alltoallw, NeighborAllgather, NeighborAllgatherv,
		NeighborAlltoall,
		NeighborAlltoallv, NeighborAlltoallw:
		return 0
	case Gather:
		if a.Rank == a.Root {
			return a.RCount * a.RType.Size
		}
		return a.SCount * a.SType.Size
	case Scatter:
		if a.Rank == a.Root {
			return a.SCount * a.SType.Size
		}
		return a.RCount * a.RType.Size
	case Allgatherv, ReduceScatter:
		if a.SizeClass >= 62 {
			return 1 << 62
		}
		return 1 << a.SizeClass
	case Allgather, Alltoall:
		return a.RCount * a.RType.Size
	}
	return a.RCount * a.RType.Size
}

// nothing: no rank has anything to do or to send.
func (a *Args) nothing() bool {
	switch a.Kind {
	case Barrier, Gatherv, Scatterv, Allgatherv, Alltoallv, Alltoallw, ReduceScatter,
		NeighborAllgather, NeighborAllgatherv,
		NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw:
		return false
	}
	return a.Remote == 0 && a.Data() == 0
}

// crowded: more ranks than processors. A rank that waits then has to yield the processor, and every
// message may cost a switch. Not with several hosts: a choice for all must not depend on the number
// of processors of one host.
func (a *Args) crowded() bool { return !a.Several && a.Size > a.CPUs }

// Compile makes this rank's plan. It fails only when Force names an algorithm that does not exist
// for the operation.
func Compile(a Args) (*Plan, error) {
	if a.Kind >= Kinds || a.Size < 1 || a.Rank < 0 || a.Rank >= a.Size {
		return nil, fmt.Errorf("no schedule for %v at rank %d of %d", a.Kind, a.Rank, a.Size)
	}
	if n := a.slice(); n < a.RCount {
		return compileSlices(a, n)
	}
	b := &builder{Args: &a}
	if b.p.Unit = a.RType.Size; a.Kind == Alltoallw {
		b.p.Unit = 1
	}
	alg, choice, err := decide(&a)
	if err != nil {
		return nil, err
	}
	b.p.Algorithm, b.p.Choice = choice.AlgorithmName(a.Kind), choice
	switch choice.Algorithm {
	case nothing:
	case between:
		inter[a.Kind](b)
	default:
		alg.build(b)
	}
	if b.p.Ticks > 0 {
		b.p.Signature = b.signature()
	}
	return &b.p, nil
}
