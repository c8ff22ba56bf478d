package gates

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Jobs that go on when spxrun has returned: go test ./tests/gates -run 'TestDetach|TestAgentHangs'

// A detached job, its processes marked, in a directory of its own.
type detached struct {
	t         *testing.T
	dir, mark string
	name, out string // what spxrun has said
}

// detach starts one. fail: it does not come to run; then the result is what spxrun says of it.
func detach(t *testing.T, env []string, args ...string) (*detached, harness.Outcome) {
	t.Helper()
	d := &detached{t: t, dir: t.TempDir(), mark: harness.Mark(t)}
	o := harness.Run(t, harness.Command{Args: append([]string{filepath.Join(harness.Build(t), "bin/spxrun"), "--detach"}, args...), Dir: d.dir, Env: append(env, d.mark)})
	if words := strings.Fields(o.Stdout); len(words) == 2 {
		d.name, d.out = words[0], filepath.Join(d.dir, words[1])
	}
	return d, o
}

func (d *detached) runs(o harness.Outcome) {
	d.t.Helper()
	if o.Status != 0 || o.Late || len(d.name) != 16 {
		d.t.Fatalf("it does not run\n%s", o.Text())
	}
}

// ctl runs spxctl.
func (d *detached) ctl(args ...string) harness.Outcome {
	d.t.Helper()
	return harness.Run(d.t, harness.Command{Args: append([]string{filepath.Join(harness.Build(d.t), "bin/spxctl")}, args...)})
}

// ends waits until nothing is left of it, and checks what its file says.
func (d *detached) ends(want ...string) {
	d.t.Helper()
	harness.NothingLeft(d.t, d.mark, 30*time.Second)
	text, err := os.ReadFile(d.out)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, w := range want {
		if !bytes.Contains(text, []byte(w)) {
			d.t.Errorf("%s lacks %q:\n%s", d.out, w, text)
		}
	}
}

// pipe makes a pipe with a name, for jobs that wait until the test lets them go.
func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(name, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func letGo(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("go\n"), 0o666); err != nil { // opens when the other side has
		t.Fatal(err)
	}
}

func TestDetach(t *testing.T) {
	fifo := pipe(t)
	d, o := detach(t, nil, "-n", "1", "sh", "-c", `echo begun; echo of it >&2; read line <"$0"; echo "$line on"; exit 3`, fifo)
	d.runs(o)
	if o := d.ctl("jobs"); !strings.Contains(o.Stdout, d.name) {
		t.Errorf("spxctl jobs does not show %s\n%s", d.name, o.Text())
	}
	if o := d.ctl("wait", "--limit", "50ms", d.name); o.Status != 1 {
		t.Errorf("spxctl wait does not wait\n%s", o.Text())
	}
	waiting := exec.Command(filepath.Join(harness.Build(t), "bin/spxctl"), "wait", d.name)
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	late := harness.AfterFunc(30*time.Second, func() { waiting.Process.Kill() }) //nolint:errcheck // it has ended then
	defer late.Stop()
	letGo(t, fifo)
	waiting.Wait() //nolint:errcheck // its status is looked at; 1 if it came when all was over
	if got := waiting.ProcessState.ExitCode(); got != 3 && got != 1 {
		t.Errorf("spxctl wait: exit status %d", got)
	} else if text, err := os.ReadFile(d.out); got == 3 && (err != nil || !bytes.HasSuffix(text, []byte(" has ended, exit status 3\n"))) {
		t.Errorf("spxctl wait returns before the last line is written (%v):\n%s", err, text)
	}
	d.ends("begun\n", "of it\n", "go on\n", "spxrun: job "+d.name+" has ended, exit status 3\n")
	if o := d.ctl("wait", d.name); o.Status != 1 || !strings.Contains(o.Stderr, "is none of the") {
		t.Errorf("spxctl wait for what has ended\n%s", o.Text())
	}
}

