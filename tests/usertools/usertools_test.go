// Package usertools runs a user's program under valgrind and with the address sanitizer, with libspx below it: they must say nothing of a program
// without mistakes, and must still find a mistake.
package usertools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

const limit = 150 * time.Second

func user(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return harness.Compile(t, "usertools/"+name, []string{filepath.Join(harness.Root(), "tests/usertools/testdata/user.c")}, flags...)
}

func TestValgrind(t *testing.T) {
	harness.Need(t, "packaging", "valgrind")
	program := user(t, "user")
	supp := filepath.Join(harness.Root(), "packaging/valgrind/libspx.supp")
	var env []string
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil && !slices.Contains(strings.Fields(string(info)), "rdtscp") {
		env = []string{"GODEBUG=cpu.rdtscp=off"} // valgrind says that the processor has it, and ends who uses it (docs/installing.md)
	}
	valgrind := []string{"-q", "--leak-check=no", "--error-exitcode=9", "--suppressions=" + supp, program}
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", "valgrind", valgrind...), Env: env, Limit: limit})
	if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "done\n") || strings.Contains(o.Stderr, "==\n") {
		t.Errorf("a program without mistakes: exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
	o = harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", "valgrind", append(valgrind, "10")...), Env: env, Limit: limit})
	if o.Status != 9 || !strings.Contains(o.Stderr, "Invalid write of size 1") || !strings.Contains(o.Stderr, "user.c") {
		t.Errorf("a write behind the end: exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
}

func TestAddressSanitizer(t *testing.T) {
	program := user(t, "user_asan", "-fsanitize=address,undefined", "-fno-omit-frame-pointer")
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", program), Limit: limit})
	if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "done\n") || o.Stderr != "" {
		t.Errorf("a program without mistakes: exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
	o = harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", program, "10"), Limit: limit})
	if o.Status == 0 || !strings.Contains(o.Stderr, "heap-buffer-overflow") || !strings.Contains(o.Stderr, "user.c") {
		t.Errorf("a write behind the end: exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
}
