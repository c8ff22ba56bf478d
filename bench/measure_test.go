package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

func TestNearness(t *testing.T) {
	var n nearness
	for i, c := range []struct {
		us   float64
		want bool
	}{{0.1, true}, {0.15, true}, {0.17, false}, {0.05, true}, {0.1, false}, {0.07, true}} {
		if n.near(c.us) != c.want {
			t.Errorf("%d: %v", i, c)
		}
	}
	if n.settle(0.2); !n.near(0.3) || n.near(0.4) {
		t.Error("processors that stay far apart are not taken as they are")
	}
}
