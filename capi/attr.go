package main

/*
#include "comm.h"
*/
import "C"

import (
	"libspx/core/attr"
	"libspx/core/mpierr"
)

// Bodies of the functions for keyvals and attributes (MPI-5.0, section 7.7). Their meaning is
// core/attr's; here the user functions that it requests are called. MPI_Comm_get_attr is in
// bodies/attr.c, which keeps a copy.

var attrs = &attr.Registry{
	OnKeyval: func(num int, live bool) {
		flag := C.int(0)
		if live {
			flag = 1
		}
		C.spx_keyval_mark(C.int(num), flag)
	},
}

// commAttrs returns the empty list of a communicator.
func commAttrs(c *C.spx_comm) *attr.List {
	l := attrs.NewList()
	l.OnChange = func(num int, value uintptr, present bool) {
		flag := C.int(0)
		if present {
			flag = 1
		}
		C.spx_comm_attr_mark(c, C.int(num), C.uintptr_t(value), flag)
	}
	return l
}

// walk calls the user functions that an operation on attributes requests, on the object with this
// handle, and passes the outcome to then. It must be the last call of a body.
func (c *call) walk(w *attr.Walk, handle uintptr, then func(error) error) error {
	f, ok := w.Next()
	if !ok {
		return then(w.Err())
	}
	if f.Copy {
		args := []uint64{uint64(handle), uint64(f.KV.Num), uint64(f.KV.Extra), uint64(f.Value)}
		return c.callOut(coCopyAttr, f.KV.Copy, args, func(code int64) error {
			value, flag := c.copied()
			w.Done(int(int32(code)), flag, value)
			return c.walk(w, handle, then)
		})
	}
	args := []uint64{uint64(handle), uint64(f.KV.Num), uint64(f.Value), uint64(f.KV.Extra)}
	return c.callOut(coDeleteAttr, f.KV.Delete, args, func(code int64) error {
		w.Done(int(int32(code)), false, 0)
		return c.walk(w, handle, then)
	})
}

// copyAttrs copies the attributes of an object with this handle to a new one's list. If a copy
// function fails, what has been copied is deleted again.
func (c *call) copyAttrs(handle uintptr, from, to *attr.List, then func(error) error) error {
	return c.walk(from.CopyAll(to), handle, func(failure error) error {
		if failure == nil {
			return then(nil)
		}
		return c.walk(to.DeleteAll(), handle, func(error) error { return then(failure) })
	})
}

// deleteAttrs deletes all attributes of an object that is about to go.
func (c *call) deleteAttrs(handle uintptr, l *attr.List, then func(error) error) error {
	return c.walk(l.DeleteAll(), handle, then)
}

// createKeyval has arguments copy_fn, delete_fn, *keyval, extra_state.
func (c *call) createKeyval(kind attr.Kind) error {
	kv, err := attrs.Create(kind, c.addr(0), c.addr(1), c.addr(3))
	if err != nil {
		return err
	}
	c.setInt(2, kv.Num)
	madeKeyval(kv.Num)
	return nil
}

// freeKeyval has the argument *keyval.
func (c *call) freeKeyval(kind attr.Kind) error {
	num := int(*at[int32](c.addr(0)))
	if err := attrs.Free(kind, num); err != nil {
		return err
	}
	freedKeyval(num)
	c.setInt(0, C.MPI_KEYVAL_INVALID)
	return nil
}

// keyval looks argument 1 up. Predefined attributes may not be changed.
func (c *call) keyval(kind attr.Kind) (*attr.Keyval, error) {
	num := c.int(1)
	if num >= C.MPI_TAG_UB && num <= C.MPI_UNIVERSE_SIZE || num >= C.MPI_WIN_BASE &&
		num <= C.MPI_WIN_MODEL {
		return nil, mpierr.New(mpierr.Keyval,
			"keyval %d is that of a predefined attribute, which cannot be changed", num)
	}
	return attrs.Lookup(kind, num)
}

// setAttr has arguments object, keyval, value.
func (c *call) setAttr(kind attr.Kind, l *attr.List, then func(error) error) error {
	kv, err := c.keyval(kind)
	if err != nil {
		return then(err)
	}
	return c.walk(l.Set(kv, c.addr(2)), c.handle(0), then)
}

// getAttr has arguments object, keyval, *value, *flag.
func (c *call) getAttr(kind attr.Kind, l *attr.List) error {
	kv, err := attrs.Lookup(kind, c.int(1))
	if err != nil {
		return err
	}
	value, ok := l.Get(kv)
	if ok {
		c.setHandle(2, value)
	}
	c.setBool(3, ok)
	return nil
}

// deleteAttr has arguments object, keyval.
func (c *call) deleteAttr(kind attr.Kind, l *attr.List, then func(error) error) error {
	kv, err := c.keyval(kind)
	if err != nil {
		return then(err)
	}
	return c.walk(l.Delete(kv), c.handle(0), then)
}

//spx:body MPI_Comm_create_keyval
func commCreateKeyval(c *call) error { return c.createKeyval(attr.Comm) }

//spx:body MPI_Comm_free_keyval
func commFreeKeyval(c *call) error { return c.freeKeyval(attr.Comm) }

//spx:body MPI_Keyval_create
func keyvalCreate(c *call) error { return c.createKeyval(attr.Comm) }

//spx:body MPI_Keyval_free
func keyvalFree(c *call) error { return c.freeKeyval(attr.Comm) }

//spx:body MPI_Comm_set_attr
func commSetAttr(c *call) error {
	return c.setAttr(attr.Comm, c.comm(0).attrs, func(err error) error { return c.onComm(0, err) })
}

//spx:body MPI_Attr_put
func attrPut(c *call) error { return commSetAttr(c) }

//spx:body MPI_Comm_delete_attr
func commDeleteAttr(c *call) error {
	return c.deleteAttr(attr.Comm, c.comm(0).attrs,
		func(err error) error { return c.onComm(0, err) })
}

//spx:body MPI_Attr_delete
func attrDelete(c *call) error { return commDeleteAttr(c) }

//spx:body MPI_Type_create_keyval
func typeCreateKeyval(c *call) error { return c.createKeyval(attr.Type) }

//spx:body MPI_Type_free_keyval
func typeFreeKeyval(c *call) error { return c.freeKeyval(attr.Type) }

//spx:body MPI_Win_create_keyval
func winCreateKeyval(c *call) error { return c.createKeyval(attr.Win) }

//spx:body MPI_Win_free_keyval
func winFreeKeyval(c *call) error { return c.freeKeyval(attr.Win) }
