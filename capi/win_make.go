package main

/*
#include <stdlib.h>
#include <string.h>
#include "comm.h"
#include "dp.h"
#include "error.h"
#include "win.h"
static uintptr_t far_function(void) { return (uintptr_t)spx_win_far; }
*/
import "C"

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/core/win"
)

// Making and freeing windows (MPI-5.0, 12.2): package core/win decides, here is what it works with.
// What the data plane reads of a window is in spx_win (rma.h).

//spx:body MPI_Win_create
func winCreate(c *call) error {
	_, err := c.makeWindow(win.Args{Flavor: win.FromUser, Base: c.word(0), Size: c.int64(1),
		Unit: c.int64(2)}, 3, 5)
	return err
}

//spx:body MPI_Win_allocate
func winAllocate(c *call) error { return c.allocateWindow(win.Allocated) }

//spx:body MPI_Win_allocate_shared
func winAllocateShared(c *call) error { return c.allocateWindow(win.Shared) }

//spx:body MPI_Win_create_dynamic
func winCreateDynamic(c *call) error {
	_, err := c.makeWindow(win.Args{Flavor: win.Dynamic, Unit: 1}, 0, 2)
	return err
}

// allocateWindow has arguments size, disp_unit, info, comm, *baseptr, *win.
func (c *call) allocateWindow(flavor win.Flavor) error {
	w, err := c.makeWindow(win.Args{Flavor: flavor, Size: c.int64(0), Unit: c.int64(1)}, 2, 5)
	if err == nil {
		c.setHandle(4, *(*uintptr)(unsafe.Pointer(&w.base)))
	}
	return err
}

// makeWindow makes a window of the communicator behind argument in, an info object, and stores its
// handle in argument out.
func (c *call) makeWindow(a win.Args, in, out int) (*C.spx_win, error) {
	hints, over := c.info(in), c.comm(in+1)
	c.setHandle(out, C.SPX_HANDLE_WIN_NULL)
	if err := a.Check(over.Inter(), over.c.flags&C.SPX_C_FAR != 0); err != nil {
		return nil, c.onComm(in+1, err)
	}
	if hints != nil {
		v, _ := hints.Get("alloc_shared_noncontig")
		a.Apart = v == "true"
	}
	drainFreed()
	w := (*C.spx_win)(unsafe.Pointer(C.spx_new(C.SPX_K_WIN)))
	if w == nil {
		return nil, c.onComm(in+1, mpierr.New(mpierr.NoMem,
			"there is no room for another window (at most %d exist): free those that are not "+
				"used any more", 1<<C.SPX_H_INDEX_BITS))
	}
	describeWindow(w, a, over.c)
	if _, err := win.Create(a, winPeers{over}, winHost{w, over.c}); err != nil {
		return nil, c.onComm(in+1, err)
	}
	handle := uintptr(w.o.handle)
	c.setHandle(out, handle)
	if hints != nil {
		winOf(handle).setHints(hints)
	}
	return w, nil
}

// describeWindow fills in what is known of a new window.
func describeWindow(w *C.spx_win, a win.Args, over *C.spx_comm) {
	w.flavor, w.model = C.int(a.Flavor), C.MPI_WIN_UNIFIED
	w.bytes, w.unit = C.MPI_Aint(a.Size), C.int(a.Unit)
	w.rank, w.size = C.int(over.rank), C.int(over.size)
	// as a number: MPI_IN_PLACE is 1
	*(*uintptr)(unsafe.Pointer(&w.base)) = uintptr(a.Base)
	w.errh = C.spx_initial_errh()
	C.spx_ref(&w.errh.o)
}

// winPeers is core/win's Peers over the communicator that a window is made of.
type winPeers struct{ c *commObject }

func (p winPeers) Rank() int                       { return int(p.c.c.rank) }
func (p winPeers) Size() int                       { return int(p.c.c.size) }
func (p winPeers) Gather(mine, all []uint64) error { return here().gather(p.c.c, mine, all) }

// winHost is core/win's Host for a window made of communicator over.
type winHost struct {
	w    *C.spx_win
	over *C.spx_comm
}

func (h winHost) peer(rank int) C.uint32_t { return *index(h.over.peer, rank) }

// index is element i of a C array.
func index[T any](array *T, i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(array), uintptr(i)*unsafe.Sizeof(*array)))
}

func (h winHost) Near(rank int) bool {
	return h.over.flags&C.SPX_C_FAR == 0 || bool(C.spx_is_near(h.peer(rank)))
}

func (h winHost) Reads(rank int) bool { return bool(C.spx_may_read(h.peer(rank))) }

func (h winHost) Prepare() bool {
	w, n := h.w, C.size_t(h.w.size)
	w.targets = (*C.spx_target)(C.calloc(n, C.size_t(unsafe.Sizeof(*w.targets))))
	w.starts = (*C.int)(C.calloc(n, C.size_t(unsafe.Sizeof(*w.starts))))
	w.waits = (**C.spx_request)(C.calloc(n, C.size_t(unsafe.Sizeof(*w.waits))))
	return w.targets != nil && w.starts != nil && w.waits != nil && h.ownComm()
}

