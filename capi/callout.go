package main

/*
#include "runtime.h"
*/
import "C"

import (
	"sync"
	"unsafe"
)

// A call-out is "call this, then come back". No Go frame may be below a user's function, which may
// leave by longjmp or call MPI again: a body that wants one called returns c.callOut(...), and goes
// on in the closure given to it, when the shim has called the function from C and come back. The
// closure's result is the body's: nil, an error, or the next call-out.
//
//	func commFree(c *call) error {
//		...
//		return c.callOut(coDeleteAttr, fn, []uint64{handle, keyval, value, extra}, func(ret int64) error {
//			if ret != 0 {
//				return fail(int(ret), "...")
//			}
//			return next()
//		})
//	}
//
// Between the two, no lock may be held, and nothing may be half done: a function that leaves by
// longjmp never comes back, and the closure is then dropped. Arguments of the call stay readable in
// the closure: the frame is the same.
//
// What waits in the middle of its work, and calls no function of the program's, is simpler with a
// runner: runner.go.
type callOut struct {
	kind uint32
	fn   uintptr
	args []uint64
	next func(ret int64) error
	run  *runner // it goes on instead
}

func (o *callOut) Error() string { return "libspx: a call-out was taken for an error" }

// Kinds of call-outs: what is called, with which args. The closure gets what the function returned.
const (
	// MPI_*_copy_attr_function: handle, keyval, extra_state, value in; see copied
	coCopyAttr = C.SPX_CO_COPY_ATTR
	// MPI_*_delete_attr_function: handle, keyval, value, extra_state
	coDeleteAttr = C.SPX_CO_DELETE_ATTR
	coGreqQuery  = C.SPX_CO_GREQ_QUERY  // MPI_Grequest_query_function: extra_state, status address
	coGreqFree   = C.SPX_CO_GREQ_FREE   // MPI_Grequest_free_function: extra_state
	coGreqCancel = C.SPX_CO_GREQ_CANCEL // MPI_Grequest_cancel_function: extra_state, complete
	// MPI_Datarep_extent_function: datatype, extra_state; co_a[6] gets the extent
	coDatarepExtent = C.SPX_CO_DATAREP_EXTENT
	// MPI_Datarep_conversion_function: userbuf, datatype, count, filebuf, position, extra_state, 1
	// for the large-count form
	coDatarepConvert = C.SPX_CO_DATAREP_CONVERT
	// a hidden C function of libspx, int64_t f(spx_word *args): waits with no Go frame below
	coInternal = C.SPX_CO_INTERNAL
)

// callOut requests that fn be called with args, and next after it. It must be the last call of a
// body.
func (c *call) callOut(kind uint32, fn uintptr, args []uint64, next func(ret int64) error) error {
	return &callOut{kind: kind, fn: fn, args: args, next: next}
}

// copied returns the results of a coCopyAttr: the value that the function stored, and its flag.
// Valid in the closure.
func (c *call) copied() (value uintptr, flag bool) {
	return *(*uintptr)(unsafe.Pointer(&c.f.co_a[6])), *(*int32)(unsafe.Pointer(&c.f.co_a[7])) != 0
}

// suspend writes the request into the frame.
func (o *callOut) suspend(f *C.spx_frame) {
	f.co = C.uint32_t(o.kind)
	*(*uintptr)(unsafe.Pointer(&f.co_fn)) = o.fn
	for i, v := range o.args {
		*(*uint64)(unsafe.Pointer(&f.co_a[i])) = v
	}
	f.cont = C.uint32_t(addContinuation(continuation{o.next, o.run}))
	if o.run != nil {
		f.cont |= C.SPX_CONT_RUNNER
	}
}

// continuation is what comes after a call-out: a function, or a runner that goes on.
type continuation struct {
	next func(int64) error
	run  *runner
}

func (k continuation) none() bool { return k.next == nil && k.run == nil }

// continuations holds what comes after the call-outs that are out. Numbers start at 1.
var continuations struct {
	mu   sync.Mutex
	list []continuation
	free []uint32
}

func addContinuation(k continuation) uint32 {
	t := &continuations
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		t.list[id-1] = k
		return id
	}
	t.list = append(t.list, k)
	return uint32(len(t.list))
}

// takeContinuation removes and returns a continuation, an empty one if there is none.
func takeContinuation(id uint32) continuation {
	id &^= C.SPX_CONT_RUNNER
	t := &continuations
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == 0 || int(id) > len(t.list) || t.list[id-1].none() {
		return continuation{}
	}
	k := t.list[id-1]
	t.list[id-1] = continuation{}
	t.free = append(t.free, id)
	return k
}

// pendingContinuations counts the call-outs that are out, or were left by longjmp and not noticed
// yet.
func pendingContinuations() int {
	continuations.mu.Lock()
	defer continuations.mu.Unlock()
	return len(continuations.list) - len(continuations.free)
}

func neverComesBack() error {
	return fail(C.MPI_ERR_INTERN,
		"a user function came back to an MPI call that a later MPI call of the same thread had "+
			"replaced "+
			"(user functions may not switch stacks and call MPI), or it came back in another "+
			"thread "+
			"than that which waited")
}
