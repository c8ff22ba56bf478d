package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// file runs a system file.
func file(t *testing.T, text string, options ...string) harness.Outcome {
	t.Helper()
	name := filepath.Join(t.TempDir(), "system.toml")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", harness.Seconds(40 * time.Second)}, options...)
	o := harness.Run(t, harness.Command{Args: append(args, "--system", name), Limit: 50 * time.Second})
	if o.Late {
		t.Errorf("the system has not ended\n%s", o.Text())
	}
	return o
}

// MPI_Init returns when those are complete that the file says: one program makes a file before it calls MPI_Init, or after that has returned, and another
// one waits for that file before it calls it.
func TestSynchronisedStart(t *testing.T) {
	late := program(t, "late")
	run := func(t *testing.T, start string, before, after string) harness.Outcome {
		mark := filepath.Join(t.TempDir(), "mark")
		word := func(s string) string { return strings.ReplaceAll(s, "mark", mark) }
		return file(t, fmt.Sprintf(`
[start]
%s
[[cluster]]
name = "a"
program = %q
args = ["-", %q, %q]
ranks = 2
[[cluster]]
name = "b"
program = %[2]q
args = ["-", "-", "-"]
ranks = 2
[[cluster]]
name = "c"
program = %[2]q
args = [%[5]q, "-", "-"]
ranks = 1
[[link]]
from = "a"
to = ["b", "c"]
`, start, late, word(before), word(after), mark))
	}
	times := func(t *testing.T, o harness.Outcome) (first, last map[string]int64) {
		first, last = map[string]int64{}, map[string]int64{}
		lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
		if o.Status != 0 || len(lines) != 5 {
			t.Fatalf("exit status %d\n%s", o.Status, o.Text())
		}
		for _, line := range lines {
			var name string
			var from, to int64
			if _, err := fmt.Sscan(line, &name, &from, &to); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if last[name] < from {
				last[name] = from
			}
			if at, ok := first[name]; !ok || to < at {
				first[name] = to
			}
		}
		return first, last
	}
	t.Run("system", func(t *testing.T) {
		first, last := times(t, run(t, "", "mark", "-"))
		if first["a"] < last["c"] || first["b"] < last["c"] || first["c"] < last["a"] {
			t.Errorf("MPI_Init returned in %v, and was called at last in %v", first, last)
		}
	})
	t.Run("none", func(t *testing.T) { times(t, run(t, `wait = "none"`, "-", "mark")) })
	t.Run("part", func(t *testing.T) {
		first, last := times(t, run(t, "wait = \"part\"\nclusters = [\"a\", \"b\"]", "-", "mark"))
		if first["a"] < last["b"] || first["b"] < last["a"] {
			t.Errorf("MPI_Init returned in %v, and was called at last in %v", first, last)
		}
	})
	t.Run("missing", func(t *testing.T) {
		o := run(t, `limit = "500ms"`, "-", "mark")
		if o.Status == 0 || !strings.Contains(o.Stderr, "all of cluster c missing") || o.Stdout != "" {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
}
