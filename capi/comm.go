package main

/*
#include "net.h"
#include "comm.h"
*/
import "C"

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"libspx/core/attr"
	"libspx/core/coll"
	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/core/topo"
)

// Communicators on this side of the boundary. Each has three parts: core/comm's (groups, context,
// how it is created), the descriptor that the data plane uses (spx_comm), and the engine's own
// data, here.

// commObject is a communicator. c may be used while the handle is valid, or while c is referenced.
type commObject struct {
	*comm.Comm
	c     *C.spx_comm
	attrs *attr.List

	levels sync.Once
	near   coll.Nearness // see knownLevels

	mu    sync.Mutex
	hints *info.Info    // guarded by mu; see hints
	topo  topo.Topology // virtual topology or nil, see setTopo; copied by MPI_Comm_dup
}

var comms table[commObject]

func init() {
	internals[C.SPX_IN_CONTEXTS] = func(c *call) error {
		*at[uint64](c.addr(1)) = world.contexts.Take(c.int(0))
		return nil
	}
	onStopped(func() { C.spx_comm_contexts_end() })
	onFree[C.SPX_K_COMM] = func(index uint32) {
		if o := comms.get(index); o != nil {
			ftFreed(o)
		}
		comms.remove(index)
	}
}

// comm returns the communicator that is argument i, which the shim has checked.
func (c *call) comm(i int) *commObject { return commOf(c.handle(i)) }

// commOf returns the communicator of a handle, nil when it is null or not valid.
func commOf(handle uintptr) *commObject {
	o := findObject(C.SPX_K_COMM, handle)
	if o == nil {
		return nil
	}
	if atomic.LoadUint32((*uint32)(&o._go)) == 0 {
		meetLiteDup((*C.spx_comm)(unsafe.Pointer(o)))
	}
	return comms.get(uint32(o._go))
}

var liteDupsMu sync.Mutex // held while the Go side of a lightweight duplicate is made

// meetLiteDup gives a communicator that MPI_Comm_dup has made without the engine its Go side.
func meetLiteDup(c *C.spx_comm) {
	if c.flags&C.SPX_C_LITE_DUP == 0 {
		return
	}
	liteDupsMu.Lock()
	defer liteDupsMu.Unlock()
	if c.o._go == 0 {
		o := &commObject{Comm: comm.New(&comm.Made{Ctx: uint64(c.ctx),
			Local: group.Of(membersOf(c)...), Rank: int(c.rank)}), c: c, hints: info.New()}
		o.enter()
	}
}

// enter makes a communicator known.
func (o *commObject) enter() {
	o.attrs = commAttrs(o.c)
	o.Link = link{o.c}
	o.LocalLink = o.Link
	if o.c.inner != nil {
		o.LocalLink = link{o.c.inner}
	}
	atomic.StoreUint32((*uint32)(&o.c.o._go), comms.add(o))
	C.spx_ctrl_expected()
}

func (o *commObject) handle() uintptr { return uintptr(o.c.o.handle) }

// retain keeps the descriptor alive beyond the handle until release.
func (o *commObject) retain()  { C.spx_ref(&o.c.o) }
func (o *commObject) release() { C.spx_unref(C.SPX_K_COMM, &o.c.o) }

// newComm makes a communicator, with the error handler of parent. A *Made without a context is an
// MPI_Comm_idup's.
func newComm(m *comm.Made, parent *commObject) (*commObject, error) {
	obj, err := newObject(C.SPX_K_COMM)
	if err != nil {
		return nil, err
	}
	o, err := adoptComm((*C.spx_comm)(unsafe.Pointer(obj)), m, parent)
	if err != nil {
		C.spx_retire(C.SPX_K_COMM, obj)
	}
	return o, err
}

