package main

/*
#include "comm.h"
#include "place.h"
*/
import "C"

import (
	"slices"
	"strings"
	"unsafe"

	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/info"
	"libspx/core/mpierr"
)

// Bodies of the functions that create communicators (MPI-5.0, sections 7.4.2 and 7.6.2). They wait
// for other processes without holding any lock.

// created builds what a creation over argument 0 made and stores it in argument out.
func (c *call) created(out int, m *comm.Made, parent *commObject, err error) error {
	return c.stored(out, m, parent, false, err)
}

// stored is created; child: of a communicator that a process which takes a rank over has as well.
func (c *call) stored(out int, m *comm.Made, parent *commObject, child bool, err error) error {
	if err != nil {
		return c.onComm(0, err)
	}
	if m == nil {
		c.setComm(out, nil)
		return nil
	}
	o, err := newLiving(m, parent, child)
	if err != nil {
		return c.onComm(0, err)
	}
	c.setComm(out, o)
	return nil
}

// newLiving is newComm, but of members that are not known to be dead: the messages that make a
// communicator do not reach each of them, and a death is to be reported where it is known (ULFM:
// some members may have made it then). child: a process that takes a rank over has it, too.
func newLiving(m *comm.Made, parent *commObject, child bool) (*commObject, error) {
	m.Local = parent.living(m.Local)
	// the dead one is, and the successor follows
	replaced := child && parent.c.flags&C.SPX_C_REPLAY != 0
	o, err := newComm(m, parent)
	if err == nil && !replaced && C.spx_comm_failures(o.c) > 0 {
		C.spx_retire(C.SPX_K_COMM, &o.c.o)
		return nil, mpierr.New(errProcFailed, "a process of the new communicator has failed")
	}
	return o, err
}

// duplicated copies to o, made from old, what a duplicate has beside its groups, and stores it in
// argument out.
func (c *call) duplicated(out int, old, o *commObject, hints *info.Info, then func() error) error {
	if old.c.flags&C.SPX_C_HINTS != 0 {
		o.setHints(old.hintsNow())
	}
	if hints != nil {
		o.setHints(hints)
	}
	o.setTopo(old.topo)
	return c.copyAttrs(old.handle(), old.attrs, o.attrs, func(err error) error {
		if err != nil {
			C.spx_retire(C.SPX_K_COMM, &o.c.o)
			c.setComm(out, nil)
			return c.onComm(0, err)
		}
		c.setComm(out, o)
		return then()
	})
}

// inherits is for a function that makes a communicator of argument 0 and stores it in argument out:
// done if the process that had this rank before has made it. Else it is to be made by way of via.
// found, unless nil, is called with what was made before.
func (c *call) inherits(out int, found func(*commObject)) (via *commObject, done bool, err error) {
	o, done, via, err := c.comm(0).inherit()
	if err != nil {
		return nil, true, c.onComm(0, err)
	}
	if !done {
		return via, false, nil
	}
	if o != nil && found != nil {
		found(o)
	}
	c.setComm(out, o)
	return nil, true, nil
}

// createdChild is created, of a communicator that standbys inherit.
func (c *call) createdChild(out int, m *comm.Made, parent *commObject, err error) error {
	if err = c.stored(out, m, parent, true, err); err == nil {
		parent.bear(commOf(*at[uintptr](c.addr(out))))
	}
	return err
}

// splitOff makes a communicator of those of o that give in, ordered by key; nil for the rest.
func (o *commObject) splitOff(in bool, key int) (*commObject, error) {
	color := group.Undefined
	if in {
		color = 0
	}
	m, err := o.Split(o.dealer(), color, key, nil)
	if err != nil || m == nil {
		return nil, err
	}
	return newLiving(m, o, false)
}

// freeComm is MPI_Comm_free, for a body on a runner. A function of the program's that an attribute
// has may keep the communicator by an error.
func freeComm(handle uintptr) {
	if commOf(handle) != nil {
		here().finish((&call{}).freeComm(&handle)) //nolint:errcheck // it stays then
	}
}

