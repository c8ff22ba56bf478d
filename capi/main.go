// Package main is the Go half of libspx.so, built with -buildmode=c-shared, and the only package with cgo. It owns the bodies
// of the MPI functions that need the engine (`//spx:body`), their arguments and errors (call.go), and the one door through
// which C enters Go. It must not do what happens between entering and leaving a call on shared memory: that is C
// (dataplane/), and warm communication never comes here. See docs/decisions/boundary.md.
package main

/*
// The C part is an archive that make links into the library. The links that cgo makes on its own, to look at symbols, and
// the links of test programs, which call no C, do without it.
#cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#include "runtime.h"
*/
import "C"

import (
	"errors"
	"runtime/debug"
	"unsafe"

	"libspx/core/mpierr"
)

// main is never called in a c-shared library.
func main() {}

// spxGoEnter is the only way from C into Go, called by spx_go (shim/runtime.c) with asynchronous signals blocked. A frame with
// cont set comes back from a call-out.
//
//export spxGoEnter
func spxGoEnter(f *C.spx_frame) (crashed C.int) {
	defer func() {
		if r := recover(); r != nil {
			text := panicked(r, debug.Stack())
			panicText.Store(&text)
			crashed = 1
		}
	}()
	if panicIn != "" {
		panicIfAsked(f)
	}
	c := &call{f: f}
	var err error
	if id := uint32(f.cont); id != 0 {
		err = resume(id, int64(f.co_ret))
	} else if body := internals[uint32(f.fn)]; body != nil {
		err = body(c)
	} else {
		err = bodies[f.fn](c)
	}
	f.cont, f.co = 0, 0
	var out *callOut
	switch {
	case err == nil:
		f.err = C.MPI_SUCCESS
	case errors.As(err, &out):
		out.suspend(f)
	default:
		report(f, err)
	}
	return 0
}

// spxGoDrop frees the continuation of a call-out that never comes back, because the user's function left it by longjmp.
//
//export spxGoDrop
func spxGoDrop(id C.uint32_t) { takeContinuation(uint32(id)) }

// spxGoPrime is the first entry of a thread; threads of the application have entered Go and live.
//
//export spxGoPrime
func spxGoPrime(threads C.int) { adjustProcs(int(threads)) }

// internals are bodies that are no MPI functions, by SPX_IN_*: C parts of the library enter Go through them (spx_go_internal).
var internals = map[uint32]func(*call) error{}

// report hands an error of a body to the shim, which raises it.
func report(f *C.spx_frame, err error) {
	var e *mpiError
	if !errors.As(err, &e) {
		e = &mpiError{class: int(mpierr.ClassOf(err)), text: err.Error()}
	}
	setDetail(e.text)
	f.err = C.int32_t(e.class)
	f.err_kind = C.uint32_t(e.kind)
	*(*uintptr)(unsafe.Pointer(&f.err_handle)) = e.handle // never as a Go pointer: predefined handles are small numbers
}

func setDetail(text string) {
	if text == "" {
		text = " "
	}
	C.spx_detail_bytes((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
}
