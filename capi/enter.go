package main

/*
#include "runtime.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"libspx/launch/service"
)

// A process that spxrun has started through a wrapper (sh -c, a script that goes into the
// background) is not the one that its agent watches. It sends the agent a pidfd of itself, so that
// the agent notices its end, and ends it when the rank is declared dead.

func init() { onStart(enterJob) }

// entered is the connection to the agent: without its agent this process ends, as one that the
// agent has started does.
var entered *service.Conn

func enterJob(info *startInfo) error {
	if aloneSegment != nil || launched.joined || startedDirectly(info) {
		return nil
	}
	refusal := enterAt(binary.LittleEndian.Uint64(info.JobID[:8]), info.Proc)
	if refusal == "" {
		return nil
	}
	// Nothing of the job's can be used: it counts this rank as dead.
	fmt.Fprintf(os.Stderr, "libspx: rank %d (pid %d) cannot enter its job, and is ended: %s\n",
		info.Rank, os.Getpid(), refusal)
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}

// startedDirectly reports whether this process is the one that the agent has started, even if the
// agent has not published its pid yet. A pid alone proves little: a wrapper may have made a pid
// namespace.
func startedDirectly(info *startInfo) bool {
	agent, err := strconv.Atoi(os.Getenv(service.EnvAgent))
	pid := atomic.LoadUint32((*uint32)(&procOf(info.Proc).pid))
	return err == nil && syscall.Getppid() == agent && (pid == 0 || pid == uint32(syscall.Getpid()))
}

// enterAt returns why the agent refuses this process. An agent that cannot be queried, as by
// another user's process, watches the wrapper alone.
func enterAt(job uint64, proc uint32) (refusal string) {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return ""
	}
	defer unix.Close(self)
	conn, err := service.Dial(job)
	if err != nil {
		return ""
	}
	var answer *service.Message
	if err = conn.Send(&service.Message{Kind: service.Enter, Number: uint64(proc),
		FD: self}); err == nil {
		answer, err = conn.Receive()
	}
	switch {
	case err == nil && answer.Class != 0:
		refusal = answer.Text
	case err == nil && conn.DieWithPeer() == nil:
		entered = conn
		return ""
	}
	conn.Close()
	return refusal
}
