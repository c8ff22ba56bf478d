// Package dyprc changes the number of processes of running programs from outside, as a user or a batch system does: by the command file, by
// spxctl, and by killing processes. The programs verify their own results.
package dyprc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// running is a job whose program verifies its result when it is told to stop.
type running struct {
	t        *testing.T
	dir      string
	program  string // a copy of its own: its processes are those with this program
	cmd      *exec.Cmd
	out, err bytes.Buffer
	ended    chan error
	killing  bool // some process may have been killed while it left: that is spxrun's exit status then
}

// start runs jacobi on n processes until stop.
func start(t *testing.T, n int, options ...string) *running {
	t.Helper()
	source, err := filepath.Abs("../c/dyprc/jacobi.c")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(harness.Compile(t, "c/dyprc/jacobi", []string{source}))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, dir: t.TempDir(), ended: make(chan error, 1)}
	if err := os.WriteFile(filepath.Join(r.dir, file), []byte("1\n"), 0o666); err != nil { // that of a former job is no command
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // the clock of process starts is that coarse
	r.program = filepath.Join(r.dir, "jacobi")
	if err := os.WriteFile(r.program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append(options, "--timeout", "150", "-n", strconv.Itoa(n), r.program, "stop", "stop")
	r.cmd = exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), args...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.dir, &r.out, &r.err
	r.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(harness.Build(t), "lib"))
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() { syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) })
	r.awaitPids(n)
	return r
}

const file = "ulfm_dyprc.cmd"

// write writes commands into the file, as a script does that knows nothing of us.
func (r *running) write(commands string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, file), []byte(commands), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

// answer waits until the job has written what has become of commands: the number of processes, and the comments.
func (r *running) answer(commands string) (n int, comments string) {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < harness.Patience(60*time.Second); time.Sleep(2 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			r.t.Fatal(err)
		}
		first, comments, ok := strings.Cut(string(text), "\n")
		if n, err := strconv.Atoi(first); err == nil && ok && strings.HasPrefix(comments, "# done in ") {
			return n, comments
		}
		select {
		case err := <-r.ended:
			r.t.Fatalf("the job has ended (%v) after %q\n%s%s", err, commands, r.out.String(), r.err.String())
		default:
		}
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.t.Fatalf("no answer to %q within a minute; %v\n%s%s", commands, <-r.ended, r.out.String(), r.err.String())
	return 0, ""
}

// do gives commands and waits until they are done and n processes are left.
func (r *running) do(commands string, n int) (comments string) {
	r.t.Helper()
	r.write(commands + "\n")
	got, comments := r.answer(commands + "\n")
	if got != n {
		r.t.Errorf("%d processes after %q instead of %d: %s", got, commands, n, comments)
	}
	return comments
}

// stop has the program end, and looks at its result.
func (r *running) stop(n int) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "stop"), nil, 0o666); err != nil {
		r.t.Fatal(err)
	}
	select {
	case err := <-r.ended:
		late := r.killing && r.cmd.ProcessState.ExitCode() == 128+9 && strings.Contains(r.err.String(), "(SIGKILL) after MPI_Finalize")
		if err != nil && !late {
			r.t.Errorf("%v\n%s%s", err, r.out.String(), r.err.String())
		}
	case <-harness.After(60 * time.Second):
		r.cmd.Process.Signal(syscall.SIGTERM)
		r.t.Fatalf("it does not stop; %v\n%s%s", <-r.ended, r.out.String(), r.err.String())
	}
	if want := fmt.Sprintf(", %d processes at the end\n", n); !strings.HasPrefix(r.out.String(), "right after ") || !strings.HasSuffix(r.out.String(), want) {
		r.t.Errorf("the result is %q, and should end in %q\n%s", r.out.String(), want, r.err.String())
	}
	if left := r.pids(); len(left) > 0 {
		r.t.Errorf("processes %v are left", left)
	}
}

// number is that of the job.
func (r *running) number() string {
	r.t.Helper()
	for _, line := range strings.Split(r.spxctl("jobs").Stdout, "\n") {
		if strings.Contains(line, r.program+" stop stop") {
			return strings.Fields(line)[0]
		}
	}
	r.t.Fatal("spxctl jobs does not list the job")
	return ""
}

// spxctl runs it. The argument "." is replaced by the number of the job: others run too.
func (r *running) spxctl(args ...string) harness.Outcome {
	r.t.Helper()
	for i := range args {
		if args[i] == "." {
			args[i] = r.number()
		}
	}
	return harness.Run(r.t, harness.Command{Args: append([]string{filepath.Join(harness.Build(r.t), "bin/spxctl")}, args...), Dir: r.dir, Limit: time.Minute})
}

// pids are the processes that run the program.
func (r *running) pids() (list []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, f := range found {
		if target, err := os.Readlink(f); err == nil && target == r.program {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			list = append(list, pid)
		}
	}
	return list
}

// awaitPids waits until n processes are left: those that leave are a moment behind.
func (r *running) awaitPids(n int) {
	r.t.Helper()
	for began := time.Now(); len(r.pids()) != n; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > harness.Patience(20*time.Second) {
			r.t.Fatalf("%d processes instead of %d", len(r.pids()), n)
		}
	}
}

