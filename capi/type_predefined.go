package main

/*
#include "runtime.h"
#include "basic.h"

static int basic_pair(int value, int index) { return spx_basic_pair(value, index); }
static spx_basic *basic_row(int id) { return &spx_basics[id]; }
*/
import "C"

import (
	"fmt"
	"sync"

	"libspx/core/datatype"
)

// Predefined types without a name: Fortran kinds and value-index pairs (MPI-5.0, 6.9.4, 19.1.9),
// and types found by size.

// unnamedTypes keeps one object for each, so that the same question has the same handle for an
// answer.
var unnamedTypes struct {
	mu    sync.Mutex
	byKey map[string]*typeObject
	pairs map[int]*datatype.Basic
}

// unnamed returns the object of an unnamed predefined type; an equal type gets the same object.
func unnamed(t *datatype.Type) (*typeObject, error) {
	key := fmt.Sprint(t.Combiner(), t.Contents().Ints)
	for _, part := range t.Contents().Types {
		key += fmt.Sprint(" ", part.Combiner(), part.Basic().ID, part.Contents().Ints)
	}
	u := &unnamedTypes
	u.mu.Lock()
	defer u.mu.Unlock()
	if o := u.byKey[key]; o != nil {
		return o, nil
	}
	o, err := newTypeObject(t)
	if err != nil {
		return nil, err
	}
	o.c.flags |= C.SPX_T_PREDEFINED
	if err := o.commit(); err != nil {
		o.drop()
		return nil, err
	}
	if u.byKey == nil {
		u.byKey = map[string]*typeObject{}
	}
	u.byKey[key] = o
	return o, nil
}

// fortran stores the handle of a Fortran kind into argument i.
func (c *call) fortran(i int, comb datatype.Combiner, name string, err error, args ...int64) error {
	if err != nil {
		return err
	}
	o, err := unnamed(datatype.NewF90(comb, named().byName[name].t.Basic(), args...))
	if err != nil {
		return err
	}
	c.setHandle(i, o.handle())
	return nil
}

//spx:body MPI_Type_create_f90_real
func typeF90Real(c *call) error {
	p, r := c.int64(0), c.int64(1)
	name, err := datatype.F90Real(p, r, false)
	return c.fortran(2, datatype.CombF90Real, name, err, p, r)
}

//spx:body MPI_Type_create_f90_complex
func typeF90Complex(c *call) error {
	p, r := c.int64(0), c.int64(1)
	name, err := datatype.F90Real(p, r, true)
	return c.fortran(2, datatype.CombF90Complex, name, err, p, r)
}

//spx:body MPI_Type_create_f90_integer
func typeF90Integer(c *call) error {
	r := c.int64(0)
	name, err := datatype.F90Integer(r)
	return c.fortran(1, datatype.CombF90Integer, name, err, r)
}

//spx:body MPI_Type_match_size
func typeMatchSize(c *call) error {
	name, err := datatype.MatchSize(datatype.Typeclass(c.int(0)), c.int64(1))
	if err != nil {
		return err
	}
	c.setHandle(2, named().byName[name].handle())
	return nil
}

//spx:body MPI_Type_get_value_index
func typeGetValueIndex(c *call) error {
	value, err := c.typeObject(0)
	if err != nil {
		return err
	}
	index, err := c.typeObject(1)
	if err != nil {
		return err
	}
	o, err := pairOf(value.t, index.t)
	if err != nil {
		return err
	}
	if o == nil {
		c.setHandle(2, datatypeNull)
	} else {
		c.setHandle(2, o.handle())
	}
	return nil
}

// pairOf returns the predefined pair of two types, nil when there is none.
func pairOf(value, index *datatype.Type) (*typeObject, error) {
	if !value.Predefined() || !index.Predefined() {
		return nil, nil
	}
	v, x := value.Basic(), index.Basic()
	n := named()
	u := &unnamedTypes
	u.mu.Lock()
	id := int(C.basic_pair(C.int(v.ID), C.int(x.ID)))
	if id == 0 {
		u.mu.Unlock()
		return nil, nil
	}
	if id < len(n.byID) {
		u.mu.Unlock()
		return n.byID[id], nil
	}
	b := u.pairs[id]
	if b == nil {
		row := C.basic_row(C.int(id))
		b = &datatype.Basic{ID: id, Size: int64(row.size), Extent: int64(row.extent),
			Align: int64(row.align), Ext32: int64(row.ext32),
			Value: v, Index: x, IndexAt: int64(row.index_at)}
		if u.pairs == nil {
			u.pairs = map[int]*datatype.Basic{}
		}
		u.pairs[id] = b
	}
	u.mu.Unlock()
	return unnamed(datatype.NewPair(b, value, index))
}
