// Package boundary tests what one program cannot tell of itself: how often ranks enter Go, what a crash of the engine looks like
// from outside, and what a rank costs. The boundary's other tests are in tests/c/boundary.
package boundary

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func compile(t *testing.T, name string) string {
	t.Helper()
	source, err := filepath.Abs("testdata/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	return harness.Compile(t, "boundary/"+name, []string{source}, "-g")
}

// A warm 16-rank barrier, an 8-byte ping-pong, a warm Isend/Irecv/Waitall loop, warm collectives, multicasts, and simple accesses
// to files and windows enter Go zero times.
func TestWarmLoopsDoNotEnterGo(t *testing.T) {
	for loop, ranks := range map[string]int{"barrier": 16, "pingpong": 2, "nonblocking": 4, "collectives": 5, "files": 3, "onesided": 4, "multicast": 6} {
		t.Run(loop, func(t *testing.T) {
			o := harness.Run(t, harness.Command{
				Args:  harness.Spxrun(t, strconv.Itoa(ranks), compile(t, "warm"), loop, "500"),
				Dir:   t.TempDir(),
				Limit: time.Minute,
			})
			lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
			if o.Status != 0 || len(lines) != ranks {
				t.Fatalf("%s: status %d\n%s", loop, o.Status, o.Text())
			}
			for _, line := range lines {
				if !strings.HasSuffix(line, ": 0") {
					t.Errorf("in 500 rounds it has entered Go: %s times", line)
				}
			}
		})
	}
}

// A panic of the engine in all ranks is told once, with job, rank, MPI call and both stacks, and ends the job.
func TestCrashReport(t *testing.T) {
	o := harness.Run(t, harness.Command{
		Args: harness.Spxrun(t, "4", compile(t, "crash")),
		Env:  []string{"SPX_PANIC_IN=MPI_Comm_split"},
	})
	if o.Status == 0 {
		t.Errorf("status 0")
	}
	for _, want := range []string{"MPI_Comm_split: internal error", "Go panic: asked for", "main.panicIfAsked", "PMPI_Comm_split", "simulate_weather", "testdata/crash.c:", "job "} {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("the report does not mention %q", want)
		}
	}
	if n := strings.Count(o.Stderr, "Go panic:"); n != 1 {
		t.Errorf("%d reports, want 1", n)
	}
	if t.Failed() {
		t.Log(o.Text())
	}
}

// A rank that does nothing has less than 6 MB of memory of its own.
func TestMemoryOfARank(t *testing.T) {
	const limitKB = 6 << 10
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "16", compile(t, "memory")), Limit: time.Minute})
	sizes := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindAllStringSubmatch(o.Stdout, -1)
	if o.Status != 0 || len(sizes) != 16 {
		t.Fatalf("status %d, %d of 16 sizes\n%s", o.Status, len(sizes), o.Text())
	}
	for _, m := range sizes {
		if kb, _ := strconv.Atoi(m[1]); kb > limitKB {
			t.Errorf("a rank has %d KB of anonymous memory, more than %d", kb, limitKB)
		}
	}
}

// How a process that spxrun has not started finds out what it is, and what it says when the environment makes no sense.
func TestStartWithoutSpxrun(t *testing.T) {
	program := compile(t, "memory")
	for _, c := range []struct {
		name   string
		env    []string
		status int
		stderr string
	}{
		{"alone", nil, 0, ""},
		{"one task of srun", []string{"SLURM_STEP_NUM_TASKS=1"}, 0, ""},
		{"one of several of srun", []string{"SLURM_STEP_NUM_TASKS=4"}, 16, "srun has started this process as one of 4, but gives them no way to find each other"},
		{"one of several of PMI", []string{"PMI_SIZE=2", "PMI_RANK=1"}, 16, "a launcher has started this process as one of 2 (PMI_SIZE), but offers no PMI-1"},
		{"no such descriptor", []string{"SPX_FD=99", "SPX_PROC=0", "SPX_JOB=00"}, 16, "SPX_FD=99"},
		{"no number", []string{"SPX_FD=x", "SPX_PROC=y"}, 16, "memory file is not to be found"},
		{"another file", []string{"SPX_FD=0", "SPX_PROC=0", "SPX_JOB=00112233445566778899aabbccddeeff"}, 16, "memory file is not to be found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := harness.Run(t, harness.Command{Args: []string{program}, Env: c.env})
			if o.Status != c.status || !strings.Contains(o.Stderr, c.stderr) {
				t.Errorf("status %d, want %d with %q\n%s", o.Status, c.status, c.stderr, o.Text())
			}
		})
	}
}

// A program that a rank starts is not in the job: it is told so, and the rank's place is safe.
func TestAProgramThatARankStartsIsNotTheRank(t *testing.T) {
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", compile(t, "parent"), compile(t, "memory"))})
	if o.Status != 0 || strings.Count(o.Stdout, "the other said 16") != 2 || !strings.Contains(o.Stderr, "a program that a rank starts is not in the job") {
		t.Errorf("status %d\n%s", o.Status, o.Text())
	}
}
