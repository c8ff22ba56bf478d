// Package hosts runs jobs of several hosts: those of scripts/hosts, which share no processes, temporary files or names. Skipped where they cannot be made.
package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

func script() string { return harness.HostsScript() }

// A bed is a set of hosts.
type bed struct {
	*harness.Bed
	t    testing.TB
	env  []string // of programs, beside what their lines say
	rsh  string   // what reaches the other hosts
	slow int      // programs of tests/c may take so many times as long as their lines say; 0: as long
	wrap []string // what stands before programs of tests/c
	few  int      // programs of tests/c have so many ranks at most, but in the full tests; 0: as many as their lines say
	full bool     // programs of tests/c: consecutive ranks are on one host, not dealt out to the hosts in turn

	servers []int // of remote shells, which are no part of a job
}

// newBed makes n hosts, which go with the test.
func newBed(t testing.TB, n int, env ...string) *bed {
	t.Helper()
	return newBedBy(t, n, nil, env...)
}

// newBedBy makes them by these words of scripts/hosts.
func newBedBy(t testing.TB, n int, words func(name string) []string, env ...string) *bed {
	t.Helper()
	return &bed{Bed: harness.NewBed(t, "s", n, words, env...), t: t, rsh: script() + " rsh"}
}

func (b *bed) host(n int) string { return b.Host(n) }

// script makes a remote shell of lines for the shell: $hosts is scripts/hosts.
func (b *bed) script(t testing.TB, lines string) (rsh string) {
	t.Helper()
	name := filepath.Join(b.Dir(), "rsh")
	if err := os.WriteFile(name, []byte("hosts="+script()+"\n"+lines+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return "sh " + name
}

// list is the argument of -host: how many ranks on host 1, 2 ...
func (b *bed) list(slots ...int) string {
	var out []string
	for i, n := range slots {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s:%d", b.host(i+1), n))
		}
	}
	return strings.Join(out, ",")
}

// spxrun is a command line that starts spxrun on host 1. There are more ranks than processors, which hosts with one rank each cannot know.
func (b *bed) spxrun(args ...string) harness.Command {
	b.t.Helper()
	words := append(b.On(1, filepath.Join(harness.Build(b.t), "bin/spxrun"), "--rsh", b.rsh), args...)
	return harness.Command{Args: words, Env: []string{"SPX_SPIN=0", "SPX_RSH=" + b.rsh}}
}

// ran is what came of spxrun with these arguments.
func (b *bed) ran(args ...string) harness.Outcome {
	b.t.Helper()
	return harness.Run(b.t, b.spxrun(args...))
}

// program is one of testdata.
func program(t testing.TB, name string) string {
	t.Helper()
	return harness.Compile(t, "hosts/"+name, []string{filepath.Join(harness.Root(), "tests/hosts/testdata", name+".c")})
}

// check reports what is not as wanted. Lines of Stdout are in any order.
func check(t *testing.T, o harness.Outcome, status int, stdout []string, stderr ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.Stdout, "\n"), "\n")
	slices.Sort(lines)
	slices.Sort(stdout)
	if o.Late || o.Status != status || stdout != nil && !slices.Equal(lines, stdout) {
		t.Errorf("exit status %d (late: %v), want %d and\n%s\n%s", o.Status, o.Late, status, strings.Join(stdout, "\n"), o.Text())
	}
	for _, want := range stderr {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("standard error lacks %q\n%s", want, o.Text())
		}
	}
}

