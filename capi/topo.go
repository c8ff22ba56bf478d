package main

/*
#include "comm.h"
*/
import "C"

import (
	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/mpierr"
	"libspx/core/topo"
)

// Communicators with a virtual topology (MPI-5.0, chapter 9): how they are created. All processes
// of comm_old take part, and an error in the arguments of one is reported to all. Ranks are never
// reordered: a host's processes share its memory, all equally near.

// These do not compile when the values of core/topo are not those of mpi.h.
var (
	_ = [1]struct{}{}[C.MPI_PROC_NULL-topo.ProcNull]
	_ = [1]struct{}{}[C.MPI_CART-topo.IsCart]
	_ = [1]struct{}{}[C.MPI_GRAPH-topo.IsGraph]
	_ = [1]struct{}{}[C.MPI_DIST_GRAPH-topo.IsDistGraph]
)

// setTopo gives a new communicator its topology; nil: none.
func (o *commObject) setTopo(t topo.Topology) {
	o.topo = t
	if t == nil {
		return
	}
	n := t.Neighbors(o.Rank)
	o.c.flags |= C.SPX_C_TOPO
	o.c.indegree, o.c.outdegree = C.int32_t(len(n.Sources)), C.int32_t(len(n.Dests))
}

// withTopo makes a communicator of the first n processes of argument 0, with topology t, and stores
// it in argument out; MPI_COMM_NULL at the rest. failure is the error in this process's arguments.
func (c *call) withTopo(out int, t topo.Topology, n int, failure error) error {
	old := c.comm(0)
	if old.Inter() {
		return c.onComm(0, mpierr.New(mpierr.Comm,
			"comm_old is an intercommunicator, which cannot have a topology"))
	}
	color := 0
	if old.Rank >= n {
		color = group.Undefined
	}
	via, done, err := c.inherits(out, func(o *commObject) { o.setTopo(t) })
	if done {
		return err
	}
	m, err := via.Split(via.dealer(), color, old.Rank, failure)
	return c.arranged(out, m, t, err)
}

// arranged builds what a creation over argument 0 made, and stores it in argument out:
// MPI_COMM_NULL after an error.
func (c *call) arranged(out int, m *comm.Made, t topo.Topology, err error) error {
	old := c.comm(0)
	if m == nil || err != nil {
		c.setComm(out, nil)
		if err == nil {
			old.bear(nil)
		}
		return c.onComm(0, err)
	}
	if group.Compare(m.Local, old.Group()) == group.Ident {
		m.Local = old.Group() // whose list of processes can be shared
	}
	o, err := newLiving(m, old, true)
	if err != nil {
		return c.onComm(0, err)
	}
	o.setTopo(t)
	old.bear(o)
	c.setComm(out, o)
	return nil
}

// array reads n int entries of argument i, called name; length is what the caller calls n. Errors:
// class when n is negative, MPI_ERR_ARG when the array is missing.
func (c *call) array(i, n int, name, length string, class mpierr.Class) ([]int, error) {
	if n < 0 {
		return nil, mpierr.New(class, "%s is %d: it is the length of %s, and must be 0 or more",
			length, n, name)
	}
	if n > 0 && c.addr(i) == 0 {
		return nil, mpierr.New(mpierr.Arg, "%s is NULL, but %d entries are wanted", name, n)
	}
	return c.ints(i, n), nil
}

// grid reads the arguments ndims, dims, periods of a grid over argument 0.
func (c *call) grid() (*topo.Cart, error) {
	dims, err := c.array(2, c.int(1), "dims", "ndims", mpierr.Dims)
	if err != nil {
		return nil, err
	}
	flags, err := c.array(3, c.int(1), "periods", "ndims", mpierr.Dims)
	if err != nil {
		return nil, err
	}
	return topo.NewCart(dims, bools(flags), c.comm(0).Group().Size())
}

func bools(in []int) []bool {
	out := make([]bool, len(in))
	for i, v := range in {
		out[i] = v != 0
	}
	return out
}

//spx:body MPI_Cart_create
func cartCreate(c *call) error {
	cart, err := c.grid()
	if err != nil {
		return c.withTopo(5, nil, 0, err)
	}
	return c.withTopo(5, cart, cart.Size(), nil)
}

// cartSub splits a grid; its arguments need no agreement, but for remain_dims.
//
//spx:body MPI_Cart_sub
func cartSub(c *call) error {
	old := c.comm(0)
	cart, err := c.cart()
	if err != nil {
		return c.onComm(0, err)
	}
	keep, err := c.array(1, len(cart.Dims), "remain_dims", "the number of dimensions", mpierr.Dims)
	var sub *topo.Cart
	var number, rank int
	if err == nil {
		sub, number, rank = cart.Sub(old.Rank, bools(keep))
	}
	via, done, failure := c.inherits(2, func(o *commObject) { o.setTopo(sub) })
	if done {
		return failure
	}
	m, err := via.Split(via.dealer(), number, rank, err)
	return c.arranged(2, m, sub, err)
}

