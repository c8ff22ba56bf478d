package hosts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

// spxrunOn is spxrun on another host than host 1, with a rank on each of the hosts that are named.
func (b *bed) spxrunOn(on int, hosts []int, args ...string) harness.Command {
	b.t.Helper()
	var list []string
	for _, n := range hosts {
		list = append(list, b.host(n)+":1")
	}
	c := b.spxrun(append([]string{"-host", strings.Join(list, ","), "-n", strconv.Itoa(len(hosts))}, args...)...)
	c.Args = append(b.On(on), c.Args[len(b.On(1)):]...)
	return c
}

// pair runs two jobs at a time, one on hosts 1 and 2 that accepts, one on hosts 3 and 4 that connects.
func (b *bed) pair(t *testing.T, dir, cycles string, limit time.Duration, accepts, connects []string) (x, y harness.Outcome) {
	t.Helper()
	return b.pairWith(t, dir, cycles, limit, 1, nil, accepts, connects)
}

// pairWith is pair with more ranks on each host, and an environment.
func (b *bed) pairWith(t *testing.T, dir, cycles string, limit time.Duration, ranks int, env, accepts, connects []string) (x, y harness.Outcome) {
	t.Helper()
	ports, file := program(t, "ports"), filepath.Join(dir, "port")
	run := func(o *harness.Outcome, on int, hosts []int, what string, args []string) func() {
		before := []string{}
		if args[0] == "die" {
			before = []string{"--on-death", "kill"}
		}
		c := b.spxrunOn(on, hosts, append(append(before, ports, what, file, cycles), args...)...)
		c.Limit, c.Env = limit, append(c.Env, env...)
		return func() { *o = harness.Run(t, c) }
	}
	var both sync.WaitGroup
	both.Go(run(&x, 1, slices.Concat(slices.Repeat([]int{1}, ranks), slices.Repeat([]int{2}, ranks)), "accept", accepts))
	both.Go(run(&y, 3, slices.Concat(slices.Repeat([]int{3}, ranks), slices.Repeat([]int{4}, ranks)), "connect", connects))
	both.Wait()
	return x, y
}

var grown = regexp.MustCompile(`^(\w+): (\d+) times; grown by (-?\d+) files, (-?\d+) KiB; agent: (-?\d+) files, (-?\d+) KiB\n$`)

// Two jobs of two hosts each, which share none, meet again and again (MPI-5.0, 11.9): messages, collectives, and windows of the processes of both. Nothing grows: neither
// in the processes nor in their agents.
func TestPortsBetweenJobs(t *testing.T) {
	b, cycles := newBed(t, 4), 12
	if harness.Full() {
		cycles = 1000
	}
	x, y := b.pair(t, t.TempDir(), strconv.Itoa(cycles), 4*time.Minute, []string{"-"}, []string{"-"})
	for _, o := range []harness.Outcome{x, y} {
		m := grown.FindStringSubmatch(o.Stdout)
		if o.Status != 0 || o.Late || m == nil || m[2] != strconv.Itoa(cycles) {
			t.Fatalf("%s\n%s", x.Text(), y.Text())
		}
		t.Log(strings.TrimSpace(o.Stdout))
		for k, most := range []int{1, 6144, 1, 6144} { // the heap of Go grows to 4 MiB before it is collected for the first time
			if n, _ := strconv.Atoi(m[3+k]); n > most {
				t.Errorf("%d more than at the beginning, %d at most are wanted: %s", n, most, o.Stdout)
			}
		}
	}
	b.nothingLeft(t)
}

// The same where processes may have far fewer connections than their job has processes, so that messages within a job are relayed: those between jobs are not.
func TestPortsWithFewConnections(t *testing.T) {
	b := newBed(t, 4)
	x, y := b.pairWith(t, t.TempDir(), "4", 2*time.Minute, 4, []string{"SPX_CONNECTIONS_MAX=6"}, []string{"-"}, []string{"-"})
	for _, o := range []harness.Outcome{x, y} {
		if m := grown.FindStringSubmatch(o.Stdout); o.Status != 0 || o.Late || m == nil || m[2] != "4" {
			t.Fatalf("%s\n%s", x.Text(), y.Text())
		}
	}
	b.nothingLeft(t)
}

func (b *bed) nothingLeft(t *testing.T) {
	t.Helper()
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// steps at which one of the two jobs ends itself: nine between calls, the others in the call by which it meets the other one (testdata/ports.c).
const steps, inCall = 20, 10

// One of two jobs is killed at a step of meeting, talking and parting. The other gets an error that says so, or has done all before, and goes on; its own processes are as they were.
func TestPortsKilled(t *testing.T) {
	b := newBed(t, 4)
	for _, dying := range []string{"accept", "connect"} {
		for step := 1; step <= steps; step++ {
			if !harness.Full() && !slices.Contains(map[string][]int{"accept": {3, inCall}, "connect": {13}}[dying], step) {
				continue
			}
			t.Run(fmt.Sprintf("%s_%d", dying, step), func(t *testing.T) {
				patience := "60"
				if dying == "connect" && (step == 1 || step >= inCall) { // perhaps it does not come
					patience = "3"
				}
				die, lives := []string{"die", strconv.Itoa(step)}, []string{"lives", patience}
				var dead, survivor harness.Outcome
				if dying == "accept" {
					dead, survivor = b.pair(t, b.Dir(), "2", time.Minute, die, lives)
				} else {
					survivor, dead = b.pair(t, b.Dir(), "2", time.Minute, lives, die)
				}
				outcome := regexp.MustCompile(`^(MPI_SUCCESS|MPI_ERR_PORT|MPIX_ERR_PROC_FAILED|MPIX_ERR_REVOKED) goes on\n$`)
				if survivor.Status != 0 || survivor.Late || !outcome.MatchString(survivor.Stdout) {
					t.Errorf("the job that lives:\n%s\nthe other one:\n%s", survivor.Text(), dead.Text())
				}
				if dead.Status == 0 && step < inCall { // a later moment may have come after the end
					t.Errorf("it was to die:\n%s", dead.Text())
				}
				t.Log(strings.TrimSpace(survivor.Stdout))
				b.nothingLeft(t)
			})
		}
	}
}

// Two processes of jobs on different hosts that have a socket meet by it (MPI-5.0, 11.10.4), again and again; the socket is theirs as before.
func TestJoinBetweenJobs(t *testing.T) {
	b := newBed(t, 4)
	joins, file := program(t, "joins"), filepath.Join(b.Dir(), "socket")
	var x, y harness.Outcome
	var both sync.WaitGroup
	run := func(o *harness.Outcome, on int, what string) {
		c := b.spxrunOn(on, []int{on, on + 1}, joins, what, file, b.host(1))
		both.Go(func() { *o = harness.Run(t, c) })
	}
	run(&x, 1, "keep")
	run(&y, 3, "call")
	both.Wait()
	if x.Status != 0 || y.Status != 0 || x.Stdout != "keep: 3 of 3\n" || y.Stdout != "call: 3 of 3\n" {
		t.Errorf("%s\n%s", x.Text(), y.Text())
	}
	b.nothingLeft(t)
}
