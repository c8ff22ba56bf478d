package main

/*
#include "runtime.h"
#include "once.h"
*/
import "C"

import (
	"sync/atomic"
	"time"
	"unsafe"

	"libspx/launch/pmi"
	"libspx/launch/service"
)

// A process that another launcher has started, and that ends the job before it is in it (a call of
// MPI before MPI_Init, a setting that is wrong), joins it to report why: mostly all ranks have the
// same message, and only the agents of all hosts can choose the one that prints it. When the job
// does not come together in time, the agent of the host chooses for its own.

func init() { internals[C.SPX_IN_EARLY] = joinToSay }

const earlyLimit = 3 * time.Second

// joinToSay joins the job to print a message. a[0] is the message. a[1] gets the result:
// SPX_EARLY_JOINED, with the memory file in a[2] and the number of this process there in a[3];
// SPX_EARLY_FIRST: this process prints it, and a[2] is its turn; SPX_EARLY_AGAIN: it was printed;
// SPX_EARLY_NOTHING.
func joinToSay(c *call) error {
	set := func(what, x, y int) {
		for i, v := range []int{what, x, y} {
			*(*int64)(unsafe.Pointer(&c.f.a[1+i])) = int64(v)
		}
	}
	set(C.SPX_EARLY_NOTHING, -1, 0)
	if launched.tried {
		if launched.said {
			set(C.SPX_EARLY_AGAIN, -1, 0)
		}
		return nil
	}
	l, err := findLauncher()
	if l == nil || err != nil {
		return nil
	}
	conn, offer, err := announce(l)
	if err != nil {
		return nil
	}
	var late atomic.Bool
	type outcome struct {
		answer *service.Message
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := meetOthers(l, offer)
		if err == nil && late.CompareAndSwap(false, true) {
			answer, err := settle(conn, text)
			done <- outcome{answer, err}
		}
	}()
	select {
	case o := <-done:
		if o.err == nil {
			set(C.SPX_EARLY_JOINED, o.answer.FD, int(o.answer.Slots[0]))
		}
	case <-time.After(earlyLimit):
		if !late.CompareAndSwap(false, true) {
			return nil
		}
		answer, err := askHost(conn, &service.Message{Kind: service.Say, Name: "early: " + c.str(0),
			Text: c.str(0), FD: -1})
		switch {
		case err != nil:
		case answer.Number == service.SaidAgain:
			set(C.SPX_EARLY_AGAIN, -1, 0)
		default:
			set(C.SPX_EARLY_FIRST, conn.FD(), 0)
		}
	}
	return nil
}

// announce registers this process with the host's agent. The offer is rank 0's.
func announce(l pmi.Launcher) (conn *service.Conn, offer string, err error) {
	launched.tried = true
	if conn, err = hostAgent(l.Name()); err != nil {
		return nil, "", err
	}
	rank, size := l.Place()
	join := &service.Message{Kind: service.Join, Number: uint64(rank), World: uint32(size),
		Name: l.Name(), Programs: []service.Program{ownProgram()}, FD: l.Socket()}
	for _, r := range l.Near() {
		join.Slots = append(join.Slots, uint32(r))
	}
	answer, err := askHost(conn, join)
	if err != nil {
		return nil, "", err
	}
	return conn, answer.Text, nil
}

// meetOthers waits for all processes of the job, and returns the offer that rank 0 has put into the
// launcher's key space.
func meetOthers(l pmi.Launcher, offer string) (text []byte, err error) {
	if rank, _ := l.Place(); rank == 0 {
		if err := l.Put(offerKey, []byte(offer)); err != nil {
			return nil, err
		}
	}
	if err := l.Barrier(); err != nil {
		return nil, err
	}
	return l.Get(offerKey)
}
