package main

/*
#include "comm.h"
#include "error.h"
static spx_errh *errh_get(uintptr_t handle) { return (spx_errh *)spx_get(SPX_K_ERRH, (const void *)handle); }
static void errh_ref(spx_errh *e) { spx_ref(&e->o); }
*/
import "C"

import (
	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
)

// Bodies of MPI_Comm_create_from_group and MPI_Intercomm_create_from_groups (MPI-5.0, 7.4.2 and
// 7.6.2): see core/comm.

// meeting opens a communicator over g for as long as its members make another one. shut has no
// effect on messages that are on their way already: the members may meet again on the same context.
func meeting(g *group.Group, ctx uint64) (o *commObject, shut func(), err error) {
	o, err = newComm(comm.NewFromGroup(g, ctx, world.me), nil)
	if err != nil {
		return nil, nil, err
	}
	return o, func() {
		C.spx_comm_set_ctx(o.c, 0)
		C.spx_retire(C.SPX_K_COMM, &o.c.o)
	}, nil
}

// finishFromGroup gives a new communicator its hints and error handler, and stores it in argument
// out.
func (c *call) finishFromGroup(m *comm.Made, info, errhandler, out int) error {
	o, err := newComm(m, nil)
	if err != nil {
		return err
	}
	o.c.session = c.sessionBehind()
	if in := c.info(info); in != nil {
		o.setHints(in)
	}
	if e := C.errh_get(C.uintptr_t(c.handle(errhandler))); e != nil {
		C.errh_ref(e)
		o.c.errh = e
		C.spx_note_returning(o.c)
	}
	c.setComm(out, o)
	return nil
}

// stringtag reads the argument stringtag.
func (c *call) stringtag(i int) (string, error) {
	tag := c.str(i)
	if len(tag) >= C.MPI_MAX_STRINGTAG_LEN {
		return "", mpierr.New(mpierr.Arg,
			"stringtag has %d characters; at most MPI_MAX_STRINGTAG_LEN - 1 = %d are possible",
			len(tag), C.MPI_MAX_STRINGTAG_LEN-1)
	}
	return tag, nil
}

//spx:body MPI_Comm_create_from_group
func commCreateFromGroup(c *call) error {
	g := c.group(0)
	if g.Size() == 0 {
		c.setComm(4, nil)
		return nil
	}
	if !g.Has(world.me) {
		return mpierr.New(mpierr.Group, "the calling process is not in the group")
	}
	tag, err := c.stringtag(1)
	if err != nil {
		return err
	}
	o, shut, err := meeting(g, comm.RendezvousContext(tag))
	if err != nil {
		return err
	}
	m, err := o.CreateFromGroup(world.contexts)
	shut()
	if err != nil {
		return err
	}
	return c.finishFromGroup(m, 2, 3, 4)
}

//spx:body MPI_Intercomm_create_from_groups
func intercommCreateFromGroups(c *call) error {
	local, remote := c.group(0), c.group(2)
	if local.Size() == 0 || remote.Size() == 0 {
		c.setComm(7, nil)
		return nil
	}
	if err := checkFromGroups(local, remote, c.int(1), c.int(3)); err != nil {
		return err
	}
	tag, err := c.stringtag(4)
	if err != nil {
		return err
	}
	o, shut, err := meeting(local, comm.RendezvousContext(tag))
	if err != nil {
		return err
	}
	defer shut()
	var pair *comm.Comm
	if local.Rank(world.me) == c.int(1) {
		ends := []ident.ProcID{local.At(c.int(1)), remote.At(c.int(3))}
		if ident.Compare(ends[0], ends[1]) > 0 {
			ends[0], ends[1] = ends[1], ends[0]
		}
		p, shutPair, err := meeting(group.Of(ends...), comm.RendezvousContext(tag+"\x00leaders"))
		if err != nil {
			return err
		}
		defer shutPair()
		pair = p.Comm
	}
	m, err := o.InterFromGroups(world.contexts, c.int(1), pair, remote)
	if err != nil {
		return err
	}
	return c.finishFromGroup(m, 5, 6, 7)
}

func checkFromGroups(local, remote *group.Group, leader, remoteLeader int) error {
	switch {
	case !local.Has(world.me):
		return mpierr.New(mpierr.Group, "the calling process is not in local_group")
	case leader < 0 || leader >= local.Size():
		return mpierr.New(mpierr.Rank, "local_leader is %d, but local_group has ranks 0 to %d",
			leader, local.Size()-1)
	case remoteLeader < 0 || remoteLeader >= remote.Size():
		return mpierr.New(mpierr.Rank, "remote_leader is %d, but remote_group has ranks 0 to %d",
			remoteLeader, remote.Size()-1)
	}
	if id, both := group.Overlap(local, remote); both {
		return mpierr.New(mpierr.Group, "the two groups must be disjoint, and %v is in both", id)
	}
	return nil
}
