package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The figures that a run replaces do not make the tree another one than its commit; any other file does.
func TestCommit(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := commit(filepath.Join(root, "none")); got != "unknown" {
		t.Errorf("where there is nothing: %q", got)
	}
	git("init", "-q")
	write("docs/bench/results.json", "old")
	write("a.c", "int a;")
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	clean := commit(root)
	if clean == "" || clean == "unknown" || strings.Contains(clean, "dirty") {
		t.Errorf("a clean tree is %q", clean)
	}
	if err := os.Remove(filepath.Join(root, "docs/bench/results.json")); err != nil {
		t.Fatal(err)
	}
	if got := commit(root); got != clean {
		t.Errorf("without the figures of before it is %q, not %q", got, clean)
	}
	write("a.c", "int b;")
	if got := commit(root); got != clean+"-dirty" {
		t.Errorf("with another program it is %q, not %q", got, clean+"-dirty")
	}
}

// A round has for each row figures of one distance; what has no partner waits.
func TestPairing(t *testing.T) {
	p := newPairing([]string{"a 1", "b 1"}, []string{"spx", "mpich"})
	told := func(impl, text string) {
		t.Helper()
		rows, err := parseTold(text)
		if err != nil {
			t.Fatal(err)
		}
		p.add(impl, rows)
	}
	told("spx", "a 1 1.0 0.07\na 1 3.0 0.07\na 1 9.0 0.24\nb 1 2.0 0.07\nb 1 7.0 0\n")
	told("mpich", "a 1 8.0 0.24\nb 1 4.0 0.03\n")
	if us := p.take(); us != nil {
		t.Fatalf("a round without figures of one distance for b: %v", us)
	}
	told("mpich", "a 1 5.0 0.065\nb 1 5.0 0.075\n")
	want := map[string]map[string]float64{"a 1": {"spx": 9, "mpich": 8}, "b 1": {"spx": 2, "mpich": 5}}
	if diff := cmp.Diff(want, p.take()); diff != "" {
		t.Error(diff)
	}
	if us := p.take(); us != nil {
		t.Errorf("a second round: %v", us)
	}
	told("spx", "b 1 6.0 0.03\n")
	if diff := cmp.Diff(map[string]map[string]float64{"a 1": {"spx": 2, "mpich": 5}, "b 1": {"spx": 6, "mpich": 4}}, p.take()); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"a 1 1.0\n", "a 1 x 0.1\n", "a 1 1.0 y\n"} {
		if _, err := parseTold(text); err == nil {
			t.Errorf("%q is taken for a batch", text)
		}
	}
}
