package main

/*
#include "mpi-ext.h"
#include "comm.h"
#include "runner.h"
static uintptr_t came_function(void) { return (uintptr_t)spx_batch_came; }
static uint32_t *revoked_word(spx_comm *c) { return (uint32_t *)&c->revoked; }
*/
import "C"

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"libspx/core/mpierr"
	"libspx/ft/repair"
)

// Bodies of MPIX_Comm_repair and MPIX_Comm_dismiss (docs/checkpoint.md), and the shell around
// package ft/repair, which clusters with standbys have as well (takeover_meet.go).

// repairs are those of the program's communicators. Its calls for one communicator do not meet;
// those for several may.
var repairs struct {
	mu   sync.Mutex
	list map[*commObject]*repair.Repair // guarded by mu
}

func init() {
	onStopped(func() {
		repairs.mu.Lock()
		defer repairs.mu.Unlock()
		repairs.list = nil
	})
}

func repairOf(o *commObject) *repair.Repair {
	repairs.mu.Lock()
	defer repairs.mu.Unlock()
	return repairs.list[o]
}

// keepRepair notes the repair of o, which stays for it; nil: it has none any more.
func keepRepair(o *commObject, r *repair.Repair) {
	repairs.mu.Lock()
	defer repairs.mu.Unlock()
	if r == nil {
		delete(repairs.list, o)
		o.release()
		return
	}
	if repairs.list == nil {
		repairs.list = map[*commObject]*repair.Repair{}
	}
	repairs.list[o] = r
	o.retain()
}

//spx:body MPIX_Comm_repair
func commRepair(c *call) error {
	o := c.comm(0)
	r, home, err := repairNow(o, c.int(1))
	if err != nil {
		return c.onComm(0, err)
	}
	c.setHandle(2, C.SPX_HANDLE_COMM_NULL)
	if r.Active != nil {
		c.setHandle(2, r.Active.(repairComm).handle)
	}
	c.setInt(3, C.MPIX_ROLE_INITIAL+int(r.Role))
	if home {
		r.Active = nil
		endRepair(o, r)
	}
	return nil
}

// repairNow makes the next active communicator of o, the first one with so many spares. home: those
// that work are done.
func repairNow(o *commObject, spares int) (r *repair.Repair, home bool, err error) {
	if r = repairOf(o); r != nil {
		home, err = r.Repair()
		return r, home, err
	}
	if r, err = beginRepair(o, spares); err != nil {
		return nil, false, err
	}
	home, err = r.StandBy()
	return r, home, err
}

func beginRepair(o *commObject, spares int) (*repair.Repair, error) {
	size := int(o.c.size)
	if o.Inter() {
		return nil, mpierr.New(mpierr.Comm, "comm is an intercommunicator: merge it first")
	}
	if spares >= size {
		return nil, mpierr.New(mpierr.Arg,
			"num_spares is %d, but comm has %d processes: at least one has to work", spares, size)
	}
	shell := newRepairShell(o)
	r := repair.New(shell, repair.Config{Working: size - spares}, nil)
	keepRepair(o, r)
	if err := r.Begin(shell.comm(o)); err != nil {
		endRepair(o, r)
		return nil, err
	}
	return r, nil
}

func endRepair(o *commObject, r *repair.Repair) {
	r.End()
	keepRepair(o, nil)
}

//spx:body MPIX_Comm_dismiss
func commDismiss(c *call) error {
	o := c.comm(0)
	r := repairOf(o)
	if r == nil {
		return c.onComm(0, mpierr.New(mpierr.Arg,
			"comm has had no MPIX_Comm_repair, or its spares have been dismissed"))
	}
	err := r.Dismiss()
	switch {
	case err == nil:
		endRepair(o, r)
	case errors.Is(err, repair.ErrAgain):
		err = mpierr.New(errProcFailed, "%v", err)
	}
	return c.onComm(0, err)
}

// repairShell is a process's part in a base.
type repairShell struct {
	base     *commObject
	memberOf map[uint32]int                 // by process index
	together func(active *commObject) error // or nil
}

func newRepairShell(base *commObject) *repairShell {
	s := &repairShell{base: base, memberOf: map[uint32]int{}}
	for m, p := range ranksOf(base.c.local, base.c.size) {
		s.memberOf[p] = m
	}
	return s
}

