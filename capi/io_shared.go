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

// sharedCounter is the shared file pointer (MPI-5.0, 15.4.4), in etypes: where it is, and how
// processes reach it, is decided in dataplane/rma/counter.h.
type sharedCounter struct{ k *C.spx_counter }

// shareCounter makes the counter of all processes, of which none may fail: one that cannot have it
// gets an error when it uses it.
func (f *fileObject) shareCounter() error {
	place := C.int64_t(0)
	if f.comm.Rank == 0 {
		f.shared.k = C.spx_counter_make(f.comm.c, &place)
	}
	all, err := io.GatherInts(f.peers(), int64(place))
	if err == nil && f.comm.Rank != 0 {
		f.shared.k = C.spx_counter_join(f.comm.c, C.int64_t(all[0][0]))
	}
	return err
}

// Add adds n and returns the value before. Rank 0 has no error, unless it had no memory for the
// counter.
func (s *sharedCounter) Add(n int64) (int64, error) {
	if s.k == nil {
		return 0, mpierr.New(mpierr.NoMem,
			"there was no memory for the shared file pointer when the file was opened")
	}
	var before C.int64_t
	var q C.spx_counter_question
	if code := C.spx_counter_add(s.k, C.int64_t(n), &before, &q); code != C.SPX_COUNTER_REMOTE {
		return int64(before), linkError(code)
	}
	return askCounter(s.k.comm, int64(q.n), int64(q.tag))
}

// askCounter has rank 0 add n.
func askCounter(c *C.spx_comm, n, tag int64) (int64, error) {
	question, answer := []uint64{uint64(n), uint64(tag)}, make([]uint64, 1)
	got, err := here().exchange(c, C.SPX_CTX_P2P, []message{{0, int(tag), octets(answer)}},
		[]message{{0, C.SPX_COUNTER_ASK, octets(question)}})
	switch mpierr.ClassOf(err) {
	case 0:
		if got != 8 {
			return 0, mpierr.New(mpierr.Intern,
				"rank 0 of the file does not understand this process: is libspx of the same "+
					"version on all hosts?")
		}
	case errProcFailed:
		err = mpierr.New(errProcFailed,
			"rank 0 of the file, which has the shared file pointer, has failed")
	case errRevoked:
		err = mpierr.New(errRevoked,
			"a process of the file has failed: the shared file pointer cannot be reached")
	}
	return int64(answer[0]), err
}

// set sets the value, on rank 0, while the other ranks wait for it.
func (s *sharedCounter) set(n int64) {
	if s.k != nil {
		C.spx_counter_set(s.k, C.int64_t(n))
	}
}

// close gives it back; together: no process uses it any more.
func (s *sharedCounter) close(together bool) {
	C.spx_counter_end(s.k, C.bool(together))
	s.k = nil
}

// number is where the C side adds by itself; nil when it cannot, or not before this process has
// used the pointer once.
func (s *sharedCounter) number() *C.int64_t {
	if s.k == nil {
		return nil
	}
	return s.k.number
}

// take adds n to the shared pointer and returns the value before.
func (f *fileObject) take(n int64) (int64, error) {
	before, err := f.shared.Add(n)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.fh().shared == nil && f.shared.number() != nil {
		f.publish()
	}
	return before, err
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
		return 0, mpierr.New(mpierr.Arg,
			"whence is %d, which is none of MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END", whence)
	}
	if offset < 0 {
		return 0, mpierr.New(mpierr.Arg,
			"the seek leads to offset %d, before the beginning of the view", offset)
	}
	return offset, nil
}

func (f *fileObject) noSequential() error {
	if f.mode&io.Sequential == 0 {
		return nil
	}
	return mpierr.New(mpierr.UnsupportedOperation,
		"the file \"%s\" was opened with MPI_MODE_SEQUENTIAL: only the shared file pointer may "+
			"be used, and not be set", f.name)
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

// fileSeekShared sets the pointer between two meetings: what was begun before uses the old one,
// what comes after the new one.
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
		var now, to int64
		if now, err = f.take(0); err == nil {
			to, err = f.seekTo(f.viewNow(), now, c.int64(1), c.int(2))
		}
		if err == nil {
			f.shared.set(to)
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
	now, err := f.take(0)
	if err == nil {
		c.setInt64(1, now)
	}
	return f.onFile(err)
}
