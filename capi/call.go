package main

/*
#cgo CFLAGS: -std=gnu11 -DSPX_CGO -I${SRCDIR}/abi -I${SRCDIR}/boundary -I${SRCDIR}/bodies -I${SRCDIR}/../include
#cgo CFLAGS: -I${SRCDIR}/dataplane/base -I${SRCDIR}/dataplane/segment -I${SRCDIR}/dataplane/datatype -I${SRCDIR}/dataplane/progress -I${SRCDIR}/dataplane/transport -I${SRCDIR}/dataplane/transport/shm -I${SRCDIR}/dataplane/transport/tcp -I${SRCDIR}/dataplane/transport/relay -I${SRCDIR}/dataplane/transport/fabric -I${SRCDIR}/dataplane/match -I${SRCDIR}/dataplane/pt2pt -I${SRCDIR}/dataplane/coll -I${SRCDIR}/dataplane/rma -I${SRCDIR}/dataplane/part -I${SRCDIR}/dataplane/mcast -I${SRCDIR}/dataplane/clusters -I${SRCDIR}/dataplane/introspect
#include "spx.h"
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// call is one entry into Go from a generated shim: the decoded view of a C.spx_frame. Arguments are
// addressed by their position in the C prototype. Addresses of user memory are uintptr, never
// unsafe.Pointer: MPI_IN_PLACE is 1. A body that needs a function of the user's called returns
// c.callOut(...): callout.go.
type call struct {
	f *C.spx_frame
}

// mpiError is returned by a body to have an error raised: class is an MPI error class (or code),
// text has the cause, the place, and what to do. kind and handle name the object whose error
// handler is called; zero kind means the default of the function.
type mpiError struct {
	class  int
	text   string
	kind   int
	handle uintptr
}

func (e *mpiError) Error() string { return e.text }

// fail makes an error of an MPI error class.
func fail(class int, format string, args ...any) error {
	return &mpiError{class: class, text: fmt.Sprintf(format, args...)}
}

func (c *call) word(i int) uint64    { return *(*uint64)(unsafe.Pointer(&c.f.a[i])) }
func (c *call) int(i int) int        { return int(int64(c.word(i))) }
func (c *call) int64(i int) int64    { return int64(c.word(i)) }
func (c *call) addr(i int) uintptr   { return uintptr(c.word(i)) }
func (c *call) handle(i int) uintptr { return uintptr(c.word(i)) }
func (c *call) wide() bool           { return c.f.wide != 0 }

// at turns an address of C memory into a pointer, without passing through a Go pointer variable in
// between.
func at[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

func cslice[T any](addr uintptr, n int) []T {
	if addr == 0 || n <= 0 {
		return nil
	}
	return unsafe.Slice(at[T](addr), n)
}

// ints copies an int array argument.
func (c *call) ints(i, n int) []int { return widen(cslice[int32](c.addr(i), n)) }

// counts copies an array argument of counts: int, or MPI_Count in the large-count form.
func (c *call) counts(i, n int) []int64 {
	if c.wide() {
		return append([]int64(nil), cslice[int64](c.addr(i), n)...)
	}
	out := make([]int64, n)
	for k, v := range cslice[int32](c.addr(i), n) {
		out[k] = int64(v)
	}
	return out
}

// aints copies an array of MPI_Aint (or MPI_Count, of the same size).
func (c *call) aints(i, n int) []int64 {
	return append([]int64(nil), cslice[int64](c.addr(i), n)...)
}

// handles copies an array of handles.
func (c *call) handles(i, n int) []uintptr {
	return append([]uintptr(nil), cslice[uintptr](c.addr(i), n)...)
}

func widen(in []int32) []int {
	out := make([]int, len(in))
	for k, v := range in {
		out[k] = int(v)
	}
	return out
}

// str reads a NUL-terminated string argument.
func (c *call) str(i int) string { return C.GoString((*C.char)(at[C.char](c.addr(i)))) }

func (c *call) setInt(i, v int) { *at[int32](c.addr(i)) = int32(v) }

func (c *call) setBool(i int, v bool) {
	n := 0
	if v {
		n = 1
	}
	c.setInt(i, n)
}

func (c *call) setInt64(i int, v int64)    { *at[int64](c.addr(i)) = v }
func (c *call) setHandle(i int, h uintptr) { *at[uintptr](c.addr(i)) = h }

// setCount stores a count: int in the small form (MPI_UNDEFINED when it does not fit), MPI_Count in
// the large.
func (c *call) setCount(i int, v int64) {
	switch {
	case c.wide():
		c.setInt64(i, v)
	case v > math.MaxInt32:
		c.setInt(i, C.MPI_UNDEFINED)
	default:
		c.setInt(i, int(v))
	}
}

// setInts stores an int array.
func (c *call) setInts(i int, v []int) {
	dst := cslice[int32](c.addr(i), len(v))
	for k := range v {
		dst[k] = int32(v[k])
	}
}

// setStr stores a string and its NUL into a buffer of size bytes, cut if it does not fit; it
// returns the length stored.
func (c *call) setStr(i int, s string, size int) int {
	dst := cslice[byte](c.addr(i), size)
	n := copy(dst[:size-1], s)
	dst[n] = 0
	return n
}
