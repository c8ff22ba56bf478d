package boundary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// ownFrame is how much of its stack a function of a test program may take to be run on one of 64 KiB.
const ownFrame = 12 << 10

// Programs of tests/c run on small stacks: the whole of main on that of a user-level thread (makecontext), and on that of a thread. All of
// those for messages and collectives do when SPX_TESTS=full; else some. (tests/c/boundary/stacks.c is made for such stacks.)
func TestProgramsOnSmallStacks(t *testing.T) {
	few := []string{"pt2pt/statuses", "coll/every"}
	preload := harness.Compile(t, "boundary/on_stack.so", []string{"testdata/on_stack.c"}, "-shared", "-fPIC", "-g")
	var sources []string
	for _, dir := range []string{"pt2pt", "coll"} {
		found, err := filepath.Glob("../c/" + dir + "/*.c")
		if err != nil || len(found) == 0 {
			t.Fatalf("no programs in %s: %v", dir, err)
		}
		sources = append(sources, found...)
	}
	seen := 0
	for _, source := range sources {
		name := strings.TrimSuffix(strings.TrimPrefix(source, "../c/"), ".c")
		if !harness.Full() && !slices.Contains(few, name) {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, err := harness.ReadRunLines(source)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(source)
			if err != nil {
				t.Fatal(err)
			}
			if takes := largestFrame(t, path, lines[0].CFlags); takes > ownFrame {
				t.Skipf("a function of the program itself takes %d bytes", takes)
			}
			program := harness.Compile(t, "c/"+name, []string{path}, lines[0].CFlags...)
			for _, kind := range []string{"coroutine", "thread"} {
				t.Run(kind, func(t *testing.T) { onStack(t, preload, kind, program, lines[0]) })
			}
		})
	}
	if seen == 0 {
		t.Error("none of the programs is there any more")
	}
}

func onStack(t *testing.T, preload, kind, program string, line harness.RunLine) {
	n := line.Ranks[0]
	if i := slices.IndexFunc(line.Ranks, func(n int) bool { return n > 1 }); i >= 0 {
		n = line.Ranks[i]
	}
	args := append([]string{filepath.Join(harness.Build(t), "bin/spxrun")}, line.Spxrun...)
	args = append(args, "-n", fmt.Sprint(n), "env", "LD_PRELOAD="+preload, "ON_STACK="+kind+" 64", program)
	o := harness.Run(t, harness.Command{Args: append(args, line.Args...), Env: line.Env, Stdin: line.Stdin, Limit: 2 * line.Limit, Dir: t.TempDir()})
	if why := line.Check(o); why != "" {
		t.Errorf("%s\n%s--- %s", why, o.Text(), strings.Join(args, " "))
	}
}

// largestFrame compiles a program for the compiler's account of its functions' frames.
func largestFrame(t *testing.T, source string, flags []string) (most int) {
	object := filepath.Join(t.TempDir(), "program.o")
	args := append([]string{"-fstack-usage", "-O1", "-c", "-o", object, source}, flags...)
	if out, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpicc"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(strings.TrimSuffix(object, ".o") + ".su")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)\t(\d+)\t`).FindAllSubmatch(text, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		most = max(most, n)
	}
	return most
}
