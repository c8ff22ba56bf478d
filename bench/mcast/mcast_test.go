package main

import (
	"strings"
	"testing"
)

func TestTableAndPlots(t *testing.T) {
	cells := []cell{
		{Impl: "spx", How: "mcast", Bytes: 81920, R: 8, Runs: 100, Us: 80, FreeUs: 20}, {Impl: "spx", How: "mcast", Bytes: 81920, R: 16, Runs: 100, Us: 90, FreeUs: 21},
		{Impl: "mpich", How: "bcast", Bytes: 81920, R: 8, Why: "exit status 124"},
		{Impl: "spx", How: "mcast", Bytes: 81920, R: 8, Hosts: 8, Runs: 50, Us: 800, FreeUs: 200}, {Impl: "spx", How: "mcast", Bytes: 81920, R: 16, Hosts: 8, Runs: 50, Us: 900, FreeUs: 210},
	}
	text := table(cells)
	for _, want := range []string{"| 8 | 80 (100) |", "| 16 | 21 |", "no end: exit status 124", "## 81920 bytes, one host", "## 81920 bytes, 8 hosts", "| 8 | 800 (50) |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if plot := plots(cells)["mcast-81920-hosts-8.svg"]; !strings.Contains(plot, "libspx mcast") {
		t.Errorf("no plot of 8 hosts:\n%s", plot)
	}
	if plot := plots(cells)["mcast-81920.svg"]; !strings.Contains(plot, "libspx mcast") || strings.Contains(plot, "mpich") {
		t.Errorf("another plot:\n%s", plot)
	}
}
