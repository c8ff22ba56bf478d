package dyprc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"libspx/launch/steer"
	"libspx/tests/harness"
)

// ctl runs spxctl, and its output has to match.
func (r *running) ctl(status int, pattern string, args ...string) {
	r.t.Helper()
	o := r.spxctl(args...)
	if o.Status != status || !regexp.MustCompile(pattern).MatchString(o.Stdout+o.Stderr) {
		r.t.Errorf("spxctl %v: exit status %d, no %q in\n%s", args, o.Status, pattern, o.Text())
	}
}

func TestSpxctl(t *testing.T) {
	t.Parallel()
	r := start(t, 4)
	r.do("5", 5) // it takes commands
	r.ctl(0, `5 processes, takes commands: .*jacobi stop stop`, "jobs")
	r.ctl(0, `5 processes on 1 hosts from \S+ on, since 20\d\d-\S+, takes commands: `, "jobs", "--long")
	r.ctl(0, `^5 -> 8 processes in 0\.\d+ s`, "resize", ".", "8")
	r.ctl(0, `^8 -> 3 processes in 0\.\d+ s`, "resize", ".", "3")
	r.ctl(0, `^3 -> 3 processes in 0\.000000 s`, "resize", ".", "3")
	r.ctl(1, `"0" is no number of processes`, "resize", ".", "0")
	r.ctl(1, `"-3" is no number|unknown shorthand`, "resize", ".", "-3")
	r.ctl(1, `no room for .*--usize`, "resize", ".", "100000")
	r.ctl(0, `^3 -> 2 processes in `, "kill", ".", "1")
	r.ctl(1, `rank 2: there are ranks from 0 to 1`, "kill", ".", "0", "2")
	r.ctl(0, `^2 -> 5 processes in `, "resize", ".", "5")
	r.ctl(0, `^5 -> 3 processes in `, "kill", "--poll", ".", "0", "4")
	r.ctl(1, `one of the 3 processes has to stay`, "kill", "--poll", ".", "0", "1", "2")
	r.ctl(1, `is none of the \d+ jobs`, "resize", "no such job", "3")
	r.ctl(1, `is none of M, SEC:RANK`, "drill", ".", "1:x3")
	r.ctl(1, `(?s)^seed 7\n0\.\d+ s: resize to 8: 3 -> 8 .*kill \[8\]: rank 8: there are ranks from 0 to 7.*kill \[2\]: 8 -> 7 .*kill \[[0-6]\]: 7 -> 6 .*kill \[[0-5] [0-5] [0-5]\]: 6 -> 3 `,
		"drill", "--seed", "7", ".", "8", "0.2:2", "0.1:8", "0.3:r99", "0.4:R16:3")
	r.stop(3)
}

// Several jobs are changed at the same time; one that takes no commands says so.
func TestSeveralJobs(t *testing.T) {
	t.Parallel()
	plain := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "2", "sleep", "60")
	plain.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(plain.Process.Pid, syscall.SIGTERM)
		plain.Wait()
	})
	jobs := []*running{start(t, 2), start(t, 3), start(t, 4)}
	var all sync.WaitGroup
	for _, r := range jobs {
		r.do("2", 2)
		number := r.number()
		all.Go(func() {
			for range 3 {
				r.ctl(0, "2 -> 5 ", "resize", number, "5")
				r.ctl(0, "5 -> 2 ", "resize", number, "2")
			}
		})
	}
	all.Wait()
	r := jobs[0]
	for _, line := range strings.Split(r.spxctl("jobs").Stdout, "\n") {
		if strings.HasSuffix(line, ": sleep 60") {
			r.ctl(1, "takes no commands: its program has not called", "resize", strings.Fields(line)[0], "4")
			r.ctl(1, "--poll: which ranks", "kill", "--poll", strings.Fields(line)[0])
			r.ctl(0, `^job [0-9a-f]+ has ended, exit status 143\n$`, "kill", strings.Fields(line)[0])
		}
	}
	for _, r := range jobs {
		r.stop(2)
	}
}

// A resource manager takes processes away and gives them back over its socket, several requests at a time.
func TestHook(t *testing.T) {
	t.Parallel()
	r := start(t, 4)
	r.do("4", 4)
	socket := filepath.Join(r.dir, "hook")
	hook := exec.Command(filepath.Join(harness.Build(t), "bin/spxctl"), "hook", socket)
	hook.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := hook.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(hook.Process.Pid, syscall.SIGKILL) })
	var conn net.Conn
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		} else if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewScanner(conn)
	next := func() (a steer.Answer) {
		t.Helper()
		if !answers.Scan() {
			t.Fatalf("no answer: %v", answers.Err())
		}
		if err := json.Unmarshal(answers.Bytes(), &a); err != nil {
			t.Fatalf("%q: %v", answers.Bytes(), err)
		}
		return a
	}
	say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\n", args...) }
	job := r.number()
	for i, want := range []struct {
		request string
		procs   int
	}{{`"op":"give","procs":3`, 1}, {`"op":"take","procs":6`, 7}, {`"op":"resize","procs":2`, 2}, {`"op":"kill","ranks":[1]`, 1}, {`"op":"resize","procs":3`, 3}} {
		say(`{"id":%d,"job":%q,%s}`, i, job, want.request)
		if a := next(); !a.OK || a.Procs != want.procs || a.Seconds <= 0 || string(a.ID) != fmt.Sprint(i) || a.Job != job {
			t.Errorf("%s: %+v", want.request, a)
		}
	}
	say(`{"op":"give","procs":3,"job":%q}`, job)
	if a := next(); a.OK || !strings.Contains(a.Error, "one has to stay") {
		t.Errorf("giving up all: %+v", a)
	}
	say("nonsense\x00\xff")
	if a := next(); a.OK || !strings.Contains(a.Error, "no request") {
		t.Errorf("nonsense: %+v", a)
	}
	for i := range 8 { // done one after another, in some order
		say(`{"id":%d,"op":"resize","procs":%d,"job":%q}`, i, 1+i%4, job)
	}
	for range 8 {
		if a := next(); !a.OK || !strings.Contains("01234567", string(a.ID)) {
			t.Errorf("of eight requests: %+v", a)
		}
	}
	r.ctl(0, "-> 2 processes", "resize", job, "2")
	r.stop(2)
	hook.Process.Signal(syscall.SIGTERM)
	if err := hook.Wait(); err != nil {
		t.Errorf("spxctl hook: %v", err)
	}
	if _, err := net.Dial("unix", socket); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the socket is left: %v", err)
	}
}
