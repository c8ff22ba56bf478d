// Package abi proves that what libspx shows to the outside is the standard ABI (MPI-5.0, chapter 20) and its own table, no more and
// no less: headers, values, visible symbols, the library's name, and the compiler wrappers.
package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"libspx/api"
	"libspx/tests/harness"
)

func tables(t *testing.T) *api.Tables {
	t.Helper()
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func include() string { return filepath.Join(harness.Root(), "include") }

// compile runs a compiler on a source text and returns the program or object.
func compile(t *testing.T, compiler, source, suffix string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "test."+suffix)
	if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	args := append([]string{file, "-I" + include(), "-o", out}, flags...)
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s\n%v\n%s", compiler, strings.Join(args, " "), err, text)
	}
	return out
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	cmd := exec.Command("go", "run", "./api/gen", "-check")
	cmd.Dir = harness.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go run ./api/gen -check: %v\n%s", err, out)
	}
}

func TestHeadersCompile(t *testing.T) {
	headers, err := filepath.Glob(include() + "/*.h")
	headers = slices.DeleteFunc(headers, func(h string) bool { return strings.HasPrefix(filepath.Base(h), "mpif") }) // Fortran's
	if err != nil || len(headers) < 5 {
		t.Fatalf("%d headers in %s (%v)", len(headers), include(), err)
	}
	all := ""
	for _, h := range headers {
		one := "#include <" + filepath.Base(h) + ">\n"
		all += one
		compile(t, "gcc", one+"typedef int not_empty;\n", "c", "-c", "-std=c89", "-pedantic", "-Wall", "-Wextra", "-Werror")
	}
	for _, std := range []string{"c89", "c99", "c11", "c17"} {
		compile(t, "gcc", all+all, "c", "-c", "-std="+std, "-pedantic", "-Wall", "-Wextra", "-Werror")
		compile(t, "gcc", all, "c", "-c", "-std="+std, "-pedantic", "-Wall", "-Wextra", "-Werror", "-DSPX_STRICT")
	}
	for _, std := range []string{"c++98", "c++11", "c++17", "c++20"} {
		compile(t, "g++", all, "cc", "-c", "-std="+std, "-pedantic", "-Wall", "-Wextra", "-Werror")
	}
}

// Programs that give addresses of nothing where the standard allows them compile without warnings, as do tools with functions as the standard has them.
func TestSentinelsWithoutWarnings(t *testing.T) {
	program := `#include <mpi.h>
int MPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree, int destinations[],
                             int destweights[]);
int main(int argc, char **argv)
{
  int one[1] = {0}, degree[1] = {1}, a[1], b[1];
  MPI_Comm graph, other, child;
  MPI_Request r;
  MPI_Init(&argc, &argv);
  MPI_Dist_graph_create(MPI_COMM_SELF, 1, one, degree, one, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Dist_graph_create(MPI_COMM_SELF, 0, one, degree, one, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &other);
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, one, MPI_UNWEIGHTED, 1, one, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &other);
  MPI_Dist_graph_neighbors(graph, 1, a, MPI_UNWEIGHTED, 1, b, MPI_UNWEIGHTED);
  PMPI_Dist_graph_neighbors(graph, 0, a, MPI_WEIGHTS_EMPTY, 0, b, MPI_WEIGHTS_EMPTY);
  MPI_Comm_spawn("x", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  MPI_Alltoallv(MPI_IN_PLACE, 0, 0, MPI_DATATYPE_NULL, a, degree, one, MPI_INT, MPI_COMM_SELF);
  MPI_Isend(MPI_BOTTOM, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &r);
  MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  return 0;
}
`
	for compiler, ext := range map[string]string{"gcc": "c", "g++": "cc"} {
		for _, level := range []string{"-O0", "-O2"} {
			compile(t, compiler, program, ext, "-c", level, "-Wall", "-Wextra", "-Werror")
		}
	}
}

// What is not in the standard must not be seen by a program that asks for the standard alone.
func TestStrictHasNoLegacyNames(t *testing.T) {
	w := "#define SPX_STRICT\n#include <mpi.h>\n"
	for _, f := range tables(t).Functions {
		if f.Header == "mpi-legacy.h" {
			w += fmt.Sprintf("typedef int %s;\n", f.Name) // an error if it were declared as a function
		}
	}
	compile(t, "gcc", w, "c", "-c", "-std=c11")
}

