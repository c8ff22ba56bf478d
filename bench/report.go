package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"libspx/bench/stats"
)

// A verdict compares a row with the bar: max(0.8 x the better peer, 1.15 x the bare limit), taken in each round.
const (
	atBar   = "bar"
	atPeer  = "peer" // not slower than the better peer
	above   = "**above**"
	unknown = "-"
)

// judged is what a row's figures say.
type judged struct {
	better, base stats.Interval // libspx / better peer, libspx / base
	limit        stats.Interval // libspx / limit
	verdict      string
}

// betterPeer is the peer with the lower median of all rounds. The better one of each round would be the luckier one: of three libraries that take the same
// time, one would seem slower than both others.
func (r *result) betterPeer(key, row string) (peer string) {
	least := math.Inf(1)
	for _, p := range []string{"mpich", "openmpi"} {
		if us := stats.Median(r.values(key, row, p)); us < least {
			peer, least = p, us
		}
	}
	return peer
}

func (r *result) judge(key, row string) judged {
	var ours, best, bars, limits, against, base []float64
	l, limited := r.limitOf(row, setRanks(key))
	peer := r.betterPeer(key, row)
	r.each(key, row, func(by, bare map[string]float64) {
		us, ok := by["spx"]
		if !ok {
			return
		}
		if v, ok := by["base"]; ok {
			against, base = append(against, us), append(base, v)
		}
		better, ok := by[peer]
		if !ok {
			return
		}
		bar := 0.8 * better
		if limited {
			limits = append(limits, l.of(bare))
			if v := l.of(bare); v == v {
				bar = max(bar, 1.15*v)
			}
		}
		ours, best, bars = append(ours, us), append(best, better), append(bars, bar)
	})
	j := judged{better: stats.Ratios(ours, best), limit: stats.Ratios(ours, limits), base: stats.Ratios(against, base)}
	switch {
	case len(ours) == 0:
		j.verdict = unknown
	case stats.Ratios(ours, bars).Median <= 1:
		j.verdict = atBar
	case j.better.Median <= 1:
		j.verdict = atPeer
	default:
		j.verdict = above
	}
	return j
}

func (r *result) markdown(page bool) string {
	var b strings.Builder
	if page {
		b.WriteString(r.head())
		b.WriteString("\n" + r.summary())
	}
	for _, key := range r.sets() {
		b.WriteString(r.table(key))
	}
	if page {
		b.WriteString(r.limitTable())
		b.WriteString("\n")
		for _, name := range sortedKeys(r.plots()) {
			fmt.Fprintf(&b, "![%s](%s)\n", strings.TrimSuffix(name, ".svg"), name)
		}
	}
	return b.String()
}

func (r *result) head() string {
	var b strings.Builder
	from, to, commits := "", "", []string{}
	for _, one := range r.Rounds {
		if from == "" || one.At < from {
			from = one.At
		}
		to = max(to, one.At)
		if !slices.Contains(commits, one.Commit) {
			commits = append(commits, one.Commit)
		}
	}
	title, command := "Measurements", "make bench"
	if r.TCP {
		title, command = "Measurements over loopback TCP", "go run ./bench -tcp"
	}
	fmt.Fprintf(&b, "# %s\n\nMade by `%s` from %s to %s (commit %s; %s).\nThe same binary under every library; medians over the rounds, microseconds. Peers: %s.\n",
		title, command, from, to, strings.Join(commits, ", "), r.Machine, r.Peers)
	if r.TCP {
		b.WriteString("No shared memory: SPX_TRANSPORTS=tcp; MPICH with UCX_TLS=tcp,self; Open MPI with ob1 and its btl tcp. *limit*: sockets alone (bench/programs/sockets.c).\n")
	}
	if r.second != nil {
		b.WriteString("Measured twice: columns called *again* are the second time, which has [a page of its own](second/README.md).\n")
	}
	dropped := 0
	for _, n := range r.Dropped {
		dropped += n
	}
	fmt.Fprintf(&b, "A round counts while others take at most %.1f %% of the processors and the hypervisor %.1f %%; figures of 2 ranks are compared at the same distance of the processors, which the host moves; thrown away: %d of %d %s.\n",
		100*r.Foreign, 100*r.Stolen, dropped, dropped+len(r.Rounds), reasons(r.Dropped))
	if r.Foreign > 0.2 {
		b.WriteString("**These bounds are wide: other work ran at the same time. Read orders of magnitude, not figures.**\n")
	}
	b.WriteString(`
Ratios are taken within a round, the interval is a 95 % bootstrap interval of their median: below 1, libspx is faster than the better
of the two peers, the one with the lower median of all rounds.
*limit* is what the machine itself takes for it, measured in the same rounds without MPI (last table). The **bar** is the larger of 0.8 x the better peer and 1.15 x the limit.
Verdict: **bar**: at or below it; **peer**: not slower than the better peer; **above**: slower than a peer.

pingpong, send-X: half a round trip. window, pairs, bothways: one message of many in flight. Collectives, put, get ...: one call, from when the first rank begins until the last
has finished. overlap: messages, or a reduction, behind 100 us of work. pack-X: one call. put, get, accumulate: with its flush. file-X: one call of each rank, in the page cache.
Buffers rotate through up to 64 places. [How to measure a part](../../bench/README.md).
`)
	return b.String()
}

