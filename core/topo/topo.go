// Package topo implements virtual topologies (MPI-5.0, chapter 9): grids, graphs, and distributed
// graphs, as plain values that contain only ranks. It owns no communicators and does no
// communication; the data exchanged to make a distributed graph is encoded and routed here, and
// carried by core/comm.
//
// Topologies are immutable and safe for concurrent use. Their slices must not be changed by
// callers.
package topo

import "libspx/core/group"

// ProcNull stands for a neighbour that does not exist, at the border of a grid.
const ProcNull = group.ProcNull

// Kind is the result of MPI_Topo_test, by its value in the standard ABI.
type Kind int

// The kinds of topologies.
const (
	IsCart      Kind = 211 // MPI_CART
	IsGraph     Kind = 212 // MPI_GRAPH
	IsDistGraph Kind = 213 // MPI_DIST_GRAPH
)

// Topology is a *Cart, *Graph or *DistGraph.
type Topology interface {
	Kind() Kind
	// Neighbors returns the neighbours of a rank in neighbourhood collectives. A DistGraph has only
	// those of its own process.
	Neighbors(rank int) Neighbors
}

// Neighbors are the ranks that a process receives from and sends to, in the order of the blocks of
// its buffers (MPI-5.0, 9.6).
type Neighbors struct {
	Sources, Dests []int // ProcNull: the block stays as it is
	// Paired: the neighbours come in pairs, one for each dimension of a grid, and what a process
	// sends in one direction arrives from the opposite one. This matters when both neighbours of a
	// pair are the same process.
	Paired bool
}
