package topo

import (
	"math"
	"slices"
)

// Paths are two paths between switches over which data is sent at once: from Paths[0][0] to
// Paths[0][1], and from Paths[1][0] to Paths[1][1].
type Paths [2][2]int

// links joins switches with hosts (terminals) to a tree, one after another. The place of a new
// terminal is found by pairs of paths: for terminals a, b, c, d the paths from a to c and from b to
// d slow each other down if a and b are on one side of a link and c and d on the other. It starts
// beside the terminal that is nearest by round-trip time, so that few questions are needed as long
// as near in time means near in the tree; if it does not, it walks there.
type links struct {
	near     func(a, b int) int64 // the time between two terminals
	answers  map[Paths]bool       // true: apart
	need     *Paths               // the question that stopped the last try
	vertices []vertex
	terminal []int // vertex of each terminal, -1: not in the tree yet
	todo     []int // terminals to insert
	in       int   // terminals inserted
}

type vertex struct {
	terminal int // -1: a switch without hosts
	next     []int
}

// newLinks is to join the given terminals. Answers known are used, and new ones added to them.
func newLinks(terminals []int, near func(a, b int) int64, answers map[Paths]bool) *links {
	l := &links{near: near, answers: answers, todo: terminals}
	if len(terminals) > 0 {
		l.terminal = slices.Repeat([]int{-1}, slices.Max(terminals)+1)
	}
	return l
}

// answer records the answer to a question.
func (l *links) answer(p Paths, apart bool) { l.answers[p] = apart }

// run inserts terminals until it needs an answer, which it returns, or all are in.
func (l *links) run() (Paths, bool) {
	for len(l.todo) > 0 {
		l.need = nil
		if !l.insert(l.todo[0]) {
			return *l.need, true
		}
		l.todo = l.todo[1:]
		l.in++
	}
	return Paths{}, false
}

// apart reports whether two paths do not disturb each other; ok is false if that is not known yet.
func (l *links) apart(a, b, c, d int) (apart, ok bool) {
	p := Paths{{a, b}, {c, d}}
	if a > c || a == c && b > d {
		p[0], p[1] = p[1], p[0]
	}
	apart, ok = l.answers[p]
	if !ok && l.need == nil {
		l.need = &p
	}
	return apart, ok
}

// insert puts one terminal into the tree; false if an answer is missing. It changes nothing then.
func (l *links) insert(x int) bool {
	switch l.in {
	case 0:
		l.add(x)
		return true
	case 1:
		l.link(l.add(x), 0)
		return true
	case 2:
		return l.third(x)
	}
	v := l.start(x)
	for from := -1; ; {
		w, ok := l.direction(v, from, x)
		switch {
		case !ok:
			return false
		case w == v:
			return l.attach(v, x)
		case w == from, !l.inner(w):
			return l.divide(v, w, x)
		}
		v, from = w, v
	}
}

func (l *links) add(terminal int) int {
	l.vertices = append(l.vertices, vertex{terminal: terminal})
	if terminal >= 0 {
		l.terminal[terminal] = len(l.vertices) - 1
	}
	return len(l.vertices) - 1
}

func (l *links) link(v, w int) {
	l.vertices[v].next = append(l.vertices[v].next, w)
	l.vertices[w].next = append(l.vertices[w].next, v)
}

func (l *links) unlink(v, w int) {
	drop := func(from, x int) {
		next := &l.vertices[from].next
		*next = slices.DeleteFunc(*next, func(y int) bool { return x == y })
	}
	drop(v, w)
	drop(w, v)
}

// inner reports whether paths between other vertices may cross v.
func (l *links) inner(v int) bool { return len(l.vertices[v].next) > 1 }

// third joins the third terminal to the first two: lines 4 to 14 of figure 1.
func (l *links) third(x int) bool {
	a, b := l.vertices[0].terminal, l.vertices[1].terminal
	for _, c := range [][3]int{{a, b, x}, {b, a, x}, {x, a, b}} {
		center, ok := l.center(c[0], c[1], c[2])
		if !ok {
			return false
		}
		if !center {
			continue
		}
		switch v := l.add(x); c[0] {
		case a:
			l.link(0, v)
		case b:
			l.link(1, v)
		default:
			l.unlink(0, 1)
			l.link(0, v)
			l.link(1, v)
		}
		return true
	}
	l.unlink(0, 1)
	v, fresh := l.add(x), l.add(-1)
	l.link(0, fresh)
	l.link(1, fresh)
	l.link(v, fresh)
	return true
}

// center reports whether terminal c is itself the switch where the paths from a and b to it meet:
// they come in over different links.
func (l *links) center(c, a, b int) (center, ok bool) { return l.apart(a, c, b, c) }

// start is an inner vertex at, or beside, the terminal nearest to x.
func (l *links) start(x int) int {
	v := l.terminal[l.nearest(x)]
	if !l.inner(v) {
		v = l.vertices[v].next[0]
	}
	return v
}

