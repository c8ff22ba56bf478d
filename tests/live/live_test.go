// Package live watches real programs as a user does: by `spxctl top` in a pipe and on a terminal (tmux), by metrics, and by the page of `spxctl serve`.
package live

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/core/diagnose"
	"libspx/launch/live"
	"libspx/tests/harness"
)

const limit = 60 * time.Second

// A job is a program that runs, under a name of its own.
type job struct {
	cmd    *exec.Cmd
	number string
	stdin  io.Closer
	lines  chan string // of its standard error
}

// talk starts programs/talk.c on n ranks, and waits until its job is there.
func talk(t *testing.T, n string, options []string, args ...string) *job {
	t.Helper()
	program := filepath.Join(t.TempDir(), "talk")
	text, err := os.ReadFile(harness.Compile(t, "live/talk", []string{filepath.Join(harness.Root(), "tests/live/programs/talk.c")}, "-O1"))
	if err == nil {
		err = os.WriteFile(program, text, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	command := append([]string{filepath.Join(harness.Build(t), "bin/spxrun")}, options...)
	command = append(append(command, "-n", n, program), args...)
	return start(t, program, command)
}

// start starts spxrun, and waits until a job of the program is there.
func start(t *testing.T, program string, command []string) *job {
	t.Helper()
	j := &job{cmd: exec.Command(command[0], command[1:]...), lines: make(chan string, 1000)}
	j.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(harness.Build(t), "lib"))
	errs, err := j.cmd.StderrPipe()
	if err == nil {
		j.stdin, err = j.cmd.StdinPipe()
	}
	if err == nil {
		err = j.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		j.cmd.Process.Signal(syscall.SIGTERM)                                      //nolint:errcheck // it may have ended; a system would go on if it were killed
		late := harness.AfterFunc(20*time.Second, func() { j.cmd.Process.Kill() }) //nolint:errcheck // it has ended then
		defer late.Stop()
		j.cmd.Wait() //nolint:errcheck // it was killed
	})
	go func() {
		defer close(j.lines)
		for s := bufio.NewScanner(errs); s.Scan(); {
			j.lines <- s.Text()
		}
	}()
	until(t, "the job of "+program, func() bool {
		var jobs []struct{ Job, Program string }
		json.Unmarshal([]byte(spxctl(t, "jobs", "--json")), &jobs) //nolint:errcheck // then there are none
		for _, about := range jobs {
			if strings.HasPrefix(about.Program, program) {
				j.number = about.Job
			}
		}
		return j.number != ""
	})
	return j
}

// until waits for something to become true.
func until(t *testing.T, what string, true_ func() bool) {
	t.Helper()
	for late := time.Now().Add(limit); !true_(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in %v there was not: %s\nto repeat: go test ./tests/live -run '%s$'", limit, what, t.Name())
		}
	}
}

func spxctl(t *testing.T, args ...string) string {
	t.Helper()
	o := harness.Run(t, harness.Command{Args: append([]string{filepath.Join(harness.Build(t), "bin/spxctl")}, args...), Limit: limit})
	return o.Stdout
}

// processes are those of the job, by rank.
func (j *job) processes(t *testing.T) []diagnose.Proc {
	var all struct{ Processes []diagnose.Proc }
	if err := json.Unmarshal([]byte(spxctl(t, "ps", "--json", j.number)), &all); err != nil {
		return nil // not all have started
	}
	return all.Processes
}

// view is what `spxctl top --json` says.
func (j *job) view(t *testing.T, args ...string) (v live.View) {
	t.Helper()
	text := spxctl(t, append([]string{"top", j.number, "--json", "--every", "300ms"}, args...)...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("spxctl top --json: %v\n%s", err, text)
	}
	return v
}

// What the ranks count is what the program has sent, message for message; who waits is seen to.
func TestCounts(t *testing.T) {
	const messages, bytes = 1000, 4096
	j := talk(t, "4", nil, "count", fmt.Sprint(messages), fmt.Sprint(bytes))
	until(t, "ranks 1 to 3 in the barrier", func() bool {
		p := j.processes(t)
		return len(p) == 4 && !slices.ContainsFunc(p[1:], func(p diagnose.Proc) bool { return p.State != diagnose.Waiting || p.Traffic.Collectives == 0 }) // in MPI_Recv they wait, too
	})
	for _, p := range j.processes(t) {
		got, sent := p.Traffic, uint64(messages)
		if p.Rank%2 != 0 {
			sent = 0
		}
		received := messages - sent
		// the barrier's have no bytes, if they go by messages at all
		if got.Received < received || got.Received > received+4 || got.ReceivedBytes != received*bytes || got.Sent < sent || got.SentBytes != sent*bytes || got.Sent > sent+4 {
			t.Errorf("rank %d: %+v", p.Rank, got)
		}
		if p.Rank > 0 && got.Collectives != 1 {
			t.Errorf("rank %d has begun %d collectives, and is in its first", p.Rank, got.Collectives)
		}
	}
	v := j.view(t)
	if len(v.Processes) != 4 || v.All.Procs != 4 || len(v.Hosts) != 1 {
		t.Fatalf("%+v", v)
	}
	for _, r := range v.Processes {
		if waits := r.Rates.Wait > 0.9; waits != (r.Rank > 0) || waits && r.Call != "MPI_Barrier" {
			t.Errorf("rank %d: waits %.2f of the time, %s in %q", r.Rank, r.Rates.Wait, r.State, r.Call)
		}
	}
	j.stdin.Close()
	if err := j.cmd.Wait(); err != nil {
		t.Errorf("spxrun: %v", err)
	}
}

