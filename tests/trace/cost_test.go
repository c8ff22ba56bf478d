package trace

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// What recording costs: a round trip of 8 bytes has four calls and four ends of messages. With -v it says how long one takes.
func TestCost(t *testing.T) {
	const most = 6000 // ns
	program := compile(t, "pingpong")
	measure := func(options ...string) int {
		words := slices.Insert(harness.Spxrun(t, "2", program), 1, options...)
		o := harness.Run(t, harness.Command{Args: words, Limit: time.Minute})
		ns, err := strconv.Atoi(strings.TrimSpace(o.Stdout))
		if o.Status != 0 || err != nil {
			t.Fatalf("status %d\n%s", o.Status, o.Text())
		}
		return ns
	}
	off, dir := measure(), t.TempDir()
	profile := measure("--profile-json", filepath.Join(dir, "sums"))
	on := measure("--trace", filepath.Join(dir, "trace.json"))
	t.Logf("a round trip of 8 bytes: %d ns without, %d ns with --profile, %d ns with --trace", off, profile, on)
	if off < 3000 && on > off+most { // else the processors have other work
		t.Errorf("--trace costs %d ns for each round trip, more than %d", on-off, most)
	}
}
