package main

/*
#include "runtime.h"
*/
import "C"

import (
	"encoding/binary"
	"runtime"
	"syscall"
	"unsafe"

	"libspx/cluster/layout"
	"libspx/core/comm"
	"libspx/launch/service"
	"libspx/shm"
)

// startInfo is a process's view of its job when MPI_Init begins: docs/starting.md.
type startInfo struct {
	Proc uint32 // this process's index in the memory file
	Rank int    // in its MPI_COMM_WORLD
	// process index of each rank of that world, and of the standbys of its cluster behind them
	World     []uint32
	Ranks     int            // of that world
	Cold      int            // of World, the last: they are started when a rank has died
	Layout    *layout.Layout // of the system of clusters; nil: it belongs to none
	WorldID   uint32
	JobID     [16]byte
	Origin    comm.Origin // of the job's contexts
	Level     int         // MPI_THREAD_*
	ThisHost  int         // processes of the job on this host, so far
	MaxProcs  int         // capacity of the memory file
	Processor int         // processors that the job may use here
}

// What the engine's parts do in MPI_Init and MPI_Finalize. They register in init functions:
//
//	func init() {
//		onStart(startWorlds)  // func(*startInfo) error, in MPI_Init, in the order of file names
//		onStop(deleteSelfAttributes) // func(*call, next func() error) error, in MPI_Finalize, while MPI still works; last registered first
//		onStopped(forgetAll)  // func(), at the end of MPI_Finalize
//	}
//
// A stop function may return a call-out (callout.go); it calls next when it is done.
var (
	starters []func(*startInfo) error
	stoppers []func(c *call, next func() error) error
	stopped  []func()
)

func onStart(f func(*startInfo) error)                { starters = append(starters, f) }
func onStop(f func(c *call, next func() error) error) { stoppers = append(stoppers, f) }
func onStopped(f func())                              { stopped = append(stopped, f) }

func init() {
	internals[C.SPX_IN_ALONE] = startAlone
	internals[C.SPX_IN_START] = start
	internals[C.SPX_IN_ARRIVE] = arrive
	internals[C.SPX_IN_STOP] = stop
	internals[C.SPX_IN_STOPPED] = halt
}

// arrive is the end of MPI_Init, when other processes of a system of clusters may die.
func arrive(*call) error {
	if err := awaitSystem(); err != nil {
		return err
	}
	sayRenamed()
	return nil
}

// halt ends the engine.
func halt(*call) error {
	for _, f := range stopped {
		f()
	}
	writeCounters(runtime.NumGoroutine(), pendingContinuations())
	return nil
}

// aloneProcs is the capacity of the memory file of a process without a launcher: itself, and what
// it may spawn. The file is sparse, so the capacity costs nothing.
const aloneProcs = 255

// startAlone makes the memory file of a process that no launcher started, or gets that of the job
// that another launcher than spxrun has started. a[0] gets its descriptor, which the data plane
// copies, a[1] the number of this process in it, a[2] whether such a launcher is there.
func startAlone(c *call) error {
	if getenv(service.EnvJob) == "" { // else a process of a job has started this one: it is alone
		if joined, err := joinLaunched(c); joined || err != nil {
			return err
		}
	}
	cpus := runtime.NumCPU()
	seg, err := shm.Create(shm.Room(1, aloneProcs), 1, cpus, 0)
	if err != nil {
		return fail(C.MPI_ERR_NO_MEM, "no memory file for this process: %v", err)
	}
	if err := seg.AddProc(0, shm.Member{}); err != nil {
		return fail(C.MPI_ERR_NO_MEM, "no memory file for this process: %v", err)
	}
	seg.MarkStarted(0, syscall.Getpid())
	aloneSegment = seg
	*(*int64)(unsafe.Pointer(&c.f.a[0])) = int64(seg.File().Fd())
	return nil
}

// aloneSegment keeps the file open: this process is its own agent.
var aloneSegment *shm.Segment

func start(c *call) error {
	seg := C.spx_segment
	info := &startInfo{
		Proc:      uint32(c.int(0)),
		Level:     c.int(1),
		ThisHost:  int(seg.nprocs),
		MaxProcs:  int(seg.maxprocs),
		Processor: int(seg.ncpus),
		JobID:     *(*[16]byte)(unsafe.Pointer(&seg.job_id)),
	}
	info.Origin = comm.Origin(binary.LittleEndian.Uint64(info.JobID[8:]))
	me := procOf(info.Proc)
	info.Rank, info.WorldID = int(me.world_rank), uint32(me.world_id)
	if err := info.findWorld(); err != nil {
		return err
	}
	if err := info.findSystem(); err != nil {
		return err
	}
	for _, f := range starters {
		if err := f(info); err != nil {
			return err
		}
	}
	return nil
}

// procOf returns the entry of a process in the memory file.
func procOf(i uint32) *C.spx_proc {
	seg := C.spx_segment
	return (*C.spx_proc)(unsafe.Add(unsafe.Pointer(seg),
		uintptr(seg.proc_off)+uintptr(i)*uintptr(seg.proc_stride)))
}

// findWorld looks for the members of this process's world in the memory file; the launcher has
// written them all before it started the first.
func (s *startInfo) findWorld() error {
	n := 0
	for i := range s.ThisHost {
		if p := procOf(uint32(i)); uint32(p.world_id) == s.WorldID && p.home_job == 0 {
			n++
		}
	}
	s.World = make([]uint32, n)
	seen := make([]bool, n)
	for i := range s.ThisHost {
		p := procOf(uint32(i))
		if uint32(p.world_id) != s.WorldID || p.home_job != 0 {
			continue
		}
		r := int(p.world_rank)
		if r >= n || seen[r] {
			return fail(C.MPI_ERR_INTERN,
				"the launcher's table of processes is wrong: process %d has rank %d in a world "+
					"of %d", i, r, n)
		}
		s.World[r], seen[r] = uint32(i), true
	}
	if s.Rank >= n || s.World[s.Rank] != s.Proc {
		return fail(C.MPI_ERR_INTERN,
			"the launcher's table of processes is wrong: process %d is not rank %d of its world",
			s.Proc, s.Rank)
	}
	return nil
}

// stop runs what has to be done while MPI still works, last registered first.
func stop(c *call) error {
	leaveCluster()
	return stopFrom(c, len(stoppers)-1)
}

func stopFrom(c *call, i int) error {
	if i < 0 {
		return nil
	}
	return stoppers[i](c, func() error { return stopFrom(c, i-1) })
}
