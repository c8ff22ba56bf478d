package main

/*
#include "comm.h"
*/
import "C"

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/ft/malleable"
	"libspx/launch/service"
)

// The part of ulfm_dyprc that deals with the agent, which keeps commands for rank 0, and with the
// system.

func init() { onStopped(dyprcHangUp) }

// hasAgent: there is an agent without starting one.
func hasAgent() bool {
	ownAgent.mu.Lock()
	defer ownAgent.mu.Unlock()
	return aloneSegment == nil || ownAgent.there
}

// Members sends the agent the processes of w. When it returns, the agent has them: it is waited for
// as long as it lives, however busy the hosts are that it queries.
func (dyprcShell) Members(w malleable.World, epoch uint64) (least uint64, ok bool) {
	if !hasAgent() {
		return 0, true
	}
	o := w.(dyprcWorld).obj()
	procs := slices.Clone(ranksOf(o.c.local, o.c.size))
	answer, err := ask(world.me.Job, &service.Message{Kind: service.Members, Number: epoch,
		Slots: procs, FD: -1}, mpierr.Other, 0)
	if err != nil {
		return 0, false
	}
	return answer.Number, true
}

// Report sends the agent the outcome of a command. If the agent is gone, so is the job.
func (dyprcShell) Report(number uint64, text string) {
	// see above
	ask(world.me.Job, &service.Message{Kind: service.OrderDone, Number: number, Text: text, FD: -1}, mpierr.Other, 0) //nolint:errcheck
}

// dyprcMail is the command that is on its way from the agent to rank 0, over a connection on which
// a goroutine waits for it.
var dyprcMail struct {
	mu sync.Mutex
	// guarded by mu, as the rest; it stays set when the connection has failed
	begun  bool
	conn   *service.Conn    // nil: none is waiting
	letter *service.Message // it has come
}

// Mail sees to it that a command of the agent's arrives.
func (dyprcShell) Mail(after uint64) (text string, number uint64, ok bool) {
	dyprcMail.mu.Lock()
	defer dyprcMail.mu.Unlock()
	if m := dyprcMail.letter; m != nil {
		dyprcMail.letter, dyprcMail.begun = nil, false
		return m.Text, m.Number, true
	}
	if dyprcMail.begun || !hasAgent() {
		return "", 0, false
	}
	conn, err := service.Dial(world.me.Job)
	if err == nil {
		err = conn.Send(&service.Message{Kind: service.AwaitOrder, Number: after, FD: -1})
	}
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		return "", 0, false
	}
	dyprcMail.begun, dyprcMail.conn = true, conn
	go dyprcReceive(conn)
	return "", 0, false
}

func dyprcReceive(conn *service.Conn) {
	m, err := conn.Receive()
	dyprcMail.mu.Lock()
	defer dyprcMail.mu.Unlock()
	dyprcMail.conn = nil
	conn.Close()
	if err == nil && m.Class == 0 && len(m.Text) <= malleable.TextMax {
		dyprcMail.letter = m
	}
}

// dyprcHangUp makes dyprcReceive return: MPI ends.
func dyprcHangUp() {
	dyprcMail.mu.Lock()
	defer dyprcMail.mu.Unlock()
	if dyprcMail.conn != nil {
		dyprcMail.conn.Hang()
	}
}

// startOf reads the start of a process, in ticks since the machine began, in /proc/PID/stat: the
// 20th field behind the name, which may hold anything.
func startOf(stat string) (int64, bool) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	return ticks, err == nil
}

// mostCommand is more than the bytes of a command line that can be had.
const mostCommand = 1<<17 - 1

// ownCommand is this process's command line, for those that are to be like it.
func ownCommand() ([]string, error) {
	text, err := os.ReadFile("/proc/self/cmdline")
	words := bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0})
	if err != nil || len(text) == 0 || len(text) >= mostCommand {
		return nil, mpierr.New(mpierr.Spawn,
			"the command line of this process is not to be read in /proc/self/cmdline")
	}
	var argv []string
	for _, w := range words {
		argv = append(argv, string(w))
	}
	if program, err := os.Readlink("/proc/self/exe"); err == nil &&
		unix.Access(program, unix.X_OK) == nil {
		argv[0] = program
	}
	return argv, nil
}
