package broken

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// File systems that are full under what spxrun, its agent and the processes write. The job goes on where it can, and the user hears which file it
// is about, and what to do. In all, $D is a tmpfs of 16 KB that is full, or has no more inodes.
//
//	go test ./tests/broken -run TestFull
var full = []struct {
	name    string
	inodes  bool
	command string // $R is spxrun with two ranks, $P the program
	status  int
	says    []string
	lines   int // of standard output
}{
	{name: "temporary files", command: `TMPDIR=$D $R $P`, lines: 2000},
	{name: "temporary files, inodes", inodes: true, command: `TMPDIR=$D $R $P`, lines: 2000},
	{name: "shared memory", command: `mount --bind $D /dev/shm && $R $P`, lines: 2000},
	{name: "output", command: `$R $P >$D/out`, status: 1, says: []string{"spxrun: the output could not be written: no space left on device; the file system is full: df tells which"}},
	{name: "output files", command: `$R --output $D $P`, says: []string{"--output $D: the file system is full on host ", "may be lost; make room, or use another directory"}},
	{name: "output files, inodes", inodes: true, command: `$R --output $D $P`, status: 1, says: []string{"output file $D/rank.0.out: no space left on device", "df tells which"}},
	{name: "timeline", command: `$R --trace $D/t $P`, lines: 2000, says: []string{"spxrun: --trace: write $D/t: no space left on device; the file system is full: df tells which"}},
	{name: "timeline, inodes", inodes: true, command: `$R --trace $D/t $P`, status: 2, says: []string{"open $D/t: no space left on device; the file system is full: df tells which"}},
	{name: "records", command: `mount --bind $D /dev/shm && TMPDIR=$D $R --profile $P`, lines: 2000, says: []string{"is not traced: a file in $D/spx-trace-", "No space left on device"}},
	{name: "sums", command: `$R --profile-json $D/sums $P`, lines: 2000, says: []string{"spxrun: --profile-json: write $D/sums: no space left on device; the file system is full: df tells which"}},
	{name: "cores", command: `ulimit -c unlimited; cd $W && $R --cores $D $P dies`, status: 134, lines: 2000, says: []string{"its core file stays as $W/core", "no space left on device; the file system is full: df tells which"}},
	{name: "detached", inodes: true, command: `cd $D && $R --detach $P`, status: 1, says: []string{"spxrun: --detach: the file for the output: open spx-", "no space left on device; the file system is full: df tells which"}},
}

func TestFull(t *testing.T) {
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt").CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v\n%s", err, out)
	}
	program := wrong{name: "prints"}.compile(t)
	run := harness.Spxrun(t, "2", program)
	for _, f := range full {
		t.Run(f.name, func(t *testing.T) {
			pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
			if f.name == "cores" && (err != nil || strings.HasPrefix(string(pattern), "|") || strings.Contains(string(pattern), "/")) {
				t.Skipf("core files go to %s", pattern)
			}
			dir, work := t.TempDir(), t.TempDir()
			fill := "head -c 65536 /dev/zero >$D/fill 2>/dev/null; "
			if f.inodes {
				fill = "n=0; while true >$D/$n; do n=$((n+1)); done 2>/dev/null; "
			}
			o := harness.Run(t, harness.Command{
				Args: []string{"unshare", "-m", "--propagation", "private", "sh", "-c", "mount -t tmpfs -o size=16k,nr_inodes=12 none $D || exit 99; " + fill + f.command},
				Env:  []string{"D=" + dir, "W=" + work, "R=" + strings.Join(run[:len(run)-1], " "), "P=" + program}, Limit: 60 * time.Second})
			if o.Late || o.Status != f.status || strings.Count(o.Stdout, "\n") != f.lines {
				t.Errorf("status %d, want %d; late %v; %d lines, want %d\n%s", o.Status, f.status, o.Late, strings.Count(o.Stdout, "\n"), f.lines, o.Stderr)
			}
			for _, want := range f.says {
				want = strings.NewReplacer("$D", dir, "$W", work).Replace(want)
				if !strings.Contains(o.Stderr, want) {
					t.Errorf("it does not say %q:\n%s", want, o.Stderr)
				}
			}
			if strings.Contains(o.Stderr, "panic") || strings.Contains(o.Stderr, "goroutine ") {
				t.Errorf("it has crashed:\n%s", o.Stderr)
			}
		})
	}
}

