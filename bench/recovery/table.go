package main

import (
	"fmt"
	"slices"
	"strings"

	"libspx/bench/machine"
)

const head = `# From death to the first barrier of the survivors

Milliseconds from the last death until the last survivor has left its first barrier on the new communicator: median (worst) of those runs that came to their end, and how many did.
Where two recoveries are made, both count. A run that takes more than 30 s hangs. ` + "`go run ./bench/recovery`" + `: one program (bench/recovery/programs/recovery.c), the implementations in turn on an
idle machine. MPICH 5 ends the job when a process dies. MACHINES

| ranks | who dies | libspx | came to its end | Open MPI 6 --with-ft ulfm | came to its end |
|---|---|---|---|---|---|
`

func table(samples []sample) string {
	var b strings.Builder
	var machines []string
	for _, s := range samples {
		machines = append(machines, s.Machine)
	}
	b.WriteString(strings.Replace(head, "MACHINES", machine.Sentence(machines), 1))
	var ranks []int
	for _, s := range samples {
		if !slices.Contains(ranks, s.Ranks) {
			ranks = append(ranks, s.Ranks)
		}
	}
	slices.Sort(ranks)
	for _, n := range ranks {
		for _, c := range cases {
			row := fmt.Sprintf("| %d | %s |", n, c.title)
			any := false
			for _, impl := range []string{"spx", "openmpi"} {
				cell, found := cellOf(samples, impl, c.name, n)
				row += cell
				any = any || found
			}
			if any {
				b.WriteString(row + "\n")
			}
		}
	}
	return b.String()
}

func cellOf(samples []sample, impl, which string, ranks int) (string, bool) {
	var ms []float64
	runs, ended := 0, 0
	for _, s := range samples {
		if s.Impl != impl || s.Case != which || s.Ranks != ranks {
			continue
		}
		runs++
		if len(s.Ms) > 0 {
			ended++
			ms = append(ms, s.Ms...)
		}
	}
	if runs == 0 {
		return " | |", false
	}
	if ended == 0 {
		return fmt.Sprintf(" none | 0 of %d |", runs), true
	}
	slices.Sort(ms)
	return fmt.Sprintf(" %.3g (%.3g) | %d of %d |", ms[len(ms)/2], ms[len(ms)-1], ended, runs), true
}
