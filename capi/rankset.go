package main

/*
#include "mpi-ext.h"
#include "rankset.h"
*/
import "C"

import (
	"slices"
	"unsafe"

	"libspx/core/group"
	"libspx/core/mpierr"
	"libspx/ft/rankset"
)

// Bodies of MPIX_Rankset_*: sets of ranks of a communicator, for multicast (docs/multicast.md).
// What they are is ft/rankset's; the C side has their process indices, so that what is done with a
// set enters Go no more.

// rankSet is a set of ranks of the communicator with context ctx: of the remote group of an
// intercommunicator.
type rankSet struct {
	ctx C.uint64_t
	set rankset.Set
	// process index of every rank of the communicator; shared by the sets that are made of one
	// another
	procs []uint32
}

var rankSets table[rankSet]

func init() { onFree[C.SPX_K_RANKSET] = rankSets.remove }

// rankSet returns the set that is argument i, which the shim has checked.
func (c *call) rankSet(i int) *rankSet {
	return rankSets.get(uint32(findObject(C.SPX_K_RANKSET, c.handle(i))._go))
}

// setRankSet stores a new handle of s in argument i.
func (c *call) setRankSet(i int, s *rankSet) error {
	drainFreed()
	ranks := s.set.Ranks()
	o := C.spx_rankset_new(s.ctx, C.uint32_t(len(ranks)))
	if o == nil {
		return mpierr.New(mpierr.NoMem,
			"no memory for a set of %d ranks, or there are too many sets; free some", len(ranks))
	}
	procs := unsafe.Slice((*uint32)(unsafe.Pointer(o.procs)), len(ranks))
	inC := unsafe.Slice((*int32)(unsafe.Pointer(o.ranks)), len(ranks))
	for k, r := range ranks {
		inC[k] = int32(r)
		procs[k] = s.procs[r]
		if procs[k] == uint32(C.spx_me) {
			o.self = 1
		}
	}
	slices.Sort(procs)
	o.o._go = C.uint32_t(rankSets.add(s))
	c.setHandle(i, uintptr(o.o.handle))
	return nil
}

// newRankSet makes a set of ranks of the communicator that is argument 0, and stores its handle in
// argument i.
func (c *call) newRankSet(i int, ranks []int, err error) error {
	o := c.comm(0)
	if err == nil {
		err = o.RemoteGroup().CheckRanks(ranks)
	}
	if err == nil {
		procs := slices.Clone(unsafe.Slice((*uint32)(unsafe.Pointer(o.c.peer)),
			int(o.c.remote_size)))
		err = c.setRankSet(i, &rankSet{ctx: o.c.ctx, set: rankset.Of(ranks...), procs: procs})
	}
	return c.onComm(0, err)
}

//spx:body MPIX_Rankset_incl
func ranksetIncl(c *call) error {
	n := c.int(1)
	if err := c.checkRanks(n, 2); err != nil {
		return c.onComm(0, err)
	}
	return c.newRankSet(3, c.ints(2, n), nil)
}

//spx:body MPIX_Rankset_range_incl
func ranksetRangeIncl(c *call) error {
	ranges, err := c.rangeList()
	if err != nil {
		return c.onComm(0, err)
	}
	ranks, err := c.comm(0).RemoteGroup().Expand(ranges)
	return c.newRankSet(3, ranks, err)
}

//spx:body MPIX_Rankset_from_group
func ranksetFromGroup(c *call) error {
	of, g := c.comm(0).RemoteGroup(), c.group(1)
	ranks := make([]int, g.Size())
	for k := range ranks {
		if ranks[k] = of.Rank(g.At(k)); ranks[k] == group.Undefined {
			return c.onComm(0, mpierr.New(mpierr.Group,
				"rank %d of group is not a process that comm sends to: its group has %d others", k,
				of.Size()))
		}
	}
	return c.newRankSet(2, ranks, nil)
}