// Limits on memory under which spxrun, or the agent of another host, cannot run: a message, and no dump of a runtime's stacks.
//
//	go test ./tests/broken -run TestLittleMemory
func TestLittleMemory(t *testing.T) {
	spxrun := forAll(t, filepath.Join(harness.Build(t), "bin/spxrun"))
	const asUser = `setpriv --reuid 54321 --regid 54321 --clear-groups bash -c 'ulimit -u 16; exec "$S" -n 2 true'`
	for _, c := range []struct {
		limit, command, says string
		status               int
	}{
		{"-v 100000", `"$S" -n 2 true`, "spxrun: the limit on address space (ulimit -v) is too low: spxrun and its agents need 1433600 KiB", 1},
		{"-v 1200000", `"$S" -n 2 true`, "set it to that or more, or to unlimited", 1},
		{"-v 1200000", `"$S" spx-host-agent`, "spxrun: the limit on address space (ulimit -v) is too low", 1},
		{"-d 50000", `"$S" -n 2 true`, "spxrun: the limit on data (ulimit -d) is too low: spxrun and its agents need 131072 KiB", 1},
		{"-n 256", asUser, "spxrun: the limit on processes (ulimit -u) is too low: spxrun and its agent need 32 threads", 1},
		{"-v 1433600", `"$S" -n 2 true`, "", 0},
		{"-d 131072", `"$S" -n 2 true`, "", 0},
	} {
		if c.command == asUser && os.Geteuid() != 0 {
			continue
		}
		o := harness.Run(t, harness.Command{Args: []string{"sh", "-c", "ulimit " + c.limit + " && exec " + c.command}, Env: []string{"S=" + spxrun}, Limit: 60 * time.Second})
		if o.Late || o.Status != c.status || !strings.Contains(o.Stderr, c.says) || strings.Contains(o.Stderr, "goroutine") || strings.Contains(o.Stderr, "runtime:") {
			t.Errorf("ulimit %s; %s: status %d, late %v\n%s", c.limit, c.command, o.Status, o.Late, o.Text())
		}
	}
}

// forAll copies a program to where every user finds it: the build may be in somebody's home.
func forAll(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "spx-broken-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // as far as it goes
	copied := filepath.Join(dir, filepath.Base(program))
	text, err := os.ReadFile(program)
	if err == nil {
		err = errors.Join(os.WriteFile(copied, text, 0o755), os.Chmod(copied, 0o755), os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// A control group's limit on memory: the kernel ends the rank that goes beyond it, and the message says why.
//
//	go test ./tests/broken -run TestGroupOfLittleMemory
func TestGroupOfLittleMemory(t *testing.T) {
	group := littleGroup(t, 400<<20)
	eater := harness.Compile(t, "broken/eater", []string{filepath.Join(harness.Root(), "tests/broken/programs/eater.c")})
	run := `echo $$ >"$G/cgroup.procs" && exec "$S" --on-death continue -n 3 "$P"`
	o := harness.Run(t, harness.Command{
		Args: []string{"sh", "-c", run}, Limit: 60 * time.Second,
		Env: []string{"G=" + group, "S=" + filepath.Join(harness.Build(t), "bin/spxrun"), "P=" + eater},
	})
	said := "rank 1 (pid "
	why := "was killed by signal 9 (SIGKILL, by the kernel because memory was used up"
	if o.Late || !strings.Contains(o.Stderr, said) || !strings.Contains(o.Stderr, why) || strings.Count(o.Stdout, "lives") != 2 {
		t.Errorf("status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
}

// littleGroup makes a control group with that limit on memory, where this process may: in the hierarchy of version 2 or 1.
func littleGroup(t *testing.T, bytes int) string {
	t.Helper()
	for _, c := range []struct{ top, limit, swap string }{
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.swappiness"},
	} {
		if _, err := os.Stat(filepath.Join(c.top, "cgroup.procs")); err != nil {
			continue // no group of that kind
		}
		group, err := os.MkdirTemp(c.top, "spx-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(group) })
		set := func(file, value string) error {
			f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(value)
			return errors.Join(err, f.Close())
		}
		set(c.swap, "0") //nolint:errcheck // there may be no swapping
		if set(c.limit, strconv.Itoa(bytes)) == nil {
			return group
		}
	}
	t.Skip("no control group with a limit on memory can be made (root, and a memory controller)")
	return ""
}
