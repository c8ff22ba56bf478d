package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/process"
	"libspx/launch/service"
)

// gate keeps the processes of this host in MPI_Init, so that a debugger sees them from the
// beginning: they read a pipe without a writer, until its other end is closed. It is closed by
// the end of this process, too.
type gate struct {
	open sync.Once
	end  int  // write end; 0: there is no gate
	told bool // spxrun has the table
}

// released is spxrun's word to let the processes go, as soon as debuggers have come for some of
// them.
type released struct{ r *control.Release }

// tracerPoll is how often is looked whether a debugger has come.
const tracerPoll = 20 * time.Millisecond

// shut makes the gate before processes are started.
func (a *agent) shut() error {
	if !a.spec.Hold {
		return nil
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(p[0])
	a.gate.end = p[1]
	return unix.Dup3(p[0], control.GateFD, unix.O_CLOEXEC)
}

// behind makes the process one that waits at the gate.
func (g *gate) behind(s *process.Spec) {
	if g.end != 0 {
		s.Share = append(s.Share, control.GateFD)
		s.Env = append(s.Env, service.EnvGate+"="+strconv.Itoa(control.GateFD))
	}
}

// tellTable tells spxrun all processes, once they have been made.
func (a *agent) tellTable() {
	if !a.spec.Hold || a.up != nil || a.gate.told || a.machine.Ending() {
		return
	}
	a.gate.told = true
	var table []control.Process
	for i := range a.ranks {
		r := &a.ranks[i]
		p := control.Process{Host: a.host, Pid: r.pid, Here: r.host == a.self,
			File: a.spec.Programs[r.program].Argv[0]}
		if r.host != a.self {
			p.Host = a.spec.Hosts[r.host]
		} else if file, err := os.Readlink("/proc/" + strconv.Itoa(r.pid) + "/exe"); err == nil {
			p.File = file
		}
		if !filepath.IsAbs(p.File) && strings.Contains(p.File, "/") {
			p.File = filepath.Join(a.spec.Dir, p.File)
		}
		table = append(table, p)
	}
	a.tell(&control.Message{Table: table})
}

// release opens the gate here, and has it opened on the other hosts.
func (a *agent) release(r *control.Release) {
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Release: r})
		}
	}
	if a.gate.end == 0 {
		return
	}
	var pids []int
	for _, i := range r.Traced {
		if i >= 0 && i < len(a.ranks) && a.ranks[i].host == a.self {
			pids = append(pids, a.ranks[i].pid)
		}
	}
	go func() {
		for len(pids) > 0 && !traced(pids) {
			time.Sleep(tracerPoll) // there is no event for the arrival of a tracer
		}
		a.gate.open.Do(func() {
			unix.Close(control.GateFD)
			unix.Close(a.gate.end)
		})
	}()
}

// traced tells whether each of the processes has a tracer, or has ended.
func traced(pids []int) bool {
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil || strings.Contains(string(status), "\nState:\tZ") {
			continue
		}
		_, rest, _ := strings.Cut(string(status), "\nTracerPid:\t")
		if line, _, _ := strings.Cut(rest, "\n"); line == "0" {
			return false
		}
	}
	return true
}
