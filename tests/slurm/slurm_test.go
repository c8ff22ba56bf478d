// Package slurm runs jobs within allocations of a real Slurm, whose nodes are the hosts of scripts/hosts. Skipped where there is no Slurm, or no leave to make namespaces.
package slurm

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

// cluster is a Slurm of two nodes, for all tests.
type cluster struct{ dir, name string }

func script() string { return filepath.Join(harness.Root(), "scripts/slurm") }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a Slurm of namespaces needs root")
	}
	for _, program := range []string{"slurmctld", "slurmd", "srun", "munged", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s (Debian: slurm-wlm, munge, iproute2)", program)
		}
	}
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
	out, err := exec.Command("timeout", "60", script(), "up", dir, c.name, "2").CombinedOutput()
	if err != nil {
		t.Skipf("Slurm does not start here: %v\n%s", err, out)
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

func sorted(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(lines)
	return lines
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
		if got := sorted(o.Stdout); o.Status != 0 || !slices.Equal(got, want) || o.Stderr != "" {
			t.Errorf("want\n%s\n%s", strings.Join(want, "\n"), o.Text())
		}
	})
	t.Run("sbatch", func(t *testing.T) {
		job, out := filepath.Join(t.TempDir(), "job"), filepath.Join(c.dir, "job.out")
		text := fmt.Sprintf("#!/bin/sh\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=2\n#SBATCH -o %s\n%s %s\n", out, run, where)
		if err := os.WriteFile(job, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		o := harness.Run(t, c.on("sbatch", "-Q", "-W", job))
		printed, err := os.ReadFile(out)
		if got := sorted(string(printed)); o.Status != 0 || err != nil || !slices.Equal(got, want) {
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
	t.Run("status", func(t *testing.T) {
		o := harness.Run(t, c.on("salloc", "-Q", "-N", "2", "--ntasks-per-node=1", run, "sh", "-c", `[ "$(hostname)" = `+c.name+`1 ] || exit 3`))
		if o.Status != 3 {
			t.Errorf("want exit status 3\n%s", o.Text())
		}
	})
	// Several processes that do not find each other: told, never taken for as many programs of one process.
	t.Run("srun", func(t *testing.T) {
		o := harness.Run(t, c.on("srun", "-Q", "-N", "2", "--mpi=none", where))
		if o.Status == 0 || !strings.Contains(o.Stderr, "start the program with spxrun") || strings.Contains(o.Stdout, "of 1 on") {
			t.Error(o.Text())
		}
		o = harness.Run(t, c.on("srun", "-Q", "-N", "2", "--mpi=pmi2", where))
		if o.Status == 0 || !strings.Contains(o.Stderr, "a launcher that speaks PMI started this process as one of several") {
			t.Error(o.Text())
		}
	})
}