func (l *links) nearest(x int) int {
	best, least := -1, int64(math.MaxInt64)
	for t, v := range l.terminal {
		if d := l.near(x, t); v >= 0 && (best < 0 || d < least) {
			best, least = t, d
		}
	}
	return best
}

// branch is a part of the tree that hangs on a vertex: what is beyond a neighbour, or the terminal
// at the vertex itself.
type branch struct {
	at  int   // the neighbour, or the vertex itself
	rep int   // a terminal in it, the one nearest to the one being inserted
	d   int64 // how near
}

// branches returns the branches of v, the nearest to x first.
func (l *links) branches(v, x int) []branch {
	var all []branch
	if t := l.vertices[v].terminal; t >= 0 {
		all = append(all, branch{v, t, l.near(x, t)})
	}
	for _, w := range l.vertices[v].next {
		b := branch{at: w, rep: -1}
		l.walk(w, v, func(t int) {
			if d := l.near(x, t); b.rep < 0 || d < b.d {
				b.rep, b.d = t, d
			}
		})
		all = append(all, b)
	}
	slices.SortStableFunc(all, func(a, b branch) int { return int(max(-1, min(1, a.d-b.d))) })
	return all
}

// walk visits the terminals beyond v as seen from a neighbour of it.
func (l *links) walk(v, from int, visit func(terminal int)) {
	if t := l.vertices[v].terminal; t >= 0 {
		visit(t)
	}
	for _, w := range l.vertices[v].next {
		if w != from {
			l.walk(w, v, visit)
		}
	}
}

// direction returns the branch of v to which x belongs: the neighbour there, or v itself if in none
// of them.
func (l *links) direction(v, from, x int) (to int, ok bool) {
	all := l.branches(v, x)
	for i, b := range all {
		if b.at == v {
			continue // a terminal's own hosts: nothing can be between them and v
		}
		others := slices.Delete(slices.Clone(all), i, i+1)
		same, ok := l.together(x, b.rep, others[0].rep, others[1].rep)
		if !ok {
			return 0, false
		}
		if same {
			return b.at, true
		}
	}
	return v, true
}

// together reports whether a link separates x and a from c and d. Both questions are needed where a
// link is one medium for both of its directions.
func (l *links) together(x, a, c, d int) (same, ok bool) {
	if apart, ok := l.apart(x, c, a, d); !ok || apart {
		return false, ok
	}
	apart, ok := l.apart(x, d, a, c)
	return !apart, ok
}

// attach puts x at vertex v: it is that switch if no terminal is there and paths come to it over
// different links, else its neighbour.
func (l *links) attach(v, x int) bool {
	if l.vertices[v].terminal < 0 {
		all := l.branches(v, x)
		center, ok := l.center(x, all[0].rep, all[1].rep)
		if !ok {
			return false
		}
		if center {
			l.vertices[v].terminal, l.terminal[x] = x, v
			return true
		}
	}
	l.link(l.add(x), v)
	return true
}

// divide puts x between the neighbours v, which is inner, and w, or behind w if that has been an
// end.
func (l *links) divide(v, w, x int) bool {
	var ends [2]int // a terminal on either side, the nearest
	for i, side := range [][2]int{{v, w}, {w, v}} {
		ends[i] = -1
		l.walk(side[0], side[1], func(t int) {
			if ends[i] < 0 || l.near(x, t) < l.near(x, ends[i]) {
				ends[i] = t
			}
		})
	}
	if !l.inner(w) {
		center, ok := l.center(ends[1], x, ends[0])
		if !ok {
			return false
		}
		if center {
			l.link(l.add(x), w)
			return true
		}
	}
	center, ok := l.center(x, ends[0], ends[1])
	if !ok {
		return false
	}
	l.unlink(v, w)
	at := l.add(x)
	if !center {
		fresh := l.add(-1)
		l.link(fresh, at)
		at = fresh
	}
	l.link(v, at)
	l.link(w, at)
	return true
}

// tree returns the result for a number of hosts; members[t] are the hosts of terminal t. The
// switches with hosts come first, in the order of the terminals.
func (l *links) tree(members [][]int, hosts int) *Tree {
	t := &Tree{Of: slices.Repeat([]int{-1}, hosts)}
	number := make([]int, len(l.vertices))
	for _, terminal := range l.todo { // no links are known
		for _, h := range members[terminal] {
			t.Of[h] = t.N
		}
		t.N++
	}
	for terminal, v := range l.terminal {
		if v >= 0 {
			number[v] = t.N
			t.N++
			for _, h := range members[terminal] {
				t.Of[h] = number[v]
			}
		}
	}
	for v, x := range l.vertices {
		if x.terminal < 0 {
			number[v] = t.N
			t.N++
		}
	}
	for v, x := range l.vertices {
		for _, w := range x.next {
			if number[v] < number[w] {
				t.Links = append(t.Links, [2]int{number[v], number[w]})
			}
		}
	}
	slices.SortFunc(t.Links, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return t
}
