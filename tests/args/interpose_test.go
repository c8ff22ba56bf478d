package args

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/api"
	"libspx/tests/harness"
)

// A tool that is preloaded sees every call of the program, and none of the library's own.
func TestInterposed(t *testing.T) {
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	var functions []*api.Function
	for _, f := range tables.Functions {
		if strings.HasPrefix(f.Name, "MPI_") || strings.HasPrefix(f.Name, "MPIX_") {
			functions = append(functions, f)
		}
	}
	tool := tool(t, functions)
	program := map[string]int{}
	library := map[string]int{}
	for chapter, units := range parts(t, tables) {
		counts := filepath.Join(t.TempDir(), "counts")
		o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "1", compile(t, chapter, units), t.TempDir(), "0"), Env: []string{"LD_PRELOAD=" + tool, "INTERPOSED=" + counts}, Limit: 90 * time.Second})
		if o.Status != 0 {
			t.Errorf("%s: status %d\n%s", chapter, o.Status, head(o.Stderr))
		}
		text, err := os.ReadFile(counts)
		if err != nil {
			t.Error(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			n, _ := strconv.Atoi(f[1])
			program[f[0]] += n
			n, _ = strconv.Atoi(f[2])
			library[f[0]] += n
		}
		for _, u := range units {
			if want := len(u.attempts); u.ranks == 0 && program[u.f.Name] < want && !hasPairs(u) {
				t.Errorf("%s: %d calls were seen of %d and more", u.f.Name, program[u.f.Name], want)
			}
		}
	}
	for name, n := range library {
		if n > 0 {
			t.Errorf("%s: the library calls it, %d times: a tool sees calls that the program does not make", name, n)
		}
	}
}

func hasPairs(u *unit) bool {
	for _, a := range u.attempts {
		if a.kind == 'p' || a.kind == 't' || a.kind == 'a' {
			return true
		}
	}
	return false
}

func tool(t *testing.T, functions []*api.Function) string {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "tool.c"), filepath.Join(dir, "tool.so")
	if err := os.WriteFile(source, []byte(interposer(functions)), 0o666); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpicc"), "-w", "-g", "-O0", "-shared", "-fPIC", source, "-o", out, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}