func TestWhere(t *testing.T) {
	b, where := newBed(t, 3), program(t, "where")
	on := []int{1, 1, 2, 2, 2, 3, 1}
	share := map[int]int{1: 3, 2: 3, 3: 1}
	var want []string
	for rank, host := range on {
		want = append(want, fmt.Sprintf("rank %d of 7 on %s shares with %d, sum 21", rank, b.host(host), share[host]))
	}
	c := b.spxrun("-host", b.list(2, 3, 1), "-n", "7", where)
	check(t, harness.Run(t, c), 0, want)

	var file strings.Builder
	for i, n := range []int{2, 3, 1} {
		fmt.Fprintf(&file, "%s slots=%d\n", b.host(i+1), n)
	}
	name := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(name, []byte(file.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	c = b.spxrun("-n", "7", where)
	c.Env = append(c.Env, "SPX_HOSTFILE="+name)
	check(t, harness.Run(t, c), 0, want)
}

// Hosts that talk by IPv6, and with ports of a range.
func TestAddresses(t *testing.T) {
	b, where := newBed(t, 2), program(t, "where")
	for n := 1; n <= 2; n++ {
		if out, err := exec.Command("ip", "-n", b.host(n), "addr", "add", fmt.Sprintf("fd77::%d/64", n), "dev", "eth0", "nodad").CombinedOutput(); err != nil {
			t.Skipf("no IPv6 here: %v\n%s", err, out)
		}
	}
	want := []string{fmt.Sprintf("rank 0 of 2 on %s shares with 1, sum 1", b.host(1)), fmt.Sprintf("rank 1 of 2 on %s shares with 1, sum 1", b.host(2))}
	check(t, harness.Run(t, b.spxrun("-host", b.list(1, 1), "--iface", "fd77::/64", "-n", "2", where)), 0, slices.Clone(want))
	c := b.spxrun("-host", b.list(1, 1), "-n", "2", "sh", "-c", `ss -Hltn | grep -c ":5001[0-3] " >&2; exec `+where)
	c.Env = append(c.Env, "SPX_PORTS=50010-50013", "SPX_IFACE=fd77::/64")
	check(t, harness.Run(t, c), 0, slices.Clone(want), "1\n1\n")
	c.Env = append(c.Env, "SPX_PORTS=13-12")
	check(t, harness.Run(t, c), 1, nil, "SPX_PORTS=13-12: two ports are to be named")
	c = b.spxrun("-host", b.list(3), "-n", "3", where)
	c.Env = append(c.Env, "SPX_PORTS=50010-50011", "SPX_TRANSPORTS=tcp")
	check(t, harness.Run(t, c), 1, nil, "none of the 2 ports of SPX_PORTS=50010-50011 is free")
}

// The first host, where spxrun runs, has no rank.
func TestAllElsewhere(t *testing.T) {
	b := newBed(t, 2)
	check(t, harness.Run(t, b.spxrun("-host", b.host(2), "-n", "1", program(t, "where"))), 0,
		[]string{fmt.Sprintf("rank 0 of 1 on %s shares with 1, sum 0", b.host(2))})
}

func TestEnds(t *testing.T) {
	b, end := newBed(t, 2), program(t, "end")
	run := func(how string) harness.Outcome {
		return harness.Run(t, b.spxrun("-host", b.list(2, 2), "-n", "4", end, how))
	}
	failed := 16385 // MPIX_ERR_PROC_FAILED
	check(t, run("well"), 0, []string{"rank 0: 0", "rank 1: 0", "rank 2: 0", "rank 3: 0"})
	check(t, run("kill"), 137, nil, "rank 2 (pid ", "on "+b.host(2)+") was killed by signal 9", "the job is ended")
	check(t, run("abort"), 7, nil, "MPI_Abort(MPI_COMM_WORLD, 7)")
	check(t, run("told"), 0, []string{fmt.Sprintf("rank 0: %d", failed), fmt.Sprintf("rank 1: %d", failed), fmt.Sprintf("rank 3: %d", failed)},
		"the other 3 are told and go on")
	check(t, run("agent"), 0, []string{fmt.Sprintf("rank 0: %d", failed), fmt.Sprintf("rank 1: %d", failed)}, "host "+b.host(2)+" is lost")
}

func TestInputAndOutput(t *testing.T) {
	b := newBed(t, 3)
	run := func(stdin string, args ...string) harness.Outcome {
		c := b.spxrun(append([]string{"-host", b.list(1, 1, 1), "-n", "3"}, args...)...)
		c.Stdin = stdin
		return harness.Run(t, c)
	}
	var long strings.Builder // more than may be under way
	for i := range 400000 {
		fmt.Fprintln(&long, i)
	}
	if o := run(long.String(), "-stdin", "2", "cat"); o.Status != 0 || o.Stdout != long.String() {
		t.Errorf("%d bytes of %d, exit status %d", len(o.Stdout), long.Len(), o.Status)
	}
	check(t, run("x\ny\n", "-l", "-stdin", "all", "cat"), 0, []string{"[0] x", "[0] y", "[1] x", "[1] y", "[2] x", "[2] y"})
	check(t, run("", "sh", "-c", "echo said >&2; test $OMPI_COMM_WORLD_RANK = 0 || exit 3"), 3, nil, "said\n")
}

func TestCannotStart(t *testing.T) {
	b := newBed(t, 2)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-host", b.list(1, 1), "-n", "2", "/none"}, 127, "program /none: no such file"},
		{[]string{"-host", b.host(1) + ",nobody", "-n", "2", "true"}, 1, "host nobody: "},
		{[]string{"-host", b.list(1, 1), "--prefix", "/none", "-n", "2", "true"}, 1, "is libspx installed at the same place?"},
		{[]string{"-host", b.list(1, 1), "--iface", "eth7", "-n", "2", "true"}, 1, "--iface eth7: no interface that is up has that name"},
		{[]string{"-host", b.list(1, 1), "--rsh", "/none/ssh", "-n", "2", "true"}, 1, "cannot run /none/ssh"},
	} {
		check(t, harness.Run(t, b.spxrun(c.args...)), c.status, nil, c.says)
	}
}

// Whatever is killed, nothing of the job is left on any host.
func TestNothingStays(t *testing.T) {
	b := newBed(t, 2)
	for _, victim := range []string{"spxrun", "spx-agent", "spx-host-agent"} {
		c := b.spxrun("-host", b.list(1, 2), "-n", "3", "sleep", "1000")
		cmd := exec.Command(c.Args[0], c.Args[1:]...)
		cmd.Env = append(os.Environ(), c.Env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "three sleepers", func() bool { return len(b.find("sleep")) == 3 })
		for _, pid := range b.find(victim) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
		}
		cmd.Wait() //nolint:errcheck // it was killed
		until(t, "end of all after that of "+victim, func() bool { return len(b.find("")) == 0 })
	}
}

