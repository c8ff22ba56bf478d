// Package gates holds limits that a release must keep and that are seen from outside: how long many ranks take to start and
// end, and what a job leaves behind.
package gates

import (
	"fmt"
	"math"
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

func hello(t *testing.T) string {
	return harness.Compile(t, "gates/hello", []string{filepath.Join(harness.Root(), "examples/hello.c")})
}

// empty is a program that does nothing.
func empty(t *testing.T) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	program := strings.TrimSuffix(source, ".c")
	if out, err := exec.Command("gcc", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// crowd is how long so many runs of an empty program take from the first start to the last end, two at a time.
func crowd(t *testing.T, program string, n int) time.Duration {
	t.Helper()
	start := time.Now()
	out, err := exec.Command("sh", "-c", `seq "$1" | xargs -P 2 -n 1 "$0"`, program, strconv.Itoa(n)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return time.Since(start)
}

// usual is what a run of an empty program takes in a crowd on a machine of our own. On virtual machines in which memory is slow to map it is three times as much, and while other work has the
// processors it is whatever it is: a job's processes take as much longer.
const usual = time.Millisecond

// What users and scripts call often is cheap to start: no package that is linked in makes tables of megabytes before main runs, as one for the width of characters
// did. Measured in pages that are touched, which other work on the machine does not change, against a Go program that does nothing: spxctl touches 4 times as many, with such tables 7 times.
func TestToolsStart(t *testing.T) {
	const most = 5.5
	source := filepath.Join(t.TempDir(), "nothing.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	nothing := strings.TrimSuffix(source, ".go")
	if out, err := exec.Command("go", "build", "-o", nothing, source).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	least := touched(t, nothing)
	for _, tool := range []string{"spxrun", "spxctl"} {
		pages := touched(t, filepath.Join(harness.Build(t), "bin", tool), "--help")
		t.Logf("%s --help touches %.0f pages, a program that does nothing %.0f", tool, pages, least)
		if pages > most*least {
			t.Errorf("%s --help touches %.1f times as many pages as a program that does nothing, more than %.1f: GODEBUG=inittrace=1 %[1]s --help says which packages take long",
				tool, pages/least, most)
		}
	}
}

// touched is the number of pages that a program touches first, on two processors.
func touched(t *testing.T, args ...string) float64 {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Minflt)
}

// The best of some runs counts, each measured against empty programs that run before and after it.
func TestStartAndEnd(t *testing.T) {
	program, nothing := hello(t), empty(t)
	for _, gate := range []struct {
		ranks int
		limit time.Duration
	}{{64, time.Second}, {256, 4 * time.Second}} {
		t.Run(fmt.Sprintf("n=%d", gate.ranks), func(t *testing.T) {
			best := math.Inf(1) // of the limit
			for try := 0; try < 15 && best >= 1; try++ {
				around := crowd(t, nothing, gate.ranks)
				o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, strconv.Itoa(gate.ranks), program), Limit: time.Minute})
				if o.Status != 0 || o.Late {
					t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
				}
				if n := strings.Count(o.Stdout, "hello from rank"); n != gate.ranks {
					t.Fatalf("%d of %d ranks said hello\n%s", n, gate.ranks, o.Text())
				}
				around = max(around, crowd(t, nothing, gate.ranks))
				slow := max(1, float64(around)/float64(time.Duration(gate.ranks)*usual))
				best = min(best, float64(o.Took)/(float64(gate.limit)*slow))
				t.Logf("%d ranks: %v, while an empty program takes %.1f times as long as usual", gate.ranks, o.Took, slow)
			}
			if best >= 1 {
				t.Errorf("%d ranks took %.1f times as long from start to end as %v on a usual machine, at best", gate.ranks, best, gate.limit)
			}
		})
	}
}

// A job leaves no file behind: its memory file has no name.
func TestNothingIsLeft(t *testing.T) {
	c, made := harness.OwnFiles(t, harness.Command{Args: harness.Spxrun(t, "8", hello(t)), Dir: t.TempDir()})
	if o := harness.Run(t, c); o.Status != 0 {
		t.Fatalf("exit status %d\n%s", o.Status, o.Text())
	}
	if left := made(); len(left) > 0 {
		t.Errorf("the job left %v", left)
	}
}
