package main

/*
#include <stdlib.h>
#include "dp.h"
#include "rma.h"
*/
import "C"

import (
	"strconv"
	"sync"
	"unsafe"

	"libspx/core/mpierr"
)

// Bodies of MPI_Alloc_mem and MPI_Free_mem (MPI-5.0, 10.2): memory of the C library, aligned to a
// cache line, or as the info key mpi_minimum_memory_alignment requires. Any memory may be sent from
// and received into, so that there is nothing more to it.

const cacheLine = 64

// askedAbove is the size in bytes from which on the available memory is checked.
const askedAbove = 16 << 20

// allocated has the addresses that MPI_Free_mem may be called with.
var allocated = struct {
	sync.Mutex
	at map[uintptr]struct{}
}{at: map[uintptr]struct{}{}}

//spx:body MPI_Alloc_mem
func allocMem(c *call) error {
	size, align := c.int64(0), uint64(cacheLine)
	if size < 0 {
		return mpierr.New(mpierr.Arg, "size = %d is negative", size)
	}
	if in := c.info(1); in != nil {
		if text, ok := in.Get("mpi_minimum_memory_alignment"); ok {
			want, err := strconv.ParseUint(text, 10, 32)
			if err != nil || want == 0 || want&(want-1) != 0 {
				return mpierr.New(mpierr.InfoValue,
					"mpi_minimum_memory_alignment = %q is not a power of two", text)
			}
			align = max(align, want)
		}
	}
	if size > askedAbove { // else the kernel would end a process when it is used
		if most := uint64(C.spx_memory_available()); uint64(size) > most {
			return mpierr.New(mpierr.NoMem,
				"no memory for size = %d bytes: the host, or the control group of the process, "+
					"can give %d", size, most)
		}
	}
	rounded := (uint64(size) + align - 1) &^ (align - 1)
	p := C.aligned_alloc(C.size_t(align), C.size_t(max(rounded, align)))
	if p == nil {
		return mpierr.New(mpierr.NoMem, "no memory for size = %d bytes", size)
	}
	allocated.Lock()
	allocated.at[uintptr(p)] = struct{}{}
	allocated.Unlock()
	c.setHandle(2, uintptr(p)) // baseptr is void *: the address of a pointer
	return nil
}

//spx:body MPI_Free_mem
func freeMem(c *call) error {
	base := c.addr(0)
	allocated.Lock()
	_, ours := allocated.at[base]
	delete(allocated.at, base)
	allocated.Unlock()
	if !ours && base != 0 {
		return fail(C.MPI_ERR_BASE,
			"base = 0x%x is not memory that MPI_Alloc_mem gave and that was not freed yet", base)
	}
	C.free(unsafe.Pointer(at[byte](base)))
	return nil
}
