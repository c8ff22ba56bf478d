package main

/*
#include "ft.h"
#include "share.h"
#include "stat.h"
// Messages are about to be kept for communicators to come.
static void ft_expects(void)
{
  int none = 0;
  __atomic_compare_exchange_n(&spx_ctrl_early, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
// Some communicator is new; none is from now on.
static int ft_has_new(void)
{
  int fresh = 2;
  return __atomic_compare_exchange_n(&spx_ctrl_early, &fresh, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
static void ft_expects_none(void) { __atomic_store_n(&spx_ctrl_early, 0, __ATOMIC_SEQ_CST); }
static void ft_has_parts(uint32_t n) { __atomic_store_n(&spx_ft_parts, n, __ATOMIC_SEQ_CST); }
static void ft_revoked(spx_comm *c)
{
  for (; c; c = c->inner) {
    atomic_store(&c->revoked, 1);
    spx_comm_revoked(c);
  }
}
*/
import "C"

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"libspx/core/mpierr"
	"libspx/ft/agree"
	"libspx/ft/member"
	"libspx/ft/place"
	"libspx/ft/rankset"
)

// The shell around the failure machines of package ft: it feeds them deaths and control messages as
// the data plane reports them, and performs their sends. One machine a communicator, made when it
// is first needed, kept while the communicator lives, and a while longer: members that are behind
// may still query it.
//
// A control message is the communicator's context (8 bytes, little endian), then the message of
// package member.

// ftComm is a communicator's part in the failure protocols. Members are numbered as in ftMembers.
type ftComm struct {
	ctx     uint64
	obj     *commObject // nil once the communicator has been freed
	m       *member.Machine
	procs   []uint32  // process index by member
	rankOf  []int32   // member by process index; -1: none
	state   []uint8   // of each member: SPX_FT_*
	failed  []int     // those known dead, in the order of learning it (MPIX_Comm_get_failed)
	acked   int       // of these, how many have been acknowledged
	waiting []*ftCall // agreements called; the first is running
}

// ftCall is an agreement that was called here and has not returned.
type ftCall struct {
	contribution agree.Contribution
	req          *C.spx_request
	done         func(agree.Decision) error // stores the results; its error is the request's
}

// ftFrame is a control message that came before its communicator.
type ftFrame struct {
	from uint32
	ctx  uint64
	data []byte
}

// maxEarly bounds the control messages kept for communicators that do not exist here yet; the
// oldest go first.
const maxEarly = 4096

// maxRetired bounds the machines kept for communicators that have been freed.
const maxRetired = 64

var ft struct {
	mu      sync.Mutex // never held while waiting; spx_ctrl_send does not wait
	comms   map[uint64]*ftComm
	early   []ftFrame
	retired []uint64
	buf     []byte
}

// revokeHere makes c useless in this process alone: what is pending on it ends.
func revokeHere(c *C.spx_comm) { C.ft_revoked(c) }

// revokedHere are called when a communicator has been revoked, and what was pending on it here has
// ended: features that keep something for communicators register them in an init function. ft.mu is
// held: they do not wait.
var revokedHere []func(*C.spx_comm)

func init() {
	internals[C.SPX_IN_FT] = func(*call) error { ftPoll(); return nil }
	onStart(func(*startInfo) error {
		ft.comms = map[uint64]*ftComm{}
		C.spx_ft_start()
		return nil
	})
	onStopped(func() {
		ft.mu.Lock()
		defer ft.mu.Unlock()
		ft.comms, ft.early, ft.retired = nil, nil, nil
		C.ft_expects_none()
	})
}

// ftMembers lists the processes of a communicator in an order that all of them use: the local
// group, or for an intercommunicator the group that decides for both, then the other.
func ftMembers(o *commObject) (procs []uint32, self int) {
	local := unsafe.Slice((*uint32)(unsafe.Pointer(o.c.local)), int(o.c.size))
	if !o.Inter() {
		return slices.Clone(local), o.Rank
	}
	remote := unsafe.Slice((*uint32)(unsafe.Pointer(o.c.peer)), int(o.c.remote_size))
	if o.First {
		return slices.Concat(local, remote), o.Rank
	}
	return slices.Concat(remote, local), len(remote) + o.Rank
}

