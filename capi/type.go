package main

/*
#include <stdlib.h>
#include "runtime.h"
#include "basic.h"
#include "pack.h"

static spx_type *type_get(uintptr_t handle) { return (spx_type *)spx_get(SPX_K_TYPE, (const void *)handle); }
static void type_retire(spx_type *t) { spx_retire(SPX_K_TYPE, &t->o); }
static spx_type *named_type(int id) { return &spx_basic_types[id]; }
static spx_basic *basic_row(int id) { return &spx_basics[id]; }
static void *words_alloc(size_t bytes) { return malloc(bytes); }
*/
import "C"

import (
	"sync"
	"unsafe"

	"libspx/core/attr"
	"libspx/core/datatype"
)

// Datatypes on this side of the boundary: the object behind a handle is a C.spx_type, which
// communication uses and which stays until the last pending operation is done; beside it, while the
// handle is valid, there is a typeObject here.

// typeObject is the engine's half of a datatype object.
type typeObject struct {
	t     *datatype.Type
	c     *C.spx_type
	name  string
	attrs *attr.List // made by the first MPI_Type_set_attr
}

// types holds the objects of derived and unnamed types, by spx_type.o.go.
var types table[typeObject]

// What belongs to attributes of datatypes, which are not this file's: copying them in MPI_Type_dup,
// and deleting them in MPI_Type_free. Both call next with their result, after any call-outs. Set in
// an init function.
var typeAttrs = struct {
	copy   func(c *call, from, to *typeObject, next func(error) error) error
	delete func(c *call, o *typeObject, next func(error) error) error
}{
	copy:   func(_ *call, _, _ *typeObject, next func(error) error) error { return next(nil) },
	delete: func(_ *call, _ *typeObject, next func(error) error) error { return next(nil) },
}

// predefinedTypes are the objects of the named types: their handles are smaller than derived ones'.
var predefinedTypes struct {
	once   sync.Once
	byID   []*typeObject
	byName map[string]*typeObject
}

// typeOf returns the object behind a datatype handle.
func typeOf(handle uintptr) (*typeObject, error) {
	o := cType(handle)
	if o == nil {
		if handle == datatypeNull {
			return nil, fail(C.MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL")
		}
		return nil, fail(C.MPI_ERR_TYPE, "0x%x is not a datatype: it was freed or never made",
			handle)
	}
	return typeOfC(o), nil
}

const datatypeNull = 512 // MPI_DATATYPE_NULL

func typeOfC(o *C.spx_type) *typeObject {
	if o.o.handle < 0x300 { // handles of named types, as in spx_get
		return named().byID[o.basic]
	}
	return types.get(uint32(o.o._go))
}

// typeObject returns the object behind a datatype argument.
func (c *call) typeObject(i int) (*typeObject, error) { return typeOf(c.handle(i)) }

// datatype returns the datatype behind an argument, for bodies that only query it.
func (c *call) datatype(i int) (*datatype.Type, error) {
	o, err := typeOf(c.handle(i))
	if err != nil {
		return nil, err
	}
	return o.t, nil
}

// cType returns the C object behind a datatype handle, or nil.
func cType(handle uintptr) *C.spx_type { return C.type_get(C.uintptr_t(handle)) }

func (o *typeObject) handle() uintptr { return uintptr(o.c.o.handle) }

// newTypeObject makes a handle for a type. It is not committed, unless it is predefined.
func newTypeObject(t *datatype.Type) (*typeObject, error) {
	obj, err := newObject(C.SPX_K_TYPE)
	if err != nil {
		return nil, err
	}
	c := (*C.spx_type)(unsafe.Pointer(obj))
	o := &typeObject{t: t, c: c}
	c.size, c.lb, c.extent = C.int64_t(t.Size()), C.int64_t(t.LB()), C.int64_t(t.Extent())
	c.true_lb, c.true_extent = C.int64_t(t.TrueLB()), C.int64_t(t.TrueExtent())
	if b := t.Basic(); b != nil {
		c.basic = C.uint16_t(b.ID)
	}
	if t.Mixed() {
		c.basic_mixed = 1
	}
	// NULL is as good as any address for data that are further away than the first page that a
	// program may map.
	if t.Size() > 0 && uint64(t.TrueLB()) >= C.SPX_LEAST_ADDRESS {
		c.flags |= C.SPX_T_ABSOLUTE
	}
	c.o._go = C.uint32_t(types.add(o))
	return o, nil
}

// compile makes the type's layouts in C memory, where they live as long as the C object. Types that
// are quickly compiled are so when they are made: then MPI_Type_commit need not come here.
func (o *typeObject) compile() error {
	if o.c.flags&C.SPX_T_COMPILED != 0 {
		return nil
	}
	var plain, typed *C.spx_layout
	var err error
	contiguous := o.t.Contiguous()
	if !contiguous {
		plain, err = cLayout(o.t.Image(false))
	}
	if err == nil && o.t.NeedsTyped() {
		typed, err = cLayout(o.t.Image(true))
	}
	if err != nil {
		C.free(unsafe.Pointer(plain))
		return err
	}
	o.c.layout, o.c.typed = plain, typed
	if contiguous {
		o.c.flags |= C.SPX_T_CONTIG
	}
	o.c.flags |= C.SPX_T_COMPILED
	return nil
}

// commit makes the type fit for communication.
func (o *typeObject) commit() error {
	err := o.compile()
	if err == nil {
		o.c.flags |= C.SPX_T_COMMITTED
	}
	return err
}

func cLayout(words []int64) (*C.spx_layout, error) {
	n := C.size_t(len(words)) * 8
	p := (*C.spx_layout)(C.words_alloc(n))
	if p == nil {
		return nil, fail(C.MPI_ERR_NO_MEM,
			"no memory for the %d bytes of a datatype's compiled form", n)
	}
	copy(unsafe.Slice((*int64)(unsafe.Pointer(p)), len(words)), words)
	return p, nil
}

// drop takes the handle away; both halves go with the last pending operation.
func (o *typeObject) drop() {
	C.type_retire(o.c)
}

type namedTypes struct {
	byID   []*typeObject
	byName map[string]*typeObject
}

// named returns the named predefined types, by SPX_B_ number and by name.
func named() namedTypes {
	p := &predefinedTypes
	p.once.Do(func() {
		basics := make([]*datatype.Basic, C.SPX_B_COUNT_OF)
		p.byID = make([]*typeObject, len(basics))
		p.byName = map[string]*typeObject{}
		for id := 1; id < len(basics); id++ {
			basics[id] = basicOf(id, basics)
			o := &typeObject{t: datatype.NewBasic(basics[id]), c: C.named_type(C.int(id)),
				name: basics[id].Name}
			p.byID[id] = o
			p.byName[o.name] = o
		}
	})
	return namedTypes{p.byID, p.byName}
}

// basicOf reads a row of the C table. Parts of a pair stand before it.
func basicOf(id int, basics []*datatype.Basic) *datatype.Basic {
	r := C.basic_row(C.int(id))
	b := &datatype.Basic{ID: id, Name: C.GoString(r.name), Size: int64(r.size),
		Extent: int64(r.extent), Align: int64(r.align), Ext32: int64(r.ext32)}
	if r.cls == C.SPX_BC_PAIR {
		b.Value, b.Index, b.IndexAt = basics[r.value], basics[r.index], int64(r.index_at)
	}
	return b
}
