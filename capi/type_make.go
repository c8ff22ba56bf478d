package main

/*
#include "runtime.h"
*/
import "C"

import "libspx/core/datatype"

// The constructors (MPI-5.0, 5.1.2 to 5.1.4, 5.1.7, 5.1.10), commit and free (5.1.9).

// made stores the handle of a new type into argument i.
func (c *call) made(i int, t *datatype.Type, err error) error {
	if err != nil {
		return err
	}
	o, err := newTypeObject(t)
	if err != nil {
		return err
	}
	if t.Simple() {
		if err := o.compile(); err != nil {
			o.drop()
			return err
		}
	}
	c.setHandle(i, o.handle())
	return nil
}

// lengthMax bounds the lengths of arrays that a caller can have.
const lengthMax = 1 << 40

// checkArrays makes sure that argument length, called name, is at least least, and that the arrays
// that have this length are not NULL: pairs of position and name.
func (c *call) checkArrays(length int, name string, least int64, arrays ...any) error {
	n := c.int64(length)
	if n < least || n > lengthMax {
		class := C.MPI_ERR_ARG
		if name == "count" {
			class = C.MPI_ERR_COUNT
		}
		return fail(class, "%s is %d; it must be at least %d, and the length of the arrays", name,
			n, least)
	}
	for i := 0; i < len(arrays) && n > 0; i += 2 {
		if c.addr(arrays[i].(int)) == 0 {
			return fail(C.MPI_ERR_ARG, "%s is NULL, but %s is %d", arrays[i+1], name, n)
		}
	}
	return nil
}

// displs copies an array of byte displacements: MPI_Aint and MPI_Count have the same size.
func (c *call) displs(i, n int) []int64 { return c.aints(i, n) }

