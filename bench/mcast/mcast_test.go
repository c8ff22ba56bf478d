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
	cells[0].First, cells[0].Machines = []run{{1500, 3}, {900, 3}}, []string{"a machine"}
	text := table(cells)
	for _, want := range []string{"| 8 | 80 (100) |", "| 16 | 21 |", "no end: exit status 124", "## 81920 bytes, one host", "## 81920 bytes, 8 hosts", "| 8 | 800 (50) |",
		"\nThe first of a job, the longest of so many jobs:\n\n", "| 8 | 1500 (2) |", "Measured on a machine; the machine of older figures was not noted."} {
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

// Pieces add up: all runs are kept, means are taken of all, and what was measured without them is replaced.
func TestPieces(t *testing.T) {
	o := options{runs: 20}
	piece := func(from, to int) cell {
		c := cell{Impl: "spx", How: "mcast", Bytes: 8, R: 4}
		for i := from; i < to; i++ {
			c.Each = append(c.Each, run{float64(i), 1})
		}
		return c
	}
	cells := []cell{{Impl: "spx", How: "mcast", Bytes: 8, R: 4, Runs: 12, Us: 77}, {Impl: "mpich", How: "bcast", Bytes: 8, R: 4, Why: "status 124"}, {Impl: "openmpi", How: "bcast", Bytes: 8, R: 4, Runs: 20}}
	for _, step := range []struct {
		from, to, lacks int
		us              float64
	}{{0, 5, 15, 2}, {5, 15, 5, 7}, {15, 20, 0, 9.5}} {
		cells = add(cells, piece(step.from, step.to))
		if got := o.lacks(cells, "spx", "8", "4"); got != step.lacks || cells[0].Us != step.us || cells[0].Runs != step.to || len(cells) != 3 {
			t.Errorf("after runs %d to %d: %d are lacking, %+v", step.from, step.to, got, cells[0])
		}
	}
	cells[0].Each[0][0] = 1e9 // cut off
	if got := trimmed(cells[0].Each, 0); got != 10.5 {
		t.Errorf("mean %v", got)
	}
	if o.lacks(cells, "mpich", "8", "4") != 0 || o.lacks(cells, "openmpi", "8", "4") != 0 || o.lacks(cells, "openmpi", "8", "9") != 20 {
		t.Error("other cells")
	}
}