// ownComm makes the communicator of the window's own messages. It has the processes of over, and no
// Go side before it is revoked; its errors come back to the functions of windows.
func (h winHost) ownComm() bool {
	obj, err := newObject(C.SPX_K_COMM)
	if err != nil {
		return false
	}
	c := (*C.spx_comm)(unsafe.Pointer(obj))
	h.w.comm = c
	ranks := C.spx_ranks_share(h.over.local)
	c.session = h.over.session
	c.flags |= h.over.flags&C.SPX_C_FAR | C.SPX_C_LITE_DUP
	c.errh = &C.spx_errors_return
	C.spx_ref(&c.errh.o)
	return C.spx_comm_fill(c, h.over.rank, h.over.size, h.over.size, 0, ranks, ranks) == 0
}

func (h winHost) Context() uint64 { return world.contexts.TakeFor(1) }

func (h winHost) Name(context uint64) {
	C.spx_comm_set_ctx(h.w.comm, C.uint64_t(context))
	C.spx_ctrl_expected()
}

func (h winHost) Control(boxed bool) uint64 {
	n := C.int(0)
	if boxed {
		n = 1
	}
	return uint64(C.spx_win_control_bytes(h.w.size, n))
}

func (h winHost) Spare() win.Chunk {
	var offset C.uint64_t
	bytes := C.spx_chunk_spare(&offset)
	return win.Chunk{Offset: uint64(offset), Bytes: uint64(bytes)}
}

func (h winHost) Take(bytes uint64) (win.Chunk, win.Errno) {
	var offset, got C.uint64_t
	errno := C.spx_chunk_take(C.uint64_t(bytes), &offset, &got)
	return win.Chunk{Offset: uint64(offset), Bytes: uint64(got)}, win.Errno(errno)
}

func (h winHost) Reason(errno win.Errno) string { return C.GoString(C.strerror(C.int(errno))) }

func (h winHost) Return(p win.Chunk) {
	C.spx_chunk_give(C.uint64_t(p.Offset), C.uint64_t(p.Bytes), nil, 0)
}

func (h winHost) Map(w *win.Window) bool {
	h.note(w)
	file := &C.spx_own
	if w.Leader != int(h.w.rank) {
		var there C.uint32_t
		file = C.spx_place(h.peer(w.Leader), &there)
	}
	if h.w.external = C.bool(file != &C.spx_own); !h.w.external {
		h.w._map = C.spx_chunk_map(h.w.file_offset, h.w.file_bytes)
		return h.w._map != nil
	}
	p, err := unix.MmapPtr(int(file.fd), int64(h.w.file_offset), nil, uintptr(h.w.file_bytes),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		h.w._map = (*C.char)(p)
	}
	return err == nil
}

// note writes down which memory the window has.
func (h winHost) note(w *win.Window) {
	h.w.leader, h.w.elsewhere = C.int(w.Leader), C.bool(w.Elsewhere)
	h.w.file_offset, h.w.file_bytes, h.w.used = C.uint64_t(w.Chunk.Offset),
		C.uint64_t(w.Chunk.Bytes),
		C.uint64_t(w.Used)
}

func (h winHost) Fill(w *win.Window) {
	if h.w.am = 0; w.AM {
		h.w.am = 1
	}
	if h.w.boxed = 0; w.Boxed {
		h.w.boxed = 1
	}
	for i, from := range w.Targets {
		t := index(h.w.targets, i)
		t.proc, t.size, t.unit = h.peer(i), C.int64_t(from.Size), C.int64_t(from.Unit)
		t.base = C.uint64_t(from.Base)
		if from.Far {
			t.far = 1
		}
		if from.Here {
			t.here = index(h.w._map, int(from.At))
			t.base = C.uint64_t(uintptr(unsafe.Pointer(t.here)))
		}
	}
	if mine := index(h.w.targets, int(h.w.rank)); mine.here != nil {
		h.w.base = unsafe.Pointer(mine.here)
	}
	C.spx_win_control_set(h.w)
	if w.Boxed {
		C.spx_rma_serve(h.w)
	}
}

func (h winHost) Serve() mpierr.Class { return serveFar(h.w, 1) }

// serveFar begins (1) or ends (0) answering processes that are elsewhere.
func serveFar(w *C.spx_win, begin uint64) mpierr.Class {
	return mpierr.Class(here().callOut(C.far_function(), uint64(uintptr(unsafe.Pointer(w))), begin))
}

func (h winHost) Drop(w *win.Window, how win.End) {
	h.note(w)
	endWindow(h.w, how)
}