// graph reads the arguments nnodes, index, edges of a graph over argument 0.
func (c *call) graph() (*topo.Graph, error) {
	index, err := c.array(2, c.int(1), "indx", "nnodes", mpierr.Arg)
	if err != nil {
		return nil, err
	}
	n, err := topo.EdgeCount(index)
	if err != nil {
		return nil, err
	}
	edges, err := c.array(3, n, "edges", "the last entry of indx", mpierr.Arg)
	if err != nil {
		return nil, err
	}
	return topo.NewGraph(index, edges, c.comm(0).Group().Size())
}

//spx:body MPI_Graph_create
func graphCreate(c *call) error {
	g, err := c.graph()
	if err != nil {
		return c.withTopo(5, nil, 0, err)
	}
	return c.withTopo(5, g, len(g.Index), nil)
}

// weights reads the weights of n edges. MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY are addresses of no
// array.
func (c *call) weights(i, n int, name string) (list []int, weighted bool, err error) {
	switch c.addr(i) {
	case c.unweighted():
		return nil, false, nil
	case c.weightsEmpty():
		if n > 0 {
			return nil, true, mpierr.New(mpierr.Arg,
				"%s is MPI_WEIGHTS_EMPTY, but there are %d edges", name, n)
		}
		return nil, true, nil
	}
	list, err = c.array(i, n, name, "the degree", mpierr.Arg)
	return list, true, err
}

// adjacent reads the arguments of MPI_Dist_graph_create_adjacent.
func (c *call) adjacent() (*topo.DistGraph, error) {
	in, out := c.int(1), c.int(4)
	sources, err := c.array(2, in, "sources", "indegree", mpierr.Arg)
	if err != nil {
		return nil, err
	}
	dests, err := c.array(5, out, "destinations", "outdegree", mpierr.Arg)
	if err != nil {
		return nil, err
	}
	sw, weighted, err := c.weights(3, in, "sourceweights")
	if err != nil {
		return nil, err
	}
	dw, also, err := c.weights(6, out, "destweights")
	if err != nil {
		return nil, err
	}
	if weighted != also {
		return nil, mpierr.New(mpierr.Arg,
			"one of sourceweights and destweights is MPI_UNWEIGHTED: either both are, or none")
	}
	return topo.NewAdjacent(sources, sw, dests, dw, weighted, c.comm(0).Group().Size())
}

//spx:body MPI_Dist_graph_create_adjacent
func distGraphCreateAdjacent(c *call) error {
	g, err := c.adjacent()
	if err != nil {
		return c.withTopo(9, nil, 0, err)
	}
	return c.withTopo(9, g, c.comm(0).Group().Size(), nil)
}

// contribution reads the arguments of MPI_Dist_graph_create.
func (c *call) contribution() (*topo.Contribution, error) {
	var g topo.Contribution
	var err error
	n := c.int(1)
	if g.Sources, err = c.array(2, n, "sources", "n", mpierr.Arg); err != nil {
		return nil, err
	}
	if g.Degrees, err = c.array(3, n, "degrees", "n", mpierr.Arg); err != nil {
		return nil, err
	}
	ends, err := topo.EndCount(g.Degrees)
	if err != nil {
		return nil, err
	}
	if g.Dests, err = c.array(4, ends, "destinations", "the sum of degrees",
		mpierr.Arg); err != nil {
		return nil, err
	}
	if g.Weights, g.Weighted, err = c.weights(5, ends, "weights"); err != nil {
		return nil, err
	}
	return &g, g.Check(c.comm(0).Group().Size())
}

// distGraphCreate sends every edge to the processes at its two ends, by way of rank 0.
//
//spx:body MPI_Dist_graph_create
func distGraphCreate(c *call) error {
	old := c.comm(0)
	if old.Inter() {
		return c.withTopo(8, nil, 0, nil)
	}
	if old.c.births < old.c.inherited {
		return c.onComm(0, mpierr.New(mpierr.UnsupportedOperation,
			"the others have made this communicator before this process had its rank, and only "+
				"they know its edges: "+
				"make such ones after MPISP_Repair, all together"))
	}
	var block []byte
	mine, err := c.contribution()
	if err == nil {
		block = mine.Encode()
	}
	m, part, err := old.DupWith(old.dealer(), block, err, topo.Route)
	var g *topo.DistGraph
	if err == nil {
		g, err = topo.DecodePart(part)
	}
	return c.arranged(8, m, g, err)
}
