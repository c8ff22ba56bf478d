package main

/*
#include "io.h"
*/
import "C"

import (
	"sync/atomic"

	"libspx/core/io"
	"libspx/core/mpierr"
)

// Data access (MPI-5.0, 15.4). All forms go one way: check, convert the data to write, find the
// position, move, convert the data read, report the result. Nonblocking forms have moved the data
// when they return, and give a request that is complete; split collective forms do it in their
// first half. Nonblocking collective forms do not wait for peers: each process accesses alone.

type pointer int

const (
	explicit pointer = iota
	individual
	shared
	ordered
)

// form is what distinguishes the functions.
type form struct {
	at         pointer
	write      bool
	collective bool
	nonblock   bool
	begin      bool   // first half of a split collective
	name       string // of the split collective, to be matched by its second half
}

// splitAccess is a split collective operation that was begun.
type splitAccess struct {
	name  string
	buf   uintptr
	bytes int64
}

// transfer is one data access under way.
type transfer struct {
	form
	f      *fileObject
	v      fileView
	alone  bool // it is a collective read in which no process needs its peers
	own    bool // it is a collective write in which they meet to agree on errors alone
	atomic bool
	m      userMemory
	off    int64 // explicit offset, in etypes
	out    int   // the argument after the datatype: status or request
	buf    uintptr
	fail   error // of the arguments
}

// access is the body of all functions that move data, but for the second halves of split
// collectives.
func (c *call) access(k form) error {
	f := c.file()
	t := &transfer{form: k, f: f}
	f.mu.Lock()
	t.v, t.atomic = f.view, f.atomic
	simple := f.alone && !f.atomic && k.at != ordered
	t.alone, t.own = simple && !k.write, simple && k.write
	f.mu.Unlock()
	i := 1
	if k.at == explicit {
		t.off, i = c.int64(1), 2
	}
	o, err := c.typeObject(i + 2)
	if err != nil {
		return f.onFile(err)
	}
	t.m, t.out, t.buf = userMemory{c.addr(i), c.int64(i + 1), o}, i+3, c.addr(i)
	if t.fail = t.check(); t.fail != nil {
		t.m.count = 0
		if !t.together() {
			return f.onFile(t.fail)
		}
	}
	return f.onFile(t.v.rep.toFile(c, t.m, k.write, func(m io.Memory) error {
		done, err := t.move(m)
		if err != nil {
			return f.onFile(err)
		}
		if k.write {
			return f.onFile(t.finish(c, t.m.Size()))
		}
		return t.v.rep.fromFile(c, t.m, m, done,
			func(bytes int64) error { return f.onFile(t.finish(c, bytes)) })
	}))
}

// together reports whether all processes meet in this call.
func (t *transfer) together() bool {
	return (t.collective || t.at == ordered) && !t.nonblock && !t.alone
}

func (t *transfer) check() error {
	f := t.f
	f.mu.Lock()
	split := f.split
	f.mu.Unlock()
	switch {
	case split != nil && t.collective && !t.nonblock:
		return mpierr.New(mpierr.IO,
			"the split collective operation %s is active on this file: end it first", split.name)
	case t.write && f.mode&io.ReadOnly != 0:
		return mpierr.New(mpierr.ReadOnly,
			"the file \"%s\" was opened with MPI_MODE_RDONLY and cannot be written", f.name)
	case !t.write && f.mode&io.WriteOnly != 0:
		return mpierr.New(mpierr.Access,
			"the file \"%s\" was opened with MPI_MODE_WRONLY and cannot be read", f.name)
	case t.off < 0:
		return mpierr.New(mpierr.Arg, "offset is %d: it may not be negative", t.off)
	}
	if t.at == explicit || t.at == individual {
		if err := f.noSequential(); err != nil {
			return err
		}
	}
	return t.m.checkSize()
}

// position takes the bytes [pos, pos+n) of the view for this access.
func (t *transfer) position(n int64) (pos int64, err error) {
	f, each := t.f, t.v.Etype
	if n%each != 0 && t.fail == nil {
		t.fail = mpierr.New(mpierr.Arg,
			"the buffer has %d bytes, which is no multiple of the etype's %d", n, each)
	}
	if t.fail != nil {
		n = 0
	}
	switch t.at {
	case explicit:
		if t.off > (1<<62)/each {
			t.fail = mpierr.New(mpierr.Arg,
				"offset is %d: that is beyond the largest offset that a file can have", t.off)
			return 0, nil
		}
		return t.off * each, nil
	case individual:
		pos = atomic.AddInt64(f.pos(), n/each) - n/each
	case shared:
		pos, err = f.take(n / each)
	case ordered:
		pos, err = io.InOrder(f.peers(), &f.shared, n/each)
	}
	return pos * each, err
}

// move moves the data between m and the file, and returns the number of bytes in the file's
// representation.
func (t *transfer) move(m io.Memory) (int64, error) {
	f := t.f
	pos, err := t.position(m.Size())
	if err != nil {
		return 0, err
	}
	if t.together() {
		if t.fail != nil {
			m = io.Bytes(nil)
		}
		if t.own {
			return io.WriteOwn(f.peers(), f.tune, f.backend, t.v.View, m, pos, t.fail)
		}
		return io.AccessAll(f.peers(), f.tune, f.backend, t.v.View, m, pos, t.write, t.atomic,
			t.fail)
	}
	if t.fail != nil {
		return 0, t.fail
	}
	return io.Access(f.backend, t.v.View, m, pos, t.write, t.atomic || f.tune.Locked)
}

// finish reports the result, in bytes of the buffer.
func (t *transfer) finish(c *call, bytes int64) error {
	switch {
	case t.begin:
		t.f.mu.Lock()
		t.f.split = &splitAccess{t.name, t.buf, bytes}
		t.f.publish()
		t.f.mu.Unlock()
	case t.nonblock:
		r := C.spx_io_request(C.int64_t(bytes))
		if r == nil {
			return mpierr.New(mpierr.NoMem, "no memory for a request")
		}
		c.setHandle(t.out, uintptr(r.o.handle))
	default:
		C.spx_io_status(C.uintptr_t(c.addr(t.out)), C.int64_t(bytes))
	}
	return nil
}

// end is the body of the second halves.
func (c *call) end(name string) error {
	f := c.file()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch s := f.split; {
	case s == nil:
		return f.onFile(mpierr.New(mpierr.IO,
			"no split collective operation is active on this file: its _begin comes first"))
	case s.name != name:
		return f.onFile(mpierr.New(mpierr.IO,
			"the split collective operation that is active on this file is %s, not %s", s.name,
			name))
	case s.buf != c.addr(1):
		return f.onFile(mpierr.New(mpierr.Buffer, "buf is not the buffer that %s_begin got", name))
	default:
		C.spx_io_status(C.uintptr_t(c.addr(2)), C.int64_t(s.bytes))
		f.split = nil
		f.publish()
	}
	return nil
}
