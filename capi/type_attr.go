package main

/*
#include "runtime.h"
*/
import "C"

import (
	"sync"

	"libspx/core/attr"
)

// Attributes of datatypes (MPI-5.0, section 7.7.4). The list of a datatype is made when it gets its
// first attribute.

func init() {
	typeAttrs.copy = func(c *call, from, to *typeObject, next func(error) error) error {
		return c.copyAttrs(from.handle(), from.attributes(), to.attributes(), next)
	}
	typeAttrs.delete = func(c *call, o *typeObject, next func(error) error) error {
		return c.deleteAttrs(o.handle(), o.attributes(), next)
	}
}

// typeAttrLists guards typeObject.attrs while a list is made.
var typeAttrLists sync.Mutex

func (o *typeObject) attributes() *attr.List {
	typeAttrLists.Lock()
	defer typeAttrLists.Unlock()
	if o.attrs == nil {
		o.attrs = attrs.NewList()
		o.c.flags |= C.SPX_T_ATTRIBUTES
	}
	return o.attrs
}

//spx:body MPI_Type_set_attr
func typeSetAttr(c *call) error {
	o, err := c.typeObject(0)
	if err != nil {
		return err
	}
	return c.setAttr(attr.Type, o.attributes(), func(err error) error { return err })
}

//spx:body MPI_Type_get_attr
func typeGetAttr(c *call) error {
	o, err := c.typeObject(0)
	if err != nil {
		return err
	}
	return c.getAttr(attr.Type, o.attributes())
}

//spx:body MPI_Type_delete_attr
func typeDeleteAttr(c *call) error {
	o, err := c.typeObject(0)
	if err != nil {
		return err
	}
	return c.deleteAttr(attr.Type, o.attributes(), func(err error) error { return err })
}
