package config

import (
	"fmt"
	"sort"
	"strings"
)

// Picture draws the system in text: the clusters below each other, the links as lines at their
// right, each with its I/O processes where it begins. note, if not nil, is what else stands in a
// cluster's box: its state.
func (s *System) Picture(note func(cluster string) string) string {
	s = s.withOthers()
	order, _ := s.order()
	p := &picture{rowsOf: make([][]string, len(s.Clusters)), first: make([]int, len(s.Clusters))}
	for i := range s.Clusters {
		p.rowsOf[i] = boxText(&s.Clusters[i], note)
	}
	p.ends(s)
	p.place(order)
	p.tracks()
	return p.draw(order)
}

// elsewhere stands in the box of a cluster that another file describes.
const elsewhere = "(another file)"

// plural is "1 rank", "2 ranks".
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (c *Cluster) size() string {
	text := plural(c.Ranks, "rank")
	if c.Standbys > 0 {
		text += " + " + plural(c.Standbys, "standby")
	}
	if n := c.Cold(); n > 0 {
		text += " + " + plural(n, "restart")
	}
	return text
}

func boxText(c *Cluster, note func(string) string) []string {
	rows := []string{c.Name + ": " + c.size(), c.Program}
	if c.Ranks == 0 {
		rows = []string{c.Name, elsewhere}
	}
	if note != nil {
		if text := note(c.Name); text != "" {
			rows = append(rows, text)
		}
	}
	return rows
}

// picture is what is being drawn.
type picture struct {
	rowsOf [][]string // text of each box
	first  []int      // row of the first text of each box
	lines  []line
	box    int // width of the text in boxes
	label  int // width of the labels
}

// line is a link: it goes from the ends where data goes in, along a track, to those where it comes
// out.
type line struct {
	label string
	both  bool
	ends  []end
	track int
}

type end struct {
	cluster, slot int // which row of its box
	out           bool
}

func (p *picture) ends(s *System) {
	number, used := map[string]int{}, make([]int, len(s.Clusters))
	for i, c := range s.Clusters {
		number[c.Name] = i
	}
	for _, l := range s.Links {
		at := line{label: fmt.Sprintf(" %s: %s, %s ", l.Name, plural(l.IOPs, "IOP"), l.Choice),
			both: l.Bidirectional}
		add := func(list []string, out bool) {
			for _, name := range list {
				i := number[name]
				at.ends = append(at.ends, end{i, used[i], out})
				used[i]++
			}
		}
		add(l.From, true)
		add(l.To, false)
		p.lines = append(p.lines, at)
		p.label = max(p.label, len(at.label))
	}
	for i := range p.rowsOf {
		for len(p.rowsOf[i]) < used[i] {
			p.rowsOf[i] = append(p.rowsOf[i], "")
		}
		for _, text := range p.rowsOf[i] {
			p.box = max(p.box, len(text))
		}
	}
}

// place gives every box its rows: two more for its frame.
func (p *picture) place(order []int) {
	row := 0
	for _, i := range order {
		p.first[i] = row + 1
		row += len(p.rowsOf[i]) + 2
	}
}

func (p *picture) row(e end) int { return p.first[e.cluster] + e.slot }

// reach is the first and last row of a line.
func (p *picture) reach(l *line) (first, last int) {
	first = p.row(l.ends[0])
	for _, e := range l.ends {
		first, last = min(first, p.row(e)), max(last, p.row(e))
	}
	return first, last
}

// tracks gives every line the nearest track that is free along its way, short ones first.
func (p *picture) tracks() {
	turn := make([]int, len(p.lines))
	for i := range turn {
		turn[i] = i
	}
	length := func(i int) int { first, last := p.reach(&p.lines[i]); return last - first }
	sort.SliceStable(turn, func(a, b int) bool { return length(turn[a]) < length(turn[b]) })
	var taken [][][2]int
	for _, i := range turn {
		first, last := p.reach(&p.lines[i])
		t := 0
		for ; t < len(taken); t++ {
			free := true
			for _, x := range taken[t] {
				free = free && (last+1 < x[0] || first > x[1]+1)
			}
			if free {
				break
			}
		}
		if t == len(taken) {
			taken = append(taken, nil)
		}
		taken[t] = append(taken[t], [2]int{first, last})
		p.lines[i].track = t
	}
}

func (p *picture) draw(order []int) string {
	right := p.box + 4 // of the boxes
	columns := right + 3 + p.label
	for i := range p.lines {
		columns = max(columns, p.column(p.lines[i].track)+1)
	}
	last := order[len(order)-1]
	canvas := make([][]rune, p.first[last]+len(p.rowsOf[last])+1)
	for i := range canvas {
		canvas[i] = []rune(strings.Repeat(" ", columns))
	}
	put := func(row, column int, text string) {
		for k, c := range []rune(text) {
			if column+k < columns {
				canvas[row][column+k] = c
			}
		}
	}
	for _, i := range order {
		frame := "+" + strings.Repeat("-", p.box+2) + "+"
		put(p.first[i]-1, 0, frame)
		put(p.first[i]+len(p.rowsOf[i]), 0, frame)
		for k, text := range p.rowsOf[i] {
			put(p.first[i]+k, 0, "| "+text)
			put(p.first[i]+k, right-1, "|")
		}
	}
	for i := range p.lines {
		p.drawTrack(canvas, &p.lines[i])
	}
	for i := range p.lines {
		p.drawEnds(canvas, put, &p.lines[i], right)
	}
	var b strings.Builder
	for _, r := range canvas {
		b.WriteString(strings.TrimRight(string(r), " ") + "\n")
	}
	return b.String()
}

func (p *picture) column(track int) int { return p.box + 4 + 4 + p.label + 3*track }

func (p *picture) drawTrack(canvas [][]rune, l *line) {
	first, last := p.reach(l)
	for r := first; r <= last; r++ {
		canvas[r][p.column(l.track)] = '|'
	}
}

func (p *picture) drawEnds(canvas [][]rune, put func(int, int, string), l *line, right int) {
	to := p.column(l.track)
	labelled := false
	for _, e := range l.ends {
		r := p.row(e)
		for x := right; x < to; x++ {
			if canvas[r][x] == ' ' {
				canvas[r][x] = '-'
			}
		}
		canvas[r][to] = '+'
		if !e.out || l.both {
			canvas[r][right] = '<'
		}
		if e.out && !labelled {
			put(r, right+2, l.label)
			labelled = true
		}
	}
}
