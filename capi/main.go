// Package main is the Go half of libspx.so, built with -buildmode=c-shared, and the only package
// with cgo. It owns the bodies of the MPI functions that need the engine (`//spx:body`), their
// arguments and errors (call.go), and the one door through which C enters Go. It must not do what
// happens between entering and leaving a call on shared memory: that is C (dataplane/), and warm
// communication never comes here. See docs/decisions/boundary.md.
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
	"libspx/core/tool"
)

// main is never called in a c-shared library.
func main() {}

// spxGoEnter is the only way from C into Go, called by spx_go (boundary/runtime.c) with
// asynchronous signals blocked. A frame with cont set comes back from a call-out. now is where the
// thread notes which runner it is in.
//
//export spxGoEnter
func spxGoEnter(f *C.spx_frame, now *C.uint32_t) (crashed C.int) {
	defer func() {
		if r := recover(); r != nil {
			text := panicked(r, debug.Stack())
			panicText.Store(&text)
			crashed = 1
		}
	}()
	err, ok := enter(f, (*uint32)(unsafe.Pointer(now)))
	if !ok {
		return 1
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

// enter begins a body, or goes on with it behind a call-out. It returns its error, which may be the
// next call-out; false: it has panicked on its runner.
func enter(f *C.spx_frame, now *uint32) (error, bool) {
	var work func() error
	if id := uint32(f.cont); id != 0 {
		ret := int64(f.co_ret)
		switch k := takeContinuation(id); {
		case k.run != nil:
			k.run.ret = ret
			return k.run.proceed(now)
		case k.next != nil:
			work = func() error { return k.next(ret) }
		default:
			return neverComesBack(), true
		}
	} else {
		if panicIn != "" {
			panicIfAsked(f)
		}
		body := internals[uint32(f.fn)]
		if body == nil {
			body = bodies[f.fn]
		}
		work = func() error { return body(&call{f: f}) }
	}
	if !mayWait(uint32(f.fn)) {
		return work(), true
	}
	return newRunner(work).proceed(now)
}

// proceed is goOn, and notes why the body has panicked.
func (r *runner) proceed(now *uint32) (error, bool) {
	err, ok := r.goOn(now)
	if !ok {
		panicText.Store(&r.crash)
	}
	return err, ok
}

// spxGoDrop ends what is after a call-out that never comes back, because the user's function left
// it by longjmp.
//
//export spxGoDrop
func spxGoDrop(id C.uint32_t, now *C.uint32_t) (crashed C.int) {
	if r := takeContinuation(uint32(id)).run; r != nil && !r.end((*uint32)(unsafe.Pointer(now))) {
		panicText.Store(&r.crash)
		return 1
	}
	return 0
}

// spxGoPrime is the first entry of a thread; threads of the application have entered Go and live.
//
//export spxGoPrime
func spxGoPrime(threads C.int) { adjustProcs(int(threads)) }

// internals are bodies that are no MPI functions, by SPX_IN_*: C parts of the library enter Go
// through them (spx_go_internal).
var internals = map[uint32]func(*call) error{}

// report hands an error of a body to the shim, which raises it, but for codes of MPI_T: these are
// returned.
func report(f *C.spx_frame, err error) {
	if code, ok := err.(tool.Code); ok {
		f.err = C.int32_t(code)
		return
	}
	var e *mpiError
	if !errors.As(err, &e) {
		e = &mpiError{class: int(mpierr.ClassOf(err)), text: err.Error()}
	}
	setDetail(e.text)
	f.err = C.int32_t(e.class)
	f.err_kind = C.uint32_t(e.kind)
	// never as a Go pointer: predefined handles are small numbers
	*(*uintptr)(unsafe.Pointer(&f.err_handle)) = e.handle
}

func setDetail(text string) {
	if text == "" {
		text = " "
	}
	C.spx_detail_bytes((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
}
