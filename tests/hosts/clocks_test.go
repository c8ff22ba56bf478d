package hosts

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// A day, in seconds: host I's clock is I days ahead of the first's, counted from 0.
const day = 86400

// newApart makes hosts that were started on different days: each has a monotonic clock of its own (a time namespace). What a job keeps by clocks (limits, heartbeats,
// timelines) must not take another host's time for its own.
func newApart(t *testing.T, n int) *bed {
	t.Helper()
	if out, err := exec.Command("unshare", "-T", "--monotonic", "1", "true").CombinedOutput(); err != nil {
		t.Skipf("no time namespaces here: %v\n%s", err, out)
	}
	return newBed(t, n, fmt.Sprint("HOSTS_AHEAD=", day))
}

// Hosts whose clocks are days apart run programs as others do, survive a death, and their timelines are on one clock.
func TestClocksDiffer(t *testing.T) {
	b := newApart(t, 3)
	tl := b.traced(t, 0, "ring", "3", "100000")
	b.compared(t, tl, func(i int) float64 { return float64(i * day) })
	b.programs(t, "ckpt/host", "coll/shared", "ft/recover", "rma/basics", "spawn/basic")
	var want []string
	for rank := range 3 {
		want = append(want, fmt.Sprintf("rank %d of 3 on %s shares with 1, 1 in its set, clocks apart", rank, b.host(rank+1)))
	}
	o := b.ran("-host", b.list(1, 1, 1), "-n", "3", program(t, "apart"))
	o.Stdout = regexp.MustCompile(", pids .*").ReplaceAllString(o.Stdout, "")
	check(t, o, 0, want)
	o = b.ran("-host", b.list(0, 2, 0), "-n", "2", program(t, "apart"))
	if o.Status != 0 || strings.Count(o.Stdout, " shares with 2, 2 in its set, clocks one, ") != 2 {
		t.Errorf("on one host: exit status %d\n%s", o.Status, o.Text())
	}
}

// A host falls silent where each has a clock of its own: the others notice in time, and its processes end.
func TestClocksDifferInSilence(t *testing.T) {
	b := newApart(t, 4)
	r := b.start(t, 4)
	b.ip(unplug(3))
	r.recovered(3)
	r.ends(0, "host "+b.host(3)+" is lost, with its processes: nothing was heard of it for ")
	b.deserted(t, 1, 2, 3, 4)
}
