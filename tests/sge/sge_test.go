// Package sge runs jobs within a real Grid Engine (SGE 8.1.9), whose hosts are those of scripts/hosts: a cell of its own, in a folder, of packages that are unpacked and not installed.
// Skipped where they cannot be had, or where no namespaces can be made.
package sge

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

// cell is a Grid Engine of two hosts with two slots each.
type cell struct{ dir, name string }

func script() string { return filepath.Join(harness.Root(), "scripts/sge") }

func newCell(t *testing.T) *cell {
	t.Helper()
	harness.NeedNamespaces(t)
	dir, err := os.MkdirTemp("/tmp", "sge-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/usr/lib/gridengine/sge_execd"); err != nil {
		cache := filepath.Join(harness.Cache(t), "sge")
		if out, err := exec.Command("timeout", "400", script(), "fetch", cache).CombinedOutput(); err != nil {
			t.Skipf("there is no Grid Engine: %v\n%s", err, out)
		}
		root := filepath.Join(cache, "root")
		mount := exec.Command("unshare", "--mount", "--propagation", "private", "mount", "-t", "overlay", "overlay", "-o", "lowerdir="+root+"/usr:/usr", "/usr")
		if out, err := mount.CombinedOutput(); err != nil {
			t.Skipf("what is unpacked cannot be shown as installed, for want of an overlay file system: %v\n%s", err, out)
		}
		if err := os.Symlink(root, filepath.Join(dir, "root")); err != nil {
			t.Fatal(err)
		}
	}
	c := &cell{dir, fmt.Sprintf("g%x-", os.Getpid()%0x100000)}
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
		t.Fatalf("Grid Engine does not start: %v\n%s", err, out)
	}
	return c
}

// on is a command on the first host.
func (c *cell) on(words ...string) harness.Command {
	return harness.Command{Args: append([]string{script(), "on", c.dir}, words...), Env: []string{"SPX_SPIN=0"}, Limit: 90 * time.Second}
}

func program(t *testing.T, source string) string {
	return harness.Compile(t, "sge/"+strings.TrimSuffix(filepath.Base(source), ".c"), []string{filepath.Join(harness.Root(), source)})
}

// batch writes a batch script whose first line of output is the hosts that it has been given; it returns the options of qsub, and the file of the output.
func (c *cell) batch(t *testing.T, line string) (options []string, output string) {
	t.Helper()
	dir := harness.SharedDir(t)
	job, output := filepath.Join(dir, "job"), filepath.Join(dir, "output")
	text := "#!/bin/sh\n#$ -pe mpi 4 -V -cwd -j y\n" + `echo $(cut -d " " -f 1 "$PE_HOSTFILE")` + "\n" + line + "\n"
	if err := os.WriteFile(job, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"-o", output, job}, output
}

// run runs a job of four slots, two on each host, to its end. It returns what the line has printed, the hosts in the order in which the job was given them, and what came of qsub.
func (c *cell) run(t *testing.T, line string) (printed string, hosts []string, o harness.Outcome) {
	t.Helper()
	mark := harness.Mark(t)
	options, output := c.batch(t, line)
	cmd := c.on(append([]string{"qsub", "-sync", "y"}, options...)...)
	cmd.Env = append(cmd.Env, mark)
	o = harness.Run(t, cmd)
	harness.NothingLeft(t, mark, 20*time.Second)
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatalf("%v\n%s", err, o.Text())
	}
	first, printed, _ := strings.Cut(string(text), "\n")
	hosts = strings.Fields(first)
	if both := slices.Sorted(slices.Values(hosts)); !slices.Equal(both, []string{c.name + "1", c.name + "2"}) {
		t.Fatalf("the job was not given both hosts\n%s%s", text, o.Text())
	}
	return printed, hosts, o
}

