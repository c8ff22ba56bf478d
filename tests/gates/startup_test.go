// Package gates holds limits that a release must keep and that are seen from outside: how long many ranks take to start and
// end, and what a job leaves behind.
package gates

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func hello(t *testing.T) string {
	return harness.Compile(t, "gates/hello", []string{filepath.Join(harness.Root(), "examples/hello.c")})
}

// bare is how long an empty program takes from start to end, the best of some runs.
func bare(t *testing.T) time.Duration {
	t.Helper()
	source := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	program := strings.TrimSuffix(source, ".c")
	if out, err := exec.Command("gcc", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	best := time.Hour
	for range 50 {
		start := time.Now()
		if err := exec.Command(program).Run(); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return best
}

// usual is what an empty program takes on a machine of our own; on virtual machines in which memory is slow to map it is three times as much, and a job's processes take as much longer.
const usual = time.Millisecond

// The best of some runs counts: other tests may take the processors meanwhile.
func TestStartAndEnd(t *testing.T) {
	program, slow := hello(t), max(1, float64(bare(t))/float64(usual))
	for _, gate := range []struct {
		ranks int
		limit time.Duration
	}{{64, time.Second}, {256, 4 * time.Second}} {
		t.Run(fmt.Sprintf("n=%d", gate.ranks), func(t *testing.T) {
			best, limit := time.Hour, time.Duration(float64(gate.limit)*slow)
			for range 15 {
				o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, strconv.Itoa(gate.ranks), program), Limit: time.Minute})
				if o.Status != 0 || o.Late {
					t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
				}
				if n := strings.Count(o.Stdout, "hello from rank"); n != gate.ranks {
					t.Fatalf("%d of %d ranks said hello\n%s", n, gate.ranks, o.Text())
				}
				if best = min(best, o.Took); best < limit {
					break
				}
			}
			t.Logf("%d ranks: %v", gate.ranks, best)
			if best >= limit {
				t.Errorf("%d ranks took %v from start to end, want less than %v (an empty program takes %.1f times as long as usual)", gate.ranks, best, limit, slow)
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
