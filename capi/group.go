package main

/*
#include "comm.h"
static uint32_t session_behind(uintptr_t handle)
{
  const void *h = (const void *)handle;
  spx_obj *o;
  if (handle < 0x1000) return 0;
  if ((o = spx_get(SPX_K_SESSION, h))) return o->handle;
  if ((o = spx_get(SPX_K_GROUP, h))) return ((spx_plain *)o)->session;
  if ((o = spx_get(SPX_K_COMM, h))) return ((spx_comm *)o)->session;
  return 0;
}
static void set_group_session(uintptr_t group, uint32_t session)
{
  spx_obj *o = group < 0x1000 ? NULL : spx_get(SPX_K_GROUP, (const void *)group);
  if (o) ((spx_plain *)o)->session = session;
}
*/
import "C"

import (
	"unsafe"

	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
)

// Bodies of MPI_Group_* (MPI-5.0, section 7.3). Groups are core/group's; the C side of one is a
// bare object.

var groups table[group.Group]

func init() {
	onFree[C.SPX_K_GROUP] = groups.remove
	onStart(func(*startInfo) error {
		return predefine(C.SPX_K_GROUP, C.SPX_HANDLE_GROUP_EMPTY, groups.add(group.Empty))
	})
}

// groupHandle returns a new handle of a group: MPI_GROUP_EMPTY for one without members.
func groupHandle(g *group.Group) (uintptr, error) {
	if g.Size() == 0 {
		return C.SPX_HANDLE_GROUP_EMPTY, nil
	}
	o, err := newObject(C.SPX_K_GROUP)
	if err != nil {
		return 0, err
	}
	o._go = C.uint32_t(groups.add(g))
	return uintptr(o.handle), nil
}

// group returns the group that is argument i, which the shim has checked.
func (c *call) group(i int) *group.Group {
	o := findObject(C.SPX_K_GROUP, c.handle(i))
	if o == nil {
		return group.Empty
	}
	return groups.get(uint32(o._go))
}

// groupOfComm returns the handle of a new group of the processes of a communicator that has no Go
// side.
func groupOfComm(comm *C.spx_comm) (uintptr, error) {
	h, err := groupHandle(group.Of(membersOf(comm)...))
	if err != nil {
		return 0, err
	}
	C.set_group_session(C.uintptr_t(h), comm.session)
	return h, nil
}

// membersOf lists the processes of an intracommunicator, that has no Go side.
func membersOf(comm *C.spx_comm) []ident.ProcID {
	ids := make([]ident.ProcID, comm.size)
	for i, proc := range unsafe.Slice(comm.local, comm.size) {
		ids[i] = memberOf(procOf(uint32(proc)), world.me.Job)
	}
	return ids
}

// setGroup stores a new handle of g in argument i.
func (c *call) setGroup(i int, g *group.Group, err error) error {
	if err != nil {
		return err
	}
	h, err := groupHandle(g)
	if err != nil {
		return err
	}
	if s := c.sessionBehind(); s != 0 && g.Size() > 0 {
		C.set_group_session(C.uintptr_t(h), s)
	}
	c.setHandle(i, h)
	return nil
}

// sessionBehind is the handle of the session that the arguments of the call come from, 0 when there
// is none: the session itself, a communicator, or a group. The arguments that a group can come from
// are the first two.
func (c *call) sessionBehind() C.uint32_t {
	for i := range 2 {
		if s := C.session_behind(C.uintptr_t(c.handle(i))); s != 0 {
			return s
		}
	}
	return 0
}

//spx:body MPI_Group_size
func groupSize(c *call) error {
	c.setInt(1, c.group(0).Size())
	return nil
}

//spx:body MPI_Group_rank
func groupRank(c *call) error {
	c.setInt(1, c.group(0).Rank(world.me))
	return nil
}

//spx:body MPI_Group_translate_ranks
func groupTranslateRanks(c *call) error {
	n := c.int(1)
	if err := c.checkRanks(n, 2, 4); err != nil {
		return err
	}
	out, err := group.Translate(c.group(0), c.ints(2, n), c.group(3))
	if err != nil {
		return err
	}
	c.setInts(4, out)
	return nil
}

//spx:body MPI_Group_compare
func groupCompare(c *call) error {
	c.setInt(2, int(group.Compare(c.group(0), c.group(1))))
	return nil
}

//spx:body MPI_Group_union
func groupUnion(c *call) error { return c.setGroup(2, group.Union(c.group(0), c.group(1)), nil) }

//spx:body MPI_Group_intersection
func groupIntersection(c *call) error {
	return c.setGroup(2, group.Intersection(c.group(0), c.group(1)), nil)
}

//spx:body MPI_Group_difference
func groupDifference(c *call) error {
	return c.setGroup(2, group.Difference(c.group(0), c.group(1)), nil)
}

// checkRanks checks n, the length of the arrays that are the other arguments.
func (c *call) checkRanks(n int, arrays ...int) error {
	if n < 0 {
		return mpierr.New(mpierr.Arg, "n is %d: it must be 0 or more", n)
	}
	for _, i := range arrays {
		if n > 0 && c.addr(i) == 0 {
			return mpierr.New(mpierr.Arg,
				"the array for %d ranks, argument %d (ranks, ranges or ranks2), is NULL", n, i+1)
		}
	}
	return nil
}

// rankList reads arguments n, ranks of MPI_Group_incl and excl.
func (c *call) rankList() ([]int, error) {
	n := c.int(1)
	if err := c.checkRanks(n, 2); err != nil {
		return nil, err
	}
	return c.ints(2, n), nil
}

//spx:body MPI_Group_incl
func groupIncl(c *call) error {
	ranks, err := c.rankList()
	if err != nil {
		return err
	}
	g, err := c.group(0).Incl(ranks)
	return c.setGroup(3, g, err)
}

//spx:body MPI_Group_excl
func groupExcl(c *call) error {
	ranks, err := c.rankList()
	if err != nil {
		return err
	}
	g, err := c.group(0).Excl(ranks)
	return c.setGroup(3, g, err)
}

// rangeList reads arguments n, ranges of MPI_Group_range_incl and excl.
func (c *call) rangeList() ([]group.Range, error) {
	n := c.int(1)
	if err := c.checkRanks(n, 2); err != nil {
		return nil, err
	}
	flat := c.ints(2, 3*n)
	ranges := make([]group.Range, n)
	for k := range ranges {
		ranges[k] = group.Range(flat[3*k : 3*k+3])
	}
	return ranges, nil
}

//spx:body MPI_Group_range_incl
func groupRangeIncl(c *call) error {
	ranges, err := c.rangeList()
	if err != nil {
		return err
	}
	g, err := c.group(0).RangeIncl(ranges)
	return c.setGroup(3, g, err)
}

//spx:body MPI_Group_range_excl
func groupRangeExcl(c *call) error {
	ranges, err := c.rangeList()
	if err != nil {
		return err
	}
	g, err := c.group(0).RangeExcl(ranges)
	return c.setGroup(3, g, err)
}

// groupFree takes MPI_GROUP_EMPTY too: the functions that make groups return it.
//
//spx:body MPI_Group_free
func groupFree(c *call) error {
	h := at[uintptr](c.addr(0))
	if *h != C.SPX_HANDLE_GROUP_EMPTY {
		o := findObject(C.SPX_K_GROUP, *h)
		if o == nil {
			return mpierr.New(mpierr.Group, "the group is MPI_GROUP_NULL or has been freed")
		}
		C.spx_retire(C.SPX_K_GROUP, o)
	}
	*h = C.SPX_HANDLE_GROUP_NULL
	return nil
}
