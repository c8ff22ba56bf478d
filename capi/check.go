package main

/*
#include "basic.h"
#include "check_coll.h"

static void check_failed(int code, const char *text) { spx_fatal(code, "%s", text); }
*/
import "C"

import (
	"libspx/core/check"
	"libspx/core/mpierr"
)

// SPX_CHECK=1: package core/check judges two calls that bodies/check_coll.c has found to differ.

func init() {
	internals[C.SPX_IN_CHECK] = func(c *call) error {
		if c.addr(0) == 0 {
			sayLeft()
			return nil
		}
		return check.Compare(checkCall(at[C.spx_diag_check](c.addr(0))),
			checkCall(at[C.spx_diag_check](c.addr(1))), c.str(2))
	}
}

// checkArrived ends the job if a process of another host has begun something that does not fit what
// this process waits in: no call is left to raise an error.
func checkArrived() {
	var of [2]C.spx_diag_check
	if C.spx_checking == 0 || !bool(C.spx_check_apart(&of[0])) {
		return
	}
	if err := check.Compare(checkCall(&of[0]), checkCall(&of[1]), ""); err != nil {
		C.check_failed(C.int(mpierr.ClassOf(err)), C.CString(err.Error()))
	}
}

// checkCall reads what C has noted of a call.
func checkCall(d *C.spx_diag_check) check.Call {
	out := check.Call{Rank: int(d.rank), Seq: uint32(d.seq), Name: functionName(C.uint32_t(d.fn)),
		Kind: uint32(d.kind), Request: d.request != 0,
		Root: int(d.root), Op: uint32(d.op), Count: int64(d.count), Bytes: uint64(d.bytes)}
	if d.basic != 0 {
		b := &C.spx_basics[d.basic]
		name := "?"
		if b.name != nil {
			name = C.GoString(b.name)
		}
		out.Basic = check.Basic{Name: name, Class: int(b.cls), Size: int(b.size),
			Packed: d.basic == C.SPX_B_PACKED}
	}
	return out
}
