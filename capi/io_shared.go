package main

/*
#include "io.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/io"
	"libspx/core/mpierr"
)

// The shared file pointer (MPI-5.0, 15.4.4): a number in a page of memory that the processes of the file share. It has no name
// anywhere, so nothing is left of it. Rank 0 makes it; the others find it among rank 0's descriptors.

type sharedCounter struct{ page []byte }

func (s *sharedCounter) number() *int64 { return (*int64)(unsafe.Pointer(unsafe.SliceData(s.page))) }

// Add adds n and returns the value before.
func (s *sharedCounter) Add(n int64) int64 { return atomic.AddInt64(s.number(), n) - n }

func (s *sharedCounter) Set(n int64) { atomic.StoreInt64(s.number(), n) }

func (s *sharedCounter) close() {
	if s != nil && s.page != nil {
		_ = syscall.Munmap(s.page) // of our own mapping: cannot fail
		s.page = nil
	}
}

const counterBytes = 4096

// shareCounter makes the counter of all processes. It is the agreement on failure too.
func shareCounter(p io.Peers, failure error) (*sharedCounter, error) {
	fd, err := -1, failure
	if p.Rank() == 0 && err == nil {
		fd, err = newCounterFile()
	}
	if fd >= 0 {
		defer syscall.Close(fd)
	}
	if err := io.Agree(p, err); err != nil {
		return nil, err
	}
	all, err := io.GatherInts(p, int64(syscall.Getpid()), int64(fd))
	if err != nil {
		return nil, err
	}
	s := &sharedCounter{}
	if p.Rank() == 0 {
		s.page, err = mapCounter(fd)
	} else {
		s.page, err = openCounter(all[0][0], all[0][1])
	}
	if err = io.Agree(p, err); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func newCounterFile() (int, error) {
	fd, err := unix.MemfdCreate("spx-file-pointer", unix.MFD_CLOEXEC)
	if err == nil {
		err = syscall.Ftruncate(fd, counterBytes)
	}
	if err != nil {
		return fd, mpierr.New(mpierr.NoMem, "no memory for the shared file pointer: %v", err)
	}
	return fd, nil
}

func mapCounter(fd int) ([]byte, error) {
	page, err := syscall.Mmap(fd, 0, counterBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, mpierr.New(mpierr.NoMem, "cannot map the shared file pointer: %v", err)
	}
	return page, nil
}

func openCounter(pid, fd int64) ([]byte, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	here, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, mpierr.New(mpierr.Other, "cannot open the shared file pointer, %s of rank 0: %v", path, err)
	}
	defer syscall.Close(here)
	return mapCounter(here)
}

// seekTo computes the target of a seek, in etypes; now is where the pointer is.
func (f *fileObject) seekTo(v fileView, now, offset int64, whence int) (int64, error) {
	switch whence {
	case C.MPI_SEEK_SET:
	case C.MPI_SEEK_CUR:
		offset += now
	case C.MPI_SEEK_END:
		size, err := f.backend.Size()
		if err != nil {
			return 0, err
		}
		offset += (v.End(size) + v.Etype - 1) / v.Etype
	default:
		return 0, mpierr.New(mpierr.Arg, "whence is %d, which is none of MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END", whence)
	}
	if offset < 0 {
		return 0, mpierr.New(mpierr.Arg, "the seek leads to offset %d, before the beginning of the view", offset)
	}
	return offset, nil
}

func (f *fileObject) noSequential() error {
	if f.mode&io.Sequential == 0 {
		return nil
	}
	return mpierr.New(mpierr.UnsupportedOperation, "the file \"%s\" was opened with MPI_MODE_SEQUENTIAL: only the shared file pointer may be used, and not be set", f.name)
}

//spx:body MPI_File_seek
func fileSeek(c *call) error {
	f := c.file()
	if err := f.noSequential(); err != nil {
		return f.onFile(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	to, err := f.seekTo(f.view, atomic.LoadInt64(f.pos()), c.int64(1), c.int(2))
	if err == nil {
		atomic.StoreInt64(f.pos(), to)
	}
	return f.onFile(err)
}

//spx:body MPI_File_get_position
func fileGetPosition(c *call) error {
	f := c.file()
	if err := f.noSequential(); err != nil {
		return f.onFile(err)
	}
	c.setInt64(1, atomic.LoadInt64(f.pos()))
	return nil
}

// fileSeekShared sets the pointer between two meetings: what was begun before uses the old one, what comes after the new one.
//
//spx:body MPI_File_seek_shared
func fileSeekShared(c *call) error {
	f := c.file()
	err := f.noSequential()
	if err = io.AgreeOn(f.peers(), "offset", c.int64(1), err); err == nil {
		err = io.AgreeOn(f.peers(), "whence", int64(c.int(2)), nil)
	}
	if err != nil {
		return f.onFile(err)
	}
	if f.comm.Rank == 0 {
		var to int64
		if to, err = f.seekTo(f.viewNow(), f.shared.Add(0), c.int64(1), c.int(2)); err == nil {
			f.shared.Set(to)
		}
	}
	return f.onFile(io.Agree(f.peers(), err))
}

//spx:body MPI_File_get_position_shared
func fileGetPositionShared(c *call) error {
	f := c.file()
	if err := f.noSequential(); err != nil {
		return f.onFile(err)
	}
	c.setInt64(1, f.shared.Add(0))
	return nil
}
