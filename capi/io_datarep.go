package main

/*
#include "io.h"
#include "pack.h"
static void io_pack(uintptr_t buf, int64_t count, const spx_type *t, int64_t from, int64_t to, void *p) { spx_pack((const void *)buf, count, t, from, to, p); }
static void io_unpack(uintptr_t buf, int64_t count, const spx_type *t, int64_t from, int64_t to, const void *p) { spx_unpack((void *)buf, count, t, from, to, p); }
static void io_to_external(uintptr_t buf, int64_t count, const spx_type *t, void *p) { spx_external_pack((const void *)buf, count, t, p); }
static void io_from_external(uintptr_t buf, int64_t count, const spx_type *t, const void *p) { spx_external_unpack((void *)buf, count, t, p); }
*/
import "C"

import (
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"libspx/core/datatype"
	"libspx/core/io"
	"libspx/core/mpierr"
)

// Data representations (MPI-5.0, 15.5): the form of data in a file. native and internal are as in
// memory, external32 is the standard's, others are the user's: functions that are called out
// (callout.go).

// datarep is a data representation.
type datarep struct {
	name              string
	external          bool
	read, write, size uintptr // the user's functions; 0: none
	extra             uint64
	wide              bool // read and write take MPI_Count
}

var nativeRep = &datarep{name: "native"}

var datareps = struct {
	mu    sync.Mutex
	known map[string]*datarep
}{known: map[string]*datarep{
	"native": nativeRep, "internal": {name: "internal"},
	"external32": {name: "external32", external: true},
}}

func findDatarep(name string) (*datarep, error) {
	datareps.mu.Lock()
	defer datareps.mu.Unlock()
	if r := datareps.known[name]; r != nil {
		return r, nil
	}
	return nil, mpierr.New(mpierr.UnsupportedDatarep,
		"the data representation \"%s\" is neither predefined (native, internal, external32) "+
			"nor registered", name)
}

//spx:body MPI_Register_datarep
func registerDatarep(c *call) error {
	name := c.str(0)
	if name == "" || len(name) >= C.MPI_MAX_DATAREP_STRING {
		return onNoFile(mpierr.New(mpierr.Arg,
			"the name of a data representation has 1 to %d characters, not %d",
			C.MPI_MAX_DATAREP_STRING-1, len(name)))
	}
	if c.addr(3) == 0 {
		return onNoFile(mpierr.New(mpierr.Arg,
			"dtype_file_extent_fn is NULL: the extent of a datatype in the file must be known"))
	}
	datareps.mu.Lock()
	defer datareps.mu.Unlock()
	if datareps.known[name] != nil {
		return onNoFile(mpierr.New(mpierr.DupDatarep,
			"the data representation \"%s\" is there already; choose another name", name))
	}
	datareps.known[name] = &datarep{name: name, read: c.addr(1), write: c.addr(2), size: c.addr(3),
		extra: c.word(4), wide: c.wide()}
	return nil
}

// plain reports whether data have the same form in the file as in memory.
func (r *datarep) plain() bool { return !r.external && r.size == 0 }

// extents are the sizes of basic types in a file.
type extents map[*datatype.Basic]int64

// basics collects the basic types of t.
func basics(t *datatype.Type, into extents) {
	if t.Predefined() {
		into[t.Basic()] = 0
		return
	}
	for _, k := range t.Contents().Types {
		basics(k, into)
	}
}

// inFile gives next the types as the file has them: with the sizes that their basic types have
// there.
func (r *datarep) inFile(c *call, list []*datatype.Type, next func([]*datatype.Type) error) error {
	if r.plain() {
		return next(list)
	}
	sizes := extents{}
	for _, t := range list {
		basics(t, sizes)
	}
	finish := func() error {
		out := make([]*datatype.Type, len(list))
		for i, t := range list {
			made, err := t.Retype(func(b *datatype.Basic) *datatype.Basic {
				return &datatype.Basic{ID: b.ID, Name: b.Name, Size: sizes[b], Extent: sizes[b],
					Align: 1}
			})
			if err != nil {
				return err
			}
			out[i] = made
		}
		return next(out)
	}
	if r.external {
		for b := range sizes {
			sizes[b] = b.Ext32
		}
		return finish()
	}
	todo := make([]*datatype.Basic, 0, len(sizes))
	for b := range sizes {
		todo = append(todo, b)
	}
	return r.askExtents(c, todo, sizes, finish)
}

// askExtents calls the user's function for each of todo.
func (r *datarep) askExtents(c *call, todo []*datatype.Basic, sizes extents,
	next func() error) error {
	if len(todo) == 0 {
		return next()
	}
	b := todo[0]
	handle := uint64(named().byID[b.ID].handle())
	return c.callOut(coDatarepExtent, r.size, []uint64{handle, r.extra}, func(ret int64) error {
		if ret != 0 {
			return mpierr.New(mpierr.Conversion,
				"the file extent function of the data representation \"%s\" returned %d for %s",
				r.name, ret, b.Name)
		}
		if sizes[b] = *(*int64)(unsafe.Pointer(&c.f.co_a[6])); sizes[b] <= 0 {
			return mpierr.New(mpierr.Conversion,
				"the file extent function of the data representation \"%s\" gave %s the extent %d",
				r.name, b.Name, sizes[b])
		}
		return r.askExtents(c, todo[1:], sizes, next)
	})
}

