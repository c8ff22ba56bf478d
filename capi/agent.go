package main

/*
#include <stdlib.h>
#include "spawn.h"
static int is_revoked(const spx_comm *c) { return atomic_load(&c->revoked); }
static int failures(const spx_comm *c) { return spx_comm_failures(c); }
*/
import "C"

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/launch/service"
)

// Questions to the agent of this process's job, and to those of other jobs. A process without a
// launcher is its own agent until it needs more: then it starts one.

var ownAgent struct {
	mu    sync.Mutex
	there bool // guarded by mu
}

// self is this process as its job has it: by the pid that the agent sees, which in a pid namespace
// of this process's own is another number than getpid's.
func self() service.Peer {
	pid := uint32(C.spx_proc_of(C.uint32_t(world.proc)).pid)
	if pid == 0 { // the agent has not written it yet
		pid = uint32(syscall.Getpid())
	}
	return service.Peer{ID: world.me, Slot: world.proc, Pid: pid}
}

// ask sends a request to the agent of a job and waits for the answer, while communication
// continues. An error of the agent's is returned with its class; class is that of an agent that
// cannot be reached. A limit of 0 is none.
func ask(job uint64, m *service.Message, class mpierr.Class, limit time.Duration) (*service.Message,
	error) {
	return askFor(nil, job, m, class, limit)
}

// askFor is ask for all processes of a communicator, unless it is nil: there is no answer when one
// of them has failed, or it is revoked.
func askFor(who *commObject, job uint64, m *service.Message, class mpierr.Class,
	limit time.Duration) (*service.Message, error) {
	return askUntil(waiting{who: who, limit: limit}, job, m, class)
}

// waiting is what ends the wait for an answer, beside that.
type waiting struct {
	who   *commObject     // one of its processes has failed, or it is revoked; nil: nothing
	lost  <-chan struct{} // it is closed when a needed process has gone; nil: never
	limit time.Duration   // 0: none
}

func askUntil(w waiting, job uint64, m *service.Message, class mpierr.Class) (*service.Message,
	error) {
	if job == world.me.Job {
		if err := needAgent(class); err != nil {
			return nil, err
		}
	}
	conn, err := service.Dial(job)
	if err != nil {
		return nil, mpierr.New(class, "%v", err)
	}
	defer conn.Close()
	if err := conn.Send(m); err != nil {
		return nil, mpierr.New(class, "%v", err)
	}
	answer, err := await(conn, w, m.Kind == service.Accept || m.Kind == service.Connect)
	switch {
	case err != nil:
		return nil, mpierr.New(class, "%v", err)
	case answer == nil:
		if err := w.who.broken(); err != nil {
			return nil, err
		}
		select {
		case <-w.lost:
			return nil, mpierr.New(class, "the other side has gone")
		default:
			return nil, mpierr.New(class, "no answer within %v", w.limit)
		}
	case answer.Class != 0:
		return answer, mpierr.New(mpierr.Class(answer.Class), "%s", answer.Text)
	}
	return answer, nil
}

// hangUpAfter is how long a living agent needs at most to confirm a withdrawal. A stopped one does
// not delay this process longer.
const hangUpAfter = 2 * time.Second

// broken is why nothing can be done by all processes of a communicator together; nil when it is
// nil.
func (o *commObject) broken() error {
	switch {
	case o == nil:
	case C.is_revoked(o.c) != 0:
		return mpierr.New(errRevoked, "the communicator was revoked")
	case C.failures(o.c) > 0:
		return mpierr.New(errProcFailed,
			"a process of the communicator has failed; MPIX_Comm_get_failed tells which")
	}
	return nil
}

