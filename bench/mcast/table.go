package main

import (
	"fmt"
	"slices"
	"strings"

	"libspx/bench/machine"
	"libspx/bench/svg"
)

type way struct{ impl, how, title, colour string }

// ways are the columns, and the curves.
var ways = []way{
	{"spx", "mcast", "libspx, MPIX_Mcast", "#c2410c"},
	{"spx", "bcast", "libspx, MPI_Bcast", "#a16207"},
	{"spx", "create", "libspx, new communicator", "#7c3aed"},
	{"mpich", "bcast", "MPICH, MPI_Bcast", "#1d4ed8"},
	{"mpich", "create", "MPICH, new communicator", "#0891b2"},
	{"openmpi", "bcast", "Open MPI, MPI_Bcast", "#15803d"},
	{"openmpi", "create", "Open MPI, new communicator", "#6b7280"},
}

const head = `# Multicast to r of 256 ranks

The experiment of the paper on dynamic multicast: a master sends to the ranks 0, 256/r, 2 * 256/r ... of 256 others, all of which wait, on one machine: one host, through shared memory; and hosts that are network
namespaces of it, through TCP, with as many of the ranks on each; the master is on the last one.
Microseconds until the last member has the data: mean of the runs (their number in parentheses; 100 when all pieces of the experiment have run) that are left when a tenth is cut off at each end.
*MPI_Bcast*: over a communicator of the master and the members that was made before. *New communicator*: MPI_Comm_create_group, MPI_Bcast, MPI_Comm_free, as a set that
changes each time needs without multicast. The ways of one implementation take turns within one job. Between the hosts MPICH and Open MPI talk over TCP, too, and Open MPI is told to yield.
The peers' idle processes poll, which libspx's do not where ranks outnumber processors: with MPICH's among 256 of them no message came through in a minute. So the peers have ranks for the master and the
members alone, which is to their advantage: no other process is there, and those that wait are awake. Where one came to no end, it was not tried with more. ` + "`go run ./bench/mcast`" + ` MACHINES
The first message of a job, for which each member touches memory that it has not used before, is not among them: where it was kept, a table of its own has the longest.
`

func find(cells []cell, impl, how string, bytes, r int) *cell {
	i := slices.IndexFunc(cells, func(c cell) bool { return c.Impl == impl && c.How == how && c.Bytes == bytes && c.R == r })
	if i < 0 {
		return nil
	}
	return &cells[i]
}

// on are the cells of so many hosts.
func on(cells []cell, hosts int) []cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Hosts != hosts })
}

// file is the name of a plot.
func file(bytes, hosts int) string {
	if hosts == 0 {
		return fmt.Sprintf("mcast-%d.svg", bytes)
	}
	return fmt.Sprintf("mcast-%d-hosts-%d.svg", bytes, hosts)
}

// axis has the different values of what of tells, in ascending order.
func axis(cells []cell, of func(cell) int) []int {
	var all []int
	for _, c := range cells {
		all = append(all, of(c))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// machinesOf are those that the cells are from; "" is one that was not noted.
func machinesOf(cells []cell) (list []string) {
	for _, c := range cells {
		list = append(list, c.Machines...)
		if len(c.Machines) == 0 {
			list = append(list, "")
		}
	}
	return list
}

// first is the longest of the first runs of jobs.
func first(c *cell) string {
	if len(c.First) == 0 {
		return "not kept"
	}
	longest := 0.0
	for _, v := range c.First {
		longest = max(longest, v[0])
	}
	return fmt.Sprintf("%.0f (%d)", longest, len(c.First))
}

func table(cells []cell) string {
	var b strings.Builder
	b.WriteString(strings.Replace(head, "MACHINES", machine.Sentence(machinesOf(cells)), 1))
	for _, hosts := range axis(cells, func(c cell) int { return c.Hosts }) {
		there := on(cells, hosts)
		for _, bytes := range axis(there, func(c cell) int { return c.Bytes }) {
			where := "one host"
			if hosts > 0 {
				where = fmt.Sprintf("%d hosts", hosts)
			}
			fmt.Fprintf(&b, "\n## %d bytes, %s\n\n![](%s)\n\n", bytes, where, file(bytes, hosts))
			rows(&b, there, bytes, func(c *cell) string { return fmt.Sprintf("%.0f (%d)", c.Us, c.Runs) })
			b.WriteString("\nUntil the master's call returns:\n\n")
			rows(&b, there, bytes, func(c *cell) string { return fmt.Sprintf("%.0f", c.FreeUs) })
			if slices.ContainsFunc(there, func(c cell) bool { return c.Bytes == bytes && len(c.First) > 0 }) {
				b.WriteString("\nThe first of a job, the longest of so many jobs:\n\n")
				rows(&b, there, bytes, first)
			}
		}
	}
	return b.String()
}

// rows has a column for each way that was measured, and a row for each number of members.
func rows(b *strings.Builder, cells []cell, bytes int, text func(*cell) string) {
	ways := slices.DeleteFunc(slices.Clone(ways), func(w way) bool {
		return !slices.ContainsFunc(cells, func(c cell) bool { return c.Impl == w.impl && c.How == w.how && c.Bytes == bytes })
	})
	b.WriteString("| r |")
	for _, w := range ways {
		fmt.Fprintf(b, " %s |", w.title)
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(ways)+1) + "\n")
	for _, r := range axis(cells, func(c cell) int { return c.R }) {
		fmt.Fprintf(b, "| %d |", r)
		for _, w := range ways {
			c := find(cells, w.impl, w.how, bytes, r)
			switch {
			case c == nil:
				b.WriteString(" |")
			case c.Why != "":
				fmt.Fprintf(b, " no end: %s |", c.Why)
			default:
				fmt.Fprintf(b, " %s |", text(c))
			}
		}
		b.WriteByte('\n')
	}
}

// plots are like the paper's figures 8 and 9: one for each size, time over the number of members.
func plots(cells []cell) map[string]string {
	files := map[string]string{}
	for _, hosts := range axis(cells, func(c cell) int { return c.Hosts }) {
		plotsOf(files, on(cells, hosts), hosts)
	}
	return files
}

func plotsOf(files map[string]string, cells []cell, hosts int) {
	members := axis(cells, func(c cell) int { return c.R })
	for _, bytes := range axis(cells, func(c cell) int { return c.Bytes }) {
		var curves []svg.Curve
		for _, w := range ways {
			curve := svg.Curve{Name: strings.Replace(w.impl+" "+w.how, "spx", "libspx", 1), Colour: w.colour}
			for _, r := range members {
				if c := find(cells, w.impl, w.how, bytes, r); c != nil && c.Why == "" {
					curve.Points = append(curve.Points, [2]float64{float64(r), c.Us})
				}
			}
			if len(curve.Points) > 1 {
				curves = append(curves, curve)
			}
		}
		if len(curves) > 0 {
			title := fmt.Sprintf("%d bytes to r of 256 ranks: microseconds by r", bytes)
			if hosts > 0 {
				title = fmt.Sprintf("%d bytes to r of 256 ranks on %d hosts: microseconds by r", bytes, hosts)
			}
			files[file(bytes, hosts)] = svg.Draw(title, curves, func(v float64) string { return fmt.Sprint(v) })
		}
	}
}
