// Package harness builds and runs MPI programs for tests: it finds the finished build, compiles C sources with our mpicc, runs
// them by spxrun within a time limit, and describes failures with the command that repeats them. It knows nothing of
// what the programs test.
package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Root is the repository's folder.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	panic("harness: no go.mod above the working directory")
})

// Full says that the long tests are to run too (make test-all): all lines, all sizes, all seeds. Without, each kind of them has its turn once or a few times.
func Full() bool { return os.Getenv("SPX_TESTS") == "full" }

var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("SPX_BUILD"); dir != "" {
		return dir, nil
	}
	cmd := exec.Command("make", "-s", "-C", Root(), "build")
	cmd.Env = without(os.Environ(), "MAKE", "MFLAGS", "GOFLAGS")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New("make build: " + err.Error() + "\n" + string(out))
	}
	return filepath.Join(Root(), "build"), nil
})

// Build returns the folder of the finished build: $SPX_BUILD as it is, or else build/, which is brought up to date first.
func Build(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var compiled atomic.Int64 // programs that were made

// Compile compiles sources with mpicc (mpicxx for .cc) and returns the program. It is kept in the build folder and made
// again only when a source, the public headers or the flags have changed.
func Compile(t testing.TB, name string, sources []string, flags ...string) string {
	t.Helper()
	b := Build(t)
	program := filepath.Join(b, "tests", name)
	compiler := filepath.Join(b, "bin/mpicc")
	if strings.HasSuffix(sources[0], ".cc") {
		compiler = filepath.Join(b, "bin/mpicxx")
	}
	args := append(append([]string{"-g", "-O1", "-Wall"}, sources...), flags...)
	command := compiler + " " + strings.Join(args, " ")
	if by, err := os.ReadFile(program + ".cmd"); err == nil && string(by) == command && newer(program, dependencies(b, sources)) {
		return program
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o777); err != nil {
		t.Fatal(err)
	}
	made := fmt.Sprintf("%s.%d.%d", program, os.Getpid(), compiled.Add(1)) // tests of this folder and of others may run it, or make it too
	if out, err := exec.Command(compiler, append(args, "-o", made)...).CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v\n%s", command, err, out)
	}
	if err := os.Rename(made, program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program+".cmd", []byte(command), 0o666); err != nil {
		t.Fatal(err)
	}
	return program
}

// dependencies are the sources, the headers beside them and the public headers.
func dependencies(build string, sources []string) []string {
	files := append([]string(nil), sources...)
	for _, pattern := range []string{filepath.Join(filepath.Dir(sources[0]), "*.h"), filepath.Join(build, "include/*.h")} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	return files
}

func newer(program string, files []string) bool {
	made, err := os.Stat(program)
	if err != nil {
		return false
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.ModTime().After(made.ModTime()) {
			return false
		}
	}
	return true
}

// Outcome is what came of a command.
type Outcome struct {
	Stdout, Stderr string
	Status         int // exit status, 128+signal
	Late           bool
	Took           time.Duration
	Busy           time.Duration // time of processors, with all processes that were waited for
}

// Lines are the lines of a batch job's output, sorted. Standard error is among them, and there a slow start says whom it waits for: that is left out.
func Lines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "spxrun: waiting for ") })
	slices.Sort(lines)
	return lines
}

// Text is all output, for a failure's message.
func (o Outcome) Text() string {
	s := ""
	if o.Stdout != "" {
		s += "--- stdout\n" + tail(o.Stdout)
	}
	if o.Stderr != "" {
		s += "--- stderr\n" + tail(o.Stderr)
	}
	return s
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		s = "...\n" + s[len(s)-most:]
	}
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

// Command is a command with its time limit. Env is added to the environment.
type Command struct {
	Args  []string
	Env   []string
	Dir   string
	Stdin string
	Limit time.Duration // 0: 30 s
}

// Run runs a command with the build's libraries, in a process group of its own. At the time limit the group gets SIGTERM,
// then SIGKILL.
func Run(t testing.TB, c Command) Outcome {
	t.Helper()
	c.Env = append([]string{"LD_LIBRARY_PATH=" + filepath.Join(Build(t), "lib")}, c.Env...)
	return Start(t, c)
}

// limited ends at a limit of time, which is Patience's. Limits end what hangs; how fast something is they do not judge.
func limited(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	start := time.Now()
	var again func()
	again = func() {
		if left := time.Until(start.Add(Patience(limit))); left > 0 && ctx.Err() == nil {
			time.AfterFunc(min(left, time.Second), again)
			return
		}
		cancel()
	}
	time.AfterFunc(limit, again)
	return ctx, cancel
}

// After is time.After on a machine that may be busy (Patience).
func After(limit time.Duration) <-chan struct{} {
	ctx, _ := limited(limit) //nolint:govet // it ends at the limit
	return ctx.Done()
}

// AfterFunc is time.AfterFunc on a machine that may be busy (Patience). Stop says whether f will not be called any more.
func AfterFunc(limit time.Duration, f func()) *Alarm {
	ctx, cancel := limited(limit)
	a := &Alarm{cancel: cancel}
	context.AfterFunc(ctx, func() {
		if a.over.CompareAndSwap(false, true) {
			f()
		}
	})
	return a
}

// An Alarm is what AfterFunc gives.
type Alarm struct {
	over   atomic.Bool // called, or stopped
	cancel func()
}

// Stop is that of time.Timer.
func (a *Alarm) Stop() bool {
	stopped := a.over.CompareAndSwap(false, true)
	a.cancel()
	return stopped
}

// Patience is a limit of time on a machine that is as busy as this one now, and may be a slow one: twice as long, and
// longer by as much as there are more processes that want to run than processors, but eight times, or until ten minutes,
// at most. It is to be asked again while one waits.
func Patience(limit time.Duration) time.Duration {
	var load float64
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Sscan(string(text), &load) //nolint:errcheck // no load is known then
	crowd := min(max(load/float64(runtime.NumCPU()), 1), 4)
	return max(limit, min(time.Duration(2*float64(limit)*crowd), 10*time.Minute))
}

// Seconds is Patience for the --timeout of a job that is to end by itself, as spxrun reads it.
func Seconds(limit time.Duration) string {
	return strconv.Itoa(int(Patience(limit).Seconds()))
}

// Start is Run for a command that needs nothing of the build.
func Start(t testing.TB, c Command) Outcome {
	t.Helper()
	if c.Limit == 0 {
		c.Limit = 30 * time.Second
	}
	ctx, cancel := limited(c.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	o := Outcome{Took: time.Since(start), Late: ctx.Err() != nil}
	if s := cmd.ProcessState; s != nil {
		o.Busy = s.UserTime() + s.SystemTime()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		o.Status = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			o.Status = 128 + int(ws.Signal())
		}
	case err != nil && !o.Late:
		t.Fatalf("%s: %v", strings.Join(c.Args, " "), err)
	}
	if o.Late {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	o.Stdout, o.Stderr = stdout.String(), stderr.String()
	return o
}

// Spxrun is the command line that runs a program on n ranks.
func Spxrun(t testing.TB, n string, program string, args ...string) []string {
	t.Helper()
	return append([]string{filepath.Join(Build(t), "bin/spxrun"), "-n", n, program}, args...)
}

func without(env []string, prefixes ...string) []string {
	var out []string
next:
	for _, e := range env {
		for _, p := range prefixes {
			if strings.HasPrefix(e, p) {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}