// Fewer, more, fewer; nothing of those that have left stays, and the result is right.
func TestResize(t *testing.T) {
	t.Parallel()
	r := start(t, 8)
	n := 8
	for _, m := range []int{4, 12, 2, 2, 1, 3} {
		comments := r.do(strconv.Itoa(m), m)
		if changed := !strings.Contains(comments, "# done in 0.000000 s"); changed != (m != n) || strings.Contains(comments, "error") {
			t.Errorf("%d -> %d: %s", n, m, comments)
		}
		n = m
		r.awaitPids(n)
	}
	r.stop(3)
}

// What those that have left took up is used again: without, there would be no room after a few.
func TestResizeOften(t *testing.T) {
	t.Parallel()
	r := start(t, 2, "--usize", "8")
	for range 60 {
		r.do("7", 7)
		r.do("2", 2)
	}
	r.stop(2)
}

// Fifty deaths, of any rank, one or two at a time, and growth after them.
func TestRecoveries(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := start(t, 6)
	n := 6
	for deaths := 0; deaths < 50; {
		if n < 3 {
			n = 4 + rng.IntN(4)
			r.do(strconv.Itoa(n), n)
		}
		ranks := rng.Perm(n)[:1+rng.IntN(2)]
		deaths += len(ranks)
		n -= len(ranks)
		r.do("k"+strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ","), "[]"), n)
		if t.Failed() {
			t.Fatal(r.err.String())
		}
	}
	r.stop(n)
}

// reach has the job be of n processes. A death may be noticed only after the command was answered as one that changes nothing; then it is given again.
func (r *running) reach(n int) {
	r.t.Helper()
	for range 4 {
		r.write(strconv.Itoa(n) + "\n")
		r.answer(strconv.Itoa(n) + "\n")
		for began := time.Now(); len(r.pids()) > n && time.Since(began) < harness.Patience(20*time.Second); time.Sleep(5 * time.Millisecond) { // they are leaving
		}
		if len(r.pids()) == n {
			return
		}
	}
	r.t.Fatalf("%d processes instead of %d\n%s", len(r.pids()), n, r.err.String())
}

// The same with deaths that nobody has announced, at any moment: also while the number of processes changes.
func TestKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := start(t, 6)
	r.killing = true
	for range 25 {
		r.reach(6)
		pids := r.pids()
		command := strconv.Itoa([]int{3, 9, 6}[rng.IntN(3)])
		r.write(command + "\n")
		time.Sleep(time.Duration(rng.IntN(20000)) * time.Microsecond)
		syscall.Kill(pids[rng.IntN(len(pids))], syscall.SIGKILL)
		r.answer(command + "\n")
	}
	r.reach(2)
	r.stop(2)
}

// What rank 0 has answered is no command for its successor.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	r := start(t, 4)
	for range 10 {
		r.do("4", 4)
		r.awaitPids(4)
		o := r.spxctl("kill", ".", "0")
		if !strings.Contains(o.Stdout, "4 -> 3 processes in ") {
			t.Errorf("killing rank 0: %s", o.Text())
		}
		time.Sleep(20 * time.Millisecond) // for many looks at the file
		r.awaitPids(3)
	}
	r.stop(3)
}

// Commands in one file are carried out one after another; one that is written while another is being carried out is not lost.
func TestCommands(t *testing.T) {
	t.Parallel()
	r := start(t, 3)
	r.do("2\n# a comment; 7\n5;k0, 4", 3)
	for range 3 { // appended to the answer, as by a shell's >>
		answer, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		r.write(string(answer) + "1;3\n")
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			if text, _ := os.ReadFile(filepath.Join(r.dir, file)); !bytes.Contains(text, []byte("1;3")) {
				break
			} else if time.Since(began) > harness.Patience(30*time.Second) {
				t.Fatalf("no answer to %q", text)
			}
		}
	}
	for range 10 {
		r.write("6\n")
		r.write("2\n")
		for began := time.Now(); len(r.pids()) != 2; time.Sleep(time.Millisecond) {
			if time.Since(began) > harness.Patience(30*time.Second) {
				t.Fatal("the second command is not carried out")
			}
		}
		r.do("5", 5)
		r.write("2\n")
		time.Sleep(3 * time.Millisecond)
		r.do("4", 4)
	}
	r.stop(4)
}

// What cannot be carried out is told, and does no harm.
func TestErrors(t *testing.T) {
	t.Parallel()
	r := start(t, 3)
	for command, want := range map[string]string{
		"0":                         "1 or more",
		"-1":                        "1 or more",
		"4x":                        "a command is",
		"99999999999999999999":      "a command is",
		"make it 4":                 "a command is",
		"k":                         "from 0 to 2",
		"k3":                        "from 0 to 2",
		"k1,":                       "from 0 to 2",
		"k-1":                       "from 0 to 2",
		"k0,1,2":                    "has to stay",
		"100000":                    "--usize",
		"\x00\x01":                  "no text",
		strings.Repeat("k1,", 3000): "more than",
	} {
		if comments := r.do(command, 3); !strings.Contains(comments, "# error: ") || !strings.Contains(comments, want) {
			t.Errorf("%.20q: %q has no %q", command, comments, want)
		}
	}
	r.do("k9;4", 4)
	r.stop(4)
}
