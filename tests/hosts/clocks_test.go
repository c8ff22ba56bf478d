package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A day, in seconds: host I's clock is I days ahead of the first's, counted from 0.
const day = 86400

// timesApart gives each host but the first a clock of its own (a time namespace), which began days before the others: as hosts have that were started on different days.
// What a job keeps by clocks (limits, heartbeats, timelines) must not take another host's time for its own.
func (b *bed) timesApart(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "-T", "--monotonic", "1", "true").CombinedOutput(); err != nil {
		t.Skipf("no time namespaces here: %v\n%s", err, out)
	}
	name := filepath.Join(t.TempDir(), "rsh")
	text := fmt.Sprintf(`days=$((${1##*[!0-9]} - 1))
exec unshare -T --monotonic $((days * %[1]d)) --boottime $((days * %[1]d)) %[2]s rsh "$@"
`, day, script())
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b.rsh = "sh " + name
}

// Hosts whose clocks are days apart run programs as others do, survive a death, and their timelines are on one clock.
func TestClocksDiffer(t *testing.T) {
	b := newBed(t, 3)
	b.timesApart(t)
	tl := b.traced(t, 0, "ring", "3", "100000")
	b.compared(t, tl, func(i int) float64 { return float64(i * day) })
	b.programs(t, "ckpt/host", "coll/shared", "ft/recover", "rma/basics", "spawn/basic")
}
