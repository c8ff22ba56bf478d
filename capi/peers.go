package main

/*
#include "net.h"
#include "comm.h"
*/
import "C"

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// From the identity of a process to its place: its number in this job's memory file. Processes of
// other jobs get one when they are first met, by queries to both agents; docs/dynamic-processes.md
// has the picture.

// world is the identity of the process and the data on the processes around it.
var world struct {
	me       ident.ProcID
	proc     uint32
	origin   comm.Origin
	contexts *comm.Contexts

	mu sync.RWMutex
	// process -> number in the memory file; may be out of date, see isThere
	index map[ident.ProcID]uint32
}

// memberOf returns the identity of entry p of a job's memory file.
func memberOf(p *C.spx_proc, job uint64) ident.ProcID {
	id := ident.ProcID{Job: job, World: uint32(p.world_id), Rank: uint32(p.world_rank),
		Incarnation: uint32(p.incarnation)}
	if p.home_job != 0 {
		id.Job, id.Incarnation = uint64(p.home_job), uint32(p.home_incarnation)
	}
	return id
}

// isThere: number i still stands for that process.
func isThere(id ident.ProcID, i uint32) bool { return memberOf(procOf(i), world.me.Job) == id }

// processIndex finds a process of this host and job, or one of another job that is known already.
func processIndex(id ident.ProcID) (uint32, error) {
	world.mu.RLock()
	k, ok := world.index[id]
	world.mu.RUnlock()
	if ok && isThere(id, k) && hasMet(id, k) {
		return k, nil
	}
	for i := range uint32(C.spx_segment.nprocs) {
		if isThere(id, i) && hasMet(id, i) {
			remember(id, i)
			return i, nil
		}
	}
	return 0, mpierr.New(mpierr.Intern, "process %v is not known on this host", id)
}

// hasMet reports whether the process with number i is of this job, or has met this process. One of
// another job that is reached over the network may have ended unnoticed by this job, and have
// another number when the two jobs are connected again.
func hasMet(id ident.ProcID, i uint32) bool {
	return id.Job == world.me.Job || C.spx_peer_is_far(C.uint32_t(i)) != 0 &&
		!(isAbroad(i) && hasEnded(i))
}

// remember keeps the number of a process. The table is cleaned when it has grown: processes come
// and go.
func remember(id ident.ProcID, i uint32) {
	world.mu.Lock()
	defer world.mu.Unlock()
	world.index[id] = i
	if len(world.index) > 64+2*int(C.spx_segment.nprocs) {
		for id, i := range world.index {
			if !isThere(id, i) {
				delete(world.index, id)
			}
		}
	}
}

// processIndices finds processes, and gives those of other jobs numbers here. A process that has
// ended long ago is an error.
func processIndices(ids []ident.ProcID, out []uint32) error {
	var far []ident.ProcID
	for k, id := range ids {
		i, err := processIndex(id)
		if err != nil && id.Job == world.me.Job {
			return mpierr.New(mpierr.Group, "process %v has ended, and its place was given away",
				id)
		}
		if err != nil {
			far = append(far, id)
		}
		out[k] = i
	}
	if len(far) == 0 {
		return nil
	}
	if err := meetFar(far); err != nil {
		return err
	}
	for k, id := range ids {
		i, err := processIndex(id)
		if err != nil {
			return err
		}
		out[k] = i
	}
	return nil
}

func hasFar(g *group.Group) bool {
	for _, id := range g.IDs() {
		if id.Job != world.me.Job {
			return true
		}
	}
	return false
}

// meetings lets one thread at a time become acquainted: a file that was adopted is in use only once
// its processes have numbers here.
var meetings sync.Mutex

// sharesMemory reports whether this process and process i have one memory file, and communicate
// through it.
func sharesMemory(i uint32) bool {
	return C.spx_peer_is_far(C.uint32_t(i)) == 0 && !bool(C.spx_net_peer(C.uint32_t(i)))
}

// meetFar gives processes of other jobs numbers here: this process becomes an external process of
// each job, they become external processes of ours.
func meetFar(ids []ident.ProcID) error {
	meetings.Lock()
	defer meetings.Unlock()
	ftLetGo()
	if overNetwork() {
		return meetAbroad(ids)
	}
	C.spx_files_sweep()
	var peers []service.Peer
	for _, id := range ids {
		head, err := farFile(id.Job)
		if err != nil {
			return err
		}
		p, err := findIn(head, id)
		if err != nil {
			return err
		}
		peers = append(peers, p)
	}
	answer, err := ask(world.me.Job, &service.Message{Kind: service.Externals, Peer: self(),
		Peers: peers, FD: -1}, mpierr.Other, 0)
	if err != nil {
		return err
	}
	if len(answer.Slots) != len(peers) {
		return mpierr.New(mpierr.Intern, "the agent has named %d of %d processes",
			len(answer.Slots), len(peers))
	}
	for k, p := range peers {
		C.spx_peer_place(C.uint32_t(answer.Slots[k]), C.uint64_t(p.ID.Job), C.uint32_t(p.Slot))
		remember(p.ID, answer.Slots[k])
	}
	return nil
}

// farFile returns the head of the memory file of another job, where this process is an external
// process.
func farFile(job uint64) (*C.spx_seg, error) {
	if head := C.spx_file_of(C.uint64_t(job)); head != nil {
		return head, nil
	}
	answer, err := ask(job, &service.Message{Kind: service.Attach, Peer: self(), FD: -1},
		mpierr.Other, 0)
	if err != nil {
		return nil, err
	}
	if answer.FD < 0 || len(answer.Slots) != 1 {
		return nil, mpierr.New(mpierr.Intern, "the agent of job %016x has sent no memory file", job)
	}
	defer unix.Close(answer.FD)
	if code := C.spx_file_adopt(C.int(answer.FD), C.uint32_t(answer.Slots[0]),
		C.uint64_t(job)); code != 0 {
		return nil, mpierr.New(mpierr.Class(code), "%s", C.GoString(C.spx_detail_text()))
	}
	head := C.spx_file_of(C.uint64_t(job))
	id := *(*[16]byte)(unsafe.Pointer(&head.job_id))
	if world.origin.Near(comm.Origin(binary.LittleEndian.Uint64(id[8:]))) {
		return nil, mpierr.New(mpierr.Other,
			"job %016x numbers its communicators like this one; start one of the two again", job)
	}
	return head, nil
}

// findIn looks a process up in the memory file of its job.
func findIn(head *C.spx_seg, id ident.ProcID) (service.Peer, error) {
	for i := range uint32(head.nprocs) {
		p := (*C.spx_proc)(unsafe.Add(unsafe.Pointer(head),
			uintptr(head.proc_off)+uintptr(i)*uintptr(head.proc_stride)))
		if p.home_job == 0 && memberOf(p, id.Job) == id {
			return service.Peer{ID: id, Slot: i, Pid: uint32(p.pid)}, nil
		}
	}
	return service.Peer{}, mpierr.New(mpierr.Group,
		"process %v has ended, and its place was given away", id)
}
