package hosts

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"libspx/launch/trace"
	"libspx/tests/harness"
)

// A timeline is what spxrun --trace writes.
type timeline struct {
	Job    trace.Job     `json:"libspx"`
	Events []trace.Event `json:"traceEvents"`
}

// traced runs a program of tests/trace on three hosts, which is to end with that status. Nothing is left there.
func (b *bed) traced(t *testing.T, status int, name string, args ...string) (tl timeline) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".json")
	program := harness.Compile(t, "trace/"+name, []string{filepath.Join(harness.Root(), "tests/trace/programs", name+".c")}, "-g")
	o := harness.Run(t, b.spxrun(append([]string{"-host", b.list(1, 1, 1), "--trace", file, "-n", "3", program}, args...)...))
	check(t, o, status, nil)
	if left := b.Left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &tl)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, o.Text())
	}
	return tl
}

// compared checks that the clocks of the hosts have been compared, and that no arrow goes back in time. ahead is by how much host I's clock, from 0, is ahead of the first's, in seconds.
func (b *bed) compared(t *testing.T, tl timeline, ahead func(i int) float64) {
	t.Helper()
	worst := 0.0
	for i, h := range tl.Job.Hosts {
		if i > 0 && (h.Error <= 0 || h.Error > 0.1 || math.Abs(h.Offset-ahead(i)) > h.Error || h.Name != b.host(i+1)) {
			t.Errorf("host %d: %+v, %v s ahead", i, h, ahead(i))
		}
		worst = max(worst, h.Error)
		t.Logf("%s: offset %.1f us, give or take %.1f us", h.Name, 1e6*h.Offset, 1e6*h.Error)
	}
	sent := map[int]float64{}
	for _, e := range tl.Events {
		if e.Phase == "s" {
			sent[e.ID] = e.Time
		}
	}
	for _, e := range tl.Events {
		if e.Phase == "f" && e.Time < sent[e.ID]-2e6*worst {
			t.Errorf("arrow %d leaves at %v us and arrives at %v us", e.ID, sent[e.ID], e.Time)
		}
	}
}

// What the processes of all hosts have written comes together: arrows between hosts, whose clocks have been compared (here they are one, so that what is found is the error),
// and the death of a process of another host.
func TestTimelineOfSeveralHosts(t *testing.T) {
	b := newBed(t, 3)
	tl := b.traced(t, 0, "ring", "3", "100000")
	if len(tl.Job.Ranks) != 3 || len(tl.Job.Hosts) != 3 || tl.Job.Messages != 3*3*6 || tl.Job.Lost != 0 {
		t.Errorf("%d ranks, %d hosts, %d arrows, %d lost", len(tl.Job.Ranks), len(tl.Job.Hosts), tl.Job.Messages, tl.Job.Lost)
	}
	b.compared(t, tl, func(int) float64 { return 0 })
	tl = b.traced(t, 137, "dies")
	if !slices.ContainsFunc(tl.Events, func(e trace.Event) bool {
		return e.Phase == "i" && e.Process == 1 && strings.HasPrefix(e.Name, "rank 1 was killed by signal 9")
	}) || len(tl.Job.Ranks) != 3 {
		t.Errorf("the death of rank 1 has no mark, or some rank is missing: %+v", tl.Job.Ranks)
	}
}
