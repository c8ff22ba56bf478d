package main

/*
#include <stdlib.h>
#include "win.h"
static inline uint32_t win_session(uintptr_t handle)
{
  const spx_win *w = (const spx_win *)spx_get(SPX_K_WIN, (const void *)handle);
  return w && w->comm ? w->comm->session : 0;
}
*/
import "C"

import (
	"sync"
	"unsafe"

	"libspx/core/attr"
	"libspx/core/group"
	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/core/win"
)

// Windows on this side of the boundary: attributes and hints (MPI-5.0, 7.7 and 12.2.7), and queries
// of them. They are made in win_make.go, and used in C (bodies/win_sync.c, rma.c). A window has a
// Go side from its first attribute, hint, MPI_Win_post or MPI_Win_start on.

type winObject struct {
	attrs *attr.List

	mu    sync.Mutex
	hints *info.Info   // guarded by mu: what was set
	group *group.Group // guarded by mu: of its processes, once it was needed
}

var (
	wins   table[winObject]
	winsMu sync.Mutex // held while a Go side is made
)

func init() {
	onFree[C.SPX_K_WIN] = wins.remove
	internals[C.SPX_IN_WIN_RANKS] = winRanks
}

// winOf returns the Go side of the window with this handle; nil when it is none.
func winOf(handle uintptr) *winObject {
	o := findObject(C.SPX_K_WIN, handle)
	if o == nil {
		return nil
	}
	winsMu.Lock()
	defer winsMu.Unlock()
	if o._go == 0 {
		o._go = C.uint32_t(wins.add(&winObject{attrs: attrs.NewList(), hints: info.New()}))
	}
	return wins.get(uint32(o._go))
}

// win returns the Go side of the window that is argument i, which the shim has checked.
func (c *call) win(i int) *winObject { return winOf(c.handle(i)) }

func (c *call) onWin(i int, err error) error { return raisedOn(C.SPX_K_WIN, c.handle(i), err) }

// winRanks finds the ranks in a window of the members of a group, for MPI_Win_post and
// MPI_Win_start.
func winRanks(c *call) error {
	o := c.win(0)
	o.mu.Lock()
	if o.group == nil {
		o.group = group.Of(membersOf(windowOf(c.handle(0)).comm)...)
	}
	all := o.group
	o.mu.Unlock()
	ranks := all.RanksOf(c.group(1))
	if ranks == nil {
		return mpierr.New(mpierr.Group, "group has a member that is not in the window's group")
	}
	c.setInts(2, ranks)
	c.setInt(3, len(ranks))
	return nil
}

//spx:body MPI_Win_set_attr
func winSetAttr(c *call) error {
	return c.setAttr(attr.Win, c.win(0).attrs, func(err error) error { return c.onWin(0, err) })
}

//spx:body MPI_Win_delete_attr
func winDeleteAttr(c *call) error {
	return c.deleteAttr(attr.Win, c.win(0).attrs, func(err error) error { return c.onWin(0, err) })
}

//spx:body MPI_Win_get_attr
func winGetAttr(c *call) error {
	if value := predefinedWinAttr(windowOf(c.handle(0)), c.int(1)); value != 0 {
		c.setHandle(2, value)
		c.setBool(3, true)
		return nil
	}
	return c.onWin(0, c.getAttr(attr.Win, c.win(0).attrs))
}

// Hints of windows and their defaults. Others are ignored, as the standard requires, and not given
// back.
var winHints = []struct {
	key, preset string
	ok          func(string) bool
}{
	{"no_locks", "false", isBool},
	{"accumulate_ordering", "rar,raw,war,waw", isAnything},
	{"accumulate_ops", "same_op_no_op", func(v string) bool {
		return v == "same_op" ||
			v == "same_op_no_op"
	}},
	{"mpi_accumulate_granularity", "0", isAnything},
	{"same_size", "false", isBool},
	{"same_disp_unit", "false", isBool},
	{"alloc_shared_noncontig", "false", isBool},
}

func isBool(v string) bool     { return v == "true" || v == "false" }
func isAnything(v string) bool { return v != "" }

//spx:body MPI_Win_set_info
func winSetInfo(c *call) error {
	in, o := c.info(1), c.win(0)
	if in == nil {
		return nil
	}
	o.setHints(in)
	return nil
}

//spx:body MPI_Win_get_info
func winGetInfo(c *call) error {
	o, in := c.win(0), info.New()
	flavor := windowOf(c.handle(0)).flavor
	o.mu.Lock()
	for _, h := range winHints {
		if h.key == "alloc_shared_noncontig" && flavor != C.MPI_WIN_FLAVOR_SHARED {
			continue
		}
		v, ok := o.hints.Get(h.key)
		if !ok {
			v = h.preset
		}
		in.Merge(info.New(h.key, v))
	}
	mergeKinds(in, C.win_session(C.uintptr_t(c.handle(0))), o.hints)
	o.mu.Unlock()
	return c.onWin(0, c.setInfo(1, in))
}

// predefinedWinAttr is the value of a predefined attribute (MPI-5.0, 12.2.6), 0 when keyval is
// none.
func predefinedWinAttr(w *C.spx_win, keyval int) uintptr {
	var value unsafe.Pointer
	switch keyval {
	case C.MPI_WIN_BASE:
		return *(*uintptr)(unsafe.Pointer(&w.base))
	case C.MPI_WIN_SIZE:
		value = unsafe.Pointer(&w.bytes)
	case C.MPI_WIN_DISP_UNIT:
		value = unsafe.Pointer(&w.unit)
	case C.MPI_WIN_CREATE_FLAVOR:
		value = unsafe.Pointer(&w.flavor)
	case C.MPI_WIN_MODEL:
		value = unsafe.Pointer(&w.model)
	}
	return uintptr(value)
}

