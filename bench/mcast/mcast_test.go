package main

import (
	"strings"
	"testing"
)

func TestTableAndPlots(t *testing.T) {
	cells := []cell{
		{Impl: "spx", How: "mcast", Bytes: 81920, R: 8, Runs: 100, Us: 80, FreeUs: 20}, {Impl: "spx", How: "mcast", Bytes: 81920, R: 16, Runs: 100, Us: 90, FreeUs: 21},
		{Impl: "mpich", How: "bcast", Bytes: 81920, R: 8, Why: "exit status 124"},
	}
	text := table(cells)
	for _, want := range []string{"| 8 | 80 (100) |", "| 16 | 21 |", "no end: exit status 124"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if plot := plots(cells)["mcast-81920.svg"]; !strings.Contains(plot, "libspx mcast") || strings.Contains(plot, "mpich") {
		t.Errorf("another plot:\n%s", plot)
	}
}
