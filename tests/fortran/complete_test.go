package fortran

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libspx/api"
	"libspx/tests/harness"
)

// routine is a function of the table with Fortran bindings.
type routine struct {
	name           string // MPI_Send_c
	old, new       bool   // mpif.h and module mpi have it; module mpi_f08 has it
	choice, hidden bool   // it has choice buffers; its generic name is that of another
	noP            bool   // it has no P form
}

func routines(t *testing.T) (standard, extensions []routine) {
	t.Helper()
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tables.Functions {
		r := routine{name: f.Name, old: f.Fortran77 && f.Count != "large", new: f.Fortran08}
		if !r.old && !r.new {
			continue
		}
		r.hidden = f.Count == "large" && f.Name != "MPI_Op_create_c" && f.Name != "MPI_Register_datarep_c"
		for _, p := range f.Params {
			r.choice = r.choice || p.Kind == "BUFFER"
		}
		switch {
		case f.Header == "mpi.h", f.Name == "MPI_Status_f082f", f.Name == "MPI_Status_f2f08":
			standard = append(standard, r)
		case f.Header != "mpi-legacy.h":
			r.noP = f.Chapter == "dyprc" || f.Header == "mpisp.h"
			extensions = append(extensions, r)
		}
	}
	if len(standard) < 580 || len(extensions) < 40 {
		t.Fatalf("%d and %d routines in the table", len(standard), len(extensions))
	}
	return append(standard, routine{name: "MPI_F_sync_reg", old: true, new: true, choice: true}), extensions
}

// Every routine is in the library under the names of each interface and of the profiling interface (MPI-5.0, 20.1.5).
func TestSymbols(t *testing.T) {
	file, err := elf.Open(filepath.Join(harness.Build(t), "lib/libspxf.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, s := range symbols {
		there[s.Name] = s.Section != elf.SHN_UNDEF
	}
	standard, extensions := routines(t)
	want := 0
	need := func(name string) {
		want++
		if !there[name] {
			t.Errorf("%s is not in the library", name)
		}
	}
	for _, r := range append(standard, extensions...) {
		name := strings.ToLower(r.name)
		if r.old {
			need(name + "_")
			if !r.noP {
				need("p" + name + "_")
			}
		}
		if r.new && r.choice {
			need(name + "_f08ts_")
			if !r.noP {
				need("p" + name + "_cdesc") // PMPI's names are not specified
			}
		} else if r.new {
			need(name + "_f08_")
			if !r.noP {
				need("p" + name + "_f08_")
			}
		}
	}
	for _, name := range []string{"mpi_alloc_mem_cptr_", "mpi_win_allocate_cptr_", "mpi_win_allocate_shared_cptr_", "mpi_win_shared_query_cptr_"} {
		need(name)
		need("p" + name)
	}
	t.Logf("%d names", want)
}

// Every routine, with its P form and its specific name, comes out of each module; so does every constant.
func TestModules(t *testing.T) {
	standard, extensions := routines(t)
	use := map[string][]string{}
	for _, r := range standard {
		for _, p := range []string{"", "P"} {
			if r.old {
				use["mpi"] = append(use["mpi"], p+r.name)
			}
			if (r.new || r.old) && !r.hidden { // those that are deprecated are in mpi_f08 too
				use["mpi_f08"] = append(use["mpi_f08"], p+r.name)
			}
			specific := p + r.name + "_f08"
			if r.choice {
				specific += "ts"
			}
			if r.new && !sameKinds[r.name] {
				use["mpi_f08"] = append(use["mpi_f08"], specific)
			}
		}
	}
	for _, r := range extensions {
		specific := r.name + "_f08"
		if r.choice {
			specific += "ts"
		}
		use["mpi_ext"] = append(use["mpi_ext"], r.name)
		use["mpi_f08_ext"] = append(use["mpi_f08_ext"], r.name, specific)
		if !r.noP {
			use["mpi_ext"] = append(use["mpi_ext"], "P"+r.name)
			use["mpi_f08_ext"] = append(use["mpi_f08_ext"], "P"+r.name, "P"+specific)
		}
	}
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tables.Constants {
		if c.Header == "mpi.h" && (c.Kind == "int" || c.Kind == "handle") && strings.HasPrefix(c.Name, "MPI_") && !strings.HasPrefix(c.Name, "MPI_T_") && !strings.HasPrefix(c.Name, "MPI_F_") {
			use["mpi"] = append(use["mpi"], c.Name)
			use["mpi_f08"] = append(use["mpi_f08"], c.Name)
		}
		if c.Header == "mpi-ext.h" {
			use["mpi_ext"] = append(use["mpi_ext"], c.Name)
			use["mpi_f08_ext"] = append(use["mpi_f08_ext"], c.Name)
		}
	}
	for module, names := range use {
		var text strings.Builder
		fmt.Fprintf(&text, "subroutine all\n")
		for _, name := range append(names, more[module]...) {
			fmt.Fprintf(&text, "  use %s, only: %s\n", module, name)
		}
		fmt.Fprintf(&text, "end subroutine all\n")
		source := filepath.Join(t.TempDir(), module+".f90")
		if err := os.WriteFile(source, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		build := exec.Command(filepath.Join(harness.Build(t), "bin/mpifort"), "-fsyntax-only", source)
		build.Dir = filepath.Dir(source)
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("module %s: %v\n%s", module, err, out)
		}
		t.Logf("module %s: %d names", module, len(names))
	}
}

// sameKinds are the large forms that module mpi_f08 cannot tell from the small ones: the kinds of addresses and counts are the same on these machines.
var sameKinds = map[string]bool{"MPI_File_get_type_extent_c": true, "MPI_Type_create_resized_c": true, "MPI_Type_get_extent_c": true, "MPI_Type_get_true_extent_c": true}

// more is what modules have that is not in the table.
var more = map[string][]string{
	"mpi":     strings.Fields("MPI_SIZEOF MPI_Status MPI_Comm MPI_Win operator(==) operator(/=) MPI_BOTTOM MPI_IN_PLACE MPI_STATUS_SIZE MPI_ADDRESS_KIND MPI_SUBARRAYS_SUPPORTED MPI_COMM_DUP_FN"),
	"mpi_f08": strings.Fields("MPI_SIZEOF MPI_Status MPI_Comm MPI_Win operator(==) operator(/=) MPI_BOTTOM MPI_IN_PLACE MPI_STATUS_SIZE MPI_ADDRESS_KIND MPI_SUBARRAYS_SUPPORTED MPI_COMM_DUP_FN MPI_CONVERSION_FN_NULL_C MPI_User_function_c"),
}
