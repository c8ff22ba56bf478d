// Package slurm runs jobs within allocations of a real Slurm, whose nodes are the hosts of scripts/hosts. It is installed if need be;
// skipped where it cannot be, or where no namespaces can be made.
package slurm

import (
	"fmt"
	"math/rand/v2"
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

// cluster is a Slurm of two nodes, for all tests.
type cluster struct{ dir, name string }

func script() string { return filepath.Join(harness.Root(), "scripts/slurm") }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	harness.NeedNamespaces(t)
	harness.Need(t, "launchers", "slurmctld", "slurmd", "srun", "munged")
	dir, err := os.MkdirTemp("/tmp", "slurm-")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{dir, fmt.Sprintf("l%x-", os.Getpid()%0x100000)}
	t.Cleanup(func() {
		if out, err := exec.Command(script(), "down", dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	up := exec.Command("timeout", "90", script(), "up", dir, c.name, "2")
	up.Env = harness.HostsEnv(t)
	if out, err := up.CombinedOutput(); err != nil {
		t.Fatalf("Slurm is installed, but does not start: %v\n%s", err, out)
	}
	return c
}

// on is a command on the first node.
func (c *cluster) on(words ...string) harness.Command {
	return harness.Command{Args: append([]string{script(), "on", c.dir}, words...), Env: []string{"SPX_SPIN=0"}, Limit: 60 * time.Second}
}

func spxrun(t *testing.T) string { return filepath.Join(harness.Build(t), "bin/spxrun") }

func program(t *testing.T, folder, name string) string {
	return harness.Compile(t, "slurm/"+name, []string{filepath.Join(harness.Root(), folder, name+".c")})
}

func TestSlurm(t *testing.T) {
	c := newCluster(t)
	where, run := program(t, "tests/hosts/testdata", "where"), spxrun(t)
	var want []string
	for rank, node := range []int{1, 1, 2, 2} {
		want = append(want, fmt.Sprintf("rank %d of 4 on %s%d shares with 2, sum 6", rank, c.name, node))
	}

	t.Run("salloc", func(t *testing.T) {
		o := harness.Run(t, c.on("salloc", "-Q", "-N", "2", "--ntasks-per-node=2", run, where))
		if got := harness.Lines(o.Stdout); o.Status != 0 || !slices.Equal(got, want) || strings.Join(harness.Lines(o.Stderr), "") != "" {
			t.Errorf("want\n%s\n%s", strings.Join(want, "\n"), o.Text())
		}
	})
	t.Run("sbatch", func(t *testing.T) {
		job, out := filepath.Join(harness.SharedDir(t), "job"), filepath.Join(c.dir, "job.out")
		text := fmt.Sprintf("#!/bin/sh\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=2\n#SBATCH -o %s\n%s %s\n", out, run, where)
		if err := os.WriteFile(job, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		o := harness.Run(t, c.on("sbatch", "-Q", "-W", job))
		printed, err := os.ReadFile(out)
		if got := harness.Lines(string(printed)); o.Status != 0 || err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n%s\n%s", err, printed, o.Text())
		}
	})
	t.Run("one node of two", func(t *testing.T) {
		o := harness.Run(t, c.on("salloc", "-Q", "-N", "2", "--ntasks-per-node=2", run, "-n", "2", where))
		if o.Status != 0 || !strings.Contains(o.Stdout, fmt.Sprintf("rank 1 of 2 on %s1 shares with 2, sum 1", c.name)) {
			t.Error(o.Text())
		}
	})
	t.Run("left alone", func(t *testing.T) {
		cmd := c.on("salloc", "-Q", "-N", "2", run, "-n", "3", where)
		cmd.Env = append(cmd.Env, "SPX_ALLOCATION=none")
		if o := harness.Run(t, cmd); o.Status != 0 || strings.Count(o.Stdout, c.name+"1 shares with 3") != 3 {
			t.Error(o.Text())
		}
	})
	t.Run("spawn", func(t *testing.T) {
		o := harness.Run(t, c.on("salloc", "-Q", "-N", "2", "--ntasks-per-node=2", run, program(t, "tests/c/spawn", "basic")))
		if o.Status != 0 {
			t.Error(o.Text())
		}
	})
	t.Run("spawn on both nodes", func(t *testing.T) {
		o := harness.Run(t, c.on("salloc", "-Q", "-N", "2", "--ntasks-per-node=2", run, "-ppn", "1", "-n", "2", program(t, "tests/hosts/testdata", "spawn"), "1", "4", "-"))
		harness.Family(t, o, c.nodes(1, 2), c.nodes(1, 2, 1, 2))
	})
	t.Run("status", func(t *testing.T) {
		o := harness.Run(t, c.on("salloc", "-Q", "-N", "2", "--ntasks-per-node=1", run, "sh", "-c", `[ "$(hostname)" = `+c.name+`1 ] || exit 3`))
		if o.Status != 3 {
			t.Errorf("want exit status 3\n%s", o.Text())
		}
	})
	t.Run("HPCC", func(t *testing.T) { c.hpcc(t, "salloc", "-Q", "-N", "2", "--ntasks-per-node=2", run) })
	// Several processes that do not find each other: told, never taken for as many programs of one process.
	t.Run("srun without PMI", func(t *testing.T) {
		o := c.step(t, harness.Mark(t), nil, "-N", "2", "--mpi=none", where)
		if o.Status == 0 || !strings.Contains(o.Stderr, "one of 2, but gives them no way to find each other") || strings.Contains(o.Stdout, "of 1 on") {
			t.Error(o.Text())
		}
	})
}

func (c *cluster) nodes(of ...int) (names []string) {
	for _, i := range of {
		names = append(names, fmt.Sprint(c.name, i))
	}
	return names
}

// hpcc runs HPCC on both nodes.
func (c *cluster) hpcc(t *testing.T, words ...string) {
	t.Helper()
	mark := harness.Mark(t)
	harness.HPCC(t, harness.BuiltHPCC(t), harness.SmallHPCC, 2, 2, 0, func(program string) harness.Command {
		cmd := c.on(append(words, program)...)
		cmd.Env = append(cmd.Env, mark)
		return cmd
	})
	harness.NothingLeft(t, mark, 20*time.Second)
}

// spawn: a rank of either node spawns children, who run on both, or on the other one if that is asked for.
func (c *cluster) spawn(t *testing.T, mpi string) {
	t.Helper()
	spawn := program(t, "tests/hosts/testdata", "spawn")
	harness.Family(t, c.srun(t, mpi, "-n", "2", spawn, "0", "4", "-"), c.nodes(1, 2), c.nodes(1, 2, 1, 2))
	harness.Family(t, c.srun(t, mpi, "-n", "2", spawn, "1", "3", "-"), c.nodes(1, 2), c.nodes(1, 2, 1))
	harness.Family(t, c.srun(t, mpi, "--ntasks-per-node=2", spawn, "0", "2", c.name+"2"), c.nodes(1, 1, 2, 2), c.nodes(2, 2))
}

// srun starts a job on both nodes, and sees that nothing of it stays.
func (c *cluster) srun(t *testing.T, kind string, words ...string) harness.Outcome {
	t.Helper()
	mark := harness.Mark(t)
	return c.step(t, mark, nil, append([]string{"--mpi=" + kind, "-N", "2"}, words...)...)
}

// step runs srun, whose tasks write into a file each. What comes by way of Slurm's own connections is not complete: on a busy
// machine slurmstepd 22.05 often drops what tasks write just before they end, also of programs that know nothing of MPI.
// It sees that no process with mark stays: children that were spawned are no tasks, and may write when srun has ended.
func (c *cluster) step(t *testing.T, mark string, env []string, words ...string) harness.Outcome {
	t.Helper()
	dir, err := os.MkdirTemp(c.dir, "step-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.on(append([]string{"srun", "-Q", "-o", dir + "/%t.out", "-e", dir + "/%t.err"}, words...)...)
	cmd.Env = append(append(cmd.Env, mark), env...)
	o := harness.Run(t, cmd)
	harness.NothingLeft(t, mark, 20*time.Second)
	o.Stdout += written(t, dir+"/*.out")
	o.Stderr += written(t, dir+"/*.err")
	return o
}

// written is what is in the files of that pattern.
func written(t *testing.T, pattern string) (all string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// once: ranks of two nodes call MPI before MPI_Init, when they are in no job yet; one of them says so.
func (c *cluster) once(t *testing.T, mpi string) {
	t.Helper()
	o := c.srun(t, mpi, "-n", "4", program(t, "tests/broken/programs", "alike"), "early")
	all := regexp.MustCompile(`(?m)^libspx: (also on ranks? [\d,-]+: )?.*`).FindAllStringSubmatch(o.Stderr, -1)
	all = slices.DeleteFunc(all, func(m []string) bool { return m[1] != "" })
	if o.Status == 0 || o.Late || len(all) != 1 || !strings.HasPrefix(all[0][0], "libspx: MPI_Comm_rank: fatal: MPI_Comm_rank was called before MPI_Init") {
		t.Errorf("exit status %d, %d messages, want one\n%s", o.Status, len(all), o.Text())
	}
}

// TestPMIx needs the library that Slurm's plugin loads, and programs too (Debian: libpmix-dev).
func TestPMIx(t *testing.T) {
	harness.Need(t, "launchers", "/usr/lib/*/libpmix.so")
	c := newCluster(t)
	end := program(t, "tests/hosts/testdata", "end")
	t.Run("hello", func(t *testing.T) {
		var want []string
		for rank, node := range []int{1, 1, 2, 2} {
			want = append(want, fmt.Sprintf("rank %d of 4 on %s%d shares with 2, sum 6", rank, c.name, node))
		}
		o := c.srun(t, "pmix", "--ntasks-per-node=2", program(t, "tests/hosts/testdata", "where"))
		if got := harness.Lines(o.Stdout); o.Status != 0 || !slices.Equal(got, want) || o.Stderr != "" {
			t.Errorf("exit status %d, want\n%s\n%s", o.Status, strings.Join(want, "\n"), o.Text())
		}
	})
	t.Run("once", func(t *testing.T) { c.once(t, "pmix") })
	t.Run("alone", func(t *testing.T) {
		if o := c.step(t, harness.Mark(t), nil, "--mpi=pmix", "-n", "1", program(t, "tests/c/spawn", "basic")); o.Status != 0 {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	for name, words := range map[string][]string{
		"collectives": {"-n", "5", program(t, "tests/c/coll", "every")},
		"spawn":       {"-n", "3", program(t, "tests/c/spawn", "basic")},
	} {
		t.Run(name, func(t *testing.T) {
			if o := c.srun(t, "pmix", words...); o.Status != 0 || o.Late {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
	t.Run("abort", func(t *testing.T) {
		if o := c.srun(t, "pmix", "-n", "4", end, "abort"); o.Status == 0 || o.Late || !strings.Contains(o.Stderr, "MPI_Abort(MPI_COMM_WORLD, 7)") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	t.Run("survivors", func(t *testing.T) {
		want := []string{"rank 0: 16385", "rank 1: 16385", "rank 3: 16385"}
		if o := c.srun(t, "pmix", "-n", "4", end, "told"); o.Status != 137 || !slices.Equal(harness.Lines(o.Stdout), want) || !strings.Contains(o.Stderr, "the other 3 are told and go on") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	t.Run("spawn on both nodes", func(t *testing.T) { c.spawn(t, "pmix") })
	t.Run("HPCC", func(t *testing.T) { c.hpcc(t, "srun", "-Q", "--mpi=pmix", "-N", "2", "-n", "4") })
}

// Jobs that srun has started.
func TestSrun(t *testing.T) {
	c := newCluster(t)
	end := program(t, "tests/hosts/testdata", "end")
	srun := func(t *testing.T, words ...string) harness.Outcome { return c.srun(t, "pmi2", words...) }
	t.Run("hello", func(t *testing.T) {
		var want []string
		for rank, node := range []int{1, 1, 2, 2} {
			want = append(want, fmt.Sprintf("rank %d of 4 on %s%d shares with 2, sum 6", rank, c.name, node))
		}
		for range 5 {
			o := srun(t, "--ntasks-per-node=2", program(t, "tests/hosts/testdata", "where"))
			if got := harness.Lines(o.Stdout); o.Status != 0 || !slices.Equal(got, want) || o.Stderr != "" {
				t.Errorf("exit status %d, want\n%s\n%s", o.Status, strings.Join(want, "\n"), o.Text())
			}
		}
	})
	for name, words := range map[string][]string{
		"collectives":  {"-n", "5", program(t, "tests/c/coll", "every")},
		"cyclic ranks": {"-n", "4", "-m", "cyclic", program(t, "tests/c/coll", "every")},
		"messages":     {"-n", "5", program(t, "tests/c/pt2pt", "many_modes")},
		"spawn":        {"-n", "3", program(t, "tests/c/spawn", "basic")},
	} {
		t.Run(name, func(t *testing.T) {
			if o := srun(t, words...); o.Status != 0 || o.Late {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
	t.Run("once", func(t *testing.T) { c.once(t, "pmi2") })
	t.Run("abort", func(t *testing.T) {
		if o := srun(t, "-n", "4", end, "abort"); o.Status != 137 || !strings.Contains(o.Stderr, "MPI_Abort(MPI_COMM_WORLD, 7)") {
			t.Errorf("exit status %d, want 137: srun ends a step that is aborted by SIGKILL\n%s", o.Status, o.Text())
		}
	})
	t.Run("death", func(t *testing.T) {
		if o := srun(t, "-n", "4", end, "kill"); o.Status != 137 || !strings.Contains(o.Stderr, "has ended") || !strings.Contains(o.Stderr, "the job is ended") {
			t.Errorf("exit status %d, want 137\n%s", o.Status, o.Text())
		}
	})
	t.Run("survivors", func(t *testing.T) {
		want := []string{"rank 0: 16385", "rank 1: 16385", "rank 3: 16385"}
		if o := srun(t, "-n", "4", end, "told"); o.Status != 137 || !slices.Equal(harness.Lines(o.Stdout), want) || !strings.Contains(o.Stderr, "the other 3 are told and go on") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	// Rank 0 dies, whose host's agent decides, at moments that nobody has chosen.
	t.Run("rank 0", func(t *testing.T) {
		want := []string{"rank 1: one of 3, 0", "rank 2: one of 3, 0", "rank 3: one of 3, 0"}
		for range 4 {
			o := srun(t, "-k", "-K0", "-n", "4", end, "told", "0", fmt.Sprint(rand.IntN(20000)))
			if o.Status != 137 || !slices.Equal(harness.Lines(o.Stdout), want) || !strings.Contains(o.Stderr, "the other 3 are told and go on") {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		}
	})
	t.Run("srun is ended", func(t *testing.T) {
		mark := harness.Mark(t)
		cmd := c.on("timeout", "-s", "TERM", "2", "srun", "-Q", "--mpi=pmi2", "-N", "2", "-n", "4", harness.Compile(t, "slurm/wait", []string{filepath.Join(harness.Root(), "tests/hydra/testdata/wait.c")}))
		cmd.Env = append(cmd.Env, mark)
		if o := harness.Run(t, cmd); o.Late || strings.Count(o.Stdout, "up") != 4 {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
		harness.NothingLeft(t, mark, 20*time.Second)
	})
	t.Run("missing", func(t *testing.T) {
		wait := harness.Compile(t, "slurm/wait", []string{filepath.Join(harness.Root(), "tests/hydra/testdata/wait.c")})
		if o := c.step(t, harness.Mark(t), []string{"SPX_JOIN_TIMEOUT=2"}, "--mpi=pmi2", "-N", "2", "-n", "4", wait, "early"); o.Status != 137 || !strings.Contains(o.Stderr, "of 4 processes, ranks 1 on host "+c.name+"1 have not called MPI_Init within 2s") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	})
	t.Run("spawn on both nodes", func(t *testing.T) { c.spawn(t, "pmi2") })
	t.Run("HPCC", func(t *testing.T) { c.hpcc(t, "srun", "-Q", "--mpi=pmi2", "-N", "2", "-n", "4") })
}
