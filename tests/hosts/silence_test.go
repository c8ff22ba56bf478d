package hosts

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/tests/harness"
)

// Hosts fall silent under a program that recovers. docs/fault-tolerance.md, "Silent hosts", has what must come of it.

// beatLimit is the preset of SPX_HEARTBEAT_LIMIT with --with-ft; here it is set for all jobs. From the last word of a host to the first barrier without it, it may take this and goal.
const (
	beatLimit = time.Second
	goal      = 200 * time.Millisecond
)

// A running job.
type running struct {
	t      *testing.T
	b      *bed
	cmd    *exec.Cmd
	lines  chan string // of standard output
	stderr bytes.Buffer
}

// start runs shrink.c, one rank on each of n hosts, until all are there.
func (b *bed) start(t *testing.T, n int, env ...string) *running {
	t.Helper()
	r := b.begin(t, n, nil, env...)
	if line := r.line(); line != "all are there" {
		t.Fatalf("%q\n%s", line, &r.stderr)
	}
	return r
}

// begin starts it, with options for spxrun.
func (b *bed) begin(t *testing.T, n int, options []string, env ...string) *running {
	t.Helper()
	return b.launch(t, n, options, []string{program(t, "shrink")}, env...)
}

// launch starts a command, one rank on each of n hosts.
func (b *bed) launch(t *testing.T, n int, options, command []string, env ...string) *running {
	t.Helper()
	slots := make([]int, n)
	for i := range slots {
		slots[i] = 1
	}
	c := b.spxrunOver(b.remotely(n), append(append(options, "-host", b.list(slots...), "-n", fmt.Sprint(n)), command...)...)
	r := &running{t: t, b: b, cmd: exec.Command(c.Args[0], c.Args[1:]...), lines: make(chan string, 100)}
	if len(options) == 0 {
		env = append([]string{fmt.Sprintf("SPX_HEARTBEAT_LIMIT=%d", beatLimit.Milliseconds())}, env...)
	}
	r.cmd.Env, r.cmd.Stderr = append(append(os.Environ(), c.Env...), env...), &r.stderr
	r.cmd.Dir = b.Dir() // output is kept there when spxrun is lost
	r.cmd.WaitDelay = 5 * time.Second
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return r
}

// line is the next one of standard output; empty: there are no more.
func (r *running) line() string {
	r.t.Helper()
	select {
	case line := <-r.lines:
		return line
	case <-harness.After(30 * time.Second):
		r.t.Fatalf("nothing happens\n%s", &r.stderr)
		return ""
	}
}

// recovered waits until n ranks have met again, and returns when they had.
func (r *running) recovered(n int) (at time.Duration) {
	r.t.Helper()
	for range n {
		var rank, size, ms int
		line := r.line()
		if _, err := fmt.Sscanf(line, "rank %d of %d at %d", &rank, &size, &ms); err != nil || size != n {
			r.t.Fatalf("%q, want a rank of %d\n%s", line, n, &r.stderr)
		}
		at = max(at, time.Duration(ms)*time.Millisecond)
	}
	return at
}

