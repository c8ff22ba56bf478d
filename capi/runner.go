package main

/*
#include "comm.h"
#include "request.h"
#include "runner.h"
#include "zz_functions.h"
#include "runtime.h"

#define FUNCTION(f) static uintptr_t f##_function(void) { return (uintptr_t)spx_##f; }
FUNCTION(batch_post)
FUNCTION(batch_wait)
FUNCTION(batch_gather)
FUNCTION(batch_greatest)
FUNCTION(batch_bcast)
FUNCTION(event_wait)
FUNCTION(ticket_wait)
FUNCTION(progress_made)

static bool is_done(spx_request *r) { return spx_request_done(r); }
*/
import "C"

import (
	"errors"
	"iter"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
)

// runner is what a body runs on that may wait: a coroutine of the thread that called MPI. No Go
// frame may be below a wait, which runs functions of the program, since these may leave it by
// longjmp. So a body that waits asks for a call-out and stops where it is; the entry into Go
// returns; the shim's thread waits in C, comes back, and the body goes on behind its call:
//
//	shim            entry (spxGoEnter)      runner: the body
//	spx_go --------> begin ---------------> via.Split(...)
//	                                         link.Recv
//	                 <------- leave -------- r.callOut(batch_wait)
//	<- "call this"
//	spx_batch_wait, with no Go frame below
//	   spx_wait -> callbacks -> longjmp?  then, with the thread's next call of MPI:
//	"it returned" -> goOn ------------->     -> link.Recv returns
//	                                         ...
//	<--------------- <--- body is over ----- return
//
// A body whose wait was left by longjmp is ended: callOut does not return but unwinds it, so that
// what it has deferred is done. It must not hold a lock while it waits. It goes on in no other
// thread than that which has called it, as the Go runtime demands of coroutines of threads that are
// not its own.
type runner struct {
	id    uint32 // in runners
	next  func() (struct{}, bool)
	stop  func()
	leave func(struct{}) bool

	body  func() error
	out   *callOut // the call-out that the body waits for
	ret   int64    // the result of that
	err   error    // of the body
	crash string   // it has panicked
	gone  bool     // its wait was left by longjmp
}

// unwound is the panic that ends a body whose wait was left.
type unwound struct{}

var runners table[runner]

// mayWait reports whether the body of an entry needs a runner. The others are sure not to wait:
// here panics when they do.
func mayWait(fn uint32) bool {
	if fn < C.SPX_IN_FIRST {
		does := *(*C.uint8_t)(unsafe.Add(unsafe.Pointer(&C.spx_fn_does), fn))
		return does&C.SPX_DOES_LOCAL == 0 ||
			fn == C.SPX_FN_SP_World_left
	}
	switch fn {
	case C.SPX_IN_FT, C.SPX_IN_PLAN, C.SPX_IN_TYPE_COMMIT, C.SPX_IN_TYPE_FREE, C.SPX_IN_CONTEXTS,
		C.SPX_IN_UNSETTLED, C.SPX_IN_STOPPED, C.SPX_IN_WIN_RANKS,
		C.SPX_IN_SYSTEM_REFUSE:
		return false
	}
	return true
}

func newRunner(body func() error) *runner {
	r := &runner{body: body}
	r.next, r.stop = iter.Pull(r.run)
	r.id = runners.add(r)
	return r
}

// run is the coroutine.
func (r *runner) run(leave func(struct{}) bool) {
	defer func() {
		if why := recover(); why != nil && why != (unwound{}) {
			r.crash = panicked(why, debug.Stack())
		}
	}()
	r.leave = leave
	r.err = r.body()
}

// goOn lets the body run until it waits, or is over. now is where the thread notes the runner that
// it is in. It returns the body's error, or the call-out that it waits for.
func (r *runner) goOn(now *uint32) (error, bool) {
	outer := *now
	*now = r.id
	_, waits := r.next()
	*now = outer
	if waits {
		return r.out, true
	}
	runners.remove(r.id)
	return r.err, r.crash == ""
}

// end ends the body, whose wait was left; false: it has panicked.
func (r *runner) end(now *uint32) bool {
	outer := *now
	*now = r.id
	r.gone = true
	r.stop()
	*now = outer
	runners.remove(r.id)
	return r.crash == ""
}

// here is the runner of the body that calls it.
func here() *runner {
	r := runners.get(uint32(C.spx_runner_now()))
	if r == nil {
		panic(
			"libspx: a body waits that is not to wait: mayWait in capi/runner.go does not know it")
	}
	return r
}

