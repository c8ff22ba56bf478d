package main

/*
#include "ft.h"
static uintptr_t wait_function(void) { return (uintptr_t)spx_ft_wait; }
static void set_failed_seen(spx_comm *c, uint32_t n) { atomic_store(&c->failed_seen, n); }
static int is_revoked(spx_comm *c) { return atomic_load(&c->revoked) != 0; }
*/
import "C"

import (
	"unsafe"

	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/ft/agree"
)

// Bodies of the user-level failure mitigation (ULFM specification 1.0 and its present names).

// Error classes of ULFM.
const (
	errProcFailed        = mpierr.ProcFailed
	errProcFailedPending = mpierr.ProcFailedPending
	errRevoked           = mpierr.Revoked
)

//spx:body MPIX_Comm_revoke
func commRevoke(c *call) error {
	c.comm(0).revoke()
	return nil
}

// revoke makes o useless for all its processes.
func (o *commObject) revoke() {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	f := ftOf(o)
	f.act(f.m.Revoke())
}

//spx:body MPIX_Comm_is_revoked
func commIsRevoked(c *call) error {
	c.setBool(1, C.is_revoked(c.comm(0).c) != 0)
	return nil
}

// startAgreement calls an agreement on argument 0. If req is an argument, the user's request is
// stored there; else the body waits.
func (c *call) startAgreement(req int, contribution agree.Contribution,
	done func(*ftComm, agree.Decision) error) error {
	o := c.comm(0)
	if req < 0 {
		return c.onComm(0, o.agreeOn(contribution, done))
	}
	r := C.spx_ft_request(o.c)
	if r == nil {
		return c.onComm(0, noMemory())
	}
	o.callAgreement(r, contribution, done)
	c.setHandle(req, uintptr(r.o.handle))
	return nil
}

// callAgreement begins an agreement, or queues it behind those that were called before. done,
// called at its end, stores the results; its error is the request's.
func (o *commObject) callAgreement(r *C.spx_request, said agree.Contribution,
	done func(*ftComm, agree.Decision) error) *ftCall {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	f := ftOf(o)
	said.Acked = f.ackedSet()
	a := &ftCall{contribution: said, req: r,
		done: func(d agree.Decision) error { return done(f, d) }}
	f.agreement(a)
	return a
}

// agreeOn is an agreement for which the body waits.
func (o *commObject) agreeOn(said agree.Contribution,
	done func(*ftComm, agree.Decision) error) error {
	r := C.spx_ft_request(nil)
	if r == nil {
		return noMemory()
	}
	var failure error // the text of what went wrong
	a := o.callAgreement(r, said, func(f *ftComm, d agree.Decision) error {
		failure = done(f, d)
		return failure
	})
	defer a.leave() // also when the wait is left
	here().callOut(C.wait_function(), uint64(uintptr(unsafe.Pointer(r))))
	return failure
}

// decide is an agreement on flags and, unless all living members are agree.Calm, a shrink in the
// same round: next is the communicator of the living then.
func (o *commObject) decide(flags uint32) (decided uint32, next *commObject, err error) {
	err = o.agreeOn(agree.Contribution{Flags: flags, Context: o.takeContext()},
		func(_ *ftComm, d agree.Decision) (err error) {
			if decided = d.Flags; decided&agree.Calm == 0 {
				next, err = o.shrink(d)
			}
			return err
		})
	return decided, next, err
}

// agree reports whether all living members have given true.
func (o *commObject) agree(ok bool) (all bool) {
	said := agree.Contribution{}
	if ok {
		said.Flags = 1
	}
	return o.agreeOn(said, func(_ *ftComm, d agree.Decision) error {
		all = d.Flags&1 != 0
		return nil
	}) == nil && all
}

// leave abandons the request of an agreement that no call waits for any more. If the agreement
// continues, its results are not stored: the caller has gone.
func (a *ftCall) leave() {
	ft.mu.Lock()
	defer ft.mu.Unlock()
	a.done = func(agree.Decision) error { return nil }
	C.spx_ft_leave(a.req)
}

// agreed is the outcome of MPIX_Comm_agree: flags goes to addr, and the error is the same at all
// members.
func agreed(addr uintptr) func(*ftComm, agree.Decision) error {
	return func(f *ftComm, d agree.Decision) error {
		*at[int32](addr) = int32(d.Flags)
		if !d.Acked.Contains(d.Failed) {
			return mpierr.New(errProcFailed,
				"members %v of the communicator have failed, and not all have acknowledged it "+
					"(MPIX_Comm_ack_failed); the flag is agreed upon all the same", d.Failed)
		}
		return nil
	}
}

