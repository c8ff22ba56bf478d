// Package prrte runs jobs that PRRTE has started, the launcher of Open MPI 5 and later, by PMIx. It comes with the peers (scripts/peers), and the jobs run
// in their folder. Skipped where that is not installed.
package prrte

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func peers() string { return filepath.Join(harness.Root(), "scripts/peers") }

func program(t *testing.T, source string) string {
	t.Helper()
	return harness.Compile(t, "prrte/"+strings.TrimSuffix(filepath.Base(source), ".c"), []string{filepath.Join(harness.Root(), source)})
}

// command starts a program on n ranks.
func command(n string, words ...string) harness.Command {
	return harness.Command{Args: append([]string{peers(), "run", "prrte", "-n", n}, words...), Limit: time.Minute}
}

func need(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(peers(), "check").CombinedOutput(); err != nil {
		t.Skipf("there is no PRRTE: %s", out)
	}
}

func TestPRRTE(t *testing.T) {
	need(t)
	run := func(t *testing.T, n string, words ...string) harness.Outcome {
		t.Helper()
		mark := harness.Mark(t)
		c := command(n, words...)
		c.Env = []string{mark}
		o := harness.Run(t, c)
		harness.NothingLeft(t, mark, 20*time.Second)
		if o.Late {
			t.Errorf("the job takes too long\n%s", o.Text())
		}
		return o
	}
	name, _ := os.Hostname()
	end := program(t, "tests/hosts/testdata/end.c")
	t.Run("hello", func(t *testing.T) {
		var want []string
		for r := range 4 {
			want = append(want, fmt.Sprintf("rank %d of 4 on %s shares with 4, sum 6", r, name))
		}
		o := run(t, "4", program(t, "tests/hosts/testdata/where.c"))
		got := strings.Split(strings.TrimSpace(o.Stdout), "\n")
		slices.Sort(got)
		if o.Status != 0 || !slices.Equal(got, want) {
			t.Errorf("exit status %d, want\n%s\n%s", o.Status, strings.Join(want, "\n"), o.Text())
		}
	})
	for _, c := range []struct{ name, n, source string }{
		{"collectives", "5", "tests/c/coll/every.c"}, {"messages", "5", "tests/c/pt2pt/many_modes.c"}, {"spawn", "2", "tests/c/spawn/basic.c"}, {"alone", "1", "tests/c/spawn/basic.c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if o := run(t, c.n, program(t, c.source)); o.Status != 0 {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
	t.Run("abort", func(t *testing.T) {
		if o := run(t, "4", end, "abort"); o.Status != 7 || !strings.Contains(o.Stderr, "MPI_Abort(MPI_COMM_WORLD, 7)") {
			t.Errorf("exit status %d, want 7\n%s", o.Status, o.Text())
		}
	})
	t.Run("death", func(t *testing.T) {
		if o := run(t, "4", end, "kill"); o.Status != 137 || !strings.Contains(o.Stderr, "rank 2 (pid ") {
			t.Errorf("exit status %d, want 137\n%s", o.Status, o.Text())
		}
	})
	t.Run("survivors", func(t *testing.T) {
		mark := harness.Mark(t)
		c := harness.Command{Args: []string{peers(), "run", "prrte", "-o", "--runtime-options recoverable", "-n", "4", end, "told"}, Env: []string{mark}, Limit: time.Minute}
		o := harness.Run(t, c)
		harness.NothingLeft(t, mark, 20*time.Second)
		if strings.Count(o.Stdout, ": 16385\n") != 3 || !strings.Contains(o.Stderr, "the other 3 are told and go on") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	t.Run("prterun is killed", func(t *testing.T) {
		c := command("3", program(t, "tests/hydra/testdata/wait.c"))
		harness.KillWhenUp(t, c, 3, func(mark string) []int { return harness.Marked(mark, "prterun") })
	})
	t.Run("missing", func(t *testing.T) {
		mark := harness.Mark(t)
		c := command("4", program(t, "tests/hydra/testdata/wait.c"), "never")
		c.Env = []string{mark, "SPX_JOIN_TIMEOUT=2"}
		if o := harness.Run(t, c); o.Status == 0 || o.Late || !strings.Contains(o.Stderr, "of 4 processes, ranks 1 on host "+name+" have not called MPI_Init") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
		harness.NothingLeft(t, mark, 20*time.Second)
	})
	// A process that ends without MPI_Init: prterun ends the job at once, if the others have come to it by then; else it is like one that is missing.
	t.Run("early end", func(t *testing.T) {
		mark := harness.Mark(t)
		c := command("4", program(t, "tests/hydra/testdata/wait.c"), "early")
		c.Env = []string{mark, "SPX_JOIN_TIMEOUT=2"}
		o := harness.Run(t, c)
		told := strings.Contains(o.Stderr, "have not called MPI_Init") || strings.Contains(o.Stderr, "process rank 1") && strings.Contains(o.Stderr, `did not call "init"`)
		if o.Status == 0 || o.Late || !told {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
		harness.NothingLeft(t, mark, 20*time.Second)
	})
	t.Run("HPCC", func(t *testing.T) {
		dir := beside(t, harness.BuiltHPCC(t))
		libraries := blas(t, filepath.Join(dir, "hpcc"))
		harness.HPCC(t, dir, harness.SmallHPCC, 2, 2, 0, func(program string) harness.Command {
			return harness.Command{Args: []string{peers(), "run", "prrte", "-L", libraries, "-n", "4", program}}
		})
	})
}

// TestHosts: prterun, and a machine of prte, start their daemons on the hosts of scripts/hosts.
func TestHosts(t *testing.T) {
	need(t)
	bed := harness.NewBed(t, "q", 2, nil).Name
	words := func(launcher, n string, words ...string) []string {
		return append([]string{peers(), "run", launcher, "-e", "SPX_SPIN=0", "-o", "-x SPX_TEST_MARK -x SPX_SPIN", "-H", bed + ":2", "-n", n}, words...)
	}
	run := func(t *testing.T, launcher, n string, args ...string) harness.Outcome {
		t.Helper()
		mark := harness.Mark(t)
		o := harness.Run(t, harness.Command{Args: words(launcher, n, args...), Env: []string{mark}, Limit: time.Minute})
		harness.NothingLeft(t, mark, 20*time.Second)
		return o
	}
	a, b := bed+"1", bed+"2"
	where, spawn, end := program(t, "tests/hosts/testdata/where.c"), program(t, "tests/hosts/testdata/spawn.c"), program(t, "tests/hosts/testdata/end.c")
	hello := func(t *testing.T, launcher string, jobs int) {
		t.Helper()
		var want []string
		for rank, host := range []string{a, a, b, b} {
			for range jobs {
				want = append(want, fmt.Sprintf("rank %d of 4 on %s shares with 2, sum 6", rank, host))
			}
		}
		o := run(t, launcher, "4", where)
		got := strings.Split(strings.TrimSpace(o.Stdout), "\n")
		if slices.Sort(got); o.Status != 0 || o.Late || !slices.Equal(got, want) {
			t.Errorf("exit status %d, want\n%s\n%s", o.Status, strings.Join(want, "\n"), o.Text())
		}
	}
	t.Run("hello", func(t *testing.T) { hello(t, "prrte", 1) })
	t.Run("collectives", func(t *testing.T) {
		if o := run(t, "prrte", "4", program(t, "tests/c/coll/every.c")); o.Status != 0 || o.Late {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	// A rank of either host spawns children, who run on both, or on the other one if that is asked for.
	t.Run("spawn", func(t *testing.T) {
		harness.Family(t, run(t, "prrte", "2", spawn, "0", "4", "-"), []string{a, b}, []string{a, b, a, b})
		harness.Family(t, run(t, "prrte", "2", spawn, "1", "3", "-"), []string{a, b}, []string{a, b, a})
		harness.Family(t, run(t, "prrte", "4", spawn, "0", "2", b), []string{a, a, b, b}, []string{b, b})
	})
	t.Run("abort", func(t *testing.T) {
		if o := run(t, "prrte", "4", end, "abort"); o.Status != 7 || !strings.Contains(o.Stderr, "MPI_Abort(MPI_COMM_WORLD, 7)") {
			t.Errorf("exit status %d, want 7\n%s", o.Status, o.Text())
		}
	})
	t.Run("death", func(t *testing.T) {
		if o := run(t, "prrte", "4", end, "kill"); o.Status != 137 || !strings.Contains(o.Stderr, "rank 2 (pid ") {
			t.Errorf("exit status %d, want 137\n%s", o.Status, o.Text())
		}
	})
	// The launcher's exit status is that of the process that has died, although its daemon there notices the death later than we do.
	t.Run("death noticed late", func(t *testing.T) {
		if o := run(t, "prrte", "4", end, "late"); o.Status != 137 || !strings.Contains(o.Stderr, "rank 2 (pid ") {
			t.Errorf("exit status %d, want 137\n%s", o.Status, o.Text())
		}
	})
	// Two jobs, one after another, of the same daemons: prte --daemonize, prun, prun.
	t.Run("machine", func(t *testing.T) { hello(t, "dvm", 2) })
	t.Run("HPCC", func(t *testing.T) {
		dir := beside(t, harness.BuiltHPCC(t))
		libraries := blas(t, filepath.Join(dir, "hpcc"))
		harness.HPCC(t, dir, harness.SmallHPCC, 2, 2, 0, func(program string) harness.Command {
			c := harness.Command{Args: words("prrte", "4", program)}
			c.Args = slices.Insert(c.Args, 3, "-L", libraries)
			return c
		})
	})
}

// beside is a copy of the files of a folder within the build: of the machine's folders the peers' system has not all, but that one.
func beside(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(harness.Build(t), "prrte", filepath.Base(dir))
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	for _, name := range harness.HPCCFiles {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(to, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// blas is a folder with those of a program's libraries that the peers' folder has not.
func blas(t *testing.T, program string) string {
	t.Helper()
	dir := harness.SharedDir(t)
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " => ")
		path, _, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(name, "libopenblas") && !strings.HasPrefix(name, "libgfortran") && !strings.HasPrefix(name, "libquadmath") {
			continue
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
