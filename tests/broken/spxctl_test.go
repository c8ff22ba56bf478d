package broken

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/core/diagnose"
	"libspx/tests/harness"
)

// job is a program that hangs, under a name of its own.
type job struct {
	cmd    *exec.Cmd
	number string
	lines  chan string // of its standard error
}

const limit = 30 * time.Second

func hang(t *testing.T, w wrong) *job {
	t.Helper()
	j, program := start(t, w)
	j.find(t, program, func(p diagnose.Proc) bool { return p.State == diagnose.Waiting })
	return j
}

// start starts a program that does not end by itself.
func start(t *testing.T, w wrong) (j *job, program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "hangs")
	text, err := os.ReadFile(w.compile(t))
	if err == nil {
		err = os.WriteFile(program, text, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := harness.Spxrun(t, w.n, program)
	j = &job{cmd: exec.Command(args[0], args[1:]...), lines: make(chan string, 1000)}
	j.cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(harness.Build(t), "lib")), w.env...)
	errs, err := j.cmd.StderrPipe()
	if err == nil {
		err = j.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		j.cmd.Process.Kill() //nolint:errcheck // it may have ended; its agent ends the ranks
		j.cmd.Wait()         //nolint:errcheck // it was killed
	})
	go func() {
		defer close(j.lines)
		for s := bufio.NewScanner(errs); s.Scan(); {
			j.lines <- s.Text()
		}
	}()
	return j, program
}

// find waits until the job is there and all its processes are as they are to be.
func (j *job) find(t *testing.T, program string, is func(p diagnose.Proc) bool) {
	t.Helper()
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		var jobs []struct{ Job, Program string }
		if json.Unmarshal([]byte(spxctl(t, "jobs", "--json")), &jobs) != nil {
			continue
		}
		for _, about := range jobs {
			if about.Program == program {
				j.number = about.Job
			}
		}
		if j.number == "" {
			continue
		}
		waiting := 0
		procs := j.processes(t)
		for _, p := range procs {
			if is(p) {
				waiting++
			}
		}
		if waiting > 0 && waiting == len(procs) {
			return
		}
	}
	t.Fatalf("the processes of %s do not come to that: %+v", program, j.processes(t))
}

func (j *job) processes(t *testing.T) []diagnose.Proc {
	var all struct{ Processes []diagnose.Proc }
	if err := json.Unmarshal([]byte(spxctl(t, "ps", "--json", j.number)), &all); err != nil {
		return nil // not all have started
	}
	return all.Processes
}

func spxctl(t *testing.T, args ...string) string {
	t.Helper()
	o := harness.Run(t, harness.Command{Args: append([]string{filepath.Join(harness.Build(t), "bin/spxctl")}, args...)})
	return o.Stdout
}

func match(t *testing.T, what, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("%s: nothing like %q in\n%s", what, p, text)
		}
	}
}

func TestSpxctl(t *testing.T) {
	j := hang(t, all[0])
	call := `MPI_Recv\(count=1, datatype=MPI_INT, source=1, tag=7, comm=MPI_COMM_WORLD\)`
	match(t, "ps", spxctl(t, "ps", j.number), `^ +0 +\d+ .* s  `+call+`$`)
	match(t, "waits", spxctl(t, "waits", j.number), `^deadlock: rank 0 and rank 1 wait for each other$`, `^  rank 0 is in `+call+` for .*, at swap \(deadlock2\.c:7\)$`)
	match(t, "stacks", spxctl(t, "stacks", j.number), `^  #0  MPI_Recv \(in .*\)$`, `^  #\d  swap \(deadlock2\.c:7\)$`, `^  #\d  main \(deadlock2\.c:17\)$`)
	match(t, "queues", spxctl(t, "queues", j.number), `^rank 1: 1 receive posted, 0 messages unexpected, 0 sends pending$`, `posted +receive of at most 4 bytes from rank 0, tag 7, on MPI_COMM_WORLD$`)
	for _, p := range j.processes(t) {
		if len(p.Waits) != 1 || p.Waits[0].Call != "MPI_Recv" || p.Waits[0].Peer != 1-p.Rank || p.Waits[0].For <= 0 {
			t.Errorf("ps --json: %+v", p)
		}
	}
}