// ends waits for the end of spxrun, and checks its exit status and what it says.
func (r *running) ends(status int, says ...string) {
	r.t.Helper()
	for range r.lines {
	}
	timer := harness.AfterFunc(30*time.Second, func() { r.cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	r.cmd.Wait()                                                                //nolint:errcheck // its status is looked at
	timer.Stop()
	if got := r.cmd.ProcessState.ExitCode(); got != status {
		r.t.Errorf("exit status %d, want %d\n%s", got, status, &r.stderr)
	}
	for _, want := range says {
		if !strings.Contains(r.stderr.String(), want) {
			r.t.Errorf("standard error lacks %q\n%s", want, &r.stderr)
		}
	}
}

func clock() time.Duration {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) //nolint:errcheck // cannot fail
	return time.Duration(now.Nano())
}

// ip runs commands of ip(8) in the namespace of the hosts' switch.
func (b *bed) ip(commands ...string) {
	b.t.Helper()
	cmd := exec.Command("ip", "-n", b.Name+"sw", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
}

func unplug(n int) string { return fmt.Sprintf("link set port%d down", n) }

// part puts hosts on a switch of their own.
func (b *bed) part(hosts ...int) {
	b.t.Helper()
	b.ip("link add br1 type bridge", "link set br1 up")
	var commands []string
	for _, n := range hosts {
		commands = append(commands, fmt.Sprintf("link set port%d master br1", n))
	}
	b.ip(commands...)
}

// deserted waits until no process of a job is on the hosts.
func (b *bed) deserted(t *testing.T, hosts ...int) {
	t.Helper()
	for _, n := range hosts {
		until(t, "end of all on host "+strconv.Itoa(n), func() bool { return len(b.findOn(n, "")) == 0 })
	}
}

// One host of eight is unplugged. Beside other load the time is the best of three, and what follows the silence may take longer.
func TestUnplugged(t *testing.T) {
	var best, most time.Duration
	for range 3 {
		b := newBed(t, 8)
		r := b.start(t, 8)
		began := clock()
		b.ip(unplug(5))
		took := r.recovered(7) - began
		r.ends(0, "host "+b.host(5)+" is lost, with its processes: nothing was heard of it for 1s (SPX_HEARTBEAT_LIMIT; SPX_HEARTBEAT_LIMIT=10000, in ms, allows")
		b.deserted(t, 5)
		b.deserted(t, 1, 2, 3, 4, 6, 7, 8)
		t.Logf("unplugged to recovered: %v", took)
		if best == 0 || took < best {
			best = took
		}
		most = beatLimit + harness.Patience(goal)
		if best <= most {
			return
		}
	}
	t.Errorf("from the host's last word to the barrier without it: %v at best, want %v", best, most)
}

// A network is cut in two: the side with more hosts goes on, on the other one nothing is left, although it is not reached.
func TestCutInTwo(t *testing.T) {
	b := newBed(t, 8)
	r := b.start(t, 8)
	began := clock()
	b.part(6, 7, 8)
	t.Logf("cut to recovered: %v", r.recovered(5)-began)
	r.ends(0, "host "+b.host(6)+" is lost", "host "+b.host(7)+" is lost", "host "+b.host(8)+" is lost")
	b.deserted(t, 6, 7, 8)
}

// Two and two: the side of spxrun's host goes on.
func TestCutInHalves(t *testing.T) {
	b := newBed(t, 4)
	r := b.start(t, 4)
	b.part(2, 4)
	r.recovered(2)
	r.ends(0)
	b.deserted(t, 2, 4)
}

// spxrun is on the side with fewer hosts: the job ends, on both sides, unless SPX_PARTITION says that this side goes on.
func TestMinority(t *testing.T) {
	b := newBed(t, 8)
	r := b.start(t, 8)
	b.part(2, 3, 5, 7, 8)
	r.ends(1, "5 hosts of this job (", "have been silent for 1s: they may go on, cut off from here, but this side has fewer hosts; the job is ended with exit status 1", "SPX_PARTITION=launcher")
	b.deserted(t, 1, 2, 3, 4, 5, 6, 7, 8)

	b = newBed(t, 5)
	r = b.start(t, 5, "SPX_PARTITION=launcher")
	b.part(2, 3, 5)
	r.recovered(2)
	r.ends(0)
	b.deserted(t, 2, 3, 5)
}

// spxrun's host is cut off: nobody else may decide, so all ends, everywhere.
func TestLauncherUnplugged(t *testing.T) {
	b := newBed(t, 4)
	r := b.start(t, 4)
	b.ip(unplug(1))
	r.ends(1, "3 hosts of this job (")
	b.deserted(t, 1, 2, 3, 4)
}

// An agent hangs, and goes on when its host was given up long ago: it ends its processes.
func TestAgentHangs(t *testing.T) {
	b := newBed(t, 4)
	r := b.start(t, 4)
	agents := b.findOn(3, "spx-host-agent")
	if len(agents) != 1 {
		t.Fatalf("agents of host 3: %v", agents)
	}
	if err := syscall.Kill(agents[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.recovered(3)
	r.ends(0, "host "+b.host(3)+" is lost")
	if len(b.findOn(3, "shrink")) == 0 {
		t.Error("the rank of host 3 has ended although its agent is stopped: this test shows nothing")
	}
	if err := syscall.Kill(agents[0], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.deserted(t, 3)
}

// A rank has ended, and the agent that is to say what follows from it does not come to that: that of the rank's host sleeps meanwhile.
func TestAgentSleeps(t *testing.T) {
	b := newBed(t, 2)
	r := b.launch(t, 2, nil, []string{"sh", "-c", "echo there; exec sleep 1000"}, "SPX_HEARTBEAT_LIMIT=60000")
	for range 2 {
		if line := r.line(); line != "there" {
			t.Fatalf("%q\n%s", line, &r.stderr)
		}
	}
	lead, agents := b.findOn(1, "spx-agent"), b.findOn(2, "spx-host-agent")
	if len(lead) != 1 || len(agents) != 1 {
		t.Fatalf("agents: %v and %v", lead, agents)
	}
	until(t, "rank that sleeps", func() bool { return len(b.findOn(2, "sleep")) == 1 })
	rank := b.findOn(2, "sleep")[0]
	if err := cmp.Or(syscall.Kill(lead[0], syscall.SIGSTOP), syscall.Kill(rank, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	until(t, "end of the rank", func() bool { return len(b.findOn(2, "sleep")) == 0 })
	const period = time.Second
	had := cpuTime(agents[0])
	time.Sleep(period) // that nothing happens is no event
	if used := cpuTime(agents[0]) - had; used > period/2 {
		t.Errorf("the agent has used %v of a processor in %v", used, period)
	}
	if err := cmp.Or(syscall.Kill(lead[0], syscall.SIGCONT), syscall.Kill(b.findOn(1, "sleep")[0], syscall.SIGKILL)); err != nil { // processes that do not use MPI are not ended with others
		t.Fatal(err)
	}
	r.ends(137)
}

// cpuTime is what a process has used of processors.
func cpuTime(pid int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	var ticks int
	if f := strings.Fields(after); len(f) > 12 {
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		ticks = user + system
	}
	return time.Duration(ticks) * time.Second / 100
}

// parentOf is the parent of a process, 0 if that has ended.
func parentOf(pid int) (parent int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, after, ok := strings.Cut(string(stat), ") "); ok {
		if f := strings.Fields(after); len(f) > 1 {
			parent, _ = strconv.Atoi(f[1])
		}
	}
	return parent
}

// A rank is started by a shell, in a session of its own. The shell is killed, or the rank under a shell that lives on: the rank is declared dead, on all
// hosts, and nothing of it is left.
func TestWrappedRanks(t *testing.T) {
	const shell = `setsid -w "$0"; s=$?; [ $s = 0 ] || sleep 1000; exit $s`
	b := newBed(t, 3)
	for _, host := range []int{1, 3} { // spxrun's, and one whose agent decides nothing
		for _, victim := range []string{"shell", "rank"} {
			r := b.launch(t, 3, nil, []string{"sh", "-c", shell, program(t, "shrink")})
			if line := r.line(); line != "all are there" {
				t.Fatalf("%q\n%s", line, &r.stderr)
			}
			ranks := b.findOn(host, "shrink")
			if len(ranks) != 1 {
				t.Fatalf("ranks of host %d: %v", host, ranks)
			}
			pid := ranks[0]
			if victim == "shell" {
				pid = parentOf(pid)
				if err := syscall.Kill(ranks[0], syscall.SIGSTOP); err != nil { // it notices nothing itself
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			until(t, "end of the rank on host "+strconv.Itoa(host), func() bool { return len(b.findOn(host, "shrink")) == 0 })
			r.recovered(2)
			r.ends(0)
			b.deserted(t, 1, 2, 3)
		}
	}
}

// spxrun is killed: the job goes with it, whatever the moment, or with --with-ft stays, and survives the loss of a host without it.
func TestFrontKilled(t *testing.T) {
	b := newBed(t, 3)
	for range 5 {
		r := b.begin(t, 3, nil)
		if wait := rand.IntN(100); wait > 20 { // the later ones: after some of what happens at the beginning
			select {
			case <-r.lines:
			case <-time.After(time.Duration(wait) * time.Millisecond):
			}
		}
		r.cmd.Process.Kill() //nolint:errcheck // seen below
		b.deserted(t, 1, 2, 3)
		r.cmd.Wait() //nolint:errcheck // it was killed
	}
	r := b.begin(t, 3, []string{"--with-ft"})
	if line := r.line(); line != "all are there" {
		t.Fatalf("%q\n%s", line, &r.stderr)
	}
	r.cmd.Process.Kill() //nolint:errcheck // seen below
	b.ip(unplug(3))
	r.recovered(2)
	b.deserted(t, 1, 2, 3)
}
