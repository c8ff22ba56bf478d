package main

/*
#include "comm.h"
static inline spx_obj *engine_find(int kind, uintptr_t handle) { return spx_get((spx_kind)kind, (const void *)handle); }
*/
import "C"

import (
	"errors"
	"sync"

	"libspx/core/mpierr"
)

// table holds the Go sides of the objects of one kind. An object's C side has the index of its Go
// side (spx_obj.go), which is not 0.
type table[T any] struct {
	mu   sync.RWMutex
	objs []*T
	free []uint32
}

func (t *table[T]) add(o *T) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		t.objs[i-1] = o
		return i
	}
	t.objs = append(t.objs, o)
	return uint32(len(t.objs))
}

func (t *table[T]) get(i uint32) *T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i == 0 || int(i) > len(t.objs) {
		return nil
	}
	return t.objs[i-1]
}

func (t *table[T]) remove(i uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i == 0 || int(i) > len(t.objs) || t.objs[i-1] == nil {
		return
	}
	t.objs[i-1] = nil
	t.free = append(t.free, i)
}

// buried has, for each kind with a Go side, what removes it. C objects die whenever their last use
// ends, maybe where Go may not be entered: the data plane keeps a list of what they leave
// (spx_freed_pop), which is emptied when objects are made.
var onFree [C.SPX_K_COUNT]func(index uint32)

func drainFreed() {
	var kind, index C.uint32_t
	for C.spx_freed_pop(&kind, &index) != 0 {
		if f := onFree[kind]; f != nil {
			f(uint32(index))
		}
	}
}

// newObject makes the C side of an object, with one reference and a handle.
func newObject(kind C.spx_kind) (*C.spx_obj, error) {
	drainFreed()
	o := C.spx_new(kind)
	if o == nil {
		return nil, mpierr.New(mpierr.NoMem, "there are 2^%d objects of this kind; free some",
			C.SPX_H_INDEX_BITS)
	}
	return o, nil
}

// predefine registers a group or info object that has a handle of the standard's.
func predefine(kind C.spx_kind, handle int, index uint32) error {
	if C.spx_plain_predefine(kind, C.int(handle), C.uint32_t(index)) == 0 {
		return mpierr.New(mpierr.NoMem, "no memory for the predefined objects")
	}
	return nil
}

// findObject returns the C side of a handle, nil when it is null or not valid.
func findObject(kind C.spx_kind, handle uintptr) *C.spx_obj {
	return C.engine_find(C.int(kind), C.uintptr_t(handle))
}

// onComm makes the communicator that is argument i the object whose error handler gets err.
func (c *call) onComm(i int, err error) error { return raisedOn(C.SPX_K_COMM, c.handle(i), err) }

func raisedOn(kind int, handle uintptr, err error) error {
	var out *callOut
	if err == nil || errors.As(err, &out) {
		return err
	}
	var e *mpiError
	if !errors.As(err, &e) {
		e = &mpiError{class: int(mpierr.ClassOf(err)), text: err.Error()}
	}
	e.kind, e.handle = kind, handle
	return e
}