//spx:body MPIX_Comm_agree
func commAgree(c *call) error {
	addr := c.addr(1)
	return c.startAgreement(-1, agree.Contribution{Flags: uint32(*at[int32](addr))}, agreed(addr))
}

//spx:body MPIX_Comm_iagree
func commIagree(c *call) error {
	addr := c.addr(1)
	return c.startAgreement(2, agree.Contribution{Flags: uint32(*at[int32](addr))}, agreed(addr))
}

// survivors takes the members that the decision excludes out of a group of f. first is the number
// of the group's rank 0.
func survivors(g *group.Group, first int, d agree.Decision) (*group.Group, error) {
	var gone []int
	for _, k := range d.Failed.Ranks() {
		if k >= first && k < first+g.Size() {
			gone = append(gone, k-first)
		}
	}
	return g.Excl(gone)
}

// shrunk builds the communicator of the survivors and stores its handle at addr.
func shrunk(o *commObject, addr uintptr) func(*ftComm, agree.Decision) error {
	return func(_ *ftComm, d agree.Decision) error {
		made, err := o.shrink(d)
		if err == nil {
			*at[uintptr](addr) = made.handle()
		}
		return err
	}
}

// shrink builds the communicator of the survivors of a decision.
func (o *commObject) shrink(d agree.Decision) (*commObject, error) {
	m := &comm.Made{Ctx: d.Context, First: o.First}
	localFirst, remoteFirst := 0, o.Group().Size()
	if o.Inter() && !o.First {
		localFirst, remoteFirst = o.RemoteGroup().Size(), 0
	}
	var err error
	if m.Local, err = survivors(o.Group(), localFirst, d); err != nil {
		return nil, err
	}
	m.Rank = m.Local.Rank(world.me)
	if o.Inter() {
		if m.Remote, err = survivors(o.RemoteGroup(), remoteFirst, d); err != nil {
			return nil, err
		}
	}
	return newComm(m, o)
}

//spx:body MPIX_Comm_shrink
func commShrink(c *call) error {
	o := c.comm(0)
	return c.startAgreement(-1, agree.Contribution{Context: o.takeContext()}, shrunk(o, c.addr(1)))
}

//spx:body MPIX_Comm_ishrink
func commIshrink(c *call) error {
	o := c.comm(0)
	return c.startAgreement(2, agree.Contribution{Context: o.takeContext()}, shrunk(o, c.addr(1)))
}

// failedGroup is the group of the first n members that are known to have failed.
func (f *ftComm) failedGroup(o *commObject, n int) *group.Group {
	local, other := o.Group(), o.RemoteGroup()
	if o.Inter() && !o.First {
		local, other = other, local
	}
	ids := make([]ident.ProcID, 0, n)
	for _, k := range f.failed[:n] {
		if k < local.Size() {
			ids = append(ids, local.At(k))
		} else {
			ids = append(ids, other.At(k-local.Size()))
		}
	}
	return group.Of(ids...)
}

// acknowledge makes the first n failures known here acknowledged: receives from any source work
// again.
func (f *ftComm) acknowledge(o *commObject, n int) {
	f.acked = max(f.acked, min(n, len(f.failed)))
	C.set_failed_seen(o.c, C.uint32_t(f.acked))
}

//spx:body MPIX_Comm_get_failed
func commGetFailed(c *call) error {
	o := c.comm(0)
	here().progress()
	ft.mu.Lock()
	f := ftOf(o)
	g := f.failedGroup(o, len(f.failed))
	ft.mu.Unlock()
	return c.setGroup(1, g, nil)
}

//spx:body MPIX_Comm_ack_failed
func commAckFailed(c *call) error {
	o := c.comm(0)
	ft.mu.Lock()
	defer ft.mu.Unlock()
	f := ftOf(o)
	f.acknowledge(o, c.int(1))
	c.setInt(2, f.acked)
	return nil
}

//spx:body MPIX_Comm_failure_ack
func commFailureAck(c *call) error {
	o := c.comm(0)
	here().progress()
	ft.mu.Lock()
	defer ft.mu.Unlock()
	f := ftOf(o)
	f.acknowledge(o, len(f.failed))
	return nil
}

//spx:body MPIX_Comm_failure_get_acked
func commFailureGetAcked(c *call) error {
	o := c.comm(0)
	ft.mu.Lock()
	f := ftOf(o)
	g := f.failedGroup(o, f.acked)
	ft.mu.Unlock()
	return c.setGroup(1, g, nil)
}