// adoptComm fills the descriptor c of a new communicator.
func adoptComm(c *C.spx_comm, m *comm.Made, parent *commObject) (*commObject, error) {
	o := &commObject{Comm: comm.New(m), c: c, hints: info.New()}
	local, err := rankArray(m.Local, parent)
	if err != nil {
		return nil, err
	}
	peer, remoteSize := local, m.Local.Size()
	if m.Remote != nil {
		if peer, err = rankArray(m.Remote, parent); err != nil {
			C.spx_ranks_free(local)
			return nil, err
		}
		remoteSize = m.Remote.Size()
	}
	if C.spx_comm_fill(c, C.int(m.Rank), C.int(m.Local.Size()), C.int(remoteSize),
		C.uint64_t(m.Ctx), peer, local) != 0 {
		return nil, noMemory()
	}
	if parent != nil {
		c.session = parent.c.session
	}
	if parent != nil && parent.c.errh != nil {
		c.errh = parent.c.errh
		C.spx_ref(&c.errh.o)
	}
	o.setFar()
	o.enter()
	return o, nil
}

// setFar notes whether some members have no common memory file.
func (o *commObject) setFar() {
	c := o.c
	const flags = C.SPX_C_FAR | C.SPX_C_APART
	c.flags &^= flags
	if hasFar(o.Group()) || o.Inter() && hasFar(o.RemoteGroup()) || bool(C.spx_beyond_host()) &&
		slices.ContainsFunc(
			slices.Concat(unsafe.Slice((*uint32)(unsafe.Pointer(c.local)), int(c.size)),
				unsafe.Slice((*uint32)(unsafe.Pointer(c.peer)), int(c.remote_size))),
			func(i uint32) bool { return !sharesMemory(i) }) {
		c.flags |= flags
	}
	if isReplayedElsewhere(c) {
		c.flags &^= C.SPX_C_APART
		places := placesOf(c)
		if slices.ContainsFunc(places,
			func(i C.uint32_t) bool { return hostOf(i) != hostOf(places[0]) }) {
			c.flags |= C.SPX_C_APART
		}
	}
	if c.inner != nil {
		c.inner.flags = c.inner.flags&^flags | c.flags&flags
	}
}

func hostOf(proc C.uint32_t) int { return int(C.spx_proc_of(proc).host) }

func noMemory() error {
	return mpierr.New(mpierr.NoMem, "no memory for a communicator")
}

// rankArray returns the array of the process indices of a group, with one reference for the caller:
// parent's if it has the same group.
func rankArray(g *group.Group, parent *commObject) (*C.uint32_t, error) {
	if parent != nil {
		switch g {
		case parent.Group():
			return C.spx_ranks_share(parent.c.local), nil
		case parent.RemoteGroup():
			return C.spx_ranks_share(parent.c.peer), nil
		}
	}
	p := C.spx_ranks_new(C.uint32_t(g.Size()))
	if p == nil {
		return nil, noMemory()
	}
	if err := processIndices(g.IDs(), unsafe.Slice((*uint32)(unsafe.Pointer(p)),
		g.Size())); err != nil {
		C.spx_ranks_free(p)
		return nil, err
	}
	C.spx_ranks_hold(p)
	return p, nil
}

// link is core/comm's Link over the data plane.
type link struct{ c *C.spx_comm }

func (l link) Send(to, tag int, data []byte) error {
	C.spx_creation_step()
	_, err := here().exchange(l.c, C.SPX_CTX_ENGINE, nil, []message{{to, tag, data}})
	return err
}

func (l link) Recv(from, tag int, buf []byte) (int, error) {
	C.spx_creation_step()
	return here().exchange(l.c, C.SPX_CTX_ENGINE, []message{{from, tag, buf}}, nil)
}

func linkError(code C.int) error {
	if code == 0 {
		return nil
	}
	return mpierr.New(mpierr.Class(code), "%s", C.GoString(C.spx_detail_text()))
}

// setComm stores the handle of what a creation made, MPI_COMM_NULL for nil, in argument i.
func (c *call) setComm(i int, o *commObject) {
	if o == nil {
		c.setHandle(i, C.SPX_HANDLE_COMM_NULL)
		return
	}
	c.setHandle(i, o.handle())
}
