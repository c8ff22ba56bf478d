// Package docs carries out the commands that documents for users show: each must succeed as it stands there.
package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// commands are the commands of libspx in a document: indented lines, and those in backquotes, of which tables have libspx's in the last column.
func commands(t *testing.T, file string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", file))
	if err != nil {
		t.Fatal(err)
	}
	add := func(c string) {
		first, rest, _ := strings.Cut(strings.TrimSpace(c), " ")
		if rest != "" && slices.Contains([]string{"spxrun", "mpicc", "mpicxx", "mpifort"}, first) && !strings.Contains(rest, "--help") && !slices.Contains(list, c) {
			list = append(list, strings.TrimSpace(c))
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "    "):
			add(line)
		case strings.HasPrefix(line, "|"):
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			line = cells[len(cells)-1]
			fallthrough
		default:
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				add(m[1])
			}
		}
	}
	return list
}

func TestCommandsOfMigrating(t *testing.T) {
	list := commands(t, "migrating.md")
	if len(list) < 20 {
		t.Fatalf("only %d commands: %v", len(list), list)
	}
	bin := filepath.Join(harness.Build(t), "bin")
	dir := t.TempDir()
	source, err := os.ReadFile(filepath.Join(harness.Root(), "examples/hello.c"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"hello.c": string(source), "hosts": "localhost slots=4\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(filepath.Join(bin, "mpicc"), filepath.Join(dir, "hello.c"), "-o", filepath.Join(dir, "a.out")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range list {
		o := harness.Start(t, harness.Command{Args: []string{"bash", "--norc", "-c", c}, Dir: dir, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, Limit: time.Minute})
		if o.Status != 0 || o.Late {
			t.Errorf("%s: exit status %d\n%s", c, o.Status, o.Text())
		}
		if strings.HasPrefix(c, "spxrun") && strings.Contains(c, " -n ") && !strings.Contains(c, "--output") && !strings.Contains(o.Stdout, "hello from rank 1") {
			t.Errorf("%s: no rank 1\n%s", c, o.Text())
		}
	}
}

// The variables that are named as libspx's are set, with the right values.
func TestVariablesOfMigrating(t *testing.T) {
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", "sh", "-c", "echo $SPX_RANK $OMPI_COMM_WORLD_RANK of $SPX_SIZE $OMPI_COMM_WORLD_SIZE, $SPX_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_RANK")})
	lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"0 0 of 2 2, 0 0", "1 1 of 2 2, 1 1"}) {
		t.Errorf("%q", lines)
	}
}