func (c *call) dup(out int, hints *info.Info) error {
	via, done, err := c.inherits(out, func(o *commObject) {
		if hints != nil {
			o.setHints(hints)
		}
		o.setTopo(c.comm(0).topo)
	})
	if done {
		return err
	}
	m, err := via.Dup(via.dealer(), nil)
	if err != nil {
		return c.onComm(0, err)
	}
	return c.dupAs(out, m, hints)
}

// dupAs makes the duplicate m of argument 0.
func (c *call) dupAs(out int, m *comm.Made, hints *info.Info) error {
	old := c.comm(0)
	o, err := newLiving(m, old, true)
	if err != nil {
		return c.onComm(0, err)
	}
	return c.duplicated(out, old, o, hints, func() error {
		old.bear(o)
		return nil
	})
}

// commDup gets the duplicate's context in argument 2, unless it is still to be agreed upon
// (bodies/comm_dup.c).
//
//spx:body MPI_Comm_dup
func commDup(c *call) error {
	if ctx := uint64(c.int64(2)); ctx != 0 {
		return c.dupAs(1, c.comm(0).LiteDup(ctx), nil)
	}
	return c.dup(1, nil)
}

//spx:body MPI_Comm_dup_with_info
func commDupWithInfo(c *call) error { return c.dup(2, c.info(1)) }

//spx:body MPI_Comm_split
func commSplit(c *call) error {
	old := c.comm(0)
	via, done, err := c.inherits(3, nil)
	if done {
		return err
	}
	m, err := via.Split(via.dealer(), c.int(1), c.int(2), nil)
	return c.createdChild(3, m, old, err)
}

// commSplitType knows one level: the host, whose processes share memory (MPI_COMM_TYPE_SHARED, and
// the resource type "mpi_shared_memory"). There is no narrower one that MPI_COMM_TYPE_HW_UNGUIDED
// could give, and unknown resource types give MPI_COMM_NULL.
//
//spx:body MPI_Comm_split_type
func commSplitType(c *call) error {
	old := c.comm(0)
	color, err := 0, error(nil)
	in := c.info(3)
	switch kind := c.int(1); kind {
	case C.MPI_COMM_TYPE_SHARED:
		color = old.sharedColor()
	case C.MPI_COMM_TYPE_HW_GUIDED, C.MPI_COMM_TYPE_RESOURCE_GUIDED:
		color = old.guidedColor(in)
	case C.MPI_COMM_TYPE_HW_UNGUIDED, C.MPI_UNDEFINED:
		color = group.Undefined
	default:
		err = mpierr.New(mpierr.Arg,
			"split_type is %d, which is none of MPI_COMM_TYPE_* nor MPI_UNDEFINED", kind)
	}
	via, done, failure := c.inherits(4, nil)
	if done {
		return failure
	}
	m, err := via.Split(via.dealer(), color, c.int(2), err)
	return c.createdChild(4, m, old, err)
}

// sharedColor is the same for those that share memory with this process: those of its job on its
// host.
func (o *commObject) sharedColor() int {
	if o.c.flags&C.SPX_C_APART == 0 {
		return 0
	}
	if isReplayedElsewhere(o.c) {
		places := placesOf(o.c)
		return slices.IndexFunc(places,
			func(i C.uint32_t) bool { return hostOf(i) == hostOf(places[o.Rank]) })
	}
	return slices.IndexFunc(unsafe.Slice((*uint32)(unsafe.Pointer(o.c.local)), int(o.c.size)),
		sharesMemory)
}