// find lists the processes on the hosts whose command, or its first argument, has that name; all for an empty one.
func (b *bed) find(name string) (out []int) {
	for n := 1; n <= b.N; n++ {
		out = append(out, b.findOn(n, name)...)
	}
	return out
}

// findOn does so for one host.
func (b *bed) findOn(n int, name string) (out []int) {
	for _, pid := range b.Pids(n) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := append(strings.Split(string(line), "\x00"), "", "")
		if !slices.Contains(b.servers, pid) && (name == "" || filepath.Base(words[0]) == name && words[1] != "spx-host-agent" || words[1] == name) {
			out = append(out, pid)
		}
	}
	return out
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatalf("no %s", what)
		}
	}
}

// Programs of tests/c, on three hosts: the same program must not notice where its ranks are.
func TestPrograms(t *testing.T) {
	b := newBed(t, 3)
	b.programs(t, "pt2pt/requests", "pt2pt/statuses", "coll/*", "comm/splits", "topo/*", "part/*", "rma/*", "ft/*", "io/*", "ckpt/*",
		"mcast/basic", "mcast/coll*", "mcast/computes", "mcast/threads", "mcast/waits", "spawn/basic", "spawn/fail", "spawn/multiple", "spawn/nested", "spawn/ports", "spawn/ulfm")
	b.inFull(t, "mcast/*") // the others in TestMulticastsOfNeighbours too
}