func TestSGE(t *testing.T) {
	c := newCell(t)
	mpirun := filepath.Join(harness.Build(t), "bin/mpirun")
	if o := harness.Run(t, c.on("qconf", "-spl")); o.Status != 0 || o.Stdout != "mpi\n" {
		t.Errorf("the parallel environments, want mpi\n%s", o.Text())
	}
	t.Run("hello", func(t *testing.T) {
		printed, on, o := c.run(t, mpirun+" "+program(t, "tests/hosts/testdata/where.c"))
		var want []string
		for rank := range 4 {
			want = append(want, fmt.Sprintf("rank %d of 4 on %s shares with 2, sum 6", rank, on[rank/2]))
		}
		if got := harness.Lines(printed); o.Status != 0 || !slices.Equal(got, want) {
			t.Errorf("want\n%s\ngot\n%s\n%s", strings.Join(want, "\n"), printed, o.Text())
		}
	})
	// The ranks of either host belong to the job in the eyes of Grid Engine, which marks its processes by a group: so it accounts for them, and ends them.
	t.Run("are the job's", func(t *testing.T) {
		printed, _, o := c.run(t, mpirun+` -ppn 1 -n 2 sh -c 'for g in $(id -G); do [ "$g" -lt 65400 ] || echo "$(hostname) $((g / 100))"; done'`)
		if got := harness.Lines(printed); o.Status != 0 || !slices.Equal(got, []string{c.name + "1 654", c.name + "2 655"}) {
			t.Errorf("got\n%s\n%s", printed, o.Text())
		}
	})
	t.Run("collectives", func(t *testing.T) {
		if printed, _, o := c.run(t, mpirun+" "+program(t, "tests/c/coll/every.c")); o.Status != 0 {
			t.Errorf("exit status %d\n%s\n%s", o.Status, printed, o.Text())
		}
	})
	t.Run("spawn", func(t *testing.T) {
		printed, on, o := c.run(t, mpirun+" -ppn 1 -n 2 "+program(t, "tests/hosts/testdata/spawn.c")+" 1 4 -")
		o.Stdout = printed
		harness.Family(t, o, on, append(on, on...))
	})
	t.Run("status", func(t *testing.T) {
		if printed, _, o := c.run(t, mpirun+" "+program(t, "tests/hosts/testdata/end.c")+" abort"); o.Status != 7 || !strings.Contains(printed, "MPI_Abort(MPI_COMM_WORLD, 7)") {
			t.Errorf("exit status %d, want 7\n%s\n%s", o.Status, printed, o.Text())
		}
	})
	t.Run("HPCC", func(t *testing.T) {
		harness.HPCC(t, harness.BuiltHPCC(t), harness.SmallHPCC, 2, 2, 0, func(program string) harness.Command {
			// Grid Engine takes LD_LIBRARY_PATH out of what -V hands over; the program may have been built by another copy of this project.
			options, output := c.batch(t, "export LD_LIBRARY_PATH="+filepath.Join(harness.Build(t), "lib")+"\n"+mpirun+" "+program)
			t.Cleanup(func() {
				if text, _ := os.ReadFile(output); t.Failed() {
					t.Logf("the job has printed\n%s", text)
				}
			})
			return c.on(append([]string{"qsub", "-sync", "y"}, options...)...)
		})
	})
	// By qdel a job ends on both hosts, and nothing of it stays.
	t.Run("qdel", func(t *testing.T) {
		mark := harness.Mark(t)
		options, output := c.batch(t, mpirun+" "+program(t, "tests/hydra/testdata/wait.c"))
		cmd := c.on(append([]string{"qsub", "-terse"}, options...)...)
		cmd.Env = append(cmd.Env, mark)
		o := harness.Run(t, cmd)
		id := strings.TrimSpace(o.Stdout)
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			text, _ := os.ReadFile(output) // there is none before the job begins
			if strings.Count(string(text), "up\n") == 4 {
				break
			}
			if time.Since(began) > harness.Patience(time.Minute) {
				t.Fatalf("job %s does not begin\n%s\n%s", id, text, o.Text())
			}
		}
		if o := harness.Run(t, c.on("qdel", id)); o.Status != 0 || !strings.Contains(o.Stdout, "job "+id+" for deletion") {
			t.Errorf("qdel: exit status %d\n%s", o.Status, o.Text())
		}
		harness.NothingLeft(t, mark, 30*time.Second)
	})
}
