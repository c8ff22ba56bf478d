package hosts

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"libspx/tests/harness"
)

// family is what parents and children of testdata/spawn.c say: on is the host of each, by rank.
func (b *bed) family(parents, children []int) (out []string) {
	for what, on := range map[string][]int{"parent": parents, "child": children} {
		for rank, host := range on {
			out = append(out, fmt.Sprintf("%s %d of %d on %s: sum right", what, rank, len(on), b.host(host)))
		}
	}
	return out
}

// Whoever spawns: first the hosts with free slots are filled, then those which have the fewest processes; a list counts before that.
func TestSpawn(t *testing.T) {
	b, spawn := newBed(t, 3), program(t, "spawn")
	for _, c := range []struct {
		root, n  int
		what     string
		children []int
	}{
		{0, 3, "-", []int{2, 3, 1}},
		{1, 4, "-", []int{2, 3, 1, 2}},
		{2, 3, b.host(1) + "," + b.host(3) + ":2", []int{1, 3, 3}},
		{2, 2, "localhost", []int{3, 3}},
		{0, 1, b.host(2), []int{2}},
	} {
		o := harness.Run(t, b.spxrun("-host", b.list(1, 2, 2), "-n", "3", "-ppn", "1", spawn, fmt.Sprint(c.root), fmt.Sprint(c.n), c.what))
		check(t, o, 0, b.family([]int{1, 2, 3}, c.children))
	}
	// All ranks on one host, and that not spxrun's: they learn of the others by the spawn alone.
	check(t, harness.Run(t, b.spxrun("-host", b.list(0, 2, 2), "-n", "1", spawn, "0", "4", "-")), 0, b.family([]int{2}, []int{2, 3, 3, 2}))
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// What cannot be started on one host is started on none; all parents are told, and the job goes on.
func TestSpawnFails(t *testing.T) {
	b, spawn := newBed(t, 3), program(t, "spawn")
	run := func(args ...string) harness.Outcome {
		return harness.Run(t, b.spxrun(append([]string{"-host", b.list(1, 1, 1), "-n", "3", spawn, "1", "3"}, args...)...))
	}
	told := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("parent %d: MPI_ERR_SPAWN, 3 codes", i))
		}
		return out
	}
	check(t, run("fails", b.host(1)+",nobody"), 0, told(3), "host nobody is none of this job's hosts ("+b.host(1))
	check(t, run("fails", b.list(1, 1, 1), "/none/prog"), 0, told(3), "/none/prog")
	// One host lacks the program: on host 3, its folder is covered by an empty one.
	dir := t.TempDir()
	if out, err := exec.Command("cp", spawn, filepath.Join(dir, "only")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := b.spxrun("-host", b.list(1, 1, 1), "-n", "3", spawn, "1", "3", "fails", b.list(1, 1, 1), filepath.Join(dir, "only"))
	c.Args[slices.Index(c.Args, "--rsh")+1] = b.hiding(t, dir)
	check(t, harness.Run(t, c), 0, told(3), "(on host "+b.host(3)+")")
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// hiding is a command that starts agents as scripts/hosts rsh does, but covers a folder on host 3.
func (b *bed) hiding(t *testing.T, dir string) string {
	t.Helper()
	return b.script(t, fmt.Sprintf(`[ $1 = %s ] || exec "$hosts" rsh "$@"
exec "$hosts" rsh $1 "mount -t tmpfs none '%s' && $2"`, b.host(3), dir))
}

// The agent of a host is killed while its new processes are in MPI_Init, or before: no parent hangs.
func TestSpawnLosesHost(t *testing.T) {
	b, spawn := newBed(t, 3), program(t, "spawn")
	o := harness.Run(t, b.spxrun("-host", b.list(1, 1, 1), "-n", "2", spawn, "1", "3", "lost", b.host(3)+":3"))
	check(t, o, 0, []string{"parent 0: MPI_ERR_SPAWN, 3 codes", "parent 1: MPI_ERR_SPAWN, 3 codes"}, "host "+b.host(3)+" is lost")
	until(t, "end of the processes whose agent was killed", func() bool { return len(b.find("")) == 0 }) // the kernel ends them, when spxrun may be over
}

// MPI_Abort on a communicator of some processes of two hosts ends them, and nobody else.
func TestAbortSome(t *testing.T) {
	b, spawn := newBed(t, 2), program(t, "spawn")
	o := harness.Run(t, b.spxrun("-host", b.list(2, 2), "-n", "2", spawn, "0", "2", "abort", b.host(2)))
	check(t, o, 9, []string{"parent 0 on " + b.host(1) + " has survived", "child 0 on " + b.host(2) + " has survived"}, "MPI_Abort(")
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// Another job cannot be connected with one of several hosts: it is told so at once, and so is its user.
func TestOtherJob(t *testing.T) {
	b, spawn := newBed(t, 2), program(t, "spawn")
	o := harness.Run(t, b.spxrun("-host", b.list(1, 1), "-n", "2", spawn, "other", filepath.Join(harness.Build(t), "bin/spxrun")))
	check(t, o, 0, []string{"job of several hosts: 0", "other job: MPI_ERR_UNSUPPORTED_OPERATION"})
}
