package main

/*
#include <stdlib.h>
#include "ckpt.h"
static uintptr_t ckpt_pack_function(void) { return (uintptr_t)spx_ckpt_pack; }
*/
import "C"

import (
	"unsafe"

	"libspx/ckpt"
)

// Memory of checkpoints. Parts are C memory: there may be none left, which is no fault of the
// engine's, messages may still use it when a wait has been left, and it need not be cleared.

// checkpointBuffer is memory of the program's.
type checkpointBuffer struct {
	at    uintptr
	count int64
	typ   *C.spx_type // referenced
}

// checkpointBuffer is what three arguments state. Its datatype is referenced until release.
func (c *call) checkpointBuffer(buf, count, datatype int) *checkpointBuffer {
	b := checkpointBuffer{c.addr(buf), c.int64(count), cType(c.handle(datatype))}
	return b.again()
}

// again is the same memory, to be released by itself.
func (b *checkpointBuffer) again() *checkpointBuffer {
	C.spx_ref(&b.typ.o)
	same := *b
	return &same
}

func (b *checkpointBuffer) release() { C.spx_unref(C.SPX_K_TYPE, &b.typ.o) }

type checkpointHeap struct{}

func (checkpointHeap) Alloc(bytes int64) []byte {
	p := C.malloc(C.size_t(bytes))
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), int(bytes))
}

func (checkpointHeap) Free(part []byte) { C.free(unsafe.Pointer(unsafe.SliceData(part))) }

func (checkpointHeap) Release(b ckpt.Buffer) { b.(*checkpointBuffer).release() }

// Pack copies by a call-out: the copying may take long, and signals are blocked in the engine.
func (checkpointHeap) Pack(all []ckpt.Packing) {
	if len(all) == 0 {
		return
	}
	room := C.calloc(C.size_t(len(all)), C.size_t(unsafe.Sizeof(C.spx_ckpt_packing{})))
	defer C.free(room)
	list := unsafe.Slice((*C.spx_ckpt_packing)(room), len(all))
	for i, p := range all {
		b := p.From.(*checkpointBuffer)
		list[i] = C.spx_ckpt_packing{
			to:    C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(p.To)))),
			buf:   C.uintptr_t(b.at),
			count: C.int64_t(b.count), bytes: C.int64_t(len(p.To)), _type: b.typ,
		}
	}
	here().callOut(C.ckpt_pack_function(), uint64(uintptr(room)), uint64(len(all)))
}