// guidedColor returns the color of this process for the resource or the process set that info
// names, group.Undefined when it is not known or this process is not in it.
func (o *commObject) guidedColor(in *info.Info) int {
	if in == nil {
		return group.Undefined
	}
	if kind, ok := in.Get("mpi_hw_resource_type"); ok && kind == "mpi_shared_memory" {
		return o.sharedColor()
	}
	if name, ok := in.Get("mpi_pset_name"); ok {
		if strings.EqualFold(name, psetSelf) {
			return o.Rank
		}
		if g, err := pset(name); err == nil && g.Has(world.me) {
			return o.sharedWorld(g)
		}
	}
	return group.Undefined
}

// sharedWorld is the same for those of o that are in this process's set g: the rank of the first of
// them.
func (o *commObject) sharedWorld(g *group.Group) int {
	return slices.IndexFunc(o.Group().IDs(),
		g.Has)
}

//spx:body MPI_Comm_create
func commCreate(c *call) error {
	old := c.comm(0)
	via, done, err := c.inherits(2, nil)
	if done {
		return err
	}
	m, err := via.Create(via.dealer(), old.living(c.group(1)))
	return c.createdChild(2, m, old, err)
}

//spx:body MPI_Comm_create_group
func commCreateGroup(c *call) error {
	old := c.comm(0)
	if err := checkTag(c.int(2)); err != nil {
		return c.onComm(0, err)
	}
	m, err := old.CreateGroup(old.dealer(), old.living(c.group(1)), c.int(2))
	return c.created(3, m, old, err)
}

func checkTag(tag int) error {
	if tag < 0 || tag > C.SPX_TAG_UB {
		return mpierr.New(mpierr.Tag, "tag is %d: it must be from 0 to MPI_TAG_UB, %d", tag,
			C.SPX_TAG_UB)
	}
	return nil
}

// intercommCreate has peer_comm and remote_leader, which count on the leader alone, in arguments 2
// and 3. The leader tells the others if they are wrong.
//
//spx:body MPI_Intercomm_create
func intercommCreate(c *call) error {
	local := c.comm(0)
	leader, remote, tag := c.int(1), c.int(3), c.int(4)
	if local.Inter() {
		return c.onComm(0, mpierr.New(mpierr.Comm,
			"local_comm is an intercommunicator; an intracommunicator is needed"))
	}
	if n := local.Group().Size(); leader < 0 || leader >= n {
		return c.onComm(0, mpierr.New(mpierr.Rank,
			"local_leader is %d, but local_comm has ranks 0 to %d", leader, n-1))
	}
	var peer *comm.Comm
	failure := checkTag(tag)
	if local.Rank == leader && failure == nil {
		peer, failure = c.peerComm(2, remote)
	}
	m, err := comm.InterCreate(world.contexts, local.Comm, leader, peer, remote, tag, failure)
	return c.created(5, m, local, err)
}

// peerComm checks the leader's arguments of MPI_Intercomm_create.
func (c *call) peerComm(i, remote int) (*comm.Comm, error) {
	peer := c.comm(i)
	if peer == nil {
		return nil, mpierr.New(mpierr.Comm, "peer_comm is not a communicator at the local leader")
	}
	if n := peer.RemoteGroup().Size(); remote < 0 || remote >= n {
		return nil, mpierr.New(mpierr.Rank, "remote_leader is %d, but peer_comm has ranks 0 to %d",
			remote, n-1)
	}
	return peer.Comm, nil
}

//spx:body MPI_Intercomm_merge
func intercommMerge(c *call) error {
	old := c.comm(0)
	m, err := old.Merge(world.contexts, c.int(1) != 0)
	return c.created(2, m, old, err)
}

//spx:body MPI_Comm_compare
func commCompare(c *call) error {
	c.setInt(2, int(comm.Compare(c.comm(0).Comm, c.comm(1).Comm)))
	return nil
}

//spx:body MPI_Comm_group
func commGroup(c *call) error { return c.onComm(0, c.setGroup(1, c.comm(0).Group(), nil)) }

//spx:body MPI_Comm_remote_group
func commRemoteGroup(c *call) error {
	o := c.comm(0)
	if !o.Inter() {
		return c.onComm(0, mpierr.New(mpierr.Comm, "comm is not an intercommunicator"))
	}
	return c.onComm(0, c.setGroup(1, o.RemoteGroup(), nil))
}

