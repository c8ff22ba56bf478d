package main

/*
#include "file.h"
#include "io.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"libspx/core/io"
)

// The C side's part of a file (dataplane/base/file.h): simple accesses are done there
// (bodies/file.c) and never come here.

func (f *fileObject) fh() *C.spx_fh { return (*C.spx_fh)(unsafe.Pointer(f.obj)) }

// pos is the individual pointer, in etypes. The C side (bodies/file.c) moves it, too.
func (f *fileObject) pos() *int64 { return (*int64)(unsafe.Pointer(&f.fh().pos)) }

// descriptor is what a backend has whose files the C side may read and write with system calls.
type descriptor interface{ Descriptor() int }

// publish sets which accesses the C side may do by itself (dataplane/base/file.h). With f.mu held,
// whenever something that this depends on has changed.
func (f *fileObject) publish() {
	h := f.fh()
	ways := (*uint32)(unsafe.Pointer(&h.ways))
	atomic.StoreUint32(ways, 0)
	d, ok := f.backend.(descriptor)
	if !ok || f.atomic || f.locked || !f.view.rep.plain() {
		return
	}
	first, run, stride, ok := f.view.Simple()
	if !ok {
		return
	}
	h.fd, h.etype, h.shared = C.int(d.Descriptor()), C.int64_t(f.view.Etype), f.shared.number()
	h.comm = f.comm.c
	h.first, h.run, h.stride = C.int64_t(first), C.int64_t(run), C.int64_t(stride)
	may := uint32(0)
	if f.mode&io.WriteOnly == 0 {
		may |= C.SPX_FILE_READ
	}
	if f.mode&io.ReadOnly == 0 {
		may |= C.SPX_FILE_WRITE
	}
	if f.mode&io.Sequential == 0 {
		may |= C.SPX_FILE_POINTER
	}
	if h.shared != nil {
		may |= C.SPX_FILE_SHARED
	}
	if f.alone && f.split == nil {
		may |= C.SPX_FILE_READ_ALL | C.SPX_FILE_WRITE_ALL
	}
	atomic.StoreUint32(ways, may)
}