// userMemory is the user's buffer as core/io sees it.
type userMemory struct {
	addr  uintptr
	count int64
	t     *typeObject
}

func (m userMemory) Size() int64 { return m.count * m.t.t.Size() }

func (m userMemory) Load(p []byte, from int64) {
	if len(p) > 0 {
		C.io_pack(C.uintptr_t(m.addr), C.int64_t(m.count), m.t.c, C.int64_t(from),
			C.int64_t(from+int64(len(p))), unsafe.Pointer(unsafe.SliceData(p)))
	}
}

func (m userMemory) Store(p []byte, from int64) {
	if len(p) > 0 {
		C.io_unpack(C.uintptr_t(m.addr), C.int64_t(m.count), m.t.c, C.int64_t(from),
			C.int64_t(from+int64(len(p))), unsafe.Pointer(unsafe.SliceData(p)))
	}
}

func (m userMemory) Direct(from, n int64) []byte {
	if m.t.c.flags&C.SPX_T_CONTIG == 0 || n == 0 {
		return nil
	}
	return cslice[byte](m.addr+uintptr(from), int(n))
}

// checkSize refuses buffers of more bytes than 63 bits can count.
func (m userMemory) checkSize() error {
	hi, lo := bits.Mul64(uint64(m.count), uint64(m.t.t.Size()))
	if hi != 0 || lo > math.MaxInt64 {
		return mpierr.New(mpierr.Count,
			"count is %d: that many elements of %d bytes are more than any file can have", m.count,
			m.t.t.Size())
	}
	return nil
}

// toFile gives next the data of m as the file will have them; for reading, only the room for them.
func (r *datarep) toFile(c *call, m userMemory, write bool, next func(io.Memory) error) error {
	if r.plain() {
		return next(m)
	}
	return r.inFile(c, []*datatype.Type{m.t.t}, func(t []*datatype.Type) error {
		buf := make(io.Bytes, m.count*t[0].Size())
		switch {
		case len(buf) == 0 || !write:
			return next(buf)
		case r.external:
			C.io_to_external(C.uintptr_t(m.addr), C.int64_t(m.count), m.t.c,
				unsafe.Pointer(unsafe.SliceData(buf)))
			return next(buf)
		}
		return r.convert(c, true, m, buf, m.count, func() error { return next(buf) })
	})
}

// fromFile stores what was read, done bytes of buf, into m, and gives next the number of bytes of m
// that this is.
func (r *datarep) fromFile(c *call, m userMemory, from io.Memory, done int64,
	next func(int64) error) error {
	buf, converted := from.(io.Bytes)
	if !converted || len(buf) == 0 {
		return next(done)
	}
	each := int64(len(buf)) / m.count
	whole := done / each
	if !r.external {
		if whole == 0 {
			return next(0)
		}
		return r.convert(c, false, m, buf, whole,
			func() error { return next(whole * m.t.t.Size()) })
	}
	if rest := done - whole*each; rest > 0 { // part of an element: the remainder stays as it is
		last := make([]byte, (whole+1)*each)
		C.io_to_external(C.uintptr_t(m.addr), C.int64_t(whole+1), m.t.c,
			unsafe.Pointer(unsafe.SliceData(last)))
		copy(last, buf[:done])
		C.io_from_external(C.uintptr_t(m.addr), C.int64_t(whole+1), m.t.c,
			unsafe.Pointer(unsafe.SliceData(last)))
		return next(whole*m.t.t.Size() + rest*m.t.t.Size()/each)
	}
	if whole > 0 {
		C.io_from_external(C.uintptr_t(m.addr), C.int64_t(whole), m.t.c,
			unsafe.Pointer(unsafe.SliceData(buf)))
	}
	return next(whole * m.t.t.Size())
}

// convert calls a conversion function of the user's for count elements; without one, data are as in
// memory.
func (r *datarep) convert(c *call, write bool, m userMemory, buf io.Bytes, count int64,
	next func() error) error {
	fn := r.read
	if write {
		fn = r.write
	}
	if fn == 0 {
		part := userMemory{m.addr, count, m.t}
		n := min(part.Size(), int64(len(buf)))
		if write {
			part.Load(buf[:n], 0)
		} else {
			part.Store(buf[:n], 0)
		}
		return next()
	}
	if !r.wide && count > math.MaxInt32 {
		return mpierr.New(mpierr.Conversion,
			"%d elements are too many for the conversion functions of the data representation "+
				"\"%s\": register it by MPI_Register_datarep_c", count, r.name)
	}
	wide := uint64(0)
	if r.wide {
		wide = 1
	}
	args := []uint64{uint64(m.addr), uint64(m.t.handle()), uint64(count),
		uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))), 0, r.extra, wide}
	return c.callOut(coDatarepConvert, fn, args, func(ret int64) error {
		_ = buf[0] // lives until here
		if ret != 0 {
			return mpierr.New(mpierr.Conversion,
				"a conversion function of the data representation \"%s\" returned %d", r.name, ret)
		}
		return next()
	})
}
