package hosts

import (
	"bufio"
	"fmt"
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

// Agents that are started by agents (docs/running.md, "Many hosts").

// treeHosts are as many as make a tree of three levels below spxrun's host, with a fan-out of 2.
const treeHosts = 13

// treeStarters says, by number, which host's agent starts that of hosts 2 to 13.
var treeStarters = map[int]int{2: 1, 3: 2, 4: 3, 5: 3, 6: 2, 7: 6, 8: 1, 9: 8, 10: 9, 11: 9, 12: 8, 13: 12}

// recording is a remote shell that writes down who has called whom, in a file, and runs a line of its own first.
func (b *bed) recording(t *testing.T, line string) (rsh, calls string) {
	t.Helper()
	dir := t.TempDir()
	rsh, calls = filepath.Join(dir, "rsh"), filepath.Join(dir, "calls")
	text := fmt.Sprintf("echo \"$(hostname) $1\" >>%s\n%s\nexec %s rsh \"$@\"\n", calls, line, script())
	if err := os.WriteFile(rsh, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return "sh " + rsh, calls
}

// calledAs compares what was written down with who should have called whom.
func (b *bed) calledAs(t *testing.T, calls string, starters map[int]int) {
	t.Helper()
	text, _ := os.ReadFile(calls)
	got := strings.Split(strings.TrimSpace(string(text)), "\n")
	var want []string
	for host, by := range starters {
		want = append(want, b.host(by)+" "+b.host(host))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("who has called whom:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func ones(n int) (slots []int) {
	for range n {
		slots = append(slots, 1)
	}
	return slots
}

// right is what n ranks of testdata/tree.c say first.
func right(n int) (out []string) {
	for rank := range n {
		out = append(out, fmt.Sprintf("rank %d: right", rank))
	}
	return out
}

// Thirteen hosts, each of which starts two more: it is that tree, all ranks reach each other, standard input and output come through, and processes are spawned.
func TestTree(t *testing.T) {
	b := newBed(t, treeHosts)
	rsh, calls := b.recording(t, "")
	list := b.list(ones(treeHosts)...)
	check(t, harness.Run(t, b.spxrunOver(rsh, "--fanout", "2", "-host", list, "-n", fmt.Sprint(treeHosts), program(t, "tree"))), 0, right(treeHosts))
	b.calledAs(t, calls, treeStarters)

	os.Remove(calls)
	c := b.spxrunOver(rsh, "-host", list, "-n", fmt.Sprint(treeHosts), program(t, "tree"))
	c.Env = append(c.Env, "SPX_FANOUT=") // the preset: all are started from the first
	check(t, harness.Run(t, c), 0, right(treeHosts))
	star := map[int]int{}
	for host := 2; host <= treeHosts; host++ {
		star[host] = 1
	}
	b.calledAs(t, calls, star)

	c = b.spxrunOver(rsh, "--fanout", "2", "-host", list, "-n", fmt.Sprint(treeHosts), "-stdin", "10", "cat")
	c.Stdin = strings.Repeat("a line that goes down the tree, and up\n", 50000) // more than may be under way
	if o := harness.Run(t, c); o.Status != 0 || o.Stdout != c.Stdin {
		t.Errorf("%d bytes of %d\n%s", len(o.Stdout), len(c.Stdin), o.Stderr)
	}

	children := []int{5, 11}
	o := harness.Run(t, b.spxrunOver(rsh, "--fanout", "2", "-host", list, "-n", "13", program(t, "spawn"), "4", "2", b.host(5)+","+b.host(11)))
	all := make([]int, treeHosts)
	for i := range all {
		all[i] = i + 1
	}
	check(t, o, 0, b.family(all, children))
	check(t, harness.Run(t, b.spxrunOver(rsh, "--fanout", "2", "-host", list, "-n", "13", program(t, "end"), "abort")), 7, nil, "MPI_Abort(MPI_COMM_WORLD, 7)")
	until(t, "end of all", func() bool { return len(b.find("")) == 0 })
}

// onTree starts testdata/tree.c on a tree, and waits until all ranks have met.
func (b *bed) onTree(t *testing.T, options []string, args ...string) *running {
	t.Helper()
	c := b.spxrun(append(append(options, "--fanout", "2", "-host", b.list(ones(treeHosts)...), "-n", fmt.Sprint(treeHosts), program(t, "tree")), args...)...)
	r := &running{t: t, b: b, cmd: exec.Command(c.Args[0], c.Args[1:]...), lines: make(chan string, 100)}
	r.cmd.Env, r.cmd.Stderr = append(os.Environ(), c.Env...), &r.stderr
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
	var got []string
	for range treeHosts {
		got = append(got, r.line())
	}
	want := right(treeHosts)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	return r
}

// The agent of host 3, which has started those of hosts 4 and 5, is killed: these are lost with it, and nobody else. The others go on, or the job ends; nothing
// is left on any host.
func TestTreeLosesBranch(t *testing.T) {
	b := newBed(t, treeHosts)
	kill := func() {
		t.Helper()
		agents := b.findOn(3, "spx-host-agent")
		if len(agents) != 1 {
			t.Fatalf("agents of host 3: %v", agents)
		}
		syscall.Kill(agents[0], syscall.SIGKILL) //nolint:errcheck // seen below
	}
	r := b.onTree(t, []string{"--on-death", "continue"}, "survive", "10")
	kill()
	for range 10 {
		if line := r.line(); line != "one of 10: right" {
			t.Errorf("%q\n%s", line, &r.stderr)
		}
	}
	b.deserted(t, 3, 4, 5)
	lost := []string{"host " + b.host(3) + " is lost"}
	for _, n := range []int{4, 5} {
		lost = append(lost, fmt.Sprintf("host %s is lost, with its processes: it was started through host %s", b.host(n), b.host(3)))
	}
	r.ends(0, lost...)

	r = b.onTree(t, nil, "stay")
	kill()
	r.ends(137, "host "+b.host(3)+" is lost")
	until(t, "end of all", func() bool { return len(b.find("")) == 0 })
}

// spxrun, or its host's agent, is killed: nothing is left on any host of the tree. The same when all of the agents in between are, at once.
func TestTreeNothingStays(t *testing.T) {
	b := newBed(t, treeHosts)
	for _, victim := range []string{"spxrun", "spx-agent", "spx-host-agent"} {
		r := b.onTree(t, nil, "stay")
		for _, pid := range b.find(victim) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
		}
		until(t, "end of all after that of "+victim, func() bool { return len(b.find("")) == 0 })
		for range r.lines {
		}
		r.cmd.Wait() //nolint:errcheck // it was killed
	}
}

// A host that no other one may call is started from spxrun's after all, and the user is told once.
func TestTreeFromHere(t *testing.T) {
	b := newBed(t, 7)
	rsh, calls := b.recording(t, fmt.Sprintf("[ $(hostname) = %s ] || { echo 'me@there: Permission denied (publickey).' >&2; exit 255; }", b.host(1)))
	o := harness.Run(t, b.spxrunOver(rsh, "--fanout", "2", "-host", b.list(ones(7)...), "-n", "7", program(t, "tree")))
	check(t, o, 0, right(7), "(it cannot be reached (me@there: Permission denied (publickey).)", "the agent of spxrun's host starts it itself")
	if n := strings.Count(o.Stderr, "starts it itself"); n != 1 {
		t.Errorf("said %d times\n%s", n, o.Stderr)
	}
	text, _ := os.ReadFile(calls)
	if n := strings.Count(string(text), b.host(1)+" "); n != 6 {
		t.Errorf("%d hosts were called from the first:\n%s", n, text)
	}
}

// A host through which others are reached is not removed before these.
func TestTreeRemoval(t *testing.T) {
	b := newBed(t, 4)
	r := b.talks(t, []string{"--fanout", "2", "-host", b.list(1, 1, 1, 1), "-n", "1"}, program(t, "grow"))
	r.hears(r.at(1))
	b.ctl(t, 1, "host "+b.host(2)+": it carries the connection with host "+b.host(3), "", "hosts", ".", "remove", b.host(2))
	b.ctl(t, 0, b.host(3)+" .*removed", "", "hosts", ".", "remove", b.host(3))
	b.ctl(t, 0, b.host(2)+" .*removed", "", "hosts", ".", "remove", b.host(2))
	b.deserted(t, 2, 3)
	r.tell("end")
	r.ends(0)
}

// Fewer descriptors than the job takes: the soft limit does not matter, the hard one is named before anything is started.
func TestFewDescriptors(t *testing.T) {
	b := newBed(t, 5)
	run := func(limit string) harness.Outcome {
		c := b.spxrun("-host", b.list(ones(5)...), "-n", "5", program(t, "tree"))
		c.Args = append([]string{"sh", "-c", limit + ` && exec "$@"`, "sh"}, c.Args...)
		return harness.Run(t, c)
	}
	check(t, run("ulimit -Sn 20"), 0, right(5))
	check(t, run("ulimit -n 90"), 0, right(5)) // as many as it says that it needs
	check(t, run("ulimit -n 89"), 1, nil, "for 4 other hosts and 1 processes here", "and may open 89: raise the limit (ulimit -Hn")
	until(t, "end of all", func() bool { return len(b.find("")) == 0 })
}

// The environment asks for a tree, or for what makes no sense.
func TestTreeByEnvironment(t *testing.T) {
	b := newBed(t, 4)
	rsh, calls := b.recording(t, "")
	c := b.spxrunOver(rsh, "-host", b.list(ones(4)...), "-n", "4", program(t, "tree"))
	c.Env = append(c.Env, "SPX_FANOUT=2")
	check(t, harness.Run(t, c), 0, right(4))
	b.calledAs(t, calls, map[int]int{2: 1, 3: 2, 4: 1})
	c.Env = append(c.Env, "SPX_FANOUT=many")
	check(t, harness.Run(t, c), 2, nil, `SPX_FANOUT: "many" is not a number of hosts`)
}