// What has waited gets the status, whatever it is.
func TestDetachedEnds(t *testing.T) {
	d, o := detach(t, nil, "--output", "files", "-n", "2", "sleep", "1000")
	d.runs(o)
	if o := d.ctl("end", d.name); o.Status != 0 || !strings.Contains(o.Stdout, "job "+d.name+" has ended, exit status 143") {
		t.Errorf("spxctl end\n%s", o.Text())
	}
	d.ends("exit status 143")
	for _, name := range []string{"rank.0.out", "rank.1.err", "spx-" + d.name + ".out"} {
		if _, err := os.Stat(filepath.Join(d.dir, "files", name)); err != nil {
			t.Error(err)
		}
	}
}

// What cannot be started says so at once, where the user is, and leaves no file.
func TestDetachFails(t *testing.T) {
	for status, args := range map[int][]string{127: {"-n", "2", "/none/prog"}, 2: {"-n", "2", "--gdb", "0", "true"}, 1: {"-n", "1", "--output", "/dev/null/x", "true"}} {
		d, o := detach(t, nil, args...)
		if o.Status != status || o.Stdout != "" || !strings.HasPrefix(o.Stderr, "spxrun: ") || strings.Contains(o.Stderr, "has ended") {
			t.Errorf("exit status %d, want %d\n%s", o.Status, status, o.Text())
		}
		harness.NothingLeft(t, d.mark, 10*time.Second)
		if list, _ := os.ReadDir(d.dir); len(list) > 0 {
			t.Errorf("%v: left %v", args, list)
		}
	}
}

// The agent is killed, and a rank's child is in a session of its own: the keeper ends it, and says what has happened.
func TestDetachedAgentKilled(t *testing.T) {
	d, o := detach(t, nil, "-n", "1", "sh", "-c", "setsid sleep 1000 & sleep 1000")
	d.runs(o)
	for _, pid := range agents(0, d.mark) {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
	}
	d.ends("the agent of this host (spx-agent, pid ", "was killed by signal 9; with it the job has ended, exit status 137", "job "+d.name+" has ended, exit status 137")
}

// The agent is stopped: spxrun, or its keeper, gives it up, says so, and nothing stays.
func TestAgentHangs(t *testing.T) {
	const says = "has not answered for 400ms (SPX_AGENT_LIMIT), because it hangs or was stopped, and was killed; with it the job has ended, exit status 137"
	limit := "SPX_AGENT_LIMIT=400"
	stop := func(mark string) {
		list := agents(0, mark)
		list = slices.DeleteFunc(list, func(pid int) bool { return syscall.Kill(pid, syscall.SIGSTOP) != nil })
		if len(list) != 1 {
			t.Errorf("%d agents", len(list))
		}
	}
	d, o := detach(t, []string{limit}, "-n", "2", "sh", "-c", "setsid sleep 1000 & sleep 1000")
	d.runs(o)
	stop(d.mark)
	d.ends(says)

	mark, fifo := harness.Mark(t), pipe(t)
	cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "1", "sh", "-c", `echo >"$0"; sleep 1000`, fifo)
	var text bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.WaitDelay = append(os.Environ(), mark, limit), &text, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := harness.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	defer late.Stop()
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	stop(mark)
	began := time.Now()
	cmd.Wait() //nolint:errcheck // its status is looked at
	t.Logf("given up after %v", time.Since(began))
	if got := cmd.ProcessState.ExitCode(); got != 137 || !strings.Contains(text.String(), says) {
		t.Errorf("exit status %d\n%s", got, &text)
	}
	harness.NothingLeft(t, mark, 20*time.Second)
}

// Spxrun is stopped for longer than the limit, and goes on: that is not held against its agent.
func TestStoppedSpxrun(t *testing.T) {
	mark, fifo := harness.Mark(t), pipe(t)
	cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "1", "sh", "-c", `echo >"$0"; read line <"$0"`, fifo)
	var text bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.WaitDelay = append(os.Environ(), mark, "SPX_AGENT_LIMIT=200"), &text, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := harness.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	defer late.Stop()
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		cmd.Process.Signal(s) //nolint:errcheck // seen below
		time.Sleep(600 * time.Millisecond)
	}
	letGo(t, fifo)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &text)
	}
}