// A long multicast goes to each host once: the program counts what the master sends, and what all do. Without a chain no host has a single member, which would fetch for itself when it receives.
func TestMulticastOneCopy(t *testing.T) {
	copies := program(t, "one_copy")
	b := newBed(t, 3)
	check(t, harness.Run(t, b.spxrun("-host", b.list(3, 3, 2), "-n", "8", copies, "chain")), 0, nil)
	check(t, harness.Run(t, b.spxrun("-host", b.list(4, 3, 1), "-n", "8", copies, "chain")), 0, nil)
	short := b.spxrun("-host", b.list(3, 3, 2), "-n", "8", copies)
	short.Env = append(short.Env, "SPX_MCAST_CHAIN=4M") // none of them is worth a chain
	check(t, harness.Run(t, short), 0, nil)
}

// Some of them with few connections: two of the hosts are on one switch, and messages are relayed through memory, the network, or both.
func TestFewConnections(t *testing.T) {
	b := newBed(t, 3)
	b.env = []string{"SPX_CONNECTIONS=topology:1", "SPX_TOPOLOGY=0,0,1"}
	b.programs(t, "coll/death", "ft/recover", "ft/shrink", "ft/wildcard", "mcast/basic", "mcast/random", "net/routes", "pt2pt/requests", "rma/basics", "spawn/basic", "spawn/ulfm")
	b.inFull(t, "coll/shared", "ft/agree", "ft/early_revoke", "mcast/*", "net/limit", "spawn/nested")
	b.few = 16
	b.env = []string{"SPX_CONNECTIONS=topology:0"} // each host is a switch
	b.programs(t, "ft/recover")
	b.inFull(t, "net/routes", "pt2pt/requests", "spawn/basic")
}

// Collectives that know of switches, whose hosts do not follow each other; the last host's is not known.
func TestCollectivesPastSwitches(t *testing.T) {
	b := newBed(t, 5)
	b.few = 8
	b.env = []string{"SPX_TOPOLOGY=0,1,0,1"}
	b.programs(t, "coll/every", "coll/parted", "ft/shrink", "spawn/basic")
	b.full = true
	b.inFull(t, "coll/every")
}

// Where long multicasts go in chains, with consecutive ranks on a host: 4 hosts, of which the last may have fewer.
func TestMulticastsOfNeighbours(t *testing.T) {
	b := newBed(t, 4)
	b.full = true
	b.programs(t, "mcast/acked", "mcast/acked_death", "mcast/chain_death", "mcast/random")
	b.inFull(t, "mcast/death", "mcast/flood_long", "mcast/long", "mcast/ordered")
}

// Where each host gets a part of a long multicast from the master, and the others from other hosts: all of them send something, and members that die keep none of the rest from it.
func TestMulticastsInParts(t *testing.T) {
	copies := program(t, "one_copy")
	b := newBed(t, 4)
	b.full = true
	for _, way := range []string{"ring", "doubling"} {
		b.env = []string{"SPX_MCAST_WAY=" + way}
		c := b.spxrun("-host", b.list(2, 2, 1, 1), "-n", "6", copies, "parts")
		c.Env = append(c.Env, b.env...)
		check(t, harness.Run(t, c), 0, nil)
		b.programs(t, "mcast/chain_death")
		b.inFull(t, "mcast/*")
	}
	wrong := b.spxrun("-host", b.list(1, 1, 1, 1), "-n", "4", copies)
	wrong.Env = append(wrong.Env, "SPX_MCAST_WAY=across")
	if o := harness.Run(t, wrong); o.Status == 0 || !strings.Contains(o.Text(), "SPX_MCAST_WAY=across: there is no such choice") {
		t.Errorf("a way that is none: %s", o.Text())
	}
}

