package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"libspx/bench/stats"
	"libspx/bench/svg"
)

// observers are what may look on, as bench/ calls them.
var observers = []struct{ name, option, colour string }{
	{"trace", "--trace", "#c2410c"}, {"profile", "--profile", "#1d4ed8"}, {"metrics", "--metrics", "#15803d"}, {"check", "SPX_CHECK=1", "#7c3aed"},
}

// result is what is used here of what bench/ writes.
type result struct {
	Machine         string
	Stolen, Foreign float64
	Rounds          []struct {
		Ranks      int
		At, Commit string
		US         map[string]map[string]float64
	}
}

func load(file string) (*result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// pairs are a row's figures with an observer and without, from the rounds that have both; without the observer "spx" they are the same.
func (r *result) pairs(ranks int, row, observer string) (with, without []float64) {
	for _, one := range r.Rounds {
		a, ok := one.US[row][observer]
		b, ok2 := one.US[row]["spx"]
		if one.Ranks == ranks && ok && ok2 {
			with, without = append(with, a), append(without, b)
		}
	}
	return with, without
}

// ranks are the numbers of ranks that were measured, rows the rows of one of them.
func (r *result) ranks() (list []int) {
	for _, one := range r.Rounds {
		if !slices.Contains(list, one.Ranks) {
			list = append(list, one.Ranks)
		}
	}
	slices.Sort(list)
	return list
}

func (r *result) rows(ranks int) (list []string) {
	for _, one := range r.Rounds {
		for row, by := range one.US {
			if _, ok := by["spx"]; ok && one.Ranks == ranks && !slices.Contains(list, row) {
				list = append(list, row)
			}
		}
	}
	order := []string{"pingpong", "window", "pairs", "allreduce", "jacobi"}
	slices.SortFunc(list, func(a, b string) int {
		x, m, _ := strings.Cut(a, " ")
		y, n, _ := strings.Cut(b, " ")
		if d := slices.Index(order, x) - slices.Index(order, y); d != 0 {
			return d
		}
		i, _ := strconv.Atoi(m)
		j, _ := strconv.Atoi(n)
		return i - j
	})
	return list
}

func (r *result) write(dir string) error {
	if len(r.Rounds) == 0 {
		return fmt.Errorf("no round has been measured yet")
	}
	files := map[string]string{"cost.md": r.page()}
	for _, n := range r.ranks() {
		files[fmt.Sprintf("cost-%d.svg", n)] = r.plot(n)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	fmt.Println("written to", filepath.Join(dir, "cost.md"))
	return nil
}

func (r *result) page() string {
	var b strings.Builder
	from, to, commits := r.Rounds[0].At, r.Rounds[0].At, []string{}
	for _, one := range r.Rounds {
		from, to = min(from, one.At), max(to, one.At)
		if !slices.Contains(commits, one.Commit) {
			commits = append(commits, one.Commit)
		}
	}
	fmt.Fprintf(&b, `# What it costs to look

Made by %s from %s to %s (commit %s; %s). A program with [--trace, --profile](../tracing.md), [--metrics](../live.md), asked once a second, and [SPX_CHECK=1](../diagnosis.md), beside the
same program with none of them: every round has all five in a shuffled order; those of 2 ranks are compared at the same distance of the processors ([how](../../bench/README.md)).
Microseconds are medians over the rounds. Ratios are taken within a round; the interval is a 95 %% bootstrap interval of their median. 1 is: it costs nothing.
A round counts while others take at most %.1f %% of the processors and the hypervisor %.1f %%.
`, "`go run ./bench/cost`", from, to, strings.Join(commits, ", "), r.Machine, 100*r.Foreign, 100*r.Stolen)
	if r.Foreign > 0.2 {
		b.WriteString("**These bounds are wide: other work ran at the same time. Read orders of magnitude, not figures.**\n")
	}
	b.WriteString(`
pingpong: half a round trip. window, pairs: one message of many in flight. allreduce: one call. jacobi: one step of a program that computes and exchanges. Those are programs that do nothing
but communicate, but for jacobi: what a call costs more is the same for each call, however long it takes.
`)
	for _, n := range r.ranks() {
		rows := r.rows(n)
		with, _ := r.pairs(n, rows[0], "spx")
		fmt.Fprintf(&b, "\n## %d ranks, %d rounds\n\n", n, len(with))
		if len(with) < 5 {
			b.WriteString("**Too few rounds for an interval: read orders of magnitude.**\n\n")
		}
		b.WriteString("| row | bytes | us |")
		for _, o := range observers {
			fmt.Fprintf(&b, " %s us | ratio |", o.option)
		}
		b.WriteString("\n|---|---:|---:|" + strings.Repeat("---:|---:|", len(observers)) + "\n")
		for _, row := range rows {
			name, bytes, _ := strings.Cut(row, " ")
			alone, _ := r.pairs(n, row, "spx")
			fmt.Fprintf(&b, "| %s | %s | %s |", name, bytes, stats.Figure(stats.Median(alone)))
			for _, o := range observers {
				with, without := r.pairs(n, row, o.name)
				fmt.Fprintf(&b, " %s | %s |", stats.Figure(stats.Median(with)), stats.Ratios(with, without))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for _, n := range r.ranks() {
		fmt.Fprintf(&b, "![%d ranks](cost-%d.svg)\n", n, n)
	}
	return b.String()
}

func (r *result) plot(ranks int) string {
	rows := r.rows(ranks)
	var series []svg.Series
	for _, o := range observers {
		s := svg.Series{Name: o.option, Colour: o.colour}
		for _, row := range rows {
			i := stats.Ratios(r.pairs(ranks, row, o.name))
			s.Points = append(s.Points, svg.Point{Median: i.Median, Low: i.Low, High: i.High})
		}
		series = append(series, s)
	}
	return svg.Intervals(fmt.Sprintf("%d ranks: the time with it, beside the time without", ranks), rows, series)
}
