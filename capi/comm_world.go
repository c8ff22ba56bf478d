package main

/*
#include "comm.h"
#include "error.h"
#include "share.h"
*/
import "C"

import (
	"encoding/binary"
	"slices"
	"strconv"

	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
)

// MPI_COMM_WORLD and MPI_COMM_SELF: from MPI_Init to MPI_Finalize.

func init() {
	onStart(startWorld)
	onStop(func(c *call, next func() error) error {
		self := commOf(C.SPX_HANDLE_COMM_SELF)
		return c.deleteAttrs(C.SPX_HANDLE_COMM_SELF, self.attrs, func(err error) error {
			if err != nil {
				return err
			}
			return next()
		})
	})
	onStopped(stopWorld)
}

// startWorld makes MPI_COMM_WORLD and MPI_COMM_SELF.
func startWorld(s *startInfo) error {
	job := binary.LittleEndian.Uint64(s.JobID[:8])
	ids := make([]ident.ProcID, len(s.World))
	world.index = map[ident.ProcID]uint32{}
	for rank, proc := range s.World {
		ids[rank] = ident.ProcID{Job: job, World: s.WorldID, Rank: uint32(rank),
			Incarnation: uint32(procOf(proc).incarnation)}
		world.index[ids[rank]] = proc
	}
	world.me, world.proc, world.origin = ids[s.Rank], s.Proc, s.Origin
	working := group.Of(ids[:s.Ranks]...)
	if C.spx_set.wrap != 0 {
		comm.BeginLate()
	}
	world.contexts = comm.NewContexts(s.Origin, uint32(procOf(s.Proc).serial))
	world.contexts.OnTakeFor = func(ctx uint64) { C.spx_share_offer(C.uint64_t(ctx)) }
	C.spx_comm_start()
	rank := max(working.Rank(world.me), 0) // a standby has none yet
	w, err := predefineComm(C.SPX_HANDLE_COMM_WORLD, C.SPX_C_WORLD, "MPI_COMM_WORLD",
		&comm.Made{Ctx: comm.WorldContext(s.Origin, uint32(procOf(s.World[0]).serial)),
			Local: working, Rank: rank})
	if err != nil {
		return err
	}
	self, err := predefineComm(C.SPX_HANDLE_COMM_SELF, C.SPX_C_SELF, "MPI_COMM_SELF",
		comm.NewFromGroup(group.Of(world.me),
			comm.SelfContext(s.Origin, uint32(procOf(s.Proc).serial)), world.me))
	if err != nil {
		return err
	}
	C.spx_world, C.spx_self = w.c, self.c
	setPredefinedAttributes(s)
	return startStandbys(s, group.Of(ids...))
}

func predefineComm(handle int, flags C.uint32_t, name string, m *comm.Made) (*commObject, error) {
	c := C.spx_comm_predefine(C.int(handle), flags)
	if c == nil {
		return nil, noMemory()
	}
	for k := range name {
		c.name[k] = C.char(name[k])
	}
	o, err := adoptComm(c, m, nil)
	if err != nil {
		return nil, err
	}
	c.errh = C.spx_initial_errh()
	C.spx_ref(&c.errh.o)
	return o, nil
}

// setPredefinedAttributes gives the attributes of MPI_COMM_WORLD their values (MPI-5.0, section
// 9.1.2). The processes of a host read one clock, which began when that host did: clocks of several
// hosts are not synchronized. Any number of processes can be spawned; MPI_UNIVERSE_SIZE, which
// programs take for the intended number, is the number of processors or twice that of the processes
// so far, unless the user has set it.
func setPredefinedAttributes(s *startInfo) {
	v := &C.spx_attr_values
	v.wtime_is_global = 0
	if !slices.ContainsFunc(s.World,
		func(proc uint32) bool { return procOf(proc).host != C.spx_segment.host }) {
		v.wtime_is_global = 1
	}
	if v.universe_size = C.int(C.spx_segment.universe_size); v.universe_size == 0 {
		v.universe_size = C.int(max(2*s.ThisHost, s.Processor))
	}
	v.appnum = -1
	if n, err := strconv.Atoi(getenv("SPX_APPNUM")); err == nil && n >= 0 {
		v.appnum = C.int(n)
	} else if launched.joined {
		v.appnum = C.int(launched.appnum)
	}
}

// stopWorld takes the predefined communicators away. Other objects stay: a program may still free
// info objects.
func stopWorld() {
	C.spx_world, C.spx_self = nil, nil
	for _, h := range []C.int{C.SPX_HANDLE_COMM_WORLD, C.SPX_HANDLE_COMM_SELF} {
		if o := commOf(uintptr(h)); o != nil {
			comms.remove(uint32(o.c.o._go))
		}
		C.spx_comm_forget(h)
	}
}

// isPredefined reports whether a communicator may not be freed.
func (o *commObject) isPredefined() bool {
	return o.c.flags&(C.SPX_C_WORLD|C.SPX_C_SELF|C.SPX_C_IOP) != 0
}
