package process

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLook(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/prog": 0o755, "bin/near": 0o755,
		"other/prog": 0o755, "bin/text": 0o644} {
		file := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(file), 0o755)
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"PATH=/none:" + dir + "/other"}
	for _, c := range []struct {
		name, dir, path string
		want            string // below dir, or the status of the error
		near            bool
	}{
		{"prog", "", "", "other/prog", false},
		{"prog", "", dir + "/bin", "bin/prog", false},
		{"prog", dir, "bin", "bin/prog", false},
		{dir + "/bin/prog", "", "", "bin/prog", false},
		{"./prog", dir + "/bin", "", "bin/prog", false},
		{"bin/prog", dir, "", "bin/prog", false},
		{"text", "", dir + "/bin", "126", false},
		{dir + "/bin/text", "", "", "126", false},
		{dir, "", "", "126", false},
		{"none", "", "", "127", false},
		{dir + "/none", "", "", "127", false},
		{dir + "/bin/prog/none", "", "", "127", false},
		{"prog", dir + "/none", "", "126", false},
		{"near", dir + "/bin", "", "bin/near", true},
		{"near", dir + "/bin", dir + "/bin", "bin/near", false},
		{"near", dir, "", "127", false},
		{"prog", dir + "/bin", "", "other/prog", false}, // that of PATH goes first
		{"text", dir + "/bin", "", "127", false},
	} {
		got, near, err := Look(c.name, c.dir, c.path, environ)
		var look *LookError
		if errors.As(err, &look) {
			got = strconv.Itoa(look.Status)
		} else {
			got = strings.TrimPrefix(got, dir+"/")
		}
		if got != c.want || near != c.near {
			t.Errorf("%+v: got %s (near: %v), error %v", c, got, near, err)
		}
	}
}

// start makes a shell; the test's thread must not end before it.
func start(t *testing.T, script string) (pid, pidfd int) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	pid, pidfd, err := Start(&Spec{File: "/bin/sh", Argv: []string{"sh", "-c", script},
		Stdio: [3]int{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Kill(-pid, unix.SIGKILL) })
	return pid, pidfd
}

func await(t *testing.T, pidfd int) {
	t.Helper()
	if !AwaitEnd(pidfd, 20*time.Second) {
		t.Fatal("the process does not end")
	}
}

// When memory is used up a rank is ended before its agent.
func TestRankIsEndedBeforeItsAgent(t *testing.T) {
	score := func(pid string) int {
		text, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	pid, pidfd := start(t, "sleep 1000")
	defer unix.Close(pidfd)
	if own, child := score("self"), score(strconv.Itoa(pid)); child != min(own+oomAbove, oomMost) {
		t.Errorf("the child has %d, this process %d", child, own)
	}
}

// A pidfd identifies its process, until that process has been reaped; no other descriptor does.
func TestPidOf(t *testing.T) {
	pid, pidfd := start(t, "sleep 1000")
	defer unix.Close(pidfd)
	if got := PidOf(pidfd); got != pid {
		t.Errorf("%d, not %d", got, pid)
	}
	unix.Kill(pid, unix.SIGKILL)
	await(t, pidfd)
	unix.Wait4(pid, nil, 0, nil)
	if got := PidOf(pidfd); got > 0 {
		t.Errorf("of a process that was reaped: %d", got)
	}
	if got := PidOf(0); got != 0 {
		t.Errorf("of standard input: %d", got)
	}
}

// The wait status is that of wait4, before and at the reaping.
func TestPeek(t *testing.T) {
	for script, want := range map[string]syscall.WaitStatus{"exit 0": 0, "exit 7": 7 << 8,
		"kill -9 $$": 9, "kill -TERM $$": 15} {
		pid, pidfd := start(t, script)
		await(t, pidfd)
		status, ended, err := Peek(pidfd)
		if !ended || err != nil || status != want {
			t.Errorf("%s: status %#x, ended %v, error %v; want %#x", script, status, ended, err,
				want)
		}
		var again syscall.WaitStatus
		if got, err := syscall.Wait4(pid, &again, syscall.WNOHANG, nil); got != pid || err != nil ||
			again != status {
			t.Errorf("%s: then wait4 gives %d, %#x, %v", script, got, again, err)
		}
		unix.Close(pidfd)
	}
	pid, pidfd := start(t, "sleep 1000")
	if _, ended, err := Peek(pidfd); ended || err != nil {
		t.Errorf("a process that lives: ended %v, error %v", ended, err)
	}
	Signal(pid, int(unix.SIGKILL))
	await(t, pidfd)
	Reap(pid, pidfd)
}

func TestStartFails(t *testing.T) {
	if _, _, err := Start(&Spec{File: "/none", Argv: []string{"none"},
		Stdio: [3]int{0, 1, 2}}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("error %v", err)
	}
}

// A stopped process with children, one of which has left its session: the signal ends the group,
// EndDescendants the rest.
func TestEndDescendants(t *testing.T) {
	if err := Subreaper(); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	pid, pidfd := start(t, "setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & sleep 1000")
	deadline := time.Now().Add(20 * time.Second)
	for len(Descendants(os.Getpid())) < 4 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if list := Descendants(os.Getpid()); len(list) < 4 {
		t.Fatalf("descendants %v, expected two shells and two sleeps", list)
	}
	unix.Kill(pid, unix.SIGSTOP)
	Signal(pid, int(unix.SIGTERM))
	await(t, pidfd)
	if left := EndDescendants(20*time.Millisecond, 20*time.Second); left != 0 {
		t.Errorf("%d are left: %v", left, Descendants(os.Getpid()))
	}
	unix.Close(pidfd)
}

func TestOOMKills(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  OOMKills
	}{
		"v2": {map[string]string{
			"proc/vmstat": "pgfault 7\noom_kill 5\n", "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 1\n",
			"sys/fs/cgroup/memory.events":     "oom_kill 9\n",
		}, OOMKills{3, 5}},
		"v1": {map[string]string{
			"proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/x\n0::/y\n",
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom " +
				"0\noom_kill 2\n",
		}, OOMKills{2, 0}},
		"container": {map[string]string{
			"proc/self/cgroup": "0::/docker/1234\n", "sys/fs/cgroup/memory.events": "oom_kill 1\n",
		}, OOMKills{1, 0}},
		"another group's": {map[string]string{
			"proc/self/cgroup":                          "4:memory:/a\n",
			"sys/fs/cgroup/memory/memory.oom_control":   "oom_kill 6\n",
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill 0\n",
		}, OOMKills{}},
		"none": {nil, OOMKills{}},
	} {
		root := t.TempDir()
		for path, text := range c.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := ReadOOMKills(root); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A number that is none of a process is left alone: 0 would be the caller's own group, and -n
// process n.
func TestSignalsNoOthers(t *testing.T) {
	const mark = unix.Signal(40) // comes after those with lower numbers
	got := make(chan os.Signal, 16)
	signal.Notify(got, unix.SIGWINCH, mark)
	defer signal.Stop(got)
	for _, pid := range []int{0, -os.Getpid()} {
		Signal(pid, int(unix.SIGWINCH))
	}
	for range 3 {
		if err := unix.Kill(os.Getpid(), mark); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != mark {
			t.Errorf("signal %v came", s)
			return
		}
	}
}
