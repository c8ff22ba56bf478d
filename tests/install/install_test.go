// Package install proves that `make install` gives a tree that works wherever it stands: compiler wrapper, pkg-config, both names
// of the library, programs that find it without LD_LIBRARY_PATH.
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

func TestInstalledTree(t *testing.T) {
	build := harness.Build(t)
	dest := t.TempDir()
	out, err := exec.Command(filepath.Join(harness.Root(), "scripts/install"), build, dest, "/opt/spx").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Moved after it was installed: nothing may remember where it was built or put.
	home := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(filepath.Join(dest, "opt/spx"), home); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/spxrun", "bin/mpiexec", "bin/mpirun", "bin/mpicc", "bin/mpicxx", "bin/mpif90", "bin/mpifort", "bin/mpif77",
		"lib/libspx.so", "lib/libmpi_abi.so.1", "lib/libmpi_abi.so", "lib/pkgconfig/libspx.pc", "lib/pkgconfig/mpi-c.pc", "include/mpi.h", "include/mpi-ext.h"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Errorf("missing: %v", err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	program := filepath.Join(home, "hello")
	source := filepath.Join(harness.Root(), "examples/hello.c")
	compile(t, exec.Command(filepath.Join(home, "bin/mpicc"), source, "-o", program), "mpicc")
	runHello(t, home, program)

	flags := exec.Command("pkg-config", "--cflags", "--libs", "libspx")
	flags.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(home, "lib/pkgconfig"))
	text, err := flags.CombinedOutput()
	if err != nil {
		t.Fatalf("pkg-config: %v\n%s", err, text)
	}
	args := append([]string{source, "-o", program + "2"}, strings.Fields(string(text))...)
	compile(t, exec.Command("gcc", args...), "gcc with pkg-config's flags")
	runHello(t, home, program+"2")
}

func compile(t *testing.T, cmd *exec.Cmd, what string) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
}

// runHello starts the program by the installed spxrun, without help from the environment.
func runHello(t *testing.T, home, program string) {
	t.Helper()
	o := harness.Start(t, harness.Command{Args: []string{"env", "-u", "LD_LIBRARY_PATH", filepath.Join(home, "bin/mpiexec"), "-n", "2", program}})
	if o.Status != 0 || !strings.Contains(o.Stdout, "rank 1 of 2") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}
