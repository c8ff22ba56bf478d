package hosts

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// Hosts that look alike, and are not the same: what a process takes for a name of its own (host name, process number, time) is another process's there.

// Two hosts of different domains that call themselves by the same name: the list of hosts, spawning, deaths and messages part them.
func TestSameShortName(t *testing.T) {
	b := newBedBy(t, 2, func(name string) []string { return []string{"up", name, "2", "node1.a", "node1.b"} })
	said := func(ranks, shared int, pids string) (out []string) {
		for rank := range ranks {
			out = append(out, fmt.Sprintf("rank %d of %d on node1 shares with %d, %[3]d in its set, clocks apart, pids %[4]s", rank, ranks, shared, pids))
		}
		return out
	}
	check(t, b.ran("-host", "node1.a:2,node1.b:2", "-n", "4", program(t, "apart")), 0, said(4, 2, "apart"))
	check(t, b.ran("-host", "node1.b:2,node1.a:2", "-n", "4", program(t, "apart")), 0, said(4, 2, "apart"))
	check(t, b.ran("-host", "node1:2,node1.b:2", "-n", "4", program(t, "apart")), 0, said(4, 2, "apart"))
	if o := b.ran("-host", "node1.b:2", "-n", "2", "sh", "-c", "ip -4 -o addr show dev eth0"); o.Status != 0 || strings.Count(o.Stdout, " 10.77.0.2/") != 2 {
		t.Errorf("on node1.b alone: exit status %d\n%s", o.Status, o.Text())
	}

	// Spawned on one and on the other: the children's addresses show where.
	place := program(t, "place")
	for to, address := range map[string]string{"node1.a": "10.77.0.1", "node1.b": "10.77.0.2"} {
		for _, root := range []string{"0", "1"} {
			check(t, b.ran("-host", "node1.a:1,node1.b:1", "-n", "2", place, root, to), 0, []string{"child at " + address})
		}
	}
	check(t, b.ran("-host", "node1.a:2,node1.b:2", "-n", "4", program(t, "end"), "kill"), 137, nil, "on node1.b) was killed by signal 9")
}

// The ranks of all hosts have the same process numbers: nothing that is done to one of them by its number is done to another, and none is taken for a neighbour.
func TestPidsCoincide(t *testing.T) {
	b := newBed(t, 3)
	if _, err := os.Stat("/proc/sys/kernel/ns_last_pid"); err != nil {
		t.Skipf("process numbers cannot be chosen here: %v", err)
	}
	// The shell's child has the next number, unless something else is started there in between.
	b.wrap = []string{"sh", "-c", `echo 5000 >/proc/sys/kernel/ns_last_pid; "$0" "$@"; exit $?`}
	var o harness.Outcome
	for range 5 {
		if o = b.ran(append(append([]string{"-host", b.list(1, 1, 1), "-n", "3"}, b.wrap...), program(t, "apart"))...); strings.Count(o.Stdout, "pids one") == 3 {
			break
		}
	}
	var want []string
	for rank := range 3 {
		want = append(want, fmt.Sprintf("rank %d of 3 on %s shares with 1, 1 in its set, clocks apart, pids one", rank, b.host(rank+1)))
	}
	check(t, o, 0, want)
	b.programs(t, "ft/recover", "rma/basics", "spawn/basic")
	b.inFull(t, "io/*", "part/*", "spawn/*")
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}