func (s *repairShell) proc(member int) C.uint32_t {
	return C.uint32_t(ranksOf(s.base.c.local, s.base.c.size)[member])
}

func (s *repairShell) Base() (size, self int) { return int(s.base.c.size), int(s.base.c.rank) }

func (s *repairShell) Wait(every, limit repair.Duration, over func() bool) bool {
	return here().until(time.Duration(every), time.Duration(limit), over)
}

func (s *repairShell) Order(member int) int {
	return int(atomic.LoadUint32((*uint32)(&procOf(uint32(s.proc(member))).order)))
}

func (s *repairShell) Left(member int) bool { return C.spx_proc_left(s.proc(member)) != 0 }
func (s *repairShell) Died(member int) bool { return C.spx_proc_dead(s.proc(member)) != 0 }

// Done is for members of which all run on this host: all see it alike.
func (s *repairShell) Done(member int) bool {
	for _, p := range ranksOf(s.base.c.local, s.base.c.size) {
		if procOf(p).host != C.spx_segment.host {
			return false
		}
	}
	return atomic.LoadUint32(
		(*uint32)(&procOf(uint32(s.proc(member))).owner_state)) == C.SPX_OWNER_DONE
}

func (s *repairShell) Meet(members []int, first int) (repair.Comm, error) {
	o, err := poolOf(members, first)
	if err != nil {
		return nil, err
	}
	return s.comm(o), nil
}

// invitationTag is that of invitations, on the base.
const invitationTag = 1

func (s *repairShell) Send(member int, words []uint64) {
	here().post(s.base.c, C.SPX_CTX_P2P, message{member, invitationTag, bytesOf(words)})
}

func (s *repairShell) Receive() ([]uint64, error) {
	n := new(int64)
	from := here().callOut(C.came_function(), uint64(uintptr(unsafe.Pointer(s.base.c))),
		C.SPX_CTX_P2P, invitationTag, uint64(uintptr(unsafe.Pointer(n))))
	if from < 0 {
		return nil, nil
	}
	words := make([]uint64, *n/8)
	if _, err := here().exchange(s.base.c, C.SPX_CTX_P2P,
		[]message{{int(from), invitationTag, bytesOf(words)}}, nil); err != nil {
		return nil, nil // its sender has died: other members send it, too
	}
	return words, nil
}

func (s *repairShell) Together(active repair.Comm) error {
	return s.together(commOf(active.(repairComm).handle))
}

// bytesOf is the memory of words.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// repairComm is a communicator of a repair. The program may have freed it, if it was an active one.
type repairComm struct {
	s      *repairShell
	handle uintptr
}

func (s *repairShell) comm(o *commObject) repair.Comm {
	if o == nil {
		return nil
	}
	return repairComm{s, o.handle()}
}

func (k repairComm) obj() *commObject { return commOf(k.handle) }

func (k repairComm) Members() []int {
	o := k.obj()
	members := make([]int, o.c.size)
	for i, p := range ranksOf(o.c.local, o.c.size) {
		members[i] = k.s.memberOf[p]
	}
	return members
}

func (k repairComm) Revoke() {
	if o := k.obj(); o != nil {
		o.revoke()
	}
}

func (k repairComm) Revoked() bool {
	return atomic.LoadUint32((*uint32)(C.revoked_word(k.obj().c))) != 0
}

func (k repairComm) Broken() bool { return k.Revoked() || C.spx_comm_failures(k.obj().c) > 0 }

func (k repairComm) Decide(flags uint32) (uint32, repair.Comm, error) {
	decided, next, err := k.obj().decide(flags)
	return decided, k.s.comm(next), err
}

func (k repairComm) Agree(ok bool) bool { return k.obj().agree(ok) }

func (k repairComm) Greatest(value int) (int, error) {
	all, err := here().greatest(k.obj().c, []int64{int64(value)})
	if err != nil {
		return 0, err
	}
	return int(all[0]), nil
}

func (k repairComm) Split(in bool, key int) (repair.Comm, error) {
	o, err := k.obj().splitOff(in, key)
	return k.s.comm(o), err
}

func (k repairComm) Free() { freeComm(k.handle) }
