package main

/*
#include "dp.h"
#include "net_conn.h"
#include "runtime.h"
#include "transport.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"libspx/net/tcp"
)

// Calls: a goroutine for each process that the data plane wants a connection with, until there is
// one from whichever end, or the process is gone (net.go).

// fullPause is how long a process that had no connection to spare is left alone, at most, more or
// less.
const fullPause = 16 * time.Millisecond

// errGaveWay: a call was given up for one that has called this process.
var errGaveWay = errors.New("a call gave way to another one")

// complainAfter is how long a process may be out of reach before its user is told.
const complainAfter = 10 * time.Second

// callUntil calls one process until there is a connection, from whichever end, or the process is
// gone.
func callUntil(p tcp.Process) {
	s := &netState
	began, pause, told := time.Now(), time.Millisecond, false
	// the latest that says more than that there was no answer: who rejects does not do so each time
	var why error
	if !beginCalling(p) {
		return
	}
	for mayCall(p) {
		c, verdict, err := callOnce(p)
		if err == nil && verdict == tcp.Taken {
			handed := handOver(c, p)
			comes(p)
			if handed || !beginCalling(p) {
				return
			}
		}
		full := err == nil && verdict == tcp.Full || errors.Is(err, errGaveWay)
		if full && endCalling(p) {
			C.spx_net_declined(C.uint32_t(p.Number), C.uint32_t(p.Life))
			return
		}
		if full { // those who are in each other's way do not call again at the same time
			err, pause = nil, min(pause, fullPause)
			pause = pause/2 + rand.N(pause)
		}
		if err != nil && (why == nil || !tcp.IsTimeout(err)) {
			why = err
		}
		if err != nil && !told && time.Since(began) > complainAfter && !isGone(p) {
			told = true
			complain(unreached(addressOf(p.Number), why),
				fmt.Sprintf("%v%s cannot be reached at %v from %s (%v): %v%s",
					describe(p), onHost(p), addressOf(p.Number), hostName(),
					addressOf(s.id.Self.Number).Addr(), why, cause(why)))
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// beginCalling is false when another goroutine calls p already.
func beginCalling(p tcp.Process) bool {
	netState.mu.Lock()
	defer netState.mu.Unlock()
	pair := pairWith(p)
	if pair.wanted {
		return false
	}
	pair.wanted = true
	return true
}

// mayCall is false, and ends the calling, when there is a connection with p or p is gone.
func mayCall(p tcp.Process) bool {
	netState.mu.Lock()
	defer netState.mu.Unlock()
	pair := pairWith(p)
	pair.wanted = !pair.made && !isGone(p)
	return pair.wanted
}

// endCalling ends the calling of a process that has no connection to spare, where messages go
// through others then.
func endCalling(p tcp.Process) bool {
	s := &netState
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := pairWith(p)
	if pair.made || pair.answering || s.policy.few == 0 || isAbroad(p.Number) ||
		int(p.Number) >= len(s.kept) || s.kept[p.Number] {
		return false
	}
	pair.wanted = false
	return true
}

// callOnce is one try. A connection that it returns is the pair's, and ends the calling; it is to
// be handed over.
func callOnce(p tcp.Process) (c net.Conn, verdict tcp.Verdict, err error) {
	s := &netState
	ctx, over, ok := slotToCall(p)
	if !ok {
		return nil, tcp.Elsewhere, nil
	}
	c, verdict, err = dial(ctx, p)
	if isShort(err) {
		noDescriptors(err)
		c, verdict, err = dial(ctx, p)
	}
	if err != nil && ctx.Err() != nil {
		err = errGaveWay
	}
	over()
	if err != nil || verdict != tcp.Taken {
		s.slots.give()
	}
	if errors.Is(err, tcp.ErrKey) { // who answers is none of the job
		s.server.Refused.Key.Add(1)
	}
	if differ := (*tcp.WaysError)(nil); errors.As(err, &differ) {
		endDiffering(p, differ.Theirs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := pairWith(p)
	pair.calling = false
	if err == nil && verdict == tcp.Taken {
		pair.made, pair.wanted = true, false
	} else {
		comes(p)
	}
	return c, verdict, err
}

// dial calls a process of this job, or of another one.
func dial(ctx context.Context, p tcp.Process) (net.Conn, tcp.Verdict, error) {
	id, to, err := identityFor(p, 0)
	if err != nil {
		return nil, 0, err
	}
	return tcp.DialContext(ctx, addressOf(p.Number).String(), id, to)
}

// slotToCall waits for a slot for a call of p, and takes it. False: there is a connection, or one
// comes.
func slotToCall(p tcp.Process) (ctx context.Context, over func(), ok bool) {
	s := &netState
	s.mu.Lock()
	pair := pairWith(p)
	if pair.made || pair.answering {
		s.mu.Unlock()
		return nil, nil, false
	}
	there := make(chan struct{})
	pair.waits = there
	s.mu.Unlock()
	if ctx, over, ok = s.slots.call(p, s.stop, there); !ok {
		return nil, nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pair.waits = nil
	if pair.made || pair.answering {
		over()
		s.slots.give()
		return nil, nil, false
	}
	pair.calling = true
	C.spx_net_coming(C.uint32_t(p.Number), 1)
	return ctx, over, true
}

// isShort: there are no descriptors left, of this process or on this host.
func isShort(err error) bool {
	return errors.Is(err, syscall.EMFILE) ||
		errors.Is(err, syscall.ENFILE)
}

// noDescriptors has a connection closed that was not used for long, so that another one can be
// made.
func noDescriptors(err error) {
	if isShort(err) {
		spare.give()
		C.spx_net_press()
	}
}

// endDiffering ends the job: messages between these two would not arrive.
func endDiffering(p tcp.Process, theirs string) {
	text := C.CString(fmt.Sprintf(
		"the processes of a job must have the same SPX_CONNECTIONS, SPX_TOPOLOGY and SPX_TLS; "+
			"this one has %s, but %s has %s",
		netState.id.Ways, describe(p), theirs))
	C.spx_end_job(C.MPI_ERR_OTHER, text)
}
