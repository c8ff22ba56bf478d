package main

/*
#include "dp.h"
#include "settings.h"
*/
import "C"

import (
	"context"
	"sync"
	"time"

	"libspx/net/conn"
	"libspx/net/tcp"
)

// The connections that this process has at most: net/conn.Slots decides which process gets one. A
// slot is taken before a socket is made or accepted for a connection, and given back when it is
// closed: by the code here, where it did not become a connection, else by notice of the data plane.
// The data plane gets the number of waiting ones, and closes what was not used for the longest
// time.

// answerPatience is for how long a caller waits for a connection to be closed for it, before it is
// told to call again. It has a slot of its own end's meanwhile.
const answerPatience = 20 * time.Millisecond

// mostAnswered is the most calls that are answered at once.
const mostAnswered = 128

type slots struct {
	mu    sync.Mutex
	s     *conn.Slots
	ready map[conn.Ticket]chan struct{}
	calls map[int]context.CancelFunc // those that may be abandoned
}

// start has as many as the setting says. Some of those that a user allows are kept for calls that
// are answered, until it is decided about them: so whoever calls gets an answer. What follows from
// the number of descriptors leaves enough of them. It returns the number of connections, and that
// of calls answered at once.
func (p *slots) start(self uint32, most uint64) (connections uint64, answered int) {
	answered = mostAnswered
	if _, set := connectionsAllowed(); set {
		answered = keptForAnswers(most)
		most -= uint64(answered)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.s = conn.NewSlots(int(self), int(most))
	p.ready, p.calls = map[conn.Ticket]chan struct{}{}, map[int]context.CancelFunc{}
	p.settle()
	return most, answered
}

// keptForAnswers is how many of the connections that a user allows are kept for calls that are
// answered.
func keptForAnswers(most uint64) int { return int(min(max(most/8, 1), mostAnswered)) }

// settle does what follows from a change. Under mu.
func (p *slots) settle() {
	for {
		t, ok := p.s.Grant()
		if !ok {
			break
		}
		close(p.ready[t])
		delete(p.ready, t)
	}
	for {
		peer, ok := p.s.GiveWay()
		if !ok {
			break
		}
		if end := p.calls[peer]; end != nil {
			end()
		}
	}
	C.spx_net_slots(C.uint32_t(p.s.Used()), C.uint32_t(p.s.Wanted()))
}

// try takes a slot, if there is one that no other waits for.
func (p *slots) try() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.s.Try()
	p.settle()
	return got
}

// give gives a slot back.
func (p *slots) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.s.Give()
	p.settle()
}

// limit: the data plane has found out that there are descriptors for so many.
func (p *slots) limit(most uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.s.Limit(int(most))
	p.settle()
}

// wait waits for the slot of a ticket, until one of the events. Under mu when it is called, and not
// any more when it returns. False: there is none.
func (p *slots) wait(t conn.Ticket, limit <-chan time.Time, end, there <-chan struct{}) bool {
	ready := make(chan struct{})
	p.ready[t] = ready
	p.settle()
	p.mu.Unlock()
	select {
	case <-ready:
		return true
	case <-limit:
	case <-end:
	case <-there:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.s.Withdraw(t) {
		return true
	}
	delete(p.ready, t)
	p.settle()
	return false
}

// call waits for a slot to call to, and takes it; false: end, or there, came first. The call is
// made by ctx, which ends if it has to be abandoned; over is to be called when it has ended.
func (p *slots) call(to tcp.Process, end, there <-chan struct{}) (ctx context.Context, over func(),
	ok bool) {
	p.mu.Lock()
	t, ok := p.s.Call(int(to.Number))
	if !ok {
		if ok = p.wait(t, nil, end, there); !ok {
			return nil, nil, false
		}
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	p.calls[int(to.Number)] = cancel
	p.settle()
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		cancel()
		delete(p.calls, int(to.Number))
		p.s.Called(int(to.Number))
		p.settle()
	}, true
}

// answer takes a slot for one that has called, and waits a moment for it.
func (p *slots) answer(from tcp.Process) bool {
	p.mu.Lock()
	t, ok := p.s.Answer(int(from.Number))
	if !ok {
		return p.wait(t, time.After(answerPatience), nil, nil)
	}
	defer p.mu.Unlock()
	p.settle()
	return true
}
