package main

/*
#include "io.h"
*/
import "C"

import (
	"sync/atomic"

	"libspx/core/datatype"
	"libspx/core/io"
	"libspx/core/mpierr"
)

// Views of files (MPI-5.0, 15.3).

const displacementCurrent = -1 // MPI_DISPLACEMENT_CURRENT

func (f *fileObject) viewNow() fileView {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// fileSetView makes the view here, agrees with all, and begins anew with it.
//
//spx:body MPI_File_set_view
func fileSetView(c *call) error {
	f := c.file()
	etype, err := c.typeObject(2)
	if err != nil {
		return f.onFile(err)
	}
	filetype, err := c.typeObject(3)
	if err != nil {
		return f.onFile(err)
	}
	disp, err := f.displacement(c.int64(1))
	rep := nativeRep
	if err == nil {
		rep, err = findDatarep(c.str(4))
	}
	if err != nil {
		return f.onFile(io.Agree(f.peers(), err))
	}
	out := rep.inFile(c, []*datatype.Type{etype.t, filetype.t}, func(t []*datatype.Type) error {
		v, err := io.NewView(disp, t[0], t[1])
		if err == nil && v.Overlaps && f.mode&io.ReadOnly == 0 {
			err = mpierr.New(mpierr.IO,
				"the filetype has data that overlap, but the file was opened for writing")
		}
		err = f.adopt(fileView{v, etype, filetype, rep}, err)
		if err == nil {
			err = f.setHints(c.info(5))
		}
		return f.onFile(err)
	})
	return f.onFile(out)
}

// displacement checks disp, and translates MPI_DISPLACEMENT_CURRENT.
func (f *fileObject) displacement(disp int64) (int64, error) {
	sequential := f.mode&io.Sequential != 0
	switch {
	case disp == displacementCurrent && sequential:
		v := f.viewNow()
		now, err := f.take(0)
		return v.Offset(now * v.Etype), err
	case sequential:
		return 0, mpierr.New(mpierr.Arg,
			"disp is %d, but a file that was opened with MPI_MODE_SEQUENTIAL takes "+
				"MPI_DISPLACEMENT_CURRENT", disp)
	case disp < 0:
		return 0, mpierr.New(mpierr.Arg, "disp is %d: it may not be negative", disp)
	}
	return disp, nil
}

// adopt sets a view on all processes, or on none.
func (f *fileObject) adopt(v fileView, err error) error {
	size := int64(0)
	if err == nil {
		size = v.Etype
	}
	if err = io.Agree(f.peers(), err); err != nil {
		return err
	}
	if err = io.AgreeOn(f.peers(), "the size of the etype", size, nil); err != nil {
		return err
	}
	f.mu.Lock()
	f.view, f.alone = v, false // setHints, which follows, finds out
	atomic.StoreInt64(f.pos(), 0)
	f.publish()
	f.mu.Unlock()
	if f.comm.Rank == 0 {
		f.shared.set(0)
	}
	return nil // setHints, which follows, is where all meet after that
}

//spx:body MPI_File_get_view
func fileGetView(c *call) error {
	f := c.file()
	v := f.viewNow()
	if err := c.setType(2, v.etype); err != nil {
		return f.onFile(err)
	}
	if err := c.setType(3, v.filetype); err != nil {
		return f.onFile(err)
	}
	c.setInt64(1, v.Disp)
	c.setStr(4, v.rep.name, len(v.rep.name)+1)
	return nil
}

//spx:body MPI_File_get_byte_offset
func fileGetByteOffset(c *call) error {
	f := c.file()
	if err := f.noSequential(); err != nil {
		return f.onFile(err)
	}
	v, off := f.viewNow(), c.int64(1)
	if off < 0 {
		return f.onFile(mpierr.New(mpierr.Arg, "offset is %d: it may not be negative", off))
	}
	if err := v.CheckRange(0, off*v.Etype); err != nil {
		return f.onFile(err)
	}
	c.setInt64(2, v.Offset(off*v.Etype))
	return nil
}

//spx:body MPI_File_get_type_extent
func fileGetTypeExtent(c *call) error {
	f := c.file()
	t, err := c.datatype(1)
	if err != nil {
		return f.onFile(err)
	}
	return f.onFile(f.viewNow().rep.inFile(c, []*datatype.Type{t}, func(t []*datatype.Type) error {
		c.setInt64(2, t[0].Extent())
		return nil
	}))
}
