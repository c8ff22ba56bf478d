package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"libspx/launch/agent"
	"libspx/launch/service"
)

// The test binary is spxrun and its agent as well: it starts itself under their roles.
const roleVariable = "SPXRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" || slices.Contains([]string{agent.Name, service.MasterName}, filepath.Base(os.Args[0])) {
		main()
	}
	// What is started gets the signals as they are by default, although the starter of the test may
	// have them ignored (nohup, a shell's background job).
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	os.Exit(m.Run())
}

// limit bounds every job of these tests.
const limit = 60 * time.Second

// markVariable is in the environment of everything that a test starts, and so finds what is left of
// it.
const markVariable = "SPXRUN_TEST_MARK"

var marks atomic.Int64

// run is a job of a test.
type run struct {
	t        *testing.T
	cmd      *exec.Cmd
	mark     string
	out, err bytes.Buffer
	cancel   context.CancelFunc
}

// prepare makes the command of a job; set its Stdin or Dir, then start.
func prepare(t *testing.T, args ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	r := &run{t: t, mark: fmt.Sprintf("%s=%d.%d", markVariable, os.Getpid(), marks.Add(1)), cancel: cancel}
	r.cmd = exec.CommandContext(ctx, "/proc/self/exe", args...)
	r.cmd.Args[0] = "spxrun"
	r.cmd.Env = append(os.Environ(), roleVariable+"=spxrun", r.mark)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
	r.cmd.WaitDelay = 5 * time.Second
	t.Cleanup(func() {
		for _, pid := range r.left() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return r
}

func (r *run) start() *run {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// wait waits for spxrun and returns its exit status, 128+signal if it was killed. Nothing of the
// job may be left then.
func (r *run) wait() int {
	r.t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%v: %v; standard error:\n%s", r.cmd.Args, err, r.err.String())
	}
	status := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	r.nothingLeft()
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// job runs spxrun to its end.
func job(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	r := prepare(t, args...).start()
	status = r.wait()
	return status, r.out.String(), r.err.String()
}

// left lists the processes of this job that still live.
func (r *run) left() (out []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte(r.mark)) {
			continue
		}
		var pid int
		fmt.Sscanf(file, "/proc/%d/", &pid)
		out = append(out, pid)
	}
	return out
}

// nothingLeft gives the job a second to vanish, and five on a machine with much more to do than it
// has processors.
func (r *run) nothingLeft() {
	r.t.Helper()
	patience, load := time.Second, 0.0
	text, _ := os.ReadFile("/proc/loadavg")
	if fmt.Sscanf(string(text), "%f", &load); load > 3*float64(runtime.NumCPU()) {
		patience = 5 * time.Second
	}
	within(r.t, patience, func() string {
		if list := r.left(); len(list) > 0 {
			return fmt.Sprintf("processes %v of the job are left: %s", list, describe(list))
		}
		return ""
	})
}

func describe(list []int) string {
	var out []string
	for _, pid := range list {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " ")))
	}
	return strings.Join(out, "; ")
}

// within waits until problem returns "": for things in other processes that give no event here.
func within(t *testing.T, d time.Duration, problem func() string) {
	t.Helper()
	var text string
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(5 * time.Millisecond) {
		if text = problem(); text == "" {
			return
		}
	}
	t.Errorf("after %v: %s", d, text)
}

// pids waits until n processes have written their pid into files of dir, named as their ranks.
func pids(t *testing.T, dir string, n int) []int {
	t.Helper()
	out := make([]int, n)
	within(t, limit/2, func() string {
		for i := range out {
			data, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
			if _, err := fmt.Sscanf(string(data), "%d\n", &out[i]); err != nil {
				return fmt.Sprintf("rank %d has not said its pid", i)
			}
		}
		return ""
	})
	return out
}

// sleeper is a script whose ranks write their pids into dir and then stay, with a child that has
// left their session.
func sleeper(dir string) string {
	return fmt.Sprintf(`setsid sleep 1000 & sleep 1000 & echo $$ > %s/tmp.$SPX_RANK; mv %s/tmp.$SPX_RANK %s/$SPX_RANK; wait`, dir, dir, dir)
}

// agentOf is the pid of the agent of a running job.
func (r *run) agentOf() int {
	r.t.Helper()
	for _, pid := range r.left() {
		if cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(cmd), agent.Name+"\x00") {
			return pid
		}
	}
	r.t.Fatal("no agent is running")
	return 0
}
