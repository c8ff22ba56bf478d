package hosts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Clients that take spxrun's place in a job of several hosts: go test ./tests/hosts -run TestAttach

// attached is spxrun --attach on a host; it prints into a file.
type attached struct {
	t    *testing.T
	cmd  *exec.Cmd
	file string
}

// attach begins one on a host, for the only job there.
func (r *left) attach(host int, options ...string) *attached {
	r.t.Helper()
	f, err := os.CreateTemp(r.t.TempDir(), "attached")
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	args := append([]string{"on", r.b.host(host), filepath.Join(harness.Build(r.t), "bin/spxrun")}, append(options, "--attach", ".")...)
	c := &attached{r.t, exec.Command(script(), args...), f.Name()}
	c.cmd.Stdout, c.cmd.Stderr = f, f
	if err := c.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	late := harness.AfterFunc(time.Minute, func() { c.cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	r.t.Cleanup(func() {
		late.Stop()
		c.cmd.Process.Kill() //nolint:errcheck // it has ended then
		c.cmd.Wait()         //nolint:errcheck // likewise
	})
	return c
}

// reads waits until it has printed what a pattern describes.
func (c *attached) reads(pattern string) {
	c.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(c.file)
		if regexp.MustCompile(pattern).Match(text) {
			return
		}
		if time.Since(began) > harness.Patience(30*time.Second) {
			c.t.Fatalf("no %q in\n%s", pattern, text)
		}
	}
}

// ends is all that it has printed, when it has ended with a status.
func (c *attached) ends(status int) string {
	c.t.Helper()
	c.cmd.Wait() //nolint:errcheck // its status is looked at
	text, _ := os.ReadFile(c.file)
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		c.t.Errorf("exit status %d, want %d\n%s", got, status, text)
	}
	return string(bytes.TrimSpace(text))
}

// The spxrun of a job of three hosts returns, or is killed, and a client has its place; other hosts say where to go. Then that host is lost, with the client, and another one has the place on the host that decides
// then.
func TestAttachLeaderLost(t *testing.T) {
	b := newBed(t, 3)
	for _, options := range [][]string{nil, {"--detach"}} {
		t.Run(strings.Join(append([]string{"lost"}, options...), ""), func(t *testing.T) {
			r := b.leads(t, 3, options, "2", "7")
			r.decides(1)
			if options == nil {
				r.cmd.Process.Kill() //nolint:errcheck // seen below
				r.reads("goes on without it")
			}
			if text, want := r.attach(2).ends(1), fmt.Sprintf("host %s decides about job ", b.host(1)); !strings.Contains(text, want) || !strings.Contains(text, "ssh "+b.host(1)) {
				t.Errorf("it does not say %q:\n%s", want, text)
			}
			first := r.attach(1)
			if options == nil {
				first.reads("goes on without it")
			} else {
				first.reads("all are there")
			}
			b.kill(t, 1)
			r.met(2)
			next := 0
			for i, h := range r.decides(3, 1) {
				if h.Copy != nil && h.Copy.Original != "" {
					next = i + 1
				}
			}
			second := r.attach(next, "--since", "start")
			second.reads(`rank \d of 2 at `)
			for _, pid := range b.findOn(5-next, "shrink") {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
			}
			second.reads(`rank \d of 1 at `)
			if text := second.ends(7); strings.Count(text, "decides about job") != 1 || strings.Contains(text, "has ended, exit status") {
				t.Errorf("it has printed\n%s", text)
			}
			r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 7\n`)
			b.deserted(t, 1, 2, 3)
		})
	}
}

// A job with --detach has no special host either: it goes on when the one is lost on which it was started, or ends as it does when any other one with ranks is lost, and what it prints is where it was.
func TestDetachedLeaderLost(t *testing.T) {
	b := newBed(t, 3)
	for name, c := range map[string]struct {
		slots []int
		ends  string
	}{
		"no ranks there": {[]int{0, 1, 1}, `has ended, exit status 7\n`},
		"ranks there":    {[]int{1, 1, 1}, `rank 0 \(pid (?s:.*)has ended, exit status 137\n`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(b.Dir(), strings.ReplaceAll(name, " ", "-"))
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			var hosts []string
			n := 0
			for i, slots := range c.slots {
				if n += slots; slots > 0 {
					hosts = append(hosts, b.host(i+1)+":1")
				}
			}
			x := b.spxrunOver(b.remotely(3), "--detach", "-host", strings.Join(hosts, ","), "-n", fmt.Sprint(n), "sh", "-c", `echo here; until [ -e go ]; do sleep 0.05; done; exit 7`)
			cmd := exec.Command(x.Args[0], x.Args[1:]...)
			cmd.Env, cmd.Dir = append(append(os.Environ(), x.Env...), "SPX_AGENT_LIMIT=0"), dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r := &left{&running{t: t, b: b}, dir}
			r.reads(strings.Repeat(`(?s:.*)here`, n))
			r.decides(1)
			b.kill(t, 1)
			if c.slots[0] == 0 {
				r.reads(`decides about job [0-9a-f]{16} now`)
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			r.reads(c.ends)
			b.deserted(t, 1, 2, 3)
		})
	}
}
