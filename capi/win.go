package main

/*
#include "win.h"
static inline uint32_t win_session(uintptr_t handle)
{
  const spx_win *w = (const spx_win *)spx_get(SPX_K_WIN, (const void *)handle);
  return w && w->comm ? w->comm->session : 0;
}
static inline void *win_go_function(void) { return (void *)spx_win_go; }
*/
import "C"

import (
	"sync"

	"libspx/core/attr"
	"libspx/core/info"
	"libspx/core/mpierr"
)

// Windows on this side of the boundary: attributes and hints (MPI-5.0, 7.7 and 12.2.7). All else is C (shim/win*.c, rma.c). A
// window has a Go side from its first attribute or hint on.

type winObject struct {
	attrs *attr.List

	mu    sync.Mutex
	hints *info.Info // guarded by mu: what was set
}

var (
	wins   table[winObject]
	winsMu sync.Mutex // held while a Go side is made
)

func init() {
	buried[C.SPX_K_WIN] = wins.remove
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

// win returns the window that is argument i, which the shim has checked.
func (c *call) win(i int) *winObject { return winOf(c.handle(i)) }

func (c *call) onWin(i int, err error) error { return raisedOn(C.SPX_K_WIN, c.handle(i), err) }

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
	var value C.uintptr_t
	if C.spx_win_predefined(C.uintptr_t(c.handle(0)), C.int(c.int(1)), &value) != 0 {
		c.setHandle(2, uintptr(value))
		c.setBool(3, true)
		return nil
	}
	return c.onWin(0, c.getAttr(attr.Win, c.win(0).attrs))
}

// winFree deletes the attributes, waits for the other processes, and frees the window.
//
//spx:body MPI_Win_free
func winFree(c *call) error {
	h := at[uintptr](c.addr(0))
	handle := *h
	if code := C.spx_win_may_go(C.uintptr_t(handle)); code != 0 {
		return raisedOn(C.SPX_K_WIN, handle, mpierr.New(mpierr.Class(code), "%s", C.GoString(C.spx_detail_text())))
	}
	return c.deleteAttrs(handle, winOf(handle).attrs, func(err error) error {
		if err != nil {
			return raisedOn(C.SPX_K_WIN, handle, err)
		}
		return c.callOut(coInternal, uintptr(C.win_go_function()), []uint64{uint64(handle)}, func(code int64) error {
			*h = C.SPX_HANDLE_WIN_NULL
			if code != 0 {
				return mpierr.New(mpierr.Class(code), "a process of the window has failed, or has not got the window; it is freed all the same")
			}
			return nil
		})
	})
}

// Hints of windows and their defaults. Others are ignored, as the standard asks, and not given back.
var winHints = []struct {
	key, preset string
	ok          func(string) bool
}{
	{"no_locks", "false", isBool},
	{"accumulate_ordering", "rar,raw,war,waw", isAnything},
	{"accumulate_ops", "same_op_no_op", func(v string) bool { return v == "same_op" || v == "same_op_no_op" }},
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
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range winHints {
		if v, ok := in.Get(h.key); ok && h.ok(v) {
			o.hints.Merge(info.New(h.key, v))
		}
	}
	keepKinds(o.hints, in)
	return nil
}

//spx:body MPI_Win_get_info
func winGetInfo(c *call) error {
	o, in := c.win(0), info.New()
	flavor := C.spx_win_flavor(C.uintptr_t(c.handle(0)))
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
