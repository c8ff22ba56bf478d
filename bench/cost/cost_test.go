package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// Ratios are taken within a round.
func TestPage(t *testing.T) {
	r := &result{Machine: "here"}
	rounds := `[{"Ranks": 2, "At": "b", "Commit": "x", "US": {"pingpong 65536": {"spx": 9, "trace": 9}, "pingpong 8": {"spx": 1, "trace": 2, "profile": 3}, "handover 8": {"bare": 1}}},
	 {"Ranks": 2, "At": "a", "Commit": "x", "US": {"pingpong 8": {"spx": 10, "trace": 20, "profile": 31}}}, {"Ranks": 4, "At": "a", "Commit": "x", "US": {"jacobi 0": {"spx": 7, "check": 7}}}]`
	if err := json.Unmarshal([]byte(rounds), &r.Rounds); err != nil {
		t.Fatal(err)
	}
	page := r.page()
	for _, want := range []string{"from a to b (commit x; here)", "## 2 ranks, 2 rounds", "| pingpong | 8 | 5.50 | 11.0 | 2.00 (2.00-2.00) | 17.0 | 3.05 (3.00-3.10) | - | - |",
		"| jacobi | 0 | 7.00 |", "Too few rounds", "![4 ranks](cost-4.svg)"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "handover") || strings.Index(page, "pingpong | 8 |") > strings.Index(page, "pingpong | 65536 |") {
		t.Errorf("other rows, or in another order:\n%s", page)
	}
	if plot := r.plot(2); strings.Count(plot, "<circle") != 3 || !strings.Contains(plot, "pingpong 65536") || strings.Contains(plot, "NaN") {
		t.Errorf("another plot:\n%s", plot)
	}
}

// A row is measured with all that may look on; another call goes on with what there is.
func TestOneRow(t *testing.T) {
	t.Setenv("SPX_BUILD", harness.Build(t))
	t.Chdir(harness.Root())
	o := options{ranks: "3", rows: "^allreduce 8$", out: t.TempDir(), rounds: 1, batch: 1, foreign: 1, stolen: 1}
	for rounds := range 2 {
		o.rounds = rounds + 1
		if err := o.run(); err != nil {
			t.Fatal(err)
		}
		r, err := load(filepath.Join(o.out, "cost.json"))
		if err != nil || len(r.Rounds) != o.rounds {
			t.Fatalf("%v, %+v", err, r)
		}
		us := r.Rounds[rounds].US["allreduce 8"]
		for _, name := range []string{"spx", "trace", "profile", "metrics", "check"} {
			if !(us[name] > 0.1 && us[name] < 1e6) {
				t.Errorf("%s: %v us", name, us[name])
			}
		}
	}
	if _, err := os.Stat(filepath.Join(o.out, "cost-3.svg")); err != nil {
		t.Error(err)
	}
}
