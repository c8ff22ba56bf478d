package main

/*
#include "comm.h"
static uintptr_t topo_unweighted(void) { return (uintptr_t)MPI_UNWEIGHTED; }
static uintptr_t topo_weights_empty(void) { return (uintptr_t)MPI_WEIGHTS_EMPTY; }
*/
import "C"

import (
	"libspx/core/group"
	"libspx/core/mpierr"
	"libspx/core/topo"
)

// Queries of a virtual topology (MPI-5.0, sections 9.5.2 and 9.5.5 to 9.5.8). All of these calls
// are local.

func (*call) unweighted() uintptr   { return uintptr(C.topo_unweighted()) }
func (*call) weightsEmpty() uintptr { return uintptr(C.topo_weights_empty()) }

// topology returns the topology of the communicator that is argument 0, which must be a T, called
// name.
func topology[T topo.Topology](c *call, name string) (T, error) {
	t, ok := c.comm(0).topo.(T)
	if !ok {
		return t, mpierr.New(mpierr.Topology, "the communicator has no %s topology", name)
	}
	return t, nil
}

func (c *call) cart() (*topo.Cart, error) { return topology[*topo.Cart](c, "Cartesian") }

// onTopology calls f with the topology of argument 0 and raises errors on that communicator.
func onTopology[T topo.Topology](c *call, name string, f func(T) error) error {
	t, err := topology[T](c, name)
	if err != nil {
		return c.onComm(0, err)
	}
	return c.onComm(0, f(t))
}

func (c *call) onCart(f func(*topo.Cart) error) error { return onTopology(c, "Cartesian", f) }
func (c *call) onGraph(f func(*topo.Graph) error) error {
	return onTopology(c, "graph", f)
}

// store puts v into the array that is argument i and has room for n entries.
func (c *call) store(i, n int, v []int, name string) error {
	if len(v) > n {
		return mpierr.New(mpierr.Arg, "%s has room for %d entries, but there are %d", name, n,
			len(v))
	}
	if len(v) > 0 && c.addr(i) == 0 {
		return mpierr.New(mpierr.Arg, "%s is NULL, but there are %d entries to store", name, len(v))
	}
	c.setInts(i, v)
	return nil
}

// nodeRank checks a rank of the communicator that is argument 0.
func (c *call) nodeRank(rank int) error {
	if n := c.comm(0).Group().Size(); rank < 0 || rank >= n {
		return mpierr.New(mpierr.Rank, "rank is %d, but the communicator has ranks 0 to %d", rank,
			n-1)
	}
	return nil
}

//spx:body MPI_Topo_test
func topoTest(c *call) error {
	kind := C.MPI_UNDEFINED
	if t := c.comm(0).topo; t != nil {
		kind = int(t.Kind())
	}
	c.setInt(1, kind)
	return nil
}

//spx:body MPI_Dims_create
func dimsCreate(c *call) error {
	n := c.int(1)
	dims, err := c.array(2, n, "dims", "ndims", mpierr.Dims)
	if err != nil {
		return err
	}
	out, err := topo.Balance(c.int(0), dims)
	if err != nil {
		return err
	}
	return c.store(2, n, out, "dims")
}

//spx:body MPI_Cartdim_get
func cartdimGet(c *call) error {
	return c.onCart(func(t *topo.Cart) error {
		c.setInt(1, len(t.Dims))
		return nil
	})
}

//spx:body MPI_Cart_get
func cartGet(c *call) error {
	return c.onCart(func(t *topo.Cart) error {
		periods := make([]int, len(t.Dims))
		for i, p := range t.Periods {
			if p {
				periods[i] = 1
			}
		}
		n := c.int(1)
		if err := c.store(2, n, t.Dims, "dims"); err != nil {
			return err
		}
		if err := c.store(3, n, periods, "periods"); err != nil {
			return err
		}
		return c.store(4, n, t.Coords(c.comm(0).Rank), "coords")
	})
}

//spx:body MPI_Cart_rank
func cartRank(c *call) error {
	return c.onCart(func(t *topo.Cart) error {
		coords, err := c.array(1, len(t.Dims), "coords", "maxdims", mpierr.Arg)
		if err != nil {
			return err
		}
		rank, err := t.Rank(coords)
		if err != nil {
			return err
		}
		c.setInt(2, rank)
		return nil
	})
}

