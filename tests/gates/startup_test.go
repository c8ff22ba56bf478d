// Package gates holds limits that a release must keep and that are seen from outside: how long many ranks take to start and
// end, and what a job leaves behind.
package gates

import (
	"fmt"
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

// The best of some runs counts: other tests may take the processors meanwhile.
func TestStartAndEnd(t *testing.T) {
	program := hello(t)
	for _, gate := range []struct {
		ranks int
		limit time.Duration
	}{{64, time.Second}, {256, 4 * time.Second}} {
		t.Run(fmt.Sprintf("n=%d", gate.ranks), func(t *testing.T) {
			best := time.Hour
			for range 15 {
				o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, strconv.Itoa(gate.ranks), program), Limit: time.Minute})
				if o.Status != 0 || o.Late {
					t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
				}
				if n := strings.Count(o.Stdout, "hello from rank"); n != gate.ranks {
					t.Fatalf("%d of %d ranks said hello\n%s", n, gate.ranks, o.Text())
				}
				if best = min(best, o.Took); best < gate.limit {
					break
				}
			}
			t.Logf("%d ranks: %v", gate.ranks, best)
			if best >= gate.limit {
				t.Errorf("%d ranks took %v from start to end, want less than %v", gate.ranks, best, gate.limit)
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