// In a pipe the table is plain text, in the order and of the processes that are wanted.
func TestPlainTable(t *testing.T) {
	j := talk(t, "4", nil, "stream")
	until(t, "traffic of all", func() bool {
		v := j.view(t)
		for _, r := range v.Processes {
			if r.Rates.Sent < 10 || r.Rates.SentBytes < 640 || r.Rates.Received < 10 {
				return false
			}
		}
		return len(v.Processes) == 4
	})
	text := spxctl(t, "top", j.number, "--every", "200ms", "--filter", "r2-3", "--sort", "rank")
	if strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("control characters in a pipe:\n%q", text)
	}
	for _, p := range []string{`^\d\d:\d\d:\d\d  job ` + j.number + `  4 processes on 1 host: `, `^RANK +HOST +PID +STATE +MSG/s +OUT B/s +IN B/s +COLL/s +WAIT +FAIL +PEERS +CONN$`,
		`(?s)^ +2 [^\n]*%[^\n]*\n +3 [^\n]*%[^\n]*\n?$`} {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("nothing like %q in\n%s", p, text)
		}
	}
	if regexp.MustCompile(`(?m)^ +[01] `).MatchString(text) {
		t.Errorf("the filter keeps only ranks 2 and 3:\n%s", text)
	}
	o := harness.Run(t, harness.Command{Args: []string{filepath.Join(harness.Build(t), "bin/spxctl"), "top", j.number, "--sort", "colour"}})
	if o.Status != 1 || !strings.Contains(o.Stderr, "--sort colour: there are host, rank, state") {
		t.Errorf("--sort colour: status %d\n%s", o.Status, o.Text())
	}
}

// A terminal of 80 columns and 24 lines, as over ssh: sorting, filter, views, a death, the end.
func TestTerminal(t *testing.T) {
	harness.Need(t, "packaging", "tmux")
	j := talk(t, "4", []string{"--on-death", "continue"}, "stream")
	socket := filepath.Join(t.TempDir(), "tmux")
	tmux := func(args ...string) string {
		out, _ := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...).CombinedOutput() // it has ended: nothing is found, and that is told
		return string(out)
	}
	t.Cleanup(func() { tmux("kill-server") })
	tmux("new-session", "-d", "-x", "80", "-y", "24", fmt.Sprintf("'%s/bin/spxctl' top %s --every 100ms; echo left with $?; read x", harness.Build(t), j.number))
	var screen string
	sees := func(what string, patterns ...string) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("the screen:\n%s", screen)
			}
		}()
		until(t, what, func() bool {
			screen = tmux("capture-pane", "-p")
			for _, p := range patterns {
				if !regexp.MustCompile("(?m)" + p).MatchString(screen) {
					return false
				}
			}
			return true
		})
	}
	press := func(keys ...string) { tmux(append([]string{"send-keys"}, keys...)...) }

	sees("the table", `job `+j.number, `^ *RANK +HOST .*STATE +MSG/s +OUT B/s +IN B/s .*WAIT +FAIL`, `^ +0 .*\d%`, `^ +3 .*\d%`, `q quit.*tab ranks.*s sort: host`)
	for _, line := range strings.Split(screen, "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("a line has more than 80 columns: %q", line)
		}
	}
	press("s")
	sees("another order", `s sort: rank`)
	press("/")
	press("r1")
	sees("the filter being typed", `^/r1_`)
	press("Enter")
	sees("the filter", `only: r1`, `^ +1 `)
	if regexp.MustCompile(`(?m)^ +[023] `).MatchString(screen) {
		t.Errorf("the filter keeps only rank 1:\n%s", screen)
	}
	press("Escape")
	sees("no filter", `^ +0 `, `^ +3 `)
	press("Tab")
	sees("the hosts", `^HOST +RANKS +STATES`, `4 running|\d waiting`)
	press("Tab")
	sees("the ranks again", `^ *RANK`)
	press("?")
	sees("the keys", `turn the order round`)
	press("?")
	spxctl(t, "kill", j.number, "3")
	sees("the death", `^ +3 .*dead`, `1 dead`, `^ +2 .* 1 +`)
	press("q")
	sees("the end", `left with 0`)
}

// When the job ends the last that was seen stays, and is called so.
func TestJobEnds(t *testing.T) {
	harness.Need(t, "packaging", "tmux")
	j := talk(t, "2", nil, "count", "10", "8")
	socket := filepath.Join(t.TempDir(), "tmux")
	t.Cleanup(func() { exec.Command("tmux", "-S", socket, "kill-server").Run() }) //nolint:errcheck // it may have ended
	if out, err := exec.Command("tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24",
		fmt.Sprintf("'%s/bin/spxctl' top %s --every 100ms", harness.Build(t), j.number)).CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	sees := func(pattern string) {
		t.Helper()
		until(t, pattern, func() bool {
			out, _ := exec.Command("tmux", "-S", socket, "capture-pane", "-p").Output() // tried again
			return regexp.MustCompile("(?m)" + pattern).Match(out)
		})
	}
	sees(`^ +1 .*Barrier`)
	j.stdin.Close()
	if err := j.cmd.Wait(); err != nil {
		t.Errorf("spxrun: %v", err)
	}
	sees(`the job has ended`)
}
