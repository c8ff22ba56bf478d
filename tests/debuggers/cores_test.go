package debuggers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// spxrun --cores takes the core file of a rank that dies, and tells its stack; where the kernel hands core files to a program it says that instead.
func TestCores(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("testdata/crashes.c")
	if err != nil {
		t.Fatal(err)
	}
	program := harness.Compile(t, "debuggers/crashes", []string{source}, "-g", "-O0")
	dir := t.TempDir()
	words := slices.Insert(harness.Spxrun(t, "2", program), 1, "--cores", "taken")
	o := harness.Run(t, harness.Command{Args: words, Dir: dir, Limit: time.Minute})
	if o.Status != 139 {
		t.Errorf("status %d, want 139\n%s", o.Status, o.Text())
	}
	if strings.HasPrefix(string(pattern), "|") {
		if !strings.Contains(o.Stderr, "they cannot be collected: ask that program") {
			t.Errorf("not said that there is nothing to collect\n%s", o.Text())
		}
		return
	}
	if strings.Contains(o.Stderr, "ulimit -H -c is 0") || strings.HasPrefix(string(pattern), "/") {
		t.Skipf("core files go elsewhere here: %s", o.Stderr)
	}
	taken, _ := filepath.Glob(filepath.Join(dir, "taken/core.1.*"))
	_, err = exec.LookPath("gdb")
	gdb := err == nil
	if len(taken) != 1 && !gdb || len(taken) != 2 && gdb {
		t.Fatalf("taken: %v\n%s", taken, o.Text())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "core*")); len(left) != 0 {
		t.Errorf("left in the working directory: %v", left)
	}
	if !gdb {
		if !strings.Contains(o.Stderr, "no stack: gdb is not in PATH") {
			t.Errorf("not said why there is no stack\n%s", o.Text())
		}
		return
	}
	for _, want := range []string{"rank 1: core file " + taken[0], "#0 ", "follow (where=0x8)", "crashes.c:4"} {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("standard error lacks %q\n%s", want, o.Text())
		}
	}
	stacks, err := os.ReadFile(taken[1])
	if err != nil || !strings.Contains(string(stacks), "Thread 1") || !strings.Contains(string(stacks), "main (") {
		t.Errorf("%v: %s", err, stacks)
	}
}
