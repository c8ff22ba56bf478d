package abi

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"libspx/api"
	"libspx/tests/harness"
)

// A wrong value for one argument, and the error classes that the standard allows for it.
type wrong struct{ value, classes string }

// fine has a value for every kind of argument that a call accepts, or goes on from to find the one that is wrong: the process
// is alone, and no call gets past its checks.
var fine = map[string]string{
	"COMMUNICATOR": "MPI_COMM_SELF", "GROUP": "group", "DATATYPE": "MPI_INT", "OPERATION": "MPI_SUM", "ERRHANDLER": "MPI_ERRORS_RETURN",
	"INFO": "info", "REQUEST": "MPI_REQUEST_NULL", "MESSAGE": "MPI_MESSAGE_NO_PROC", "DEST": "0", "SOURCE": "0", "ROOT": "0", "TAG": "1", "STRING": "\"text\"",
	"FUNCTION": "0", "POLYFUNCTION": "0", "EXTRA_STATE": "0",
}

// wrongs has the wrong values for every kind of argument that goes in.
var wrongs = map[string][]wrong{
	"COMMUNICATOR": {{"MPI_COMM_NULL", "MPI_ERR_COMM"}, {"(MPI_Comm)0x8123456", "MPI_ERR_COMM"}, {"(MPI_Comm)-1", "MPI_ERR_COMM"}, {"(MPI_Comm)MPI_INT", "MPI_ERR_COMM"}, {"freed_comm", "MPI_ERR_COMM"}},
	"GROUP":        {{"MPI_GROUP_NULL", "MPI_ERR_GROUP"}, {"(MPI_Group)0x10123456", "MPI_ERR_GROUP"}, {"freed_group", "MPI_ERR_GROUP"}},
	"DATATYPE":     {{"MPI_DATATYPE_NULL", "MPI_ERR_TYPE"}, {"(MPI_Datatype)MPI_COMM_WORLD", "MPI_ERR_TYPE"}, {"freed_type", "MPI_ERR_TYPE"}},
	"OPERATION":    {{"MPI_OP_NULL", "MPI_ERR_OP"}, {"(MPI_Op)MPI_INT", "MPI_ERR_OP"}, {"freed_op", "MPI_ERR_OP"}},
	"ERRHANDLER":   {{"MPI_ERRHANDLER_NULL", "MPI_ERR_ERRHANDLER MPI_ERR_ARG"}, {"(MPI_Errhandler)MPI_INT", "MPI_ERR_ERRHANDLER MPI_ERR_ARG"}},
	"INFO":         {{"(MPI_Info)MPI_INT", "MPI_ERR_INFO"}, {"freed_info", "MPI_ERR_INFO"}},
	"REQUEST":      {{"(MPI_Request)0x30123456", "MPI_ERR_REQUEST"}, {"(MPI_Request)MPI_INT", "MPI_ERR_REQUEST"}},
	"MESSAGE":      {{"MPI_MESSAGE_NULL", "MPI_ERR_REQUEST MPI_ERR_ARG"}, {"(MPI_Message)MPI_INT", "MPI_ERR_REQUEST MPI_ERR_ARG"}},
	"WINDOW":       {{"MPI_WIN_NULL", "MPI_ERR_WIN"}, {"(MPI_Win)MPI_INT", "MPI_ERR_WIN"}},
	"FILE":         {{"(MPI_File)MPI_INT", "MPI_ERR_FILE"}},
	"SESSION":      {{"MPI_SESSION_NULL", "MPI_ERR_SESSION"}, {"(MPI_Session)MPI_INT", "MPI_ERR_SESSION"}},
	"DEST":         {{"1", "MPI_ERR_RANK"}, {"MPI_ANY_SOURCE", "MPI_ERR_RANK"}, {"MPI_ROOT", "MPI_ERR_RANK"}, {"-32766", "MPI_ERR_RANK"}},
	"SOURCE":       {{"1", "MPI_ERR_RANK"}, {"MPI_ROOT", "MPI_ERR_RANK"}, {"-32766", "MPI_ERR_RANK"}},
	"ROOT":         {{"1", "MPI_ERR_ROOT"}, {"-1", "MPI_ERR_ROOT"}, {"MPI_ROOT", "MPI_ERR_ROOT"}, {"MPI_PROC_NULL", "MPI_ERR_ROOT"}},
	"TAG":          {{"-1", "MPI_ERR_TAG"}, {"2147483647", "MPI_ERR_TAG"}},
	"BUFFER":       {{"NULL", "MPI_ERR_BUFFER"}},

	"POLYXFER_NUM_ELEM_NNI": {{"-1", "MPI_ERR_COUNT MPI_ERR_ARG"}},
	"XFER_NUM_ELEM_NNI":     {{"-1", "MPI_ERR_COUNT MPI_ERR_ARG"}},
	"ARRAY_LENGTH_NNI":      {{"-1", "MPI_ERR_COUNT MPI_ERR_ARG"}},
	"STRING":                {{"NULL", "MPI_ERR_ARG MPI_ERR_INFO_KEY MPI_ERR_INFO_VALUE MPI_ERR_NAME MPI_ERR_PORT MPI_ERR_SERVICE"}},
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

// cases are the wrong values to try for one parameter.
func cases(f *api.Function, p api.Param) []wrong {
	if p.Has("unchecked") {
		return nil
	}
	switch {
	case p.Dir == "out" && handle(p.Kind) && p.Pointer() && !p.Array():
		return []wrong{{"NULL", "MPI_ERR_ARG MPI_ERR_REQUEST"}}
	case p.Kind == "BUFFER":
		if f.Chapter == "neighbor" || f.Chapter == "type" || f.Chapter == "env" || strings.Contains(f.Name, "lltoallw") || strings.Contains(f.Name, "ttach_buffer") || strings.Contains(f.Name, "Buffer_attach") {
			return nil // nobody may be there to send to, or no type says whether NULL is MPI_BOTTOM
		}
		if strings.HasPrefix(f.Name, "MPI_Win_") {
			return []wrong{{"NULL", "MPI_ERR_BASE MPI_ERR_BUFFER"}} // a window's memory has a class of its own (MPI-5.0, 12.9.2)
		}
		return wrongs["BUFFER"]
	case p.Array():
		return nil
	case p.Dir == "out":
		switch p.Kind {
		case "RANK", "COMM_SIZE", "INDEX", "LOGICAL", "ERROR_CLASS", "KEYVAL", "POLYXFER_NUM_ELEM", "POLYDISPLACEMENT_AINT_COUNT", "NUM_DIMS", "COMM_COMPARISON", "GROUP_COMPARISON":
			return []wrong{{"NULL", "MPI_ERR_ARG"}}
		}
		return nil
	case handle(p.Kind) && p.Pointer():
		var out []wrong
		for _, w := range append([]wrong{{"", "MPI_ERR_ARG MPI_ERR_REQUEST"}}, wrongs[p.Kind]...) {
			if p.Kind == "INFO" && w.value == "MPI_INFO_NULL" {
				continue
			}
			ctype := strings.TrimSpace(strings.Trim(p.CType, "*"))
			v := fmt.Sprintf("(%s[]){%s}", ctype, w.value)
			if w.value == "" {
				v = "NULL"
			}
			out = append(out, wrong{v, w.classes})
		}
		return out
	}
	out := append([]wrong(nil), wrongs[p.Kind]...)
	switch {
	case p.Kind == "COMMUNICATOR" && p.Has("nullable"):
		out = out[1:]
	case p.Kind == "INFO" && !p.Has("nullable"):
		out = append(out, wrong{"MPI_INFO_NULL", "MPI_ERR_INFO"})
	case p.Kind == "REQUEST" && !p.Has("nullable"):
		out = append(out, wrong{"MPI_REQUEST_NULL", "MPI_ERR_REQUEST"})
	case p.Kind == "FILE" && !p.Has("nullable"):
		out = append(out, wrong{"MPI_FILE_NULL", "MPI_ERR_FILE"})
	case p.Kind == "DATATYPE" && p.Has("committed"):
		out = append(out, wrong{"uncommitted", "MPI_ERR_TYPE"})
	case p.Kind == "TAG" && !p.Has("any"):
		out = append(out, wrong{"MPI_ANY_TAG", "MPI_ERR_TAG"})
	case p.Kind == "SOURCE" && !p.Has("any"):
		out = append(out, wrong{"MPI_ANY_SOURCE", "MPI_ERR_RANK"})
	}
	return out
}

// needs tells whether a call needs an object that cannot be made here: then only that argument is tried.
func needs(f *api.Function, p api.Param) bool {
	for _, q := range f.Params {
		if q.Name != p.Name && q.Dir != "out" && (q.Kind == "WINDOW" || q.Kind == "FILE" && !q.Has("nullable") || q.Kind == "SESSION") {
			return true
		}
	}
	return false
}

//go:embed testdata/badargs.h
var badArgsHead string

// Every argument of every function that has a body is wrong in turn: the right class comes back through MPI_ERRORS_RETURN, and the
// process lives.
func TestBadArguments(t *testing.T) {
	missing := unwritten(t)
	var calls []string
	for _, f := range tables(t).Functions {
		if missing[f.Name] || f.State == "raw" || f.Chapter == "tools" || f.Name == "MPI_Abort" || strings.HasPrefix(f.Name, "MPISP_") || f.Result != "int" {
			continue
		}
		for i, p := range f.Params {
			if needs(f, p) {
				continue
			}
			for _, w := range cases(f, p) {
				var args []string
				for j, q := range f.Params {
					if j == i {
						args = append(args, w.value)
					} else {
						args = append(args, value(f, q))
					}
				}
				calls = append(calls, fmt.Sprintf("  TRY(%s(%s), %s);\n", f.Name, strings.Join(args, ", "), strings.Join(strings.Fields(w.classes), ", ")))
			}
		}
	}
	if len(calls) < 500 {
		t.Errorf("only %d calls", len(calls))
	}
	sort.Strings(calls)
	source := filepath.Join(t.TempDir(), "badargs.c")
	text := badArgsHead + "static void run(void)\n{\n  PREPARE\n" + strings.Join(calls, "") + "}\n"
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "badargs")
	if out, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpicc"), "-w", "-g", "-O0", source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if o := harness.Run(t, harness.Command{Args: []string{program}, Limit: 90 * time.Second}); o.Status != 0 {
		t.Errorf("%s", o.Text())
	}
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
