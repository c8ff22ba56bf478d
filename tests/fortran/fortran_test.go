// Package fortran runs programs in Fortran, built with our wrappers. A program says in a line "ranks: N" how many it wants, stops with a number where something is
// wrong, and ends with "verified".
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

var ranksLine = regexp.MustCompile(`(?m)^[!C]\s+ranks: (\d+)$`)

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
			wrapper := "mpifort"
			if filepath.Ext(source) == ".f" {
				wrapper = "mpif77"
			}
			program := filepath.Join(t.TempDir(), name)
			source, err = filepath.Abs(source)
			if err != nil {
				t.Fatal(err)
			}
			build := exec.Command(filepath.Join(harness.Build(t), "bin", wrapper), "-g", "-Wall", "-o", program, source)
			build.Dir = filepath.Dir(program) // where the compiler leaves the program's modules
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, string(ranks[1]), program), Limit: time.Minute})
			if o.Status != 0 || o.Late || strings.Count(o.Stdout, "verified") != 1 {
				t.Errorf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
			}
		})
	}
}

// What is generated is what the generator makes now.
func TestGenerated(t *testing.T) {
	root := harness.Root()
	names := []string{"include/mpif.h"}
	for _, file := range []string{"zz_f77.c", "zz_cdesc.c", "zz_mpi.f90", "zz_f08_types.f90", "zz_mpi_f08.f90", "zz_f08ts.f90"} {
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
