// Package peers proves that binaries are interchangeable (MPI-5.0, 21.3): what our mpicc makes runs unchanged under MPICH 5
// and Open MPI 6, and what is compiled against their header runs on libspx. Skipped where the peers are not installed
// (make peers).
package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func script() string { return filepath.Join(harness.Root(), "scripts/peers") }

func needPeers(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(script(), "check").CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
}

// source is a program that touches much of the standard ABI: constants, handles, statuses, derived types, collectives,
// attributes, error classes. It prints one line for each rank.
func source() string { return filepath.Join(harness.Root(), "tests/peers/testdata/interchange.c") }

func check(t *testing.T, under string, o harness.Outcome) {
	t.Helper()
	if o.Late || o.Status != 0 {
		t.Fatalf("%s: exit status %d, late %v\n%s", under, o.Status, o.Late, o.Text())
	}
	for rank := range 4 {
		if want := fmt.Sprintf("interchange: rank %d of 4 ok", rank); !strings.Contains(o.Stdout, want) {
			t.Errorf("%s: no line %q\n%s", under, want, o.Text())
		}
	}
}

func TestOurBinaryRunsEverywhere(t *testing.T) {
	program := harness.Compile(t, "peers/ours", []string{source()})
	check(t, "libspx", harness.Run(t, harness.Command{Args: harness.Spxrun(t, "4", program)}))
	needPeers(t)
	for _, impl := range []string{"mpich", "openmpi"} {
		t.Run(impl, func(t *testing.T) {
			check(t, impl, harness.Start(t, harness.Command{Args: []string{script(), "run", impl, "-n", "4", program}, Limit: time.Minute,
				Dir: filepath.Dir(program)}))
		})
	}
}

func TestTheirBinaryRunsHere(t *testing.T) {
	needPeers(t)
	dir := filepath.Join(harness.Build(t), "tests/peers")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "theirs")
	text, err := os.ReadFile(source())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program+".c", text, 0o666); err != nil { // where their compiler sees it, and not our header
		t.Fatal(err)
	}
	o := harness.Start(t, harness.Command{Args: []string{script(), "cc", "-O1", "-o", program, program + ".c"}, Dir: dir, Limit: time.Minute})
	if o.Status != 0 {
		t.Fatalf("compiling against their header: %s", o.Text())
	}
	check(t, "libspx", harness.Run(t, harness.Command{Args: harness.Spxrun(t, "4", program)}))
}