// endWindow frees what a window has.
func endWindow(w *C.spx_win, how win.End) {
	if (how == win.Lost || how == win.Left) && w.comm != nil && w.comm.ctx != 0 {
		// Later calls of other processes on the window that need all, or this process, fail.
		commOf(uintptr(w.comm.o.handle)).revoke()
	}
	if w.boxed != 0 && w.boxes != nil {
		C.spx_rma_serve_end(w)
	}
	if w.far != nil {
		if how == win.Left {
			return // pending answers cannot be waited for: all of it stays
		}
		serveFar(w, 0)
	}
	giveBack(w, how)
	for a := w.attached; a != nil; {
		next := a.next
		C.free(unsafe.Pointer(a))
		a = next
	}
	if w.comm != nil {
		C.spx_retire(C.SPX_K_COMM, &w.comm.o)
	}
	C.spx_unref(C.SPX_K_ERRH, &w.errh.o)
	C.free(unsafe.Pointer(w.targets))
	C.free(unsafe.Pointer(w.starts))
	C.free(unsafe.Pointer(w.waits))
	C.spx_retire(C.SPX_K_WIN, &w.o)
}

// giveBack unmaps the window's memory, and gives its chunk back if this process has taken it.
func giveBack(w *C.spx_win, how win.End) {
	again := C.bool(how == win.Together)
	switch {
	case w.rank != w.leader || w.file_bytes == 0 || how == win.Left:
	case bool(again):
		C.spx_chunk_give(w.file_offset, w.file_bytes, w._map, w.used)
	default:
		C.spx_file_drop(w.file_offset, w.file_bytes)
	}
	switch {
	case w._map == nil:
	case bool(w.external):
		C.spx_file_unmap(w._map, w.file_bytes)
	default:
		C.spx_chunk_unmap(w._map, w.file_offset, w.file_bytes, again)
	}
}

// winLink is core/win's Link on a window's own communicator.
type winLink struct{ w *C.spx_win }

const winTagFree = 3 // win_sync.c has 1 and 2

func (l winLink) Rank() int { return int(l.w.rank) }
func (l winLink) Size() int { return int(l.w.size) }

func (l winLink) Send(to int) error {
	_, err := here().exchange(l.w.comm, C.SPX_CTX_P2P, nil, []message{{to, winTagFree, nil}})
	return err
}

func (l winLink) Recv(from int) error {
	_, err := here().exchange(l.w.comm, C.SPX_CTX_P2P, []message{{from, winTagFree, nil}}, nil)
	return err
}

// freeWindow waits for the other processes and frees the window, also when some have failed: there
// is nothing more to be done with it.
func freeWindow(w *C.spx_win) error {
	how := win.Left
	defer func() { endWindow(w, how) }()
	var stop func()
	if w.boxed != 0 || w.far != nil {
		stop = func() {
			if w.boxed != 0 {
				C.spx_rma_serve_end(w)
			}
			w.boxed = 0
		}
	}
	err := win.Leave(winLink{w}, stop)
	how = win.EndOf(err)
	return err
}

// windowOf returns the window with this handle, nil if there is none.
func windowOf(handle uintptr) *C.spx_win {
	return (*C.spx_win)(unsafe.Pointer(findObject(C.SPX_K_WIN, handle)))
}

// mayFree returns why the window must not be freed.
func mayFree(w *C.spx_win) error {
	switch {
	case w == nil:
		return mpierr.New(mpierr.Win, "win is MPI_WIN_NULL or has been freed")
	case w.exposed != 0 || w.access > C.SPX_A_FENCE:
		return mpierr.New(mpierr.RMASync, "an epoch is open on the window: complete it first")
	}
	return nil
}

// winFree deletes the attributes, waits for the other processes, and frees the window.
//
//spx:body MPI_Win_free
func winFree(c *call) error {
	h := at[uintptr](c.addr(0))
	handle := *h
	if err := mayFree(windowOf(handle)); err != nil {
		return raisedOn(C.SPX_K_WIN, handle, err)
	}
	free := func(err error) error {
		if err == nil {
			err = mayFree(windowOf(handle))
		}
		if err != nil {
			return raisedOn(C.SPX_K_WIN, handle, err)
		}
		err = freeWindow(windowOf(handle))
		*h = C.SPX_HANDLE_WIN_NULL
		if err != nil {
			return mpierr.New(mpierr.ClassOf(err),
				"a process of the window has failed, or has not got the window; it is freed all "+
					"the same")
		}
		return nil
	}
	if windowOf(handle).o._go == 0 {
		return free(nil) // it has no attributes
	}
	return c.deleteAttrs(handle, winOf(handle).attrs, free)
}

// setHints notes those of in that windows support.
func (o *winObject) setHints(in *info.Info) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range winHints {
		if v, ok := in.Get(h.key); ok && h.ok(v) {
			o.hints.Merge(info.New(h.key, v))
		}
	}
	keepKinds(o.hints, in)
}
