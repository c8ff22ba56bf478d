package topo

import "libspx/core/mpierr"

// Graph is a graph that every process has in full (MPI-5.0, 9.5.3).
type Graph struct {
	Index []int // Index[i]: number of the edges of nodes 0 to i
	Edges []int // the neighbours of node 0, of node 1, ...
}

// NewGraph makes a graph whose nodes are the first ranks of a group of size processes. edges may be
// longer than needed. Errors: MPI_ERR_ARG when there are more nodes than processes or index
// decreases; MPI_ERR_RANK for an edge to a node that is not there.
func NewGraph(index, edges []int, size int) (*Graph, error) {
	if len(index) > size {
		return nil, mpierr.New(mpierr.Arg, "nnodes is %d, but the communicator has %d processes",
			len(index), size)
	}
	n, err := EdgeCount(index)
	if err != nil {
		return nil, err
	}
	if n > len(edges) {
		return nil, mpierr.New(mpierr.Arg, "indx ends with %d edges, but there are %d", n,
			len(edges))
	}
	for i, e := range edges[:n] {
		if e < 0 || e >= len(index) {
			return nil, mpierr.New(mpierr.Rank, "edges[%d] is %d, but the graph has nodes 0 to %d",
				i, e, len(index)-1)
		}
	}
	return &Graph{Index: index, Edges: edges[:n]}, nil
}

// EdgeCount returns the number of edges that an index array implies. Errors: MPI_ERR_ARG when it
// decreases.
func EdgeCount(index []int) (int, error) {
	last := 0
	for i, n := range index {
		if n < last {
			return 0, mpierr.New(mpierr.Arg, "indx[%d] is %d, less than %d before it", i, n, last)
		}
		last = n
	}
	return last, nil
}

// Kind returns IsGraph.
func (g *Graph) Kind() Kind { return IsGraph }

// Of returns the neighbours of a node (MPI_Graph_neighbors).
func (g *Graph) Of(node int) []int {
	first := 0
	if node > 0 {
		first = g.Index[node-1]
	}
	return g.Edges[first:g.Index[node]]
}

// Neighbors are the neighbours of a node, to send to and to receive from.
func (g *Graph) Neighbors(rank int) Neighbors {
	return Neighbors{Sources: g.Of(rank), Dests: g.Of(rank)}
}
