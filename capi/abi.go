package main

/*
#include "runtime.h"

// The optional Fortran types, with the keys that tell whether they are supported (MPI-5.0, 21.4.1).
static const struct { const char *name; MPI_Datatype type; } spx_fortran_types[] = {
  {"mpi_logical1", MPI_LOGICAL1}, {"mpi_logical2", MPI_LOGICAL2}, {"mpi_logical4", MPI_LOGICAL4}, {"mpi_logical8", MPI_LOGICAL8},
  {"mpi_logical16", MPI_LOGICAL16}, {"mpi_integer1", MPI_INTEGER1}, {"mpi_integer2", MPI_INTEGER2}, {"mpi_integer4", MPI_INTEGER4},
  {"mpi_integer8", MPI_INTEGER8}, {"mpi_integer16", MPI_INTEGER16}, {"mpi_real2", MPI_REAL2}, {"mpi_real4", MPI_REAL4},
  {"mpi_real8", MPI_REAL8}, {"mpi_real16", MPI_REAL16}, {"mpi_complex4", MPI_COMPLEX4}, {"mpi_complex8", MPI_COMPLEX8},
  {"mpi_complex16", MPI_COMPLEX16}, {"mpi_complex32", MPI_COMPLEX32}, {"mpi_double_complex", MPI_DOUBLE_COMPLEX},
};
enum { SPX_FORTRAN_TYPES = sizeof spx_fortran_types / sizeof *spx_fortran_types };
static const char *spx_fortran_name(int i) { return spx_fortran_types[i].name; }
static int64_t spx_size_of(MPI_Datatype t) { spx_type *p = (spx_type *)spx_get(SPX_K_TYPE, t); return p ? p->size : 0; }
static int64_t spx_fortran_size(int i) { return spx_size_of(spx_fortran_types[i].type); }
static int64_t spx_size_logical(void) { return spx_size_of(MPI_LOGICAL); }
static int64_t spx_size_integer(void) { return spx_size_of(MPI_INTEGER); }
static int64_t spx_size_real(void) { return spx_size_of(MPI_REAL); }
static int64_t spx_size_double(void) { return spx_size_of(MPI_DOUBLE_PRECISION); }
*/
import "C"

import (
	"strconv"
	"unsafe"

	"libspx/core/info"
)

// Bodies of MPI_Abi_get_info and of the registration of Fortran's types (MPI-5.0, 21.2 and 21.4.1).
// The Fortran types of libspx are those of compilers in their default settings: that is known from
// the start, and cannot be set.

// abiGetInfo tells the sizes of the integer types of the binary interface.
//
//spx:body MPI_Abi_get_info
func abiGetInfo(c *call) error {
	return c.describe([][2]string{
		{"mpi_aint_size", strconv.Itoa(int(unsafe.Sizeof(C.MPI_Aint(0))))},
		{"mpi_count_size", strconv.Itoa(int(unsafe.Sizeof(C.MPI_Count(0))))},
		{"mpi_offset_size", strconv.Itoa(int(unsafe.Sizeof(C.MPI_Offset(0))))},
	})
}

//spx:body MPI_Abi_get_fortran_info
func abiGetFortranInfo(c *call) error {
	size := func(n C.int64_t) string { return strconv.Itoa(int(n)) }
	pairs := [][2]string{
		{"mpi_logical_size", size(C.spx_size_logical())},
		{"mpi_integer_size", size(C.spx_size_integer())},
		{"mpi_real_size", size(C.spx_size_real())},
		{"mpi_double_precision_size", size(C.spx_size_double())},
	}
	for i := range C.int(C.SPX_FORTRAN_TYPES) {
		pairs = append(pairs, [2]string{C.GoString(C.spx_fortran_name(i)) + "_supported",
			strconv.FormatBool(C.spx_fortran_size(i) > 0)})
	}
	return c.describe(pairs)
}

//spx:body MPI_Abi_set_fortran_info
func abiSetFortranInfo(*call) error {
	return fail(C.MPI_ERR_ABI,
		"the properties of Fortran's types are known (default INTEGER, REAL and LOGICAL of 4 "+
			"bytes) and cannot be set; MPI_Abi_get_fortran_info tells them")
}

// describe stores a new info object with these keys and values in argument 0.
func (c *call) describe(pairs [][2]string) error {
	in := info.New()
	for _, p := range pairs {
		if err := in.Set(p[0], p[1]); err != nil {
			return err
		}
	}
	return c.setInfo(0, in)
}