//spx:body MPIX_Rankset_from_bitmap
func ranksetFromBitmap(c *call) error {
	if c.addr(1) == 0 {
		return c.onComm(0, mpierr.New(mpierr.Arg, "bits is NULL"))
	}
	size := int(c.comm(0).c.remote_size)
	var ranks []int
	for k, b := range cslice[byte](c.addr(1), (size+7)/8) {
		for bit := range 8 {
			if b>>bit&1 != 0 {
				ranks = append(ranks, 8*k+bit)
			}
		}
	}
	if n := len(ranks); n > 0 && ranks[n-1] >= size {
		return c.onComm(0, mpierr.New(mpierr.Rank,
			"bits has a 1 for rank %d, but comm has ranks 0 to %d", ranks[n-1], size-1))
	}
	return c.newRankSet(2, ranks, nil)
}

// combine stores what an operation makes of two sets, arguments 0 and 1, of the same communicator.
func (c *call) combine(op func(a, b rankset.Set) rankset.Set) error {
	a, b := c.rankSet(0), c.rankSet(1)
	if a.ctx != b.ctx {
		return mpierr.New(mpierr.Arg, "set1 and set2 are sets of ranks of different communicators")
	}
	return c.setRankSet(2, &rankSet{ctx: a.ctx, set: op(a.set, b.set), procs: a.procs})
}

//spx:body MPIX_Rankset_union
func ranksetUnion(c *call) error { return c.combine(rankset.Set.Union) }

//spx:body MPIX_Rankset_intersection
func ranksetIntersection(c *call) error { return c.combine(rankset.Set.Intersect) }

//spx:body MPIX_Rankset_difference
func ranksetDifference(c *call) error { return c.combine(rankset.Set.Minus) }

//spx:body MPIX_Rankset_compare
func ranksetCompare(c *call) error {
	a, b := c.rankSet(0), c.rankSet(1)
	result := C.MPI_UNEQUAL
	if a.ctx == b.ctx && a.set.Equal(b.set) {
		result = C.MPI_IDENT
	}
	c.setInt(2, result)
	return nil
}

//spx:body MPIX_Rankset_size
func ranksetSize(c *call) error {
	c.setInt(1, c.rankSet(0).set.Len())
	return nil
}

//spx:body MPIX_Rankset_set_flags
func ranksetSetFlags(c *call) error {
	flags := c.int(1)
	if flags&^(C.MPIX_MCAST_ORDERED|C.MPIX_MCAST_ACKED) != 0 {
		return mpierr.New(mpierr.Class(C.MPI_ERR_ASSERT),
			"flags is %d, not a sum of MPIX_MCAST_ORDERED and MPIX_MCAST_ACKED", flags)
	}
	(*C.spx_rankset)(unsafe.Pointer(findObject(C.SPX_K_RANKSET, c.handle(0)))).flags = C.uint32_t(
		flags)
	return nil
}

//spx:body MPIX_Rankset_get_failed
func ranksetGetFailed(c *call) error {
	s := c.rankSet(0)
	var failed []int
	for _, r := range s.set.Ranks() {
		if C.spx_proc_dead(C.uint32_t(s.procs[r])) != 0 {
			failed = append(failed, r)
		}
	}
	return c.setRankSet(1, &rankSet{ctx: s.ctx, set: rankset.Of(failed...), procs: s.procs})
}

//spx:body MPIX_Rankset_ranks
func ranksetRanks(c *call) error {
	ranks, room := c.rankSet(0).set.Ranks(), c.int(1)
	if len(ranks) > room {
		ranks = ranks[:room]
	}
	if room > 0 && c.addr(2) == 0 {
		return mpierr.New(mpierr.Arg, "ranks is NULL, but there is to be room for %d ranks", room)
	}
	c.setInts(2, ranks)
	return nil
}

//spx:body MPIX_Rankset_free
func ranksetFree(c *call) error {
	h := at[uintptr](c.addr(0))
	C.spx_retire(C.SPX_K_RANKSET, findObject(C.SPX_K_RANKSET, *h))
	*h = 0 // MPIX_RANKSET_NULL
	return nil
}