func reasons(dropped map[string]int) string {
	var parts []string
	for _, why := range sortedKeys(dropped) {
		parts = append(parts, fmt.Sprintf("%s %d", why, dropped[why]))
	}
	if parts == nil {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// judgedSets are those in which libspx stands beside peers.
func (r *result) judgedSets() []string {
	return slices.DeleteFunc(r.sets(), func(key string) bool { return strings.HasSuffix(key, "curve") })
}

// times are the measurements of the same rows, the first one first.
func (r *result) times() []*result {
	if r.second == nil {
		return []*result{r}
	}
	return []*result{r, r.second}
}

// summary counts the verdicts, and lists the rows above the better peer at any time, the worst first.
func (r *result) summary() string {
	var b strings.Builder
	b.WriteString("| ranks | rows | at the bar | at the better peer | above |\n|---|---|---|---|---|\n")
	type slow struct {
		text  string
		ratio float64
	}
	var list []slow
	for _, key := range r.judgedSets() {
		rows := r.rows(key, "spx")
		for i, m := range r.times() {
			count := map[string]int{}
			for _, row := range rows {
				count[m.judge(key, row).verdict]++
			}
			fmt.Fprintf(&b, "| %s%s | %d | %d | %d | %d |\n", key, []string{"", ", again"}[i], len(rows)-count[unknown], count[atBar], count[atPeer], count[above])
		}
		for _, row := range rows {
			one := slow{text: fmt.Sprintf("| %s | %s |", key, row)}
			slower := false
			for _, m := range r.times() {
				j := m.judge(key, row)
				one.text += fmt.Sprintf(" %s |", j.better)
				one.ratio = max(one.ratio, j.better.Median)
				slower = slower || j.verdict == above
			}
			if slower {
				list = append(list, one)
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].ratio > list[j].ratio })
	if len(list) > 0 {
		b.WriteString("\nAbove the better peer:\n\n| ranks | row | libspx / better |" + strings.Repeat(" again |", len(r.times())-1) +
			"\n|---|---|---|" + strings.Repeat("---|", len(r.times())-1) + "\n")
	}
	for _, l := range list {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// aboveBar says how often of how many times a row was above the bar; nothing when it never was.
func (r *result) aboveBar(key, row string) string {
	n, of := 0, 0
	for _, m := range r.times() {
		switch m.judge(key, row).verdict {
		case atPeer, above:
			n++
			of++
		case atBar:
			of++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", n, of)
}

// impls are the implementations that a set's rounds have, in the order of the options.
func (r *result) impls(key string) (list []string) {
	for _, impl := range append(slices.Clone(r.Impls), "get", "stream") {
		if len(r.rows(key, impl)) > 0 {
			list = append(list, impl)
		}
	}
	return list
}

func (r *result) table(key string) string {
	var b strings.Builder
	impls := r.impls(key)
	with, peers := slices.Contains(impls, "base"), slices.Contains(impls, "mpich") || slices.Contains(impls, "openmpi")
	rows := r.rows(key, impls[0])
	rounds := 0
	for _, row := range rows {
		rounds = max(rounds, len(r.values(key, row, impls[0])))
	}
	ranks, kind, _ := strings.Cut(key, " ")
	fmt.Fprintf(&b, "\n## %s ranks%s, %d rounds\n\n", ranks, map[bool]string{true: ", " + kind}[kind != ""], rounds)
	if rounds < enough {
		b.WriteString("**Too few rounds for an interval: read orders of magnitude.**\n\n")
	}
	fmt.Fprintf(&b, "| row | bytes | %s |", strings.Join(impls, " | "))
	if with {
		b.WriteString(" spx / base |")
	}
	b.WriteString(" limit | which |")
	if peers {
		b.WriteString(" libspx / better | libspx / limit | verdict |")
	}
	if peers && r.second != nil {
		b.WriteString(" again: libspx / better | verdict | above the bar |")
	}
	b.WriteString("\n|" + strings.Repeat("---|", strings.Count(b.String()[strings.LastIndex(b.String(), "\n| row")+1:], "|")-1) + "\n")
	for _, row := range rows {
		name, bytes := splitRow(row)
		fmt.Fprintf(&b, "| %s | %d |", name, bytes)
		for _, impl := range impls {
			fmt.Fprintf(&b, " %s |", stats.Figure(stats.Median(r.values(key, row, impl))))
		}
		j := r.judge(key, row)
		if with {
			fmt.Fprintf(&b, " %s |", j.base)
		}
		if l, ok := r.limitOf(row, setRanks(key)); ok {
			var us []float64
			r.each(key, row, func(_, bare map[string]float64) { us = append(us, l.of(bare)) })
			fmt.Fprintf(&b, " %s | %s |", stats.Figure(stats.Median(us)), l)
		} else {
			b.WriteString(" | |")
		}
		if peers {
			fmt.Fprintf(&b, " %s | %s | %s |", j.better, stats.Figure(j.limit.Median), j.verdict)
		}
		if peers && r.second != nil {
			again := r.second.judge(key, row)
			fmt.Fprintf(&b, " %s | %s | %s |", again.better, again.verdict, r.aboveBar(key, row))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// limitTable is all that programs/limits.c measured beside two ranks.
func (r *result) limitTable() string {
	var b strings.Builder
	rows := r.rows("2", "bare")
	if len(rows) == 0 {
		return ""
	}
	source := "limits.c"
	if r.TCP {
		source = "sockets.c"
	}
	fmt.Fprintf(&b, "\n## Bare limits\n\nMeasured in the rounds with two ranks (bench/programs/%s says what each is).\n\n| limit | bytes | us | GB/s |\n|---|---|---|---|\n", source)
	for _, row := range rows {
		name, bytes := splitRow(row)
		us := stats.Median(r.values("2", row, "bare"))
		fmt.Fprintf(&b, "| %s | %d | %s | %.1f |\n", name, bytes, stats.Figure(us), float64(bytes)/us/1e3)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
