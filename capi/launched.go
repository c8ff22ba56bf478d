package main

/*
#include "runtime.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/launch/pmi"
	"libspx/launch/service"
)

// Jobs that another launcher than spxrun has started (PMI-1: Hydra, Slurm, Flux; PMIx: Slurm,
// PRRTE). The process finds the agent that gathers its host's processes, or starts it, and learns
// its place in the job from it (launch/agent/join.go). Two services of the launcher are used: a
// word of rank 0's for all, and one barrier. After MPI_Init only the agent communicates with it.

var launched struct {
	tried    bool // to join, successfully or not: the launcher is not to be called again
	said     bool // why that failed, by another process
	joined   bool
	appnum   int
	listener net.Listener  // on which this process is called, if it is reached over the network
	agent    *service.Conn // open as long as the agent lives: without it, this process ends
}

// offerKey is where rank 0 puts its agent's offer.
const offerKey = "spx-job"

// joinLaunched joins the job that the environment describes, if there is one of several processes.
// c gets the same results as by startAlone.
func joinLaunched(c *call) (bool, error) {
	l, err := findLauncher()
	if l == nil || err != nil {
		return false, launchFailure(err)
	}
	defer l.Close()
	answer, err := meetJob(l)
	if err != nil {
		return false, launchFailure(err)
	}
	launched.joined, launched.appnum = true, l.Appnum()
	*(*int64)(unsafe.Pointer(&c.f.a[0])) = int64(answer.FD)
	*(*int64)(unsafe.Pointer(&c.f.a[1])) = int64(answer.Slots[0])
	*(*int64)(unsafe.Pointer(&c.f.a[2])) = 1
	return true, nil
}

func launchFailure(err error) error {
	if err == nil {
		return nil
	}
	return fail(C.MPI_ERR_OTHER, "%v", err)
}

// findLauncher returns nil for a process that is alone. One process under a launcher is: it has no
// peers.
func findLauncher() (pmi.Launcher, error) {
	place, ok, err := pmi.Find(getenv)
	if ok && place.FD < 0 {
		place, err = pmi.Call(place)
	}
	switch {
	case err != nil:
		return nil, err
	case ok && place.Size > 1:
		return pmi.Open(place)
	case ok:
		if place.Port != "" {
			return nil, pmi.Leave(place)
		}
		return nil, nil
	}
	p, err := findPMIx()
	if p == nil || err != nil {
		return nil, err
	}
	if p.size == 1 {
		p.Close()
		return nil, nil
	}
	return p, nil
}

// meetJob goes the way into the job, up to the answer to Settle.
func meetJob(l pmi.Launcher) (*service.Message, error) {
	conn, offer, err := announce(l)
	if err != nil {
		return nil, err
	}
	text, err := meetOthers(l, offer)
	if err != nil {
		return nil, err
	}
	answer, err := settle(conn, text)
	if err != nil {
		return nil, err
	}
	if answer.Number == 1 {
		if err := takeListener(conn); err != nil {
			return nil, err
		}
	}
	launched.agent = conn
	return answer, conn.DieWithPeer()
}

// settle reports to the host's agent that all processes are there. The answer has the memory file,
// and the number of this process in it.
func settle(conn *service.Conn, offer []byte) (*service.Message, error) {
	answer, err := askHost(conn, &service.Message{Kind: service.Settle, Text: string(offer),
		FD: -1})
	if err != nil {
		launched.said = answer != nil && answer.Number == service.SaidAgain
		return nil, err
	}
	if answer.FD < 0 || len(answer.Slots) != 1 {
		return nil, errors.New("the host's agent has given no memory file")
	}
	return answer, nil
}

// hostAgent is the agent that gathers this host's processes of a job; it is started if it is not
// there.
func hostAgent(job string) (*service.Conn, error) {
	for range 2 {
		conn, listener, err := service.Meet(job)
		if conn != nil || err != nil {
			return conn, err
		}
		err = runAgent(service.JoinWord, listener)
		unix.Close(listener)
		if err != nil {
			return nil, fmt.Errorf("this host's agent for the job cannot be started: %w", err)
		}
	}
	conn, listener, err := service.Meet(job)
	if conn == nil && err == nil {
		unix.Close(listener)
		err = errors.New("this host's agent for the job ends as soon as it is started")
	}
	return conn, err
}

// ownProgram is what this process runs, with the settings of libspx.
func ownProgram() service.Program {
	p := service.Program{Procs: 1, Argv: []string{"?"}}
	if b, err := os.ReadFile("/proc/self/cmdline"); err == nil && len(b) > 0 {
		p.Argv = splitNUL(b)
	}
	for _, v := range currentEnvironment() {
		if strings.HasPrefix(v, "SPX_") {
			p.Env = append(p.Env, v)
		}
	}
	p.Dir, _ = filepath.Abs(".")
	return p
}

// askHost sends a request to the agent and waits for the answer. With an error there is one when
// the agent has refused.
func askHost(conn *service.Conn, m *service.Message) (*service.Message, error) {
	if err := conn.Send(m); err != nil {
		return nil, err
	}
	answer, err := conn.Receive()
	switch {
	case err != nil:
		return nil, fmt.Errorf("this host's agent for the job has gone (%w)", err)
	case answer.Class != 0:
		return answer, errors.New(answer.Text)
	case answer.Kind != m.Kind:
		return nil, fmt.Errorf("this host's agent for the job answers %d to %d", answer.Kind,
			m.Kind)
	}
	return answer, nil
}

// takeListener receives the socket on which this process is to be called.
func takeListener(conn *service.Conn) (err error) {
	m, err := conn.Receive()
	if err != nil || m.FD < 0 {
		return fmt.Errorf("this host's agent for the job has given no socket to listen on (%v)",
			err)
	}
	f := os.NewFile(uintptr(m.FD), "listener")
	defer f.Close()
	launched.listener, err = net.FileListener(f)
	return err
}
