package main

/*
#include <string.h>
#include "comm.h"
#include "dyprc.h"
static void post(const char *text, uint64_t n, uint64_t number)
{
  memcpy(spx_dyprc_post.text, text, n);
  spx_dyprc_post.text[n] = 0;
  spx_dyprc_post.number = number;
  atomic_store_explicit(&spx_dyprc_post.state, SPX_DYPRC_ARRIVED, memory_order_release);
}
static void post_fails(void) { atomic_store(&spx_dyprc_post.state, SPX_DYPRC_FAILED); }
*/
import "C"

import (
	"slices"
	"sync"
	"unsafe"

	"libspx/core/mpierr"
	"libspx/ft/agree"
	"libspx/launch/service"
)

// What ulfm_dyprc (shim/dyprc*.c) needs of the engine: an agreement of its own, and the way to the agent, which keeps commands for rank 0.

func init() {
	revokedHere = append(revokedHere, func(c *C.spx_comm) { C.spx_dyprc_revoked(c) })
	internals[C.SPX_IN_DYPRC_DECIDE] = dyprcDecide
	internals[C.SPX_IN_DYPRC_MEMBERS] = dyprcMembers
	internals[C.SPX_IN_DYPRC_AWAIT] = dyprcAwait
	internals[C.SPX_IN_DYPRC_DONE] = dyprcDone
	onStopped(dyprcHangUp)
}

// dyprcDecide is an agreement on flags and, if not all living members are calm, a shrink in the same round.
func dyprcDecide(c *call) error {
	o, flags, next := c.comm(0), c.addr(1), c.addr(2)
	*at[uintptr](next) = C.SPX_HANDLE_COMM_NULL
	said := agree.Contribution{Flags: *at[uint32](flags), Context: o.takeContext()}
	return c.startAgreement(-1, said, func(f *ftComm, d agree.Decision) error {
		*at[uint32](flags) = d.Flags
		if d.Flags&C.SPX_DECIDE_CALM != 0 {
			return nil
		}
		return shrunk(o, next)(f, d)
	})
}

// hasAgent: there is an agent without starting one.
func hasAgent() bool {
	ownAgent.mu.Lock()
	defer ownAgent.mu.Unlock()
	return aloneSegment == nil || ownAgent.there
}

// dyprcMembers tells the agent which processes are those of a communicator. When it returns, the agent knows: it is waited for as long as it lives, however busy the hosts are that it asks.
func dyprcMembers(c *call) error {
	if !hasAgent() {
		return nil
	}
	o := c.comm(0)
	procs := slices.Clone(unsafe.Slice((*uint32)(unsafe.Pointer(o.c.local)), int(o.c.size)))
	_, err := ask(world.me.Job, &service.Message{Kind: service.Members, Number: c.word(1), Slots: procs, FD: -1}, mpierr.Other, 0)
	return err
}

// dyprcDone tells the agent what has come of a command.
func dyprcDone(c *call) error {
	_, err := ask(world.me.Job, &service.Message{Kind: service.OrderDone, Number: c.word(0), Text: c.str(1), FD: -1}, mpierr.Other, 0)
	return err
}

// dyprcWait is the connection over which rank 0 waits for a command.
var dyprcWait struct {
	mu   sync.Mutex
	conn *service.Conn
}

// dyprcAwait begins to wait for a command. It comes in spx_dyprc_post.
func dyprcAwait(c *call) error {
	if !hasAgent() {
		return mpierr.New(mpierr.Other, "this process has no agent that could give it commands: start it by spxrun")
	}
	conn, err := service.Dial(world.me.Job)
	if err == nil {
		err = conn.Send(&service.Message{Kind: service.AwaitOrder, Number: c.word(0), FD: -1})
	}
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		return err
	}
	dyprcWait.mu.Lock()
	dyprcWait.conn = conn
	dyprcWait.mu.Unlock()
	go dyprcReceive(conn)
	return nil
}

func dyprcReceive(conn *service.Conn) {
	m, err := conn.Receive()
	dyprcWait.mu.Lock()
	dyprcWait.conn = nil
	conn.Close()
	dyprcWait.mu.Unlock()
	if err != nil || m.Class != 0 || len(m.Text) >= C.SPX_DYPRC_TEXT {
		C.post_fails()
		return
	}
	C.post((*C.char)(unsafe.Pointer(unsafe.StringData(m.Text))), C.uint64_t(len(m.Text)), C.uint64_t(m.Number))
}

// dyprcHangUp makes dyprcReceive return: MPI ends.
func dyprcHangUp() {
	dyprcWait.mu.Lock()
	defer dyprcWait.mu.Unlock()
	if dyprcWait.conn != nil {
		dyprcWait.conn.Hang()
	}
}
