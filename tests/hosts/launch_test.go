package hosts

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Hosts that are late, or cannot be reached (docs/running.md, "Hosts that do not answer"), by stand-ins for a remote shell. sshd_test.go has the real one.

// A host that has not answered is named after a while, and then does: the job begins. Standard error is no terminal.
func TestLateHost(t *testing.T) {
	b := newBed(t, 3)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o666); err != nil {
		t.Fatal(err)
	}
	rsh, _ := b.recording(t, fmt.Sprintf("[ $1 != %s ] || read line <%s", b.host(3), gate))
	c := b.spxrunOver(rsh, "-host", b.list(1, 1, 1), "-n", "3", program(t, "tree"))
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := harness.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	defer late.Stop()
	from := bufio.NewReader(said)
	if line, _ := from.ReadString('\n'); line != "spxrun: waiting for "+b.host(3)+"\n" {
		t.Errorf("%q", line)
	}
	if err := os.WriteFile(gate, []byte("now\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(from)
	if err := cmd.Wait(); err != nil || strings.Count(stdout.String(), ": right\n") != 3 {
		t.Errorf("%v\n%s%s", err, &stdout, rest)
	}
}

// A host that does not answer in time ends the job, is named, and its remote shell is ended: also one that does not heed its input.
func TestTooLateHost(t *testing.T) {
	b := newBed(t, 4)
	rsh, _ := b.recording(t, fmt.Sprintf("[ $1 != %s ] || exec sleep 1000", b.host(3)))
	for _, fanout := range []string{"0", "2"} { // with 2, host 2 is to start it
		mark := harness.Mark(t)
		c := b.spxrunOver(rsh, "--fanout", fanout, "-host", b.list(1, 1, 1, 1), "-n", "4", program(t, "tree"))
		c.Env = append(c.Env, "SPX_START_LIMIT=1.5", mark)
		check(t, harness.Run(t, c), 1, nil, "host "+b.host(3)+": its agent has not answered within 1.5s; sh has not ended and brought no agent") // and not late
		harness.NothingLeft(t, mark, 10*time.Second)
	}
	c := b.spxrunOver(rsh, "-host", b.list(1, 1, 1), "-n", "3", program(t, "tree"))
	c.Env = append(c.Env, "SPX_START_LIMIT=soon")
	check(t, harness.Run(t, c), 2, nil, "SPX_START_LIMIT=soon: a number of seconds is expected")
}

// The agent of spxrun's host is killed while a remote shell hangs that does not heed its input: that shell ends, too.
func TestKilledWhileStarting(t *testing.T) {
	b := newBed(t, 2)
	rsh, calls := b.recording(t, "exec sleep 1000")
	mark := harness.Mark(t)
	c := b.spxrunOver(rsh, "-host", b.list(1, 1), "-n", "2", program(t, "tree"))
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(append(os.Environ(), c.Env...), mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	until(t, "call", func() bool {
		text, _ := os.ReadFile(calls)
		return len(text) > 0 && len(harness.Marked(mark, "sleep")) == 1
	})
	for _, pid := range b.find("spx-agent") {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
	}
	cmd.Wait() //nolint:errcheck // it says that its agent has gone
	harness.NothingLeft(t, mark, 10*time.Second)
}

// The name service fails twice, as ssh says it: the host is reached at the third attempt. A failure that does not pass is not tried again.
func TestFurtherAttempts(t *testing.T) {
	b := newBed(t, 2)
	dns := "ssh: Could not resolve hostname $1: Temporary failure in name resolution"
	rsh, calls := b.recording(t, fmt.Sprintf(`[ $(wc -l <%s) -gt 2 ] || { echo "%s" >&2; exit 255; }`, "$(dirname $0)/calls", dns))
	o := harness.Run(t, b.spxrunOver(rsh, "-host", b.list(1, 1), "-n", "2", program(t, "tree")))
	text := fmt.Sprintf("spxrun: host %s: it cannot be reached (%s)", b.host(2), strings.ReplaceAll(dns, "$1", b.host(2)))
	check(t, o, 0, right(2), text, "trying again in 1s (attempt 2 of 5)\n", "trying again in 2s (attempt 3 of 5)\n")
	if n := strings.Count(o.Stderr, "\n"); n != 2 {
		t.Errorf("%d lines\n%s", n, o.Stderr)
	}
	if text, _ := os.ReadFile(calls); strings.Count(string(text), "\n") != 3 {
		t.Errorf("called:\n%s", text)
	}
}