// A rank that gets one message after the other never sleeps for long in one call: it runs, and is shown in that call all the same.
func TestShortSleeps(t *testing.T) {
	j, program := start(t, wrong{name: "often", n: "2", env: []string{"SPX_SPIN=0", "SPX_YIELD=0"}})
	j.find(t, program, func(p diagnose.Proc) bool { return p.Rank == 0 || p.In == "MPI_Recv" && p.State == diagnose.Running })
	for range 20 {
		if text := spxctl(t, "ps", j.number); regexp.MustCompile(`(?m)^ +1 +\d+ .* running, in MPI_Recv$`).MatchString(text) {
			return
		}
	}
	t.Errorf("spxctl ps does not show it:\n%s", spxctl(t, "ps", j.number))
}

// SIGQUIT, as from Ctrl-\, has spxrun print the same; the job goes on.
func TestQuit(t *testing.T) {
	j := hang(t, all[0])
	if err := j.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	late := harness.After(limit)
	var seen []string
	for {
		select {
		case line, open := <-j.lines:
			if seen = append(seen, line); strings.Contains(line, "deadlock: rank 0 and rank 1 wait for each other") {
				if len(j.processes(t)) != 2 {
					t.Error("the job has not gone on")
				}
				return
			}
			if !open {
				t.Fatalf("spxrun has ended: %q", seen)
			}
		case <-late:
			t.Fatalf("no report: %q", seen)
		}
	}
}

// With SPX_CHECK=1 what is left is told, and nothing is said of a program that leaves nothing.
func TestLeaks(t *testing.T) {
	w := wrong{name: "leaks"}
	program := w.compile(t)
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", program), Env: []string{"SPX_CHECK=1"}})
	if o.Status != 0 {
		t.Errorf("status %d", o.Status)
	}
	match(t, "leaks", o.Stderr, `rank 1 leaves 1 message that it has never received: the first from rank 0, with tag 9, of 4 bytes`,
		`rank [01] leaves 1 request `, `rank [01] leaves 1 communicator `, `rank [01] leaves 1 datatype `,
		`also on rank [01]: SPX_CHECK: datatypes are left`)
	o = harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", program, "all"), Env: []string{"SPX_CHECK=1"}})
	if o.Status != 0 || o.Stderr != "" {
		t.Errorf("a program that leaves nothing: status %d, said %q", o.Status, o.Stderr)
	}
}

// Every kind of object is told with its number, and with the line of each call that has made some; nothing else is told.
func TestLeaksOfEveryKind(t *testing.T) {
	w := wrong{name: "leaksall"}
	source, err := os.ReadFile(filepath.Join(harness.Root(), "tests/broken/programs/leaksall.c"))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]bool{}
	for i, line := range strings.Split(string(source), "\n") {
		if _, what, ok := strings.Cut(line, "/* here: "); ok {
			n, fn, _ := strings.Cut(strings.TrimSuffix(what, " */"), " ")
			places[fmt.Sprintf("%s made by %s in main at leaksall.c:%d", n, fn, i+1)] = true
		}
	}
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", w.compile(t), filepath.Join(t.TempDir(), "file")), Env: []string{"SPX_CHECK=1"}})
	match(t, "leaksall", o.Stderr, `rank [01] leaves 5 communicators at MPI_Finalize: MPI_Comm_free each\n`, `rank [01] leaves 2 groups`, `rank [01] leaves 1 window `, `rank [01] leaves 1 file `,
		`rank [01] leaves 1 datatype `, `rank [01] leaves 1 info object `, `rank [01] leaves 1 operation `, `rank [01] leaves 1 error handler `, `rank [01] leaves 1 session `, `rank [01] leaves 1 keyval `,
		`rank [01] leaves 1 persistent request `, `rank [01] leaves 2 requests`, `rank [01] leaves 1 matched message `)
	told := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^libspx: SPX_CHECK:   (.* at )\S*/(\S+)$`).FindAllStringSubmatch(o.Stderr, -1) {
		told[m[1]+m[2]]++
	}
	for place := range places {
		if told[place] != 1 {
			t.Errorf("%q was said %d times, though both ranks leave the same", place, told[place])
		}
	}
	if len(places) < 15 || len(told) != len(places) {
		t.Errorf("%d places in the source, %d told\n%s", len(places), len(told), o.Text())
	}
}
