package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func TestTable(t *testing.T) {
	got := table([]sample{
		{Impl: "spx", Case: "one", Ranks: 12, Ms: []float64{3}}, {Impl: "spx", Case: "one", Ranks: 12, Ms: []float64{1}},
		{Impl: "spx", Case: "one", Ranks: 12, Ms: []float64{2}}, {Impl: "openmpi", Case: "one", Ranks: 12, Why: "hangs"},
		{Impl: "spx", Case: "two", Ranks: 4, Ms: []float64{1.5, 2.5}},
	})
	for _, want := range []string{"| 12 | one death | 2 (3) | 3 of 3 | none | 0 of 1 |\n", "| 4 | one, then another | 2.5 (2.5) | 1 of 1 | | |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
	if strings.Index(got, "| 4 |") > strings.Index(got, "| 12 |") {
		t.Error("fewer ranks do not come first")
	}
}

// TestRecovery has every case once, and random schedules of deaths. More of them: go run ./bench/recovery -random 1000
func TestRecovery(t *testing.T) {
	t.Setenv("SPX_BUILD", harness.Build(t))
	t.Chdir(harness.Root())
	r, err := prepare([]string{"spx"}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.clean()
	r.limit = 2 * time.Minute
	for _, c := range cases {
		if s := r.one("spx", 7, c.name); s.Why != "" {
			t.Errorf("%s: %s", c.name, s.Why)
		}
	}
	if err := r.schedules(20, os.Getpid(), []int{3, 4, 7, 12}, 0); err != nil {
		t.Error(err)
	}
}
