package main

/*
#include "runtime.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"

	"libspx/core/datatype"
)

// How a type was made (MPI-5.0, 5.1.13), and its name (7.8).

// envelope returns the object and contents of the datatype of argument 0. The small forms cannot
// give the large counts of types that were made by a large-count constructor.
func (c *call) envelope(large bool) (*typeObject, datatype.Contents, error) {
	o, err := c.typeObject(0)
	if err != nil {
		return nil, datatype.Contents{}, err
	}
	k := o.t.Contents()
	if !large && len(k.Counts) > 0 {
		return nil, k, fail(C.MPI_ERR_TYPE,
			"the datatype was made with large counts, which only the _c form of this function "+
				"can give")
	}
	return o, k, nil
}

//spx:body MPI_Type_get_envelope
func typeGetEnvelope(c *call) error {
	o, k, err := c.envelope(false)
	if err != nil {
		return err
	}
	c.setInt(1, len(k.Ints))
	c.setInt(2, len(k.Addrs))
	c.setInt(3, len(k.Types))
	c.setInt(4, int(o.t.Combiner()))
	return nil
}

//spx:body MPI_Type_get_envelope_c
func typeGetEnvelopeC(c *call) error {
	o, k, err := c.envelope(true)
	if err != nil {
		return err
	}
	c.setInt64(1, int64(len(k.Ints)))
	c.setInt64(2, int64(len(k.Addrs)))
	c.setInt64(3, int64(len(k.Counts)))
	c.setInt64(4, int64(len(k.Types)))
	c.setInt(5, int(o.t.Combiner()))
	return nil
}

//spx:body MPI_Type_get_contents
func typeGetContents(c *call) error {
	o, k, err := c.envelope(false)
	if err != nil {
		return err
	}
	return c.contents(o, k, []space{{"max_integers", 1, len(k.Ints), 4},
		{"max_addresses", 2, len(k.Addrs), 5}, {"max_datatypes", 3, len(k.Types), 6}})
}

//spx:body MPI_Type_get_contents_c
func typeGetContentsC(c *call) error {
	o, k, err := c.envelope(true)
	if err != nil {
		return err
	}
	err = c.contents(o, k, []space{{"max_integers", 1, len(k.Ints), 5},
		{"max_addresses", 2, len(k.Addrs), 6}, {"max_datatypes", 4, len(k.Types), 8},
		{"max_large_counts", 3, len(k.Counts), 7}})
	if err == nil {
		copy(cslice[int64](c.addr(7), len(k.Counts)), k.Counts)
	}
	return err
}

// space is an array of the caller's: the name and position of the argument with its length, the
// needed length, and the position of the array.
type space struct {
	name       string
	max        int
	need, into int
}

// contents stores integers, addresses and datatypes into the first three arrays.
func (c *call) contents(o *typeObject, k datatype.Contents, to []space) error {
	if o.t.Combiner() == datatype.Named {
		return fail(C.MPI_ERR_TYPE,
			"%s is a predefined datatype, which was not made by a constructor", o.title())
	}
	for _, s := range to {
		if have := c.int64(s.max); have < int64(s.need) {
			return fail(C.MPI_ERR_ARG,
				"%s is %d, but the datatype has %d (see MPI_Type_get_envelope)", s.name, have,
				s.need)
		}
		if s.need > 0 && c.addr(s.into) == 0 {
			return fail(C.MPI_ERR_ARG, "%s is NULL, but %d values go into it",
				strings.Replace(s.name, "max_", "array_of_", 1), s.need)
		}
	}
	handles := make([]uintptr, len(k.Types))
	for i, t := range k.Types {
		old, err := objectFor(t)
		if err != nil {
			for _, h := range handles[:i] {
				if old, err := typeOf(h); err == nil && !old.t.Predefined() {
					old.drop()
				}
			}
			return err
		}
		handles[i] = old.handle()
	}
	ints := cslice[int32](c.addr(to[0].into), len(k.Ints))
	for i := range ints {
		ints[i] = int32(k.Ints[i])
	}
	copy(cslice[int64](c.addr(to[1].into), len(k.Addrs)), k.Addrs)
	copy(cslice[uintptr](c.addr(to[2].into), len(handles)), handles)
	return nil
}

// objectFor returns an object for a type that another is made of: the predefined one, or a new one,
// which the user frees.
func objectFor(t *datatype.Type) (*typeObject, error) {
	switch t.Combiner() {
	case datatype.Named:
		return named().byID[t.Basic().ID], nil
	case datatype.CombF90Real, datatype.CombF90Complex, datatype.CombF90Integer,
		datatype.CombValueIndex:
		return unnamed(t)
	}
	return newTypeObject(t)
}

// typeNames guards typeObject.name.
var typeNames sync.Mutex

//spx:body MPI_Type_set_name
func typeSetName(c *call) error {
	o, err := c.typeObject(0)
	if err != nil {
		return err
	}
	name := c.str(1)
	name = name[:min(len(name), C.MPI_MAX_OBJECT_NAME-1)] // longer names are cut (section 7.8)
	typeNames.Lock()
	defer typeNames.Unlock()
	o.name = name
	return nil
}

//spx:body MPI_Type_get_name
func typeGetName(c *call) error {
	if c.handle(0) == datatypeNull { // MPI-5.0, 8.8
		c.setInt(2, c.setStr(1, "MPI_DATATYPE_NULL", C.MPI_MAX_OBJECT_NAME))
		return nil
	}
	o, err := c.typeObject(0)
	if err != nil {
		return err
	}
	typeNames.Lock()
	defer typeNames.Unlock()
	c.setInt(2, c.setStr(1, o.name, C.MPI_MAX_OBJECT_NAME))
	return nil
}

// title names a type in messages.
func (o *typeObject) title() string {
	typeNames.Lock()
	defer typeNames.Unlock()
	if o.name != "" {
		return o.name
	}
	return fmt.Sprintf("0x%x", o.handle())
}
