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

// What the processes of all hosts have written comes together: arrows between hosts, whose clocks have been compared (here they are one, so that what is found is the error),
// and the death of a process of another host. Nothing is left there.
func TestTimelineOfSeveralHosts(t *testing.T) {
	b, dir := newBed(t, 3), t.TempDir()
	compile := func(name string) string {
		return harness.Compile(t, "trace/"+name, []string{filepath.Join(harness.Root(), "tests/trace/programs", name+".c")}, "-g")
	}
	run := func(status int, file string, words ...string) (tl struct {
		Job    trace.Job     `json:"libspx"`
		Events []trace.Event `json:"traceEvents"`
	}) {
		file = filepath.Join(dir, file)
		c, made := harness.OwnFiles(t, b.spxrun(append([]string{"-host", b.list(1, 1, 1), "--trace", file, "-n", "3"}, words...)...))
		o := harness.Run(t, c)
		check(t, o, status, nil)
		if left := made(); len(left) > 0 {
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
	tl := run(0, "ring.json", compile("ring"), "3", "100000")
	if len(tl.Job.Ranks) != 3 || len(tl.Job.Hosts) != 3 || tl.Job.Messages != 3*3*6 || tl.Job.Lost != 0 {
		t.Errorf("%d ranks, %d hosts, %d arrows, %d lost", len(tl.Job.Ranks), len(tl.Job.Hosts), tl.Job.Messages, tl.Job.Lost)
	}
	worst := 0.0
	for i, h := range tl.Job.Hosts {
		if i > 0 && (h.Error <= 0 || h.Error > 0.1 || math.Abs(h.Offset) > h.Error || h.Name != b.host(i+1)) {
			t.Errorf("host %d: %+v", i, h)
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
	tl = run(137, "dies.json", compile("dies"))
	if !slices.ContainsFunc(tl.Events, func(e trace.Event) bool {
		return e.Phase == "i" && e.Process == 1 && strings.HasPrefix(e.Name, "rank 1 was killed by signal 9")
	}) || len(tl.Job.Ranks) != 3 {
		t.Errorf("the death of rank 1 has no mark, or some rank is missing: %+v", tl.Job.Ranks)
	}
}
