package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"libspx/bench/machine"
	"libspx/bench/stats"
	"libspx/bench/svg"
)

// columns of a table, in its order.
var columns = []struct{ name, colour string }{{"got", "#d62728"}, {"streamed", "#1f77b4"}, {"libspx", "#2ca02c"}, {"limit", "#888888"}, {"cma", "#bbbbbb"}}

// sizes are those that all columns have.
func sizes(f figures) (list []int) {
	for size := range f.Us["libspx"] {
		if !slices.ContainsFunc(columns, func(c struct{ name, colour string }) bool { return len(f.Us[c.name][size]) == 0 }) {
			list = append(list, size)
		}
	}
	slices.Sort(list)
	return list
}

func plotName(i int) string { return fmt.Sprintf("curves-%d.svg", i+1) }

// plot draws bytes a second over bytes.
func plot(f figures) string {
	var curves []svg.Curve
	for _, c := range columns {
		curve := svg.Curve{Name: c.name, Colour: c.colour}
		for _, size := range sizes(f) {
			curve.Points = append(curve.Points, [2]float64{float64(size), float64(size) / stats.Median(f.Us[c.name][size])})
		}
		curves = append(curves, curve)
	}
	return svg.Draw(fmt.Sprintf("two ranks, %s: MB/s by bytes", f.Pair.Kind), curves, func(v float64) string { return bytesText(int(v)) })
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d Mi", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d Ki", n>>10)
	}
	return strconv.Itoa(n)
}

func page(all []figures) string {
	var b strings.Builder
	var names []string
	for _, f := range all {
		names = append(names, f.Machine)
	}
	b.WriteString("# One copy, two copies that overlap, and the limit\n\n`go run ./bench/curves`: half a round trip between two ranks of a host, in microseconds, medians of the rounds. *Got*: the receiver has the kernel copy each message above 512 bytes out of the sender's memory. *Streamed*: " +
		"the sender copies into a ring in shared memory, the receiver out of it, at the same time. *libspx*: as it does by itself. *Limit*: two processes with nothing between them but a flag, of which one copies what the other has, once; on one processor a copy alone. *cma*: one copy by the kernel " +
		"(process_vm_readv), without a message. *Chosen*: libspx divided by the better of got and streamed, the median of the rounds with its interval. There is a table for each kind of pair that a machine has.\n\n" + machine.Sentence(names) + "\n")
	for i, f := range all {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(f.Pair.Kind[:1])+f.Pair.Kind[1:])
		fmt.Fprintf(&b, "%s; processors %d and %d, %d rounds.\n\n| bytes |", f.Machine, f.Pair.Cpus[0], f.Pair.Cpus[1], f.Rounds)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", c.name)
		}
		b.WriteString(" chosen | libspx / limit |\n|---|" + strings.Repeat("---|", len(columns)+2) + "\n")
		for _, size := range sizes(f) {
			fmt.Fprintf(&b, "| %s |", bytesText(size))
			for _, c := range columns {
				fmt.Fprintf(&b, " %s |", digits(stats.Median(f.Us[c.name][size])))
			}
			ours, best := f.Us["libspx"][size], better(f.Us["got"][size], f.Us["streamed"][size])
			j := stats.Ratios(ours, best)
			fmt.Fprintf(&b, " %.2f (%.2f-%.2f) | %.2f |\n", j.Median, j.Low, j.High, stats.Ratios(ours, f.Us["limit"][size]).Median)
		}
		fmt.Fprintf(&b, "\n![%s](%s)\n", f.Pair.Kind, plotName(i))
	}
	return b.String()
}

// better has the figures, round by round, of the one that is better on the whole: not the luckier one of each round.
func better(a, b []float64) []float64 {
	if stats.Median(a) < stats.Median(b) {
		return a
	}
	return b
}

// digits is a figure with as many digits as mean something.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