// ftOf returns the communicator's part, made if need be. ft.mu is held.
func ftOf(o *commObject) *ftComm {
	ctx := uint64(o.c.ctx)
	if f := ft.comms[ctx]; f != nil {
		return f
	}
	procs, self := ftMembers(o)
	f := &ftComm{ctx: ctx, obj: o, procs: procs, state: make([]uint8, len(procs))}
	f.rankOf = slices.Repeat([]int32{-1}, int(slices.Max(procs))+1)
	for k, p := range procs {
		f.rankOf[p] = int32(k)
	}
	C.spx_ft_hold((*C.uint32_t)(&f.procs[0]), (*C.uint8_t)(&f.state[0]), C.uint32_t(len(procs)),
		C.uint32_t(self))
	f.m = member.New(place.New(len(procs), ftHosts(procs), 0, 0), self, f.ended())
	ft.comms[ctx] = f
	sweep()
	kept := ft.early[:0]
	for _, e := range ft.early {
		if e.ctx == ctx {
			f.receive(e.from, e.data)
		} else {
			kept = append(kept, e)
		}
	}
	ft.early = kept
	return f
}

// ftHosts names the host of each process; nil when hosts have not the same numbers for all of them:
// some are of another job.
func ftHosts(procs []uint32) []int {
	hosts := make([]int, len(procs))
	for k, i := range procs {
		p := procOf(i)
		if p.home_job != 0 {
			return nil
		}
		hosts[k] = int(p.host)
	}
	return hosts
}

// ended takes in the members that have ended since the last time, and returns them. Who has called
// MPI_Finalize had returned from its agreements, but can no more forward what a dead member should
// have forwarded.
func (f *ftComm) ended() rankset.Set {
	n := C.uint32_t(len(f.procs))
	if C.spx_ft_look((*C.uint32_t)(&f.procs[0]), (*C.uint8_t)(&f.state[0]), n) == 0 {
		return rankset.Set{}
	}
	var now []int
	for k, state := range f.state {
		if state&C.SPX_FT_NEWS == 0 {
			continue
		}
		f.state[k] &^= C.SPX_FT_NEWS
		now = append(now, k)
		if state&C.SPX_FT_DEAD != 0 {
			f.fails(k)
		}
	}
	return rankset.Of(now...)
}

// fails processes a death. A decision may report it before this host's agent does: an excluded
// member is known to have failed.
func (f *ftComm) fails(member int) {
	if !slices.Contains(f.failed, member) {
		f.failed = append(f.failed, member)
	}
}

// letGo releases the ways to those members that can need the machine of a freed communicator no
// more, or (all) to all members. Until then they stay open: a member that is behind may need this
// one when those between have died, though no communicator leads there any more.
func (f *ftComm) letGo(all bool) {
	procs, state, n := (*C.uint32_t)(&f.procs[0]), (*C.uint8_t)(&f.state[0]),
		C.uint32_t(len(f.procs))
	C.spx_ft_look(procs, state, n)
	force := C.int(0)
	if all {
		force = 1
	}
	C.spx_ft_let_go(procs, state, n, force)
}

// ftLetGo releases the ways that freed communicators still hold: before processes come or go.
func ftLetGo() {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	if ft.comms != nil {
		sweep()
	}
}

// ftPoll is the data plane's hook: it processes deaths and control messages.
func ftPoll() {
	checkArrived()
	layoutPoll()
	ft.mu.Lock()
	defer ft.mu.Unlock()
	if ft.comms == nil {
		return
	}
	sweep()
	for _, f := range ft.comms {
		if ended := f.ended(); !ended.Empty() {
			f.act(f.m.Failed(ended))
		}
	}
	ftArrived()
	for {
		frame, ok := ftNext()
		if !ok {
			return
		}
		if f := ftFind(frame.ctx); f != nil {
			f.receive(frame.from, frame.data)
			continue
		}
		C.ft_expects()
		// it has arrived just now, and its maker has not seen that it was expected
		if f := ftFind(frame.ctx); f != nil {
			f.receive(frame.from, frame.data)
			continue
		}
		if len(ft.early) == maxEarly {
			ft.early = ft.early[1:]
		}
		ft.early = append(ft.early, frame)
	}
}

// ftFind gives the part of the communicator with a context, if there is one here. ft.mu is held.
func ftFind(ctx uint64) *ftComm {
	if f := ft.comms[ctx]; f != nil {
		return f
	}
	if o := commWithContext(ctx); o != nil {
		return ftOf(o)
	}
	return nil
}

// ftArrived delivers messages that came too early for communicators that have been made since.
// ft.mu is held.
func ftArrived() {
	if C.ft_has_new() == 0 {
		return
	}
	looked := map[uint64]bool{}
	for _, frame := range slices.Clone(ft.early) {
		if !looked[frame.ctx] {
			looked[frame.ctx] = true
			ftFind(frame.ctx) // the part begins with what is there for it
		}
	}
	if len(ft.early) == 0 {
		C.ft_expects_none()
	}
}

