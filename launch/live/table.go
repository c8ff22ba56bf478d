package live

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"libspx/core/diagnose"
)

// Tables of plain text: nothing in them but letters, so that the same goes to a pipe and to a
// screen.

// Duration is a time in at most five letters.
func Duration(seconds float64) string {
	switch {
	case seconds < 9.95:
		return fmt.Sprintf("%.1fs", seconds)
	case seconds < 100:
		return fmt.Sprintf("%.0fs", seconds)
	case seconds < 100*60:
		return fmt.Sprintf("%.0fm", seconds/60)
	case seconds < 100*3600:
		return fmt.Sprintf("%.0fh", seconds/3600)
	}
	return fmt.Sprintf("%.0fd", seconds/86400)
}

// Number is a number in at most five letters: 12.3k.
func Number(v float64) string {
	if v < 0.05 {
		return "0"
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f", v)
	}
	if v < 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	for _, unit := range "kMGTP" {
		v /= 1000
		switch {
		case v < 99.95:
			return fmt.Sprintf("%.1f%c", v, unit)
		case v < 999.5:
			return fmt.Sprintf("%.0f%c", v, unit)
		}
	}
	return "many"
}

// Share is a part of 1, in per cent.
func Share(v float64) string {
	if v < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", v*100)
}

func rate(known bool, v float64) string {
	if !known {
		return "-"
	}
	return Number(v)
}

// A column of a table. Those with the highest number of least go first when the lines are too long.
type column[T any] struct {
	head  string
	left  bool // flush left
	least int
	text  func(*T) string
}

var rankColumns = []column[Row]{
	{"RANK", false, 0, func(r *Row) string {
		if r.World != 0 {
			return fmt.Sprintf("%d.%d", r.World, r.Rank)
		}
		return fmt.Sprint(r.Rank)
	}},
	{"CLUSTER", true, 1, func(r *Row) string {
		if r.Link != "" {
			return r.Link
		}
		return r.Cluster
	}},
	{"HOST", true, 0, func(r *Row) string { return r.Host }},
	{"PID", false, 5, func(r *Row) string { return fmt.Sprint(r.Pid) }},
	{"STATE", true, 0, (*Row).Status},
	{"MSG/s", false, 0, func(r *Row) string {
		return rate(r.Rates.Wait >= 0,
			r.Rates.Sent+r.Rates.Received)
	}},
	{"OUT B/s", false, 0, func(r *Row) string {
		return rate(r.Rates.Wait >= 0,
			r.Rates.SentBytes)
	}},
	{"IN B/s", false, 0, func(r *Row) string {
		return rate(r.Rates.Wait >= 0,
			r.Rates.ReceivedBytes)
	}},
	{"COLL/s", false, 3, func(r *Row) string {
		return rate(r.Rates.Wait >= 0,
			r.Rates.Collectives)
	}},
	{"WAIT", false, 0, func(r *Row) string { return Share(r.Rates.Wait) }},
	{"FAIL", false, 0, func(r *Row) string { return fmt.Sprint(r.Failures) }},
	{"PEERS", false, 4, func(r *Row) string { return fmt.Sprint(r.Peers) }},
	{"CONN", false, 2, func(r *Row) string { return fmt.Sprint(r.Connections) }},
}

func groupColumns(head string) []column[Group] {
	return []column[Group]{
		{head, true, 0, func(g *Group) string { return g.Name }},
		{"RANKS", false, 0, func(g *Group) string { return fmt.Sprint(g.Procs) }},
		{"STATES", true, 0, func(g *Group) string { return g.states() }},
		{"MSG/s", false, 0, func(g *Group) string {
			return rate(g.Rates.Wait >= 0,
				g.Rates.Sent+g.Rates.Received)
		}},
		{"OUT B/s", false, 0, func(g *Group) string {
			return rate(g.Rates.Wait >= 0,
				g.Rates.SentBytes)
		}},
		{"IN B/s", false, 0, func(g *Group) string {
			return rate(g.Rates.Wait >= 0,
				g.Rates.ReceivedBytes)
		}},
		{"WAIT", false, 0, func(g *Group) string { return Share(g.Rates.Wait) }},
		{"DEAD", false, 0, func(g *Group) string { return fmt.Sprint(g.Dead) }},
		{"HELD B", false, 1, func(g *Group) string { return Number(float64(g.Held)) }},
	}
}