// await receives the answer; nil when it is waited for no longer. If other processes depend on the
// outcome, withdraw is set: then the agent decides whether the answer or the timeout came first, so
// that both sides agree.
func await(conn *service.Conn, w waiting, withdraw bool) (*service.Message, error) {
	const is, vain = 1, 2 // the answer is there; it is waited for in vain
	var answer *service.Message
	var err error
	flag, free := newFlag()
	defer free()
	heard, watched := make(chan struct{}), make(chan struct{})
	go func() {
		answer, err = conn.Receive()
		atomic.StoreUint32(flag, is)
		C.spx_ring_self()
		close(heard)
	}()
	go func() {
		defer close(watched)
		select {
		case <-w.lost:
			if atomic.CompareAndSwapUint32(flag, 0, vain) {
				C.spx_ring_self()
			}
		case <-heard:
		}
	}()
	inTime := false
	settle := sync.OnceFunc(func() { // also when the wait is left
		if !inTime {
			conn.Hang()
		}
		<-heard
		<-watched
	})
	defer settle()
	inTime = here().event(flag, w.who, w.limit) && !atomic.CompareAndSwapUint32(flag, vain, 0)
	if !inTime && withdraw && conn.Send(&service.Message{Kind: service.Withdraw, FD: -1}) == nil {
		inTime = here().event(flag, nil, hangUpAfter) && atomic.LoadUint32(flag) == is
	}
	settle()
	if !inTime && err != nil || err == nil && answer.Kind == service.Withdraw {
		return nil, nil
	}
	return answer, err
}

// meanwhile does work that waits for something outside of MPI, while communication goes on. stop
// makes it end: the wait was left.
func meanwhile(work, stop func()) {
	flag, free := newFlag()
	defer free()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
		atomic.StoreUint32(flag, 1)
		C.spx_ring_self()
	}()
	settle := sync.OnceFunc(func() {
		if atomic.LoadUint32(flag) == 0 {
			stop()
		}
		<-done
	})
	defer settle()
	here().event(flag, nil, 0)
}

// newFlag is a number, 0 at first, that the data plane can wait for.
func newFlag() (flag *uint32, free func()) {
	at := C.calloc(1, 4)
	return (*uint32)(at), func() { C.free(at) }
}

// needAgent starts an agent for a process that no launcher started, once.
func needAgent(class mpierr.Class) error {
	if aloneSegment == nil {
		return nil
	}
	ownAgent.mu.Lock()
	defer ownAgent.mu.Unlock()
	if ownAgent.there {
		return nil
	}
	if err := startAgent(); err != nil {
		return mpierr.New(class,
			"no launcher has started this process, and its own agent cannot be started: %v", err)
	}
	ownAgent.there = true
	return nil
}

func startAgent() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	conn := service.NewConn(pair[0])
	defer conn.Close()
	err = runAgent(service.AdoptWord, pair[1])
	unix.Close(pair[1])
	if err != nil {
		return err
	}
	if err := conn.Send(&service.Message{Kind: service.Adopt, Peer: self(),
		Programs: []service.Program{ownProgram()}, FD: int(aloneSegment.File().Fd())}); err != nil {
		return err
	}
	answer, err := await(conn, waiting{}, false)
	if err == nil && answer.Class != 0 {
		err = mpierr.New(mpierr.Other, "%s", answer.Text)
	}
	return err
}

// runAgent starts an agent, which is no child of this process, with a word for its purpose and a
// descriptor for that.
func runAgent(purpose string, fd int) error {
	path, err := agentProgram()
	if err != nil {
		return err
	}
	cpath, word := C.CString(path), C.CString(purpose)
	errno := C.spx_start_agent(cpath, word, C.int(fd))
	C.free(unsafe.Pointer(cpath))
	C.free(unsafe.Pointer(word))
	if errno != 0 {
		return &os.PathError{Op: "exec", Path: path, Err: syscall.Errno(errno)}
	}
	return nil
}

// agentProgram finds spxrun, which is the agent too: beside the library as installed, or in PATH.
func agentProgram() (string, error) {
	lib, err := filepath.EvalSymlinks(C.GoString(C.spx_library_path()))
	if err == nil {
		path := filepath.Join(filepath.Dir(lib), "..", "bin", "spxrun")
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return exec.LookPath("spxrun")
}
