// Package fortran runs programs in Fortran, built with our wrappers. A program says in a line "ranks: N ..." how many it wants (and in "spxrun: ..." with what options),
// stops with a number where something is wrong, and says "verified" once. NAME_c.c is its part in C.
//
//	go test ./tests/fortran -run TestPrograms/module
package fortran

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

var ranksLine = regexp.MustCompile(`(?m)^[!C]\s+ranks: ([\d ]+)$`)
var optionsLine = regexp.MustCompile(`(?m)^[!C]\s+spxrun: (.+)$`)

func TestPrograms(t *testing.T) {
	sources, err := filepath.Glob("programs/*.f*")
	if err != nil || len(sources) == 0 {
		t.Fatal("no programs", err)
	}
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			ranks := ranksLine.FindSubmatch(text)
			if ranks == nil {
				t.Fatalf("%s has no line \"ranks: N\"", source)
			}
			var options []string
			if m := optionsLine.FindSubmatch(text); m != nil {
				options = strings.Fields(string(m[1]))
			}
			program, spxrun := compile(t, source, name), filepath.Join(harness.Build(t), "bin/spxrun")
			for _, n := range strings.Fields(string(ranks[1])) {
				o := harness.Run(t, harness.Command{Args: append(append([]string{spxrun, "-n", n}, options...), program), Limit: time.Minute})
				if o.Status != 0 || o.Late || strings.Count(o.Stdout, "verified") != 1 {
					t.Errorf("%s ranks: exit status %d, late %v\n%s", n, o.Status, o.Late, o.Text())
				}
			}
		})
	}
}

// compile makes a program of NAME.f90 (or .f) and, if there is one, NAME_c.c. The compiler leaves modules in the program's folder.
func compile(t *testing.T, source, name string) string {
	t.Helper()
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	tool := func(wrapper string, args ...string) {
		t.Helper()
		build := exec.Command(filepath.Join(harness.Build(t), "bin", wrapper), args...)
		build.Dir = filepath.Dir(program)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	args := []string{"-g", "-Wall", "-o", program, source}
	companion := strings.TrimSuffix(source, filepath.Ext(source)) + "_c.c"
	if _, err := os.Stat(companion); err == nil {
		tool("mpicc", "-g", "-Wall", "-c", "-o", program+"_c.o", companion)
		args = append(args, program+"_c.o")
	}
	if filepath.Ext(source) == ".f" {
		tool("mpif77", args...)
	} else {
		tool("mpifort", args...)
	}
	return program
}

// What is generated is what the generator makes now.
func TestGenerated(t *testing.T) {
	root := harness.Root()
	names := []string{"include/mpif.h", "include/mpif-ext.h"}
	for _, file := range []string{"zz_extensions.c", "zz_mpi_ext.f90", "zz_f77.c", "zz_cdesc.c", "zz_mpi.f90", "zz_f08_types.f90", "zz_mpi_f08.f90", "zz_f08ts.f90"} {
		names = append(names, "fortran/lib/"+file)
	}
	dir := t.TempDir()
	for _, sub := range []string{"fortran/lib", "include"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	gen := filepath.Join(dir, "gen")
	build := exec.Command("go", "build", "-o", gen, "./fortran/gen")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(gen)
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what go run ./fortran/gen makes (%v)", name, err)
		}
	}
}