// states lists how many processes are in which state, what needs a look first.
func (g *Group) states() string {
	var parts []string
	for _, s := range trouble {
		if n := g.States[string(s)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, shortState(s)))
		}
	}
	return strings.Join(parts, ", ")
}

func shortState(s diagnose.State) string {
	switch s {
	case diagnose.Starting:
		return "starting"
	case diagnose.Finalized:
		return "finalized"
	}
	return string(s)
}

// flexible is the column that takes what room is left, and gives when there is none.
var flexible = []string{"STATE", "STATES"}

const narrowest = 10 // of the flexible column

// A Table is lines of text, the first with the heads of the columns.
type Table struct {
	Head  string
	Lines []string
}

// layOut makes a table of at most width columns; 0: as wide as it gets. Columns without information
// are left out.
func layOut[T any](columns []column[T], list []T, width int) Table {
	cells := make([][]string, len(columns))
	wide := make([]int, len(columns))
	var shown []int
	for c := range columns {
		wide[c] = len(columns[c].head)
		says := columns[c].least == 0 || width == 0 && columns[c].head != "CLUSTER" &&
			columns[c].head != "HELD B"
		for i := range list {
			t := printable(columns[c].text(&list[i]))
			cells[c] = append(cells[c], t)
			wide[c] = max(wide[c], utf8.RuneCountInString(t))
			says = says || t != "" && t != "0"
		}
		if says {
			shown = append(shown, c)
		}
	}
	shown = fit(columns, wide, shown, width)
	line := func(text func(c int) string) string {
		var b strings.Builder
		for _, c := range shown {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(pad(text(c), wide[c], columns[c].left))
		}
		return strings.TrimRight(b.String(), " ")
	}
	t := Table{Head: line(func(c int) string { return columns[c].head })}
	for i := range list {
		t.Lines = append(t.Lines, line(func(c int) string { return cells[c][i] }))
	}
	return t
}

// fit narrows the flexible column, then leaves columns out, until the lines fit.
func fit[T any](columns []column[T], wide []int, shown []int, width int) []int {
	if width <= 0 {
		return shown
	}
	for {
		total, flex, drop := -1, -1, -1
		for _, c := range shown {
			total += wide[c] + 1
			if slices.Contains(flexible, columns[c].head) {
				flex = c
			}
			if columns[c].least > 0 && (drop < 0 || columns[c].least > columns[drop].least) {
				drop = c
			}
		}
		over := total - width
		if over <= 0 {
			return shown
		}
		if flex >= 0 && (wide[flex]-over >= 18 || drop < 0) {
			wide[flex] = max(narrowest, wide[flex]-over)
			return shown
		}
		if drop < 0 {
			return shown
		}
		shown = slices.DeleteFunc(slices.Clone(shown), func(c int) bool { return c == drop })
	}
}

// printable takes away what a terminal would take for a command: names of hosts and programs may
// have anything in them.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

func pad(s string, n int, left bool) string {
	k := utf8.RuneCountInString(s)
	switch {
	case k > n:
		return string([]rune(s)[:n-1]) + "~"
	case left:
		return s + strings.Repeat(" ", n-k)
	}
	return strings.Repeat(" ", n-k) + s
}

// RankTable has a line for each row.
func RankTable(rows []Row, width int) Table { return layOut(rankColumns, rows, width) }

// GroupTable has a line for each group; head is what they are.
func GroupTable(head string, groups []Group, width int) Table {
	return layOut(groupColumns(head), groups, width)
}

// Summary describes the job and its activity in two lines.
func Summary(l *Look, rows []Row, width int) []string {
	all := All(rows)
	name := "job " + l.About.Job
	if l.Layout != nil {
		name = "system " + l.Layout.System + ", " + name
	}
	hosts := len(l.Hosts())
	where := fmt.Sprintf("%d hosts", hosts)
	if hosts == 1 {
		where = "1 host"
	}
	lines := []string{
		fmt.Sprintf("%s  %s  %d processes on %s: %s", l.At.Format("15:04:05"), name, len(rows),
			where, l.About.Program),
		fmt.Sprintf("%s; %s messages/s, %sB/s, wait %s", all.states(),
			rate(all.Rates.Wait >= 0, all.Rates.Sent),
			rate(all.Rates.Wait >= 0, all.Rates.SentBytes), Share(all.Rates.Wait)),
	}
	for i, s := range lines {
		s = printable(s)
		if width > 0 && utf8.RuneCountInString(s) > width {
			s = pad(s, width, true)
		}
		lines[i] = s
	}
	return lines
}
