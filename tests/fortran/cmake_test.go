package fortran

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// CMake's FindMPI finds the three interfaces and what module mpi_f08 says of itself, and builds programs that run.
func TestFindMPI(t *testing.T) {
	dir := t.TempDir()
	compiler, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpifort"), "-showme:command").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+filepath.Join(harness.Build(t), "bin")+":"+os.Getenv("PATH"), "FC="+strings.TrimSpace(string(compiler)))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	out := run("cmake", "-S", filepath.Join(harness.Root(), "tests/fortran/findmpi"), "-B", dir)
	for _, want := range []string{"Found MPI_Fortran", harness.Build(t), "HAVE_F77_HEADER TRUE", "HAVE_F90_MODULE TRUE", "HAVE_F08_MODULE TRUE",
		"F08_MODULE_ASYNCPROT TRUE", "F08_MODULE_SUBARRAYS TRUE", "VERSION 5.0"} {
		if !strings.Contains(out, want) {
			t.Errorf("cmake does not print %q:\n%s", want, out)
		}
	}
	run("cmake", "--build", dir)
	for _, program := range []string{"kernel77", "kernel90", "kernel08"} {
		o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "4", filepath.Join(dir, program)), Limit: time.Minute})
		if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "verified") {
			t.Errorf("%s: exit status %d, late %v\n%s", program, o.Status, o.Late, o.Text())
		}
	}
}
