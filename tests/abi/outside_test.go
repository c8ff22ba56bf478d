package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/api"
	"libspx/tests/harness"
)

// fine has a value for every kind of argument that a call accepts, or goes on from to find the one that is wrong: the process
// is alone, and no call gets past its checks.
var fine = map[string]string{
	"COMMUNICATOR": "MPI_COMM_SELF", "GROUP": "group", "DATATYPE": "MPI_INT", "OPERATION": "MPI_SUM", "ERRHANDLER": "MPI_ERRORS_RETURN",
	"INFO": "info", "REQUEST": "MPI_REQUEST_NULL", "MESSAGE": "MPI_MESSAGE_NO_PROC", "DEST": "0", "SOURCE": "0", "ROOT": "0", "TAG": "1", "STRING": "\"text\"",
	"FUNCTION": "0", "POLYFUNCTION": "0", "EXTRA_STATE": "0",
}

// unwritten lists the functions that have no body yet: they raise that, whatever their arguments.
func unwritten(t *testing.T) map[string]bool {
	t.Helper()
	cmd := exec.Command("go", "run", "./api/gen", "-status")
	cmd.Dir = harness.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) == 2 {
			names[f[1]] = true
		}
	}
	return names
}

// value is an acceptable argument for a parameter, and what must stand before the call for it.
func value(f *api.Function, p api.Param) string {
	v, known := fine[p.Kind]
	switch {
	case p.Kind == "STATUS" && p.Dir == "out":
		return "NULL"
	case p.Kind == "REQUEST" && !p.Has("nullable") && p.Dir != "out" && !p.Array() && !p.Pointer():
		return "MPI_REQUEST_NULL"
	case p.Array() && p.Kind == "DATATYPE":
		return "types"
	case p.Kind == "FILE" && p.Has("nullable"):
		return "MPI_FILE_NULL"
	case p.Pointer() && p.Dir != "out" && known && handle(p.Kind) && !p.Array():
		return fmt.Sprintf("(%s[]){%s}", strings.TrimSpace(strings.Trim(p.CType, "*")), v)
	case p.Array() && p.Kind == "REQUEST":
		return "requests"
	case p.Kind == "FUNCTION" || p.Kind == "POLYFUNCTION":
		return "(" + p.CType + ")(uintptr_t)dummy"
	case p.Pointer() && p.Kind != "STRING" || p.Kind == "STRING" && p.Dir == "out":
		return "(void *)room"
	case known:
		return v
	}
	return "1"
}

func handle(kind string) bool {
	switch kind {
	case "COMMUNICATOR", "GROUP", "DATATYPE", "OPERATION", "ERRHANDLER", "REQUEST", "MESSAGE", "INFO", "WINDOW", "FILE", "SESSION":
		return true
	}
	return false
}

// A call outside of MPI_Init and MPI_Finalize ends the process with a message that names it: never a crash, never a hang.
func TestCallsOutsideInitAndFinalize(t *testing.T) {
	missing := unwritten(t)
	text := &strings.Builder{}
	text.WriteString("#include <mpi.h>\n#include <stdlib.h>\n#include <stdint.h>\nstatic char room[1 << 12];\nstatic void dummy(void) {}\n" +
		"static void run(int n)\n{\n  MPI_Group group = MPI_GROUP_EMPTY;\n  MPI_Info info = MPI_INFO_NULL;\n  MPI_Datatype types[1];\n  MPI_Request requests[1];\n" +
		"  (void)group, (void)info, (void)types, (void)requests, (void)dummy;\n  switch (n) {\n")
	var names []string
	seen := map[string]int{}
	for _, f := range tables(t).Functions {
		if f.State != "active" || missing[f.Name] || f.Header != "mpi.h" && f.Header != "mpi-legacy.h" || seen[f.Chapter] == 2 || f.Count == "large" {
			continue
		}
		seen[f.Chapter]++
		var args []string
		for _, p := range f.Params {
			args = append(args, value(f, p))
		}
		fmt.Fprintf(text, "  case %d: %s(%s); break;\n", len(names), f.Name, strings.Join(args, ", "))
		names = append(names, f.Name)
	}
	text.WriteString("  }\n}\nint main(int argc, char **argv)\n{\n  if (argv[1][0] == 'f') {\n    MPI_Init(&argc, &argv);\n    MPI_Finalize();\n  }\n  run(atoi(argv[2]));\n  return 0;\n}\n")
	source := filepath.Join(t.TempDir(), "outside.c")
	if err := os.WriteFile(source, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "outside")
	if out, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpicc"), "-w", source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for when, words := range map[string]string{"before": "before MPI_Init", "finalized": "after MPI_Finalize"} {
		for n, name := range names {
			o := harness.Run(t, harness.Command{Args: []string{program, when, fmt.Sprint(n)}, Limit: 10 * time.Second})
			if o.Status == 0 || o.Status > 128 || o.Late || !strings.Contains(o.Stderr, name) || !strings.Contains(o.Stderr, words) {
				t.Errorf("%s called %s: status %d, late %v\n%s", name, words, o.Status, o.Late, o.Text())
			}
		}
	}
	if len(names) < 15 {
		t.Errorf("only %d functions tried", len(names))
	}
}

func TestAnytime(t *testing.T) {
	program := harness.Compile(t, "abi/anytime", []string{filepath.Join(harness.Root(), "tests/abi/testdata/anytime.c")})
	if o := harness.Run(t, harness.Command{Args: []string{program}}); o.Status != 0 {
		t.Errorf("%s", o.Text())
	}
}

func TestInsignificantArguments(t *testing.T) {
	program := harness.Compile(t, "abi/significant", []string{filepath.Join(harness.Root(), "tests/abi/testdata/significant.c")})
	if o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "3", program)}); o.Status != 0 || o.Late {
		t.Errorf("%s", o.Text())
	}
}