func widen64(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

//spx:body MPI_Type_contiguous
func typeContiguous(c *call) error {
	old, err := c.datatype(1)
	if err != nil {
		return err
	}
	t, err := datatype.Contiguous(c.int64(0), old, c.wide())
	return c.made(2, t, err)
}

//spx:body MPI_Type_vector
func typeVector(c *call) error {
	old, err := c.datatype(3)
	if err != nil {
		return err
	}
	t, err := datatype.Vector(c.int64(0), c.int64(1), c.int64(2), old, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_create_hvector
func typeHvector(c *call) error {
	old, err := c.datatype(3)
	if err != nil {
		return err
	}
	t, err := datatype.Hvector(c.int64(0), c.int64(1), c.int64(2), old, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_indexed
func typeIndexed(c *call) error {
	if err := c.checkArrays(0, "count", 0, 1, "array_of_blocklengths", 2,
		"array_of_displacements"); err != nil {
		return err
	}
	old, err := c.datatype(3)
	if err != nil {
		return err
	}
	n := c.int(0)
	t, err := datatype.Indexed(c.counts(1, n), c.counts(2, n), old, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_create_hindexed
func typeHindexed(c *call) error {
	if err := c.checkArrays(0, "count", 0, 1, "array_of_blocklengths", 2,
		"array_of_displacements"); err != nil {
		return err
	}
	old, err := c.datatype(3)
	if err != nil {
		return err
	}
	n := c.int(0)
	t, err := datatype.Hindexed(c.counts(1, n), c.displs(2, n), old, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_create_indexed_block
func typeIndexedBlock(c *call) error {
	if err := c.checkArrays(0, "count", 0, 2, "array_of_displacements"); err != nil {
		return err
	}
	old, err := c.datatype(3)
	if err != nil {
		return err
	}
	t, err := datatype.IndexedBlock(c.int64(1), c.counts(2, c.int(0)), old, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_create_hindexed_block
func typeHindexedBlock(c *call) error {
	if err := c.checkArrays(0, "count", 0, 2, "array_of_displacements"); err != nil {
		return err
	}
	old, err := c.datatype(3)
	if err != nil {
		return err
	}
	t, err := datatype.HindexedBlock(c.int64(1), c.displs(2, c.int(0)), old, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_create_struct
func typeStruct(c *call) error {
	if err := c.checkArrays(0, "count", 0, 1, "array_of_blocklengths", 2, "array_of_displacements",
		3, "array_of_types"); err != nil {
		return err
	}
	n := c.int(0)
	types := make([]*datatype.Type, n)
	handles := c.handles(3, n)
	for i, h := range handles {
		if i > 0 && h == handles[i-1] {
			types[i] = types[i-1]
			continue
		}
		o, err := typeOf(h)
		if err != nil {
			return fail(C.MPI_ERR_TYPE, "array_of_types[%d]: %s", i, err.Error())
		}
		types[i] = o.t
	}
	t, err := datatype.Struct(c.counts(1, n), c.displs(2, n), types, c.wide())
	return c.made(4, t, err)
}

//spx:body MPI_Type_create_subarray
func typeSubarray(c *call) error {
	if err := c.checkArrays(0, "ndims", 1, 1, "array_of_sizes", 2, "array_of_subsizes", 3,
		"array_of_starts"); err != nil {
		return err
	}
	old, err := c.datatype(5)
	if err != nil {
		return err
	}
	n := c.int(0)
	t, err := datatype.Subarray(c.counts(1, n), c.counts(2, n), c.counts(3, n),
		datatype.Order(c.int(4)), old, c.wide())
	return c.made(6, t, err)
}

//spx:body MPI_Type_create_darray
func typeDarray(c *call) error {
	if err := c.checkArrays(2, "ndims", 1, 3, "array_of_gsizes", 4, "array_of_distribs", 5,
		"array_of_dargs", 6, "array_of_psizes"); err != nil {
		return err
	}
	old, err := c.datatype(8)
	if err != nil {
		return err
	}
	n := c.int(2)
	t, err := datatype.Darray(c.int64(0), c.int64(1), c.counts(3, n), widen64(c.ints(4, n)),
		widen64(c.ints(5, n)), widen64(c.ints(6, n)),
		datatype.Order(c.int(7)), old, c.wide())
	return c.made(9, t, err)
}

//spx:body MPI_Type_create_resized
func typeResized(c *call) error {
	old, err := c.datatype(0)
	if err != nil {
		return err
	}
	t, err := datatype.Resized(old, c.int64(1), c.int64(2), c.wide())
	return c.made(3, t, err)
}

// MPI_Type_dup keeps the committed state, and copies the attributes.
//
//spx:body MPI_Type_dup
func typeDup(c *call) error {
	old, err := c.typeObject(0)
	if err != nil {
		return err
	}
	o, err := newTypeObject(datatype.Dup(old.t))
	if err != nil {
		return err
	}
	if old.c.flags&C.SPX_T_COMMITTED != 0 {
		if err := o.commit(); err != nil {
			o.drop()
			return err
		}
	}
	return typeAttrs.copy(c, old, o, func(err error) error {
		if err != nil {
			o.drop()
			c.setHandle(1, datatypeNull)
			return err
		}
		c.setHandle(1, o.handle())
		return nil
	})
}

// Commit and free of the types for which C alone cannot do it (bodies/type.c).
func init() {
	internals[C.SPX_IN_TYPE_COMMIT] = typeCommit
	internals[C.SPX_IN_TYPE_FREE] = typeFree
	onFree[C.SPX_K_TYPE] = types.remove
}

func typeCommit(c *call) error {
	o, err := typeOf(*at[uintptr](c.addr(0)))
	if err != nil {
		return err
	}
	return o.commit()
}

func typeFree(c *call) error {
	o, err := typeOf(*at[uintptr](c.addr(0)))
	if err != nil {
		return err
	}
	if o.t.Predefined() {
		return fail(C.MPI_ERR_TYPE, "datatype %s is predefined and cannot be freed", o.title())
	}
	return typeAttrs.delete(c, o, func(err error) error {
		if err != nil {
			return err
		}
		o.drop()
		c.setHandle(0, datatypeNull)
		return nil
	})
}
