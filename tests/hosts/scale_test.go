package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// newSwitched makes switches with so many hosts on each, in order, all of them at one more switch in the middle, by cables that cost no processor.
func newSwitched(t *testing.T, switches, each int) *bed {
	t.Helper()
	var of, links []string
	for s := range switches {
		links = append(links, fmt.Sprintf("%d-%d", s, switches))
		for range each {
			of = append(of, strconv.Itoa(s))
		}
	}
	return newBedBy(t, switches*each, func(name string) []string {
		return []string{"net", name, "-", "0", "0", strings.Join(of, " "), strings.Join(links, " ")}
	})
}

// A loss is a job of many ranks on many hosts, of which all on one switch are lost.
type loss struct {
	switches, each int // hosts on each; those on the last switch have no ranks at first
	ranks          int // on each host
	limit          int // SPX_HEARTBEAT_LIMIT, in ms: many hosts share these processors
	patience       time.Duration
	collectives    bool // all of them, in the end
}

// All hosts of a switch are cut off from the others: those who are left know of all deaths, revoke, shrink and agree, as many processes as were lost are spawned on hosts that were idle, and
// every collective is right with all of them. Nothing is left on any host.
func TestSwitchIsLost(t *testing.T) {
	lose(t, loss{switches: 5, each: 4, ranks: 8, limit: 3000, patience: time.Minute, collectives: true})
}

// The same with 1,024 ranks on 64 hosts, and 8 idle ones, until all have summed up again: make scale-hosts.
func TestManyHostsLoseSwitch(t *testing.T) {
	if os.Getenv("SPX_SCALE") == "" {
		t.Skip("make scale-hosts runs 1,024 ranks on 64 hosts")
	}
	lose(t, loss{switches: 9, each: 8, ranks: 16, limit: 20000, patience: 9 * time.Minute})
}

func lose(t *testing.T, l loss) {
	b := newSwitched(t, l.switches, l.each)
	t.Setenv("SPX_HEARTBEAT_LIMIT", strconv.Itoa(l.limit))
	t.Setenv("SPX_CONNECTIONS", "topology:4")
	t.Setenv("SPX_YIELD", "0") // as SPX_SPIN: no host knows that others share its processors, and what yields to hundreds of ranks keeps them from theirs
	busy, lost := (l.switches-1)*l.each, l.each
	all, left := busy*l.ranks, (busy-lost)*l.ranks
	lost1 := b.host(busy) // on the last switch that has ranks
	program := harness.Compile(t, "hosts/lost", []string{filepath.Join(harness.Root(), "tests/hosts/testdata/lost.c")})
	args := []string{program}
	if !l.collectives {
		args = append(args, "grown")
	}
	r := b.talks(t, []string{"--with-ft", "--fanout", "0", "-host", b.list(slices.Repeat([]int{l.ranks}, busy+l.each)...), "-n", strconv.Itoa(all)}, args...)
	began := time.Now()
	r.comes(l.patience, "all %d are there$", all)
	r.comes(l.patience, "memory ")
	cut := time.Now()
	b.ip(fmt.Sprintf("link set t%d-%d down", l.switches-2, l.switches))
	r.comes(l.patience, "%d are left$", left)
	shrunk := time.Now()
	r.comes(l.patience, "all %d are there again$", all)
	grown := time.Now()
	if l.collectives {
		r.comes(l.patience, "all collectives on %d$", all)
	}
	worked := time.Now()
	r.ends(0, "host "+lost1+" is lost, with its processes")
	t.Logf("%d ranks on %d hosts, in seconds: %.2f until all were there; after the loss of %d hosts, given up after %.1f, %.2f until the others had shrunk; %.2f to grow again; %.2f for collectives", all, busy, cut.Sub(began).Seconds(), lost,
		float64(l.limit)/1000, shrunk.Sub(cut).Seconds(), grown.Sub(shrunk).Seconds(), worked.Sub(grown).Seconds())
	until(t, "end of all", func() bool { return len(b.find("")) == 0 })
}

// comes waits for a line that matches, and logs those that come.
func (r *running) comes(patience time.Duration, pattern string, args ...any) {
	r.t.Helper()
	want, late := regexp.MustCompile(fmt.Sprintf(pattern, args...)), harness.After(patience)
	for {
		select {
		case line, more := <-r.lines:
			if !more {
				r.cmd.Wait() //nolint:errcheck // it is said below what it has said
				r.t.Fatalf("the job has ended before %q came\n%s", want, &r.stderr)
			}
			r.t.Log(line)
			if want.MatchString(line) {
				return
			}
		case <-late:
			r.t.Fatalf("%q has not come within %v\n%s", want, patience, &r.stderr)
		}
	}
}