//spx:body MPI_Cart_coords
func cartCoords(c *call) error {
	return c.onCart(func(t *topo.Cart) error {
		if err := c.nodeRank(c.int(1)); err != nil {
			return err
		}
		return c.store(3, c.int(2), t.Coords(c.int(1)), "coords")
	})
}

//spx:body MPI_Cart_shift
func cartShift(c *call) error {
	return c.onCart(func(t *topo.Cart) error {
		source, dest, err := t.Shift(c.comm(0).Rank, c.int(1), c.int(2))
		if err != nil {
			return err
		}
		c.setInt(3, source)
		c.setInt(4, dest)
		return nil
	})
}

// mapped stores the rank that a process would have in a topology of n processes.
func (c *call) mapped(n int, err error) error {
	if err != nil {
		return c.onComm(0, err)
	}
	rank := c.comm(0).Rank
	if rank >= n {
		rank = group.Undefined
	}
	c.setInt(4, rank)
	return nil
}

//spx:body MPI_Cart_map
func cartMap(c *call) error {
	t, err := c.grid()
	if err != nil {
		return c.mapped(0, err)
	}
	return c.mapped(t.Size(), nil)
}

//spx:body MPI_Graph_map
func graphMap(c *call) error {
	t, err := c.graph()
	if err != nil {
		return c.mapped(0, err)
	}
	return c.mapped(len(t.Index), nil)
}

//spx:body MPI_Graphdims_get
func graphdimsGet(c *call) error {
	return c.onGraph(func(t *topo.Graph) error {
		c.setInt(1, len(t.Index))
		c.setInt(2, len(t.Edges))
		return nil
	})
}

//spx:body MPI_Graph_get
func graphGet(c *call) error {
	return c.onGraph(func(t *topo.Graph) error {
		if err := c.store(3, c.int(1), t.Index, "indx"); err != nil {
			return err
		}
		return c.store(4, c.int(2), t.Edges, "edges")
	})
}

//spx:body MPI_Graph_neighbors_count
func graphNeighborsCount(c *call) error {
	return c.onGraph(func(t *topo.Graph) error {
		if err := c.nodeRank(c.int(1)); err != nil {
			return err
		}
		c.setInt(2, len(t.Of(c.int(1))))
		return nil
	})
}

//spx:body MPI_Graph_neighbors
func graphNeighbors(c *call) error {
	return c.onGraph(func(t *topo.Graph) error {
		if err := c.nodeRank(c.int(1)); err != nil {
			return err
		}
		return c.store(3, c.int(2), t.Of(c.int(1)), "neighbors")
	})
}

//spx:body MPI_Dist_graph_neighbors_count
func distGraphNeighborsCount(c *call) error {
	return onTopology(c, "distributed graph", func(t *topo.DistGraph) error {
		c.setInt(1, len(t.Sources))
		c.setInt(2, len(t.Dests))
		c.setBool(3, t.Weighted)
		return nil
	})
}

// distGraphNeighbors gives the first neighbours when there is no room for all.
//
//spx:body MPI_Dist_graph_neighbors
func distGraphNeighbors(c *call) error {
	return onTopology(c, "distributed graph", func(t *topo.DistGraph) error {
		if err := c.ends(1, t.Sources, t.SourceWeights, t.Weighted, "sources"); err != nil {
			return err
		}
		return c.ends(4, t.Dests, t.DestWeights, t.Weighted, "destinations")
	})
}

// ends stores neighbours and their weights: argument i is the room for them, the next two are the
// arrays.
func (c *call) ends(i int, ranks, weights []int, weighted bool, name string) error {
	n := c.int(i)
	if n < 0 {
		return mpierr.New(mpierr.Arg, "the length of %s is %d: it must be 0 or more", name, n)
	}
	n = min(n, len(ranks))
	if err := c.store(i+1, n, ranks[:n], name); err != nil {
		return err
	}
	if at := c.addr(i + 2); !weighted || at == c.unweighted() || at == c.weightsEmpty() {
		return nil
	}
	return c.store(i+2, n, weights[:n], "the weights of the "+name)
}
