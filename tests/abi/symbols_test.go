package abi

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"libspx/tests/harness"

	"github.com/google/go-cmp/cmp"
)

// names are the visible symbols that the table asks for.
func names(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, f := range tables(t).Functions {
		out = append(out, f.Name)
		if strings.HasPrefix(f.Name, "MPI_") || strings.HasPrefix(f.Name, "MPIX_") {
			out = append(out, "P"+f.Name)
		}
	}
	sort.Strings(out)
	return out
}

func library(t *testing.T) *elf.File {
	t.Helper()
	f, err := elf.Open(filepath.Join(harness.Build(t), "lib/libspx.so"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The standard has 662 functions; with their profiling twins, the removed names and the extensions nothing else is visible.
func TestVisibleSymbols(t *testing.T) {
	standard := 0
	for _, f := range tables(t).Functions {
		if f.Header == "mpi.h" {
			standard++
		}
	}
	if standard != 662 {
		t.Errorf("the table has %d functions of the standard, not 662", standard)
	}
	symbols, err := library(t).DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	address := map[string]uint64{}
	binding := map[string]elf.SymBind{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			got = append(got, s.Name)
			address[s.Name], binding[s.Name] = s.Value, elf.ST_BIND(s.Info)
			if s.Version != "" {
				t.Errorf("%s has the version %s: a program linked with it would run with no other library", s.Name, s.Version)
			}
		}
	}
	sort.Strings(got)
	if diff := cmp.Diff(names(t), got); diff != "" {
		t.Errorf("visible symbols (-table +library):\n%s", diff)
	}
	for _, n := range got {
		if twin, ok := strings.CutPrefix(n, "P"); ok && (address[twin] != address[n] || binding[twin] != elf.STB_WEAK) {
			t.Errorf("%s is not a weak alias of %s: a tool could not replace it", twin, n)
		}
	}
}

func TestLibraryName(t *testing.T) {
	f := library(t)
	soname, err := f.DynString(elf.DT_SONAME)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"libmpi_abi.so.1"}, soname); diff != "" {
		t.Errorf("soname (-want +got):\n%s", diff)
	}
	other, err := elf.Open(filepath.Join(harness.Build(t), "lib/libmpi_abi.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	// A library that names itself by an absolute path, or needs one that is not in the system, could not be moved.
	needed, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	ofTheSystem := regexp.MustCompile(`^(libc|libm|libpthread|libdl|libgcc_s|ld-linux.*)\.so`)
	for _, n := range needed {
		if !ofTheSystem.MatchString(n) {
			t.Errorf("the library needs %s", n)
		}
	}
}

func TestProfilingInterface(t *testing.T) {
	program := harness.Compile(t, "abi/pmpi", []string{filepath.Join(harness.Root(), "tests/abi/testdata/pmpi.c")})
	if o := harness.Run(t, harness.Command{Args: []string{program}}); o.Status != 0 {
		t.Errorf("%s", o.Text())
	}
}