// commFree deletes the attributes, which may fail and then leaves the communicator as it is, and
// retires the handle. The descriptor stays until pending operations are complete.
//
//spx:body MPI_Comm_free
func commFree(c *call) error {
	return c.freeComm(at[uintptr](c.addr(0)))
}

func (c *call) freeComm(h *uintptr) error {
	o := commOf(*h)
	if o == nil {
		return mpierr.New(mpierr.Comm, "the communicator is MPI_COMM_NULL or has been freed")
	}
	if o.isPredefined() {
		return raisedOn(C.SPX_K_COMM, *h, mpierr.New(mpierr.Comm,
			"MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed"))
	}
	return c.deleteAttrs(*h, o.attrs, func(err error) error {
		if err != nil {
			return raisedOn(C.SPX_K_COMM, *h, err)
		}
		o.noteFreed()
		C.spx_retire(C.SPX_K_COMM, &o.c.o)
		*h = C.SPX_HANDLE_COMM_NULL
		return nil
	})
}

// commDisconnect is MPI_Comm_free after all have come, and what was sent on the communicator has
// left this process. Those that are connected in no other way are independent then: no one's end is
// the others' concern (MPI-5.0, 11.10.4).
//
//spx:body MPI_Comm_disconnect
func commDisconnect(c *call) error {
	h := *at[uintptr](c.addr(0))
	o := commOf(h)
	if o == nil {
		return commFree(c)
	}
	if o.isPredefined() {
		return raisedOn(C.SPX_K_COMM, h, mpierr.New(mpierr.Comm,
			"MPI_COMM_WORLD and MPI_COMM_SELF cannot be disconnected"))
	}
	here().farewell(o)
	return commFree(c)
}

const farewellTag = -7

// farewell is a barrier that does not wait for members that are gone, or useless because the
// communicator was revoked. A process that has left it is no longer connected with those that have
// not been able to leave it yet: each announces before that it is about to. In the end what was
// sent has left this process.
func (r *runner) farewell(o *commObject) {
	remote := 0
	if o.c.inner != nil {
		remote = int(o.c.remote_size)
	}
	C.spx_comm_part(o.c)
	for _, step := range comm.Farewell(int(o.c.size), remote, o.First, int(o.c.rank)) {
		r.meet(o.c, step)
	}
	r.lookUntil(func() bool { return !bool(C.spx_anything_waits()) })
}

// meet is one step.
func (r *runner) meet(c *C.spx_comm, step comm.FarewellStep) {
	via := func(p comm.Partner) (*C.spx_comm, uint32) {
		over := c
		if c.inner != nil && !p.Remote {
			over = c.inner
		}
		return over, *(*uint32)(unsafe.Add(unsafe.Pointer(over.peer), 4*p.Rank))
	}
	to, receiver := via(step.To)
	from, sender := via(step.From)
	in := r.announce(from, 1, step.From.Rank)
	defer in.end()
	out := r.announce(to, 0, step.To.Rank)
	defer out.end()
	r.hear(in, sender)
	r.hear(out, receiver)
}

// announce begins to send a message without content to a rank, or to receive one; nil: it cannot.
func (r *runner) announce(c *C.spx_comm, receives, rank int) *batch {
	b, err := newBatch(c, C.SPX_CTX_ENGINE, receives, 1, nil)
	if err != nil {
		return nil
	}
	b.put(0, message{peer: rank, tag: farewellTag})
	r.begin(b)
	return b
}

// hear waits for a message, or until its peer is gone without a word.
func (r *runner) hear(b *batch, peer uint32) {
	r.lookUntil(func() bool {
		if b == nil || b.isOver() {
			return true
		}
		if C.spx_proc_left(C.uint32_t(peer)) == 0 {
			return false
		}
		r.progress() // what is on its way still comes first
		return true
	})
}