// callOut has the shim call fn, a hidden C function of the library's, and returns what it has
// returned. What args point at has to stay where it is until then, and also when it was left:
// memory of Go's to which something that is pending may still write belongs into a batch.
func (r *runner) callOut(fn C.uintptr_t, args ...uint64) int64 {
	return r.callOutOf(coInternal, uintptr(fn), args)
}

// callOutOf is callOut of any kind.
func (r *runner) callOutOf(kind uint32, fn uintptr, args []uint64) int64 {
	r.out = &callOut{kind: kind, fn: fn, args: args, run: r}
	if r.gone || !r.leave(struct{}{}) {
		panic(unwound{})
	}
	return r.ret
}

// message is one of an exchange.
type message struct {
	peer, tag int
	data      []byte
}

// batch is what is sent and received at once (bodies/runner.h), and the memory that it needs.
type batch struct {
	c    *C.spx_batch
	data any
	over func() // unless nil: called when no memory is needed any more
}

func newBatch(c *C.spx_comm, context C.uint32_t, receives, n int, data any) (*batch, error) {
	sweepBatches()
	b := &batch{c: C.spx_batch_new(c, context, C.int(receives), C.int(n)), data: data}
	if b.c == nil {
		return nil, mpierr.New(mpierr.NoMem, "no memory for %d messages", n)
	}
	return b, nil
}

func (b *batch) ends(cancel bool) bool {
	if !C.spx_batch_end(b.c, C.bool(cancel)) {
		return false
	}
	if b.over != nil {
		b.over()
	}
	return true
}

// messages are those of the batch, to be filled.
func (b *batch) messages() []C.struct_spx_batch_message {
	return unsafe.Slice((*C.struct_spx_batch_message)(
		unsafe.Add(unsafe.Pointer(b.c), unsafe.Sizeof(*b.c))), int(b.c.n))
}

// put makes m the message number i.
func (b *batch) put(i int, m message) {
	to := &b.messages()[i]
	to.peer, to.tag, to.bytes = C.int64_t(m.peer), C.int64_t(m.tag), C.int64_t(len(m.data))
	to.data = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(m.data))))
}

// leftBatches are those of bodies that have ended while something was pending.
var leftBatches struct {
	mu   sync.Mutex
	list []*batch // guarded by mu
}

// isOver reports whether nothing of the batch is pending.
func (b *batch) isOver() bool {
	for _, m := range b.messages() {
		if m.r != nil && !bool(C.is_done(m.r)) {
			return false
		}
	}
	return true
}

// end frees the batch. What is still pending, as the wait was left, is cancelled or, where it has
// begun, goes on; its memory stays as long.
func (b *batch) end() {
	if b != nil && !b.ends(true) {
		b.keep()
	}
}

// leave frees the batch when what is pending is over.
func (b *batch) leave() {
	if !b.ends(false) {
		b.keep()
	}
}

func (b *batch) keep() {
	leftBatches.mu.Lock()
	defer leftBatches.mu.Unlock()
	leftBatches.list = append(leftBatches.list, b)
}

// sweepBatches frees those that were left and are over by now.
func sweepBatches() {
	leftBatches.mu.Lock()
	defer leftBatches.mu.Unlock()
	kept := leftBatches.list[:0]
	for _, b := range leftBatches.list {
		if !b.ends(false) {
			kept = append(kept, b)
		}
	}
	clear(leftBatches.list[len(kept):])
	leftBatches.list = kept
}

// exchange sends and receives messages, all at once, and waits for them. It returns the length of
// the first that was received.
func (r *runner) exchange(c *C.spx_comm, context C.uint32_t, receives, sends []message) (int,
	error) {
	all := append(append(make([]message, 0, len(receives)+len(sends)), receives...), sends...)
	b, err := newBatch(c, context, len(receives), len(all), all)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	defer b.end()
	for i, m := range all {
		b.put(i, m)
	}
	first := &b.messages()[0]
	if C.spx_batch_begin(b.c) {
		return int(first.bytes), nil
	}
	err = r.wait(b, false)
	return int(first.bytes), err
}

// wait waits for the messages of a batch. early: it returns when one has failed; else nothing is
// pending when it returns.
func (r *runner) wait(b *batch, early bool) error {
	stop := uint64(0)
	if early {
		stop = 1
	}
	return linkError(C.int(r.callOut(C.batch_wait_function(), uint64(uintptr(unsafe.Pointer(b.c))),
		stop)))
}

// begin begins the messages of a batch, which go on while the program does.
func (r *runner) begin(b *batch) {
	if !C.spx_batch_begin(b.c) && b.c.begun == 0 {
		r.callOut(C.batch_post_function(), uint64(uintptr(unsafe.Pointer(b.c))))
	}
}