// The values are those of the table, which states the standard's; they are also fit for case labels and #if.
func TestConstantsByValue(t *testing.T) {
	w := &strings.Builder{}
	w.WriteString("#include <mpi.h>\n#include <mpi-ext.h>\n#include <mpisp.h>\n#include <stdio.h>\n" +
		"#define SAME(c, v) if ((long)(c) != (v)) { printf(\"%s is %ld, not %ld\\n\", #c, (long)(c), (long)(v)); bad = 1; }\nint main(void)\n{\n  int bad = 0;\n")
	n := 0
	for _, c := range tables(t).Constants {
		if c.Header == "fortran" {
			continue
		}
		n++
		fmt.Fprintf(w, "  SAME(%s, %s)\n", c.Name, c.Value)
		if c.CType == "int" {
			fmt.Fprintf(w, "#if %s != %s\n#error %s\n#endif\n", c.Name, c.Value, c.Name)
		}
	}
	w.WriteString("  return bad;\n}\n")
	if n < 360 {
		t.Errorf("only %d constants in the table", n)
	}
	program := compile(t, "gcc", w.String(), "c", "-Wno-pointer-to-int-cast")
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Extensions keep out of the ranges that the standard reserves: class codes up to MPI_ERR_LASTCODE, negative ranks down to -16384.
func TestExtensionsAreOutsideTheReservedRange(t *testing.T) {
	for _, c := range tables(t).Constants {
		var v int
		if c.Kind != "int" || c.Header == "mpi.h" || c.Header == "fortran" {
			continue
		}
		if _, err := fmt.Sscan(c.Value, &v); err != nil || v >= -16384 && v <= 16384 {
			t.Errorf("%s = %s is in the range that the standard reserves", c.Name, c.Value)
		}
	}
}

func TestSizes(t *testing.T) {
	compile(t, "gcc", `#include <mpi.h>
#include <stddef.h>
_Static_assert(sizeof(MPI_Status) == 32, "MPI_Status");
_Static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0 && offsetof(MPI_Status, MPI_TAG) == 4 && offsetof(MPI_Status, MPI_ERROR) == 8, "MPI_Status");
_Static_assert(sizeof(MPI_F08_status) == 32, "MPI_F08_status");
_Static_assert(sizeof(MPI_Aint) == sizeof(void *), "MPI_Aint");
_Static_assert(sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8, "MPI_Offset, MPI_Count");
_Static_assert(sizeof(MPI_Comm) == sizeof(void *) && sizeof(MPI_Request) == sizeof(void *), "handles");
_Static_assert(sizeof(MPI_Fint) == 4 && sizeof(MPI_T_cb_safety) == 4 && sizeof(MPI_T_source_order) == 4, "ints");
_Static_assert((MPI_Aint)-1 < 0 && (MPI_Offset)-1 < 0 && (MPI_Count)-1 < 0, "signed");
`, "c", "-c", "-std=c11")
}

// The headers of MPICH 5 and Open MPI 6 agree with ours: prototypes, callback types, values.
func TestPeersHeadersAgree(t *testing.T) {
	root := os.Getenv("SPX_PEERS")
	if root == "" {
		root = "/var/cache/spx-peers"
	}
	tables := tables(t)
	for _, name := range []string{"mpich/include/mpi_abi.h", "openmpi/include/standard_abi/mpi.h"} {
		t.Run(strings.Split(name, "/")[0], func(t *testing.T) {
			found, _ := filepath.Glob(root + "/usr/lib/*/" + name)
			if len(found) == 0 {
				t.Skipf("no %s below %s: run `make peers`", name, root)
			}
			w := &strings.Builder{}
			fmt.Fprintf(w, "#include \"%s\"\n", found[0])
			for _, ty := range tables.Types {
				if ty.Header == "mpi.h" && ty.Form == "callback" {
					fmt.Fprintf(w, "%s;\n", ty.Decl)
				}
			}
			for _, f := range tables.Functions {
				if f.Header == "mpi.h" {
					fmt.Fprintf(w, "%s;\n", f.Proto)
				}
			}
			for _, c := range tables.Constants {
				if c.Header == "mpi.h" && c.Kind != "offset" && !strings.HasPrefix(c.Category, "DEPRECATED") {
					fmt.Fprintf(w, "_Static_assert((long)(%s) == %s, \"%s\");\n", c.Name, c.Value, c.Name)
				}
			}
			compile(t, "gcc", w.String(), "c", "-c", "-std=gnu11", "-w", "-I"+filepath.Dir(found[0]))
		})
	}
}
