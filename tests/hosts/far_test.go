package hosts

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// newFar makes n hosts that are 20 ms from each other, one way, over a network that loses one frame of a hundred.
func newFar(t *testing.T, n int) *bed {
	t.Helper()
	const us, permille = 10000, 5 // of each host's link with the switch
	seed := time.Now().UnixNano()
	t.Logf("LINKS_SEED=%d", seed)
	b := newBedBy(t, n, func(name string) []string {
		return []string{"far", name, program(t, "links"), strconv.Itoa(us), strconv.Itoa(permille), strconv.Itoa(n)}
	}, fmt.Sprintf("LINKS_SEED=%d", seed))
	b.slow = 4
	return b
}

// Messages, collectives and spawned processes over a long way that loses frames: the same programs, and the same results.
func TestFar(t *testing.T) {
	b := newFar(t, 3)
	check(t, b.ran("-host", b.list(1, 1, 1), "-n", "3", program(t, "tree")), 0, right(3))
	b.programs(t, "pt2pt/requests", "coll/amounts", "spawn/basic")
	b.inFull(t, "rma/basics", "coll/every", "coll/shared", "io/access")
}

// Deaths there: of processes, of an agent, and of the network. Those that are left go on, and nothing stays.
func TestFarDeaths(t *testing.T) {
	b := newFar(t, 3)
	b.programs(t, "ft/recover")
	b.inFull(t, "spawn/ulfm")
	failed := 16385 // MPIX_ERR_PROC_FAILED
	check(t, b.ran("-host", b.list(2, 2), "-n", "4", program(t, "end"), "agent"), 0, []string{fmt.Sprintf("rank 0: %d", failed), fmt.Sprintf("rank 1: %d", failed)}, "host "+b.host(2)+" is lost")
	r := b.start(t, 3)
	b.ip(unplug(3))
	r.recovered(2)
	r.ends(0, "host "+b.host(3)+" is lost")
	b.deserted(t, 1, 2, 3)
}
