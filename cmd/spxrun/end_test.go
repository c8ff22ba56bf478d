package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	jobs "libspx/launch/job"
	"libspx/tests/harness"
)

// Whichever process dies by SIGKILL: within a second no process of the job is left, not even in
// another session.
func TestKillRank(t *testing.T) {
	dir := t.TempDir()
	r := prepare(t, "-n", "3", "sh", "-c", sleeper(dir)).start()
	for _, pid := range pids(t, dir, 3) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if status := r.wait(); status != 137 || !strings.Contains(r.err.String(), "was killed by signal 9 (SIGKILL); exit status 137.") {
		t.Errorf("status %d, said %q", status, r.err.String())
	}
}

func TestKillSpxrun(t *testing.T) {
	dir := t.TempDir()
	r := prepare(t, "-n", "3", "sh", "-c", "trap '' TERM; "+sleeper(dir)).start()
	pids(t, dir, 3)
	r.cmd.Process.Kill()
	if status := r.wait(); status != 137 {
		t.Errorf("status %d", status)
	}
}

func TestKillAgent(t *testing.T) {
	dir := t.TempDir()
	r := prepare(t, "-n", "3", "sh", "-c", sleeper(dir)).start()
	pids(t, dir, 3)
	syscall.Kill(r.agentOf(), syscall.SIGKILL)
	if status := r.wait(); status != 137 || !strings.Contains(r.err.String(), "the agent of this host") {
		t.Errorf("status %d, said %q", status, r.err.String())
	}
}

// SIGINT, SIGTERM and SIGHUP reach the ranks, which may tidy up, and end the job.
func TestSignalsEnd(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		r := prepare(t, "-n", "2", "sh", "-c", "trap 'echo tidy; exit 0' INT TERM HUP; "+sleeper(dir)).start()
		pids(t, dir, 2)
		r.cmd.Process.Signal(signal)
		if status := r.wait(); status != 128+int(signal) || r.out.String() != "tidy\ntidy\n" {
			t.Errorf("%v: status %d, output %q, said %q", signal, status, r.out.String(), r.err.String())
		}
	}
}

// A second SIGINT does not wait for ranks that will not end: the job ends sooner than after one, by
// most of what spxrun waits for them. Both are tried by turns, and the best of each counts: other
// work may have the processors for long.
func TestSecondInterrupt(t *testing.T) {
	one, two := time.Hour, time.Hour
	for range 5 {
		one, two = min(one, interrupts(t, false)), min(two, interrupts(t, true))
		if one-two > jobs.GraceSignal*2/3 {
			return
		}
	}
	t.Errorf("%v after one, %v after two", one, two)
}

// interrupts is how long it takes from the first to the end.
func interrupts(t *testing.T, again bool) time.Duration {
	dir := t.TempDir()
	r := prepare(t, "-n", "2", "sh", "-c", "trap 'echo no' INT; "+sleeper(dir)+"; wait; wait; wait; sleep 1000").start()
	pids(t, dir, 2)
	begin := time.Now()
	r.cmd.Process.Signal(syscall.SIGINT)
	if again {
		time.AfterFunc(200*time.Millisecond, func() { r.cmd.Process.Signal(syscall.SIGINT) })
	}
	if status := r.wait(); status != 130 {
		t.Errorf("status %d", status)
	}
	return time.Since(begin)
}

// Other signals are the ranks' business.
func TestSignalsPassedOn(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT} {
		dir := t.TempDir()
		script := fmt.Sprintf("trap 'echo got %s; exit 0' %s; ", name, name)
		r := prepare(t, "-n", "2", "sh", "-c", script+sleeper(dir)).start()
		pids(t, dir, 2)
		r.cmd.Process.Signal(signal)
		want := fmt.Sprintf("got %s\ngot %s\n", name, name)
		if status := r.wait(); status != 0 || r.out.String() != want {
			t.Errorf("%s: status %d, output %q, said %q", name, status, r.out.String(), r.err.String())
		}
	}
}

// SIGTSTP stops the ranks and then spxrun; SIGCONT continues both.
func TestStopAndContinue(t *testing.T) {
	dir := t.TempDir()
	r := prepare(t, "-n", "2", "sh", "-c", sleeper(dir)).start()
	list := append(pids(t, dir, 2), r.cmd.Process.Pid)
	states := func(want string) func() string {
		return func() string {
			for _, pid := range list {
				data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				_, rest, _ := strings.Cut(string(data), ") ")
				if rest == "" || !strings.Contains(want, rest[:1]) {
					return fmt.Sprintf("process %d of %v is in state %.1s, not %s", pid, list, rest, want)
				}
			}
			return ""
		}
	}
	r.cmd.Process.Signal(syscall.SIGTSTP)
	within(t, limit/2, states("T"))
	r.cmd.Process.Signal(syscall.SIGCONT)
	within(t, limit/2, states("SR"))
	r.cmd.Process.Signal(syscall.SIGTERM)
	if status := r.wait(); status != 143 {
		t.Errorf("status %d, said %q", status, r.err.String())
	}
}

// Nothing is left in the file systems that other launchers use, also when spxrun is killed.
func TestNoFilesLeft(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, made := harness.OwnFiles(t, harness.Command{Args: []string{self, "-n", "2", "sh", "-c", sleeper(dir)}})
	r := prepare(t)
	if r.cmd.Path, err = exec.LookPath(c.Args[0]); err != nil {
		t.Fatal(err)
	}
	r.cmd.Args, r.cmd.Env = c.Args, append(r.cmd.Env, c.Env...)
	r.start()
	pids(t, dir, 2)
	r.cmd.Process.Kill()
	r.wait()
	if left := made(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