// ftNext takes the oldest control message that has arrived. Messages without a context are dropped.
func ftNext() (ftFrame, bool) {
	for {
		if ft.buf == nil {
			ft.buf = make([]byte, 4096)
		}
		var from C.uint32_t
		n := int(C.spx_ctrl_recv(unsafe.Pointer(&ft.buf[0]), C.uint32_t(len(ft.buf)), &from))
		switch {
		case n < 0:
			return ftFrame{}, false
		case n > len(ft.buf):
			ft.buf = make([]byte, n)
		case n >= 8:
			return ftFrame{uint32(from), binary.LittleEndian.Uint64(ft.buf),
				slices.Clone(ft.buf[8:n])}, true
		}
	}
}

// commWithContext finds a communicator of this process.
func commWithContext(ctx uint64) *commObject {
	if c := C.spx_lite_dup_with_context(C.uint64_t(ctx)); c != nil {
		return commOf(uintptr(c.o.handle))
	}
	comms.mu.RLock()
	defer comms.mu.RUnlock()
	for _, o := range comms.objs {
		if o != nil && uint64(o.c.ctx) == ctx && o.c.o.handle != 0 {
			return o
		}
	}
	return nil
}

// receive hands a control message to the machine. What strangers send, and what is malformed, has
// no effect.
func (f *ftComm) receive(from uint32, data []byte) {
	if int(from) >= len(f.rankOf) || f.rankOf[from] < 0 {
		return
	}
	if out, err := f.m.Receive(int(f.rankOf[from]), data); err == nil {
		f.act(out)
	}
}

// act performs the actions that the machine requests.
func (f *ftComm) act(out member.Output) {
	if out.Fresh != 0 && f.obj != nil && !f.obj.Inter() {
		// the collectives of the future communicator; its other members cannot use it yet
		C.spx_share_offer(C.uint64_t(out.Fresh))
	}
	for _, s := range out.Sends {
		data := append(binary.LittleEndian.AppendUint64(nil, f.ctx), s.Data...)
		C.spx_ctrl_send(C.uint32_t(f.procs[s.To]), unsafe.Pointer(unsafe.SliceData(data)),
			C.uint32_t(len(data)))
	}
	if out.Revoked && f.obj != nil && uint64(f.obj.c.ctx) == f.ctx { // not freed in the meantime
		revokeHere(f.obj.c)
		for _, fn := range revokedHere {
			fn(f.obj.c)
		}
	}
	if out.Done != nil && len(f.waiting) > 0 {
		ended := f.waiting[0]
		f.waiting = f.waiting[1:]
		code := 0
		for _, k := range out.Done.Failed.Ranks() {
			f.fails(k)
		}
		if err := ended.done(*out.Done); err != nil {
			code = int(mpierr.ClassOf(err))
		}
		C.spx_complete(ended.req, C.int(code))
		f.next()
	}
}

// next starts the agreement that waits first.
func (f *ftComm) next() {
	if len(f.waiting) > 0 {
		f.act(f.m.Agree(f.waiting[0].contribution))
	}
}

// agreement calls an agreement on argument 0. It starts when those called before have ended.
func (f *ftComm) agreement(a *ftCall) {
	f.waiting = append(f.waiting, a)
	if len(f.waiting) == 1 {
		f.next()
	}
}

// ackedSet is what this process has acknowledged.
func (f *ftComm) ackedSet() rankset.Set { return rankset.Of(f.failed[:f.acked]...) }

// ftGone lists freed communicators that have a machine. It has a lock of its own: communicators are
// also buried while one is made under ft.mu.
var ftGone struct {
	mu      sync.Mutex
	objs    []*commObject
	present atomic.Int32 // machines: 0 means that no machine needs a notification
}

// ftFreed notes that a communicator is gone.
func ftFreed(o *commObject) {
	if ftGone.present.Load() == 0 {
		return
	}
	ftGone.mu.Lock()
	defer ftGone.mu.Unlock()
	ftGone.objs = append(ftGone.objs, o)
}

// sweep retires the machines of freed communicators: they stay a while for members that are behind.
// ft.mu is held.
func sweep() {
	ftGone.mu.Lock()
	gone := ftGone.objs
	ftGone.objs = nil
	ftGone.mu.Unlock()
	for ctx, f := range ft.comms {
		if f.obj != nil && slices.Contains(gone, f.obj) {
			f.obj = nil
			ft.retired = append(ft.retired, ctx)
		}
	}
	for i, ctx := range ft.retired {
		ft.comms[ctx].letGo(i < len(ft.retired)-maxRetired)
	}
	for len(ft.retired) > maxRetired {
		delete(ft.comms, ft.retired[0])
		ft.retired = ft.retired[1:]
	}
	ftGone.present.Store(int32(len(ft.comms)))
	C.ft_has_parts(C.uint32_t(len(ft.comms)))
}