// A host that has not come to the message yet, or computes when it has begun to hand it on, keeps no other one from it, in whichever way the parts go.
func TestMulticastPastTheSilent(t *testing.T) {
	silent := program(t, "silent")
	b := newBed(t, 5)
	for _, way := range []string{"auto", "ring", "doubling"} {
		for _, more := range [][]string{nil, {"begins"}} {
			dir := harness.SharedDir(t)
			fifos := []string{filepath.Join(dir, "silent"), filepath.Join(dir, "goes-on")}
			for _, fifo := range fifos {
				if err := syscall.Mkfifo(fifo, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := b.spxrun(slices.Concat([]string{"-host", b.list(1, 1, 1, 1, 1), "-n", "5", silent}, fifos, more)...)
			c.Env = append(c.Env, "SPX_MCAST_WAY="+way)
			check(t, harness.Run(t, c), 0, nil)
		}
	}
}

// The only member of its host receives a long multicast into its own memory, from where it goes on to the next hosts, which may be slower: it may use that memory again at once.
func TestMulticastMemoryIsReused(t *testing.T) {
	reused := program(t, "reused")
	b := newBed(t, 5)
	for _, way := range []string{"chain", "fork", "ring", "doubling"} {
		c := b.spxrun("-host", b.list(1, 1, 1, 1, 1), "-n", "5", reused)
		c.Env = append(c.Env, "SPX_MCAST_WAY="+way)
		check(t, harness.Run(t, c), 0, nil)
	}
}

// A rank leaves a barrier while it cannot reach another one yet to which it has sent, and calls nothing of MPI until all others have left, too: what it has sent leaves without it when the other one can be reached. Of five
// ranks, one on each host, the last sends to rank 1 and needs nothing of it, and rank 1 never calls it.
func TestLeftWhileConnecting(t *testing.T) {
	b, left := newBed(t, 5), program(t, "left")
	dir := harness.SharedDir(t)
	fifos := []string{filepath.Join(dir, "left"), filepath.Join(dir, "all")}
	for _, fifo := range fifos {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	route := func(how string) {
		t.Helper()
		if out, err := exec.Command("ip", "-n", b.host(5), "route", how, "unreachable", "10.77.0.2").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	route("add")
	ended := make(chan harness.Outcome, 1)
	go func() {
		ended <- harness.Run(t, b.spxrun(append([]string{"-host", b.list(1, 1, 1, 1, 1), "-n", "5", left}, fifos...)...))
	}()
	gone := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(fifos[0]) // waits for the rank
		gone <- err
	}()
	select {
	case err := <-gone:
		if err != nil {
			t.Fatal(err)
		}
	case o := <-ended:
		t.Fatalf("the rank has not left the barrier\n%s", o.Text())
	}
	select {
	case o := <-ended:
		t.Fatalf("the others have not waited for the last one's message: this test shows nothing\n%s", o.Text())
	case <-time.After(100 * time.Millisecond):
	}
	route("del")
	check(t, <-ended, 0, nil)
}

// slots of each host for n ranks of a program.
func (b *bed) slots(n int) (out []int) {
	for range b.N {
		if b.full {
			out = append(out, (n+b.N-1)/b.N)
		} else {
			out = append(out, 1)
		}
	}
	return out
}

// elsewhere are programs for which it hardly matters where ranks are: on several hosts they are for the full tests.
var elsewhere = []string{"*/errors", "*/threads", "coll/freed", "ft/agree_cycles", "ft/shrunk_share", "io/datarep", "io/direct", "mcast/bad", "mcast/flood", "mcast/set", "part/rules", "part/sizes",
	"rma/many", "rma/short_runs", "topo/cart", "topo/graph"}

func isElsewhere(name string) bool {
	return slices.ContainsFunc(elsewhere, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
}

// inFull runs programs in the full tests.
func (b *bed) inFull(t *testing.T, names ...string) {
	if harness.Full() {
		b.programs(t, names...)
	}
}

func (b *bed) programs(t *testing.T, names ...string) {
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(harness.Root(), "tests/c", name+".c"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !harness.Full() && isElsewhere(nameOf(file)) {
				continue
			}
			b.program(t, file)
		}
	}
}

// oneHost are lines, by their arguments, that suppose one host: ulfm apart, that processes of a job part for good (on several hosts all stay
// connected: docs/dynamic-processes.md, "Connected, and not any more"); ports, a socket between ranks that is a local one, as that of creations_death's join; alltoallv_lengths, the words of
// the way through shared memory; routes, settings that are refused. Of 100,000 random multicasts one host is enough; waits calls spxctl on the host of rank 2; computes has a window that all map; full, a device that rank 0 mounts for all;
// wrapped looks for a process by its pid, which says nothing on another host (TestWrappedRanks has that for hosts).
var oneHost = map[string]string{"spawn/ulfm": "apart", "spawn/ports": "", "coll/alltoallv_lengths": "both", "io/full": "", "ft/creations_death": "join 3", "mcast/computes": "", "mcast/random": "1500 0|6000 0|34000 0", "mcast/waits": "", "net/routes": "", "ft/wrapped": "killed|forked|inside|abort"}

// moreOfAKind are lines, by their arguments, whose kind others stand for on several hosts, but in the full tests: how a communicator is made of one, whoever dies meanwhile, is the same agreement.
var moreOfAKind = map[string]string{"ckpt/chaos": "2 4 spares|4 6 shrink|6 3 spares|8 6 shrink begin|9 4 files begin|10 3 spares begin", "ft/creations_death": "dup 4|create 4|group 0|intergroups 4|bytype 6|cart 4|graph 6|adjacent 3|allocate 3|dynamic 2|file 6|multiple 5"}

func hasArgs(of map[string]string, name string, line harness.RunLine) bool {
	args, ok := of[name]
	return ok && slices.Contains(strings.Split(args, "|"), strings.Join(line.Args, " "))
}

// nameOf is "coll/every" for .../tests/c/coll/every.c.
func nameOf(file string) string {
	return strings.TrimSuffix(file[strings.Index(file, "tests/c/")+8:], ".c")
}

// most is the number of ranks of the largest run of each kind, of those that these tests have: lines of one kind expect the same end, and their arguments begin with the same word.
func (b *bed) most(lines []harness.RunLine) map[string]int {
	out := map[string]int{}
	for _, line := range lines {
		if !harness.Full() && (line.Full || b.few > 0 && slices.Max(line.Ranks) > b.few) {
			continue
		}
		out[kind(line)] = max(out[kind(line)], slices.Max(line.Ranks))
	}
	return out
}

func kind(line harness.RunLine) string {
	return fmt.Sprint(line.Status, append(line.Args[:len(line.Args):len(line.Args)], "")[0])
}

// program runs a program as the lines at its beginning say, but on all hosts: all of them in the full tests, otherwise the largest run of each kind.
func (b *bed) program(t *testing.T, file string) {
	lines, err := harness.ReadRunLines(file)
	if err != nil {
		t.Fatal(err)
	}
	name := nameOf(file)
	largest := b.most(lines)
	for i, line := range lines {
		if hasArgs(oneHost, name, line) || !harness.Full() && hasArgs(moreOfAKind, name, line) {
			continue
		}
		for _, n := range line.Ranks {
			if !harness.Full() && (line.Full || n < largest[kind(line)] || b.few > 0 && n > b.few) {
				continue
			}
			t.Run(fmt.Sprintf("%s,line%d,n=%d", strings.ReplaceAll(name, "/", "-"), i+1, n), func(t *testing.T) {
				program := harness.Compile(t, "c/"+name, []string{file}, lines[0].CFlags...)
				args := append([]string{"-host", b.list(b.slots(n)...)}, line.Spxrun...)
				c := b.spxrun(append(append(args, "-n", fmt.Sprint(n)), append(append(b.wrap[:len(b.wrap):len(b.wrap)], program), line.Args...)...)...)
				c.Env, c.Limit, c.Stdin, c.Dir = append(append(c.Env, b.env...), line.Env...), line.Limit*time.Duration(max(b.slow, 1)), line.Stdin, b.Dir()
				// A host of this machine may have no processor for a second: that is no death, and silence has tests of its own.
				c.Env = append(c.Env, "TEST_FILES="+c.Dir, "SPX_HEARTBEAT_LIMIT=30000")
				o := harness.Run(t, c)
				if why := line.Check(o); why != "" {
					t.Errorf("%s\n%s--- again: go test ./tests/hosts -count=1 -run '%s'", why, o.Text(), t.Name())
				}
			})
		}
	}
}