// settle waits for the messages of a batch, and frees it. failed is called when one has failed; the
// rest end by that.
func (r *runner) settle(b *batch, failed func()) error {
	if err := r.wait(b, true); err != nil {
		failed()
		r.wait(b, false) //nolint:errcheck // the first error counts
		b.end()
		return err
	}
	b.end()
	return nil
}

// gather gives all processes the words of each process of c, by rank. When it is left, the peers
// still get this process's part.
func (r *runner) gather(c *C.spx_comm, mine, all []uint64) error {
	b, err := newBatch(c, C.SPX_CTX_COLL, 1, 1, [2][]uint64{mine, all})
	if err != nil {
		return err
	}
	defer b.end()
	return linkError(C.int(r.callOut(C.batch_gather_function(),
		uint64(uintptr(unsafe.Pointer(b.c))),
		uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mine)))),
		uint64(uintptr(unsafe.Pointer(unsafe.SliceData(all)))), uint64(8*len(mine)))))
}

// greatest gives all processes the greatest of each of their values. When it is left, the peers
// still get this process's part.
func (r *runner) greatest(c *C.spx_comm, values []int64) ([]int64, error) {
	all := make([]int64, len(values))
	b, err := newBatch(c, C.SPX_CTX_COLL, 1, 1, [2][]int64{values, all})
	if err != nil {
		return nil, err
	}
	defer b.end()
	err = linkError(C.int(r.callOut(C.batch_greatest_function(),
		uint64(uintptr(unsafe.Pointer(b.c))),
		uint64(uintptr(unsafe.Pointer(unsafe.SliceData(values)))),
		uint64(uintptr(unsafe.Pointer(unsafe.SliceData(all)))), uint64(len(values)))))
	return all, err
}

// bcast gives all processes of c the words of rank 0.
func (r *runner) bcast(c *C.spx_comm, words []uint64) error {
	b, err := newBatch(c, C.SPX_CTX_COLL, 1, 1, words)
	if err != nil {
		return err
	}
	defer b.end()
	return linkError(C.int(r.callOut(C.batch_bcast_function(), uint64(uintptr(unsafe.Pointer(b.c))),
		uint64(uintptr(unsafe.Pointer(unsafe.SliceData(words)))), uint64(8*len(words)))))
}

// post sends a message without waiting. The message is lost if it cannot be sent.
func (r *runner) post(c *C.spx_comm, context C.uint32_t, m message) {
	b, err := newBatch(c, context, 0, 1, m)
	if err != nil {
		return
	}
	b.put(0, m)
	if r.callOut(C.batch_post_function(), uint64(uintptr(unsafe.Pointer(b.c)))) != 0 {
		b.end()
		return
	}
	b.leave()
}

// until calls over whenever something has happened, and after each time every (0: not for that
// reason), until it is true; false after limit (0: none).
func (r *runner) until(every, limit time.Duration, over func() bool) bool {
	end := deadline(limit)
	for {
		ticket := C.spx_ticket()
		if over() {
			return true
		}
		now := uint64(monotonic())
		if end != 0 && now >= end {
			return false
		}
		next := end
		if every > 0 && (end == 0 || now+uint64(every) < end) {
			next = now + uint64(every)
		}
		r.callOut(C.ticket_wait_function(), uint64(ticket), next)
	}
}

// deadline is a time on the clock of waits, limit from now; 0 for no limit.
func deadline(limit time.Duration) uint64 {
	if limit <= 0 {
		return 0
	}
	return uint64(monotonic() + limit)
}

// monotonic is the time on the clock of waits.
func monotonic() time.Duration {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) //nolint:errcheck // it exists
	return time.Duration(now.Nano())
}

// finish carries out the call-outs of a function that returns them, one after another, and returns
// its error.
func (r *runner) finish(err error) error {
	for {
		var out *callOut
		if !errors.As(err, &out) || out.next == nil {
			return err
		}
		err = out.next(r.callOutOf(out.kind, out.fn, out.args))
	}
}

// event waits until a number of newFlag's is not 0, while communication continues; false when the
// time is over, or a process of who has failed. A limit of 0 is none.
func (r *runner) event(flag *uint32, who *commObject, limit time.Duration) bool {
	var c *C.spx_comm
	if who != nil {
		c = who.c
	}
	return r.callOut(C.event_wait_function(), uint64(uintptr(unsafe.Pointer(flag))),
		uint64(uintptr(unsafe.Pointer(c))), deadline(limit)) != 0
}

// progress looks for messages, deaths and everything else that may have come.
func (r *runner) progress() { r.callOut(C.progress_made_function()) }