//spx:body MPI_Win_set_name
func winSetName(c *call) error {
	name := unsafe.Slice((*byte)(unsafe.Pointer(&windowOf(c.handle(0)).name)),
		C.MPI_MAX_OBJECT_NAME)
	C.spx_lock()
	defer C.spx_unlock()
	n := copy(name[:len(name)-1], c.str(1))
	clear(name[n:])
	return nil
}

// winGetName gives MPI_WIN_NULL its own name (MPI-5.0, 8.8).
//
//spx:body MPI_Win_get_name
func winGetName(c *call) error {
	name := "MPI_WIN_NULL"
	if w := windowOf(c.handle(0)); w != nil {
		C.spx_lock()
		name = C.GoString(&w.name[0])
		C.spx_unlock()
	}
	c.setInt(2, c.setStr(1, name, C.MPI_MAX_OBJECT_NAME))
	return nil
}

//spx:body MPI_Win_get_group
func winGetGroup(c *call) error {
	w := windowOf(c.handle(0))
	h, err := groupOfComm(w.comm)
	if err == nil {
		c.setHandle(1, h)
	}
	return c.onWin(0, err)
}

// memoryOf is where this process reaches the memory of a rank by loads and stores; 0: it does not,
// or there is none.
func memoryOf(w *C.spx_win, rank int) uintptr {
	t := index(w.targets, rank)
	switch {
	case t.far != 0 || t.size == 0:
		return 0
	case rank == int(w.rank):
		return *(*uintptr)(unsafe.Pointer(&w.base))
	}
	return uintptr(unsafe.Pointer(t.here))
}

// winSharedQuery gives of windows of other flavors than shared ones what can be reached by loads
// and stores: of a window of MPI_Win_create, that is a process's own memory. What cannot be reached
// has size 0 (MPI-5.0, 13.2.3). For MPI_PROC_NULL it is the lowest rank with memory.
//
//spx:body MPI_Win_shared_query
func winSharedQuery(c *call) error {
	w, rank := windowOf(c.handle(0)), c.int(1)
	if w.flavor == C.MPI_WIN_FLAVOR_DYNAMIC {
		return c.onWin(0, mpierr.New(mpierr.RMAFlavor,
			"the window was made by MPI_Win_create_dynamic: its memory may be in many pieces"))
	}
	if rank != C.MPI_PROC_NULL && (rank < 0 || rank >= int(w.size)) {
		return c.onWin(0, mpierr.New(mpierr.Rank, "rank = %d is not a rank of the window (size %d)",
			rank, int(w.size)))
	}
	if rank == C.MPI_PROC_NULL {
		for rank = 0; rank < int(w.size) && memoryOf(w, rank) == 0; rank++ {
		}
	}
	size, unit, base := int64(0), int64(1), uintptr(0)
	if rank < int(w.size) {
		t := index(w.targets, rank)
		unit = int64(t.unit)
		if base = memoryOf(w, rank); base != 0 {
			size = int64(t.size)
		}
	}
	c.setInt64(2, size)
	c.setCount(3, unit)
	c.setHandle(4, base)
	return nil
}

// dynamicWin returns the window that is argument 0, which has to be a dynamic one.
func (c *call) dynamicWin() (*C.spx_win, error) {
	w := windowOf(c.handle(0))
	if w.flavor != C.MPI_WIN_FLAVOR_DYNAMIC {
		return nil, mpierr.New(mpierr.RMAFlavor,
			"the window was not made by MPI_Win_create_dynamic")
	}
	return w, nil
}

// attached lists what is attached to a window, with spx_lock held.
func attached(w *C.spx_win) (list []win.Segment) {
	for a := w.attached; a != nil; a = a.next {
		list = append(list, win.Segment{Base: uint64(a.base), Size: uint64(a.size)})
	}
	return list
}

//spx:body MPI_Win_attach
func winAttach(c *call) error {
	w, err := c.dynamicWin()
	if err != nil {
		return c.onWin(0, err)
	}
	base, size := c.word(1), c.int64(2)
	C.spx_lock()
	if err = win.Attach(attached(w), base, size); err == nil {
		if a := (*C.spx_attached)(C.calloc(1,
			C.size_t(unsafe.Sizeof(C.spx_attached{})))); a == nil {
			err = mpierr.New(mpierr.NoMem, "no memory to attach more memory to the window")
		} else {
			a.next, a.base, a.size = w.attached, C.uint64_t(base), C.uint64_t(size)
			w.attached = a
		}
	}
	C.spx_unlock()
	return c.onWin(0, err)
}

//spx:body MPI_Win_detach
func winDetach(c *call) error {
	w, err := c.dynamicWin()
	if err != nil {
		return c.onWin(0, err)
	}
	C.spx_lock()
	i, err := win.Detach(attached(w), c.word(1))
	if err == nil {
		at := &w.attached
		for ; i > 0; i-- {
			at = &(*at).next
		}
		found := *at
		*at = found.next
		C.free(unsafe.Pointer(found))
	}
	C.spx_unlock()
	return c.onWin(0, err)
}
