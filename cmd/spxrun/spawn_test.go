package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/core/mpierr"
	"libspx/launch/service"
)

// number is a running job's, from the environment of its processes.
func (r *run) number() uint64 {
	r.t.Helper()
	for _, pid := range r.left() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for kv := range bytes.SplitSeq(environ, []byte{0}) {
			if text, ok := strings.CutPrefix(string(kv), service.EnvJob+"="); ok {
				var n uint64
				id, _ := hex.DecodeString(text)
				for k := range 8 {
					n |= uint64(id[k]) << (8 * k)
				}
				return n
			}
		}
	}
	r.t.Fatal("no rank is running")
	return 0
}

// ask sends a request to the job's agent, as a rank does.
func (r *run) ask(m *service.Message) *service.Message {
	r.t.Helper()
	m.FD = -1
	answer, err := service.Ask(r.number(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer
}

// spawn has n processes of a script started, which write their pids into dir.
func (r *run) spawn(n int, dir, script string) *service.Message {
	r.t.Helper()
	program := service.Program{Argv: []string{"sh", "-c", script}, Procs: uint32(n), Env: append(os.Environ(), r.mark)}
	answer := r.ask(&service.Message{Kind: service.Spawn, Text: "0:0:0:0:0", Programs: []service.Program{program}})
	if answer.Class != 0 || len(answer.Slots) != n || answer.World == 0 {
		r.t.Fatalf("spawning %d processes: %+v", n, answer)
	}
	return answer
}

// Whichever process is killed, spawned processes end with their job.
func TestSpawnedEndWithTheJob(t *testing.T) {
	kill := map[string]func(r *run, first, spawned []int){
		"spxrun": func(r *run, _, _ []int) { r.cmd.Process.Kill() },
		"agent":  func(r *run, _, _ []int) { syscall.Kill(r.agentOf(), syscall.SIGKILL) },
		"all": func(_ *run, first, spawned []int) {
			for _, pid := range append(first, spawned...) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		},
	}
	for who, end := range kill {
		t.Run(who, func(t *testing.T) {
			first, second := t.TempDir(), t.TempDir()
			r := prepare(t, "-n", "2", "sh", "-c", sleeper(first)).start()
			list := pids(t, first, 2)
			r.spawn(3, second, sleeper(second))
			end(r, list, pids(t, second, 3))
			if status := r.wait(); status != 137 {
				t.Errorf("status %d, said %q", status, r.err.String())
			}
		})
	}
}

// The job lasts as long as the spawned processes do; their lines have tags of their own.
func TestJobLastsAsLongAsSpawned(t *testing.T) {
	first := t.TempDir()
	r := prepare(t, "-l", "-n", "1", "sh", "-c", sleeper(first)).start()
	list := pids(t, first, 1)
	second := t.TempDir()
	r.spawn(2, second, "while [ ! -e "+second+"/go ]; do sleep 0.01; done; echo hello")
	syscall.Kill(list[0], syscall.SIGKILL)
	within(t, limit/2, func() string {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/fd/0", list[0])); err == nil {
			return "rank 0 lives"
		}
		return ""
	})
	if err := os.WriteFile(filepath.Join(second, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status := r.wait(); status != 137 || !strings.Contains(r.out.String(), "[w1.0] hello\n") || !strings.Contains(r.out.String(), "[w1.1] hello\n") {
		t.Errorf("status %d, output %q, said %q", status, r.out.String(), r.err.String())
	}
}

// Places of processes that are gone are given to new ones: far more come and go than there is room
// for at one time.
func TestPlacesAreUsedAgain(t *testing.T) {
	dir := t.TempDir()
	r := prepare(t, "-n", "1", "sh", "-c", sleeper(dir)).start()
	pids(t, dir, 1)
	const at, times = 40, 12
	var most uint32
	for k := range times {
		second := t.TempDir()
		answer := r.spawn(at, second, "echo $$ > "+second+"/tmp.$SPX_RANK; mv "+second+"/tmp.$SPX_RANK "+second+"/$SPX_RANK")
		for _, s := range answer.Slots {
			most = max(most, s)
		}
		list := pids(t, second, at)
		within(t, limit/2, func() string {
			for _, pid := range list {
				if syscall.Kill(pid, 0) == nil {
					return fmt.Sprintf("round %d: process %d has not been reaped", k, pid)
				}
			}
			return ""
		})
	}
	if most >= 2*at {
		t.Errorf("place %d was used", most)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.wait(); status != 143 {
		t.Errorf("status %d, said %q", status, r.err.String())
	}
}

// Ports and names, and what is wrong with them.
func TestPortsAndNames(t *testing.T) {
	dir := t.TempDir()
	r := prepare(t, "-n", "1", "sh", "-c", sleeper(dir)).start()
	pids(t, dir, 1)
	class := func(what string, m *service.Message, want mpierr.Class) *service.Message {
		t.Helper()
		answer := r.ask(m)
		if mpierr.Class(answer.Class) != want {
			t.Errorf("%s: class %d instead of %d: %s", what, answer.Class, want, answer.Text)
		}
		return answer
	}
	port := class("open", &service.Message{Kind: service.OpenPort}, 0).Text
	other := class("open another", &service.Message{Kind: service.OpenPort}, 0).Text
	if port == other {
		t.Errorf("two ports are called %s", port)
	}
	class("publish", &service.Message{Kind: service.Publish, Name: "x", Text: port}, 0)
	class("publish again", &service.Message{Kind: service.Publish, Name: "x", Text: port}, mpierr.Service)
	if got := class("look up", &service.Message{Kind: service.Lookup, Name: "x"}, 0).Text; got != port {
		t.Errorf("x is %q, not %q", got, port)
	}
	class("look up what is not there", &service.Message{Kind: service.Lookup, Name: "y"}, mpierr.Name)
	class("unpublish what is not there", &service.Message{Kind: service.Unpublish, Name: "y"}, mpierr.Service)
	class("unpublish", &service.Message{Kind: service.Unpublish, Name: "x"}, 0)
	class("look up what was there", &service.Message{Kind: service.Lookup, Name: "x"}, mpierr.Name)
	class("connect nowhere", &service.Message{Kind: service.Connect, Text: port + "0"}, mpierr.Port)
	class("close", &service.Message{Kind: service.ClosePort, Text: other}, 0)
	class("close again", &service.Message{Kind: service.ClosePort, Text: other}, mpierr.Port)
	class("an unknown question", &service.Message{Kind: 200}, mpierr.Intern)

	// A process that waits at a port is refused when it is closed; one that has gone is not
	// connected.
	gone, err := service.Dial(r.number())
	if err != nil {
		t.Fatal(err)
	}
	gone.Send(&service.Message{Kind: service.Accept, Text: port, FD: -1})
	time.Sleep(10 * time.Millisecond) // whether it has come to wait already or not, it is gone
	gone.Close()
	answers := make(chan *service.Message)
	number := r.number()
	go func() {
		answer, _ := service.Ask(number, &service.Message{Kind: service.Connect, Text: port, FD: -1})
		answers <- answer
	}()
	select {
	case a := <-answers:
		t.Errorf("somebody who has gone was met: %+v", a)
	case <-time.After(100 * time.Millisecond):
	}
	class("close with somebody waiting", &service.Message{Kind: service.ClosePort, Text: port}, 0)
	if a := <-answers; a == nil || mpierr.Class(a.Class) != mpierr.Port {
		t.Errorf("who waited at a port that was closed got %+v", a)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wait()
}
