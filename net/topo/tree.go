package topo

import (
	"fmt"
	"slices"
	"strings"
)

// Tree is a network: switches 0, 1, ... in a tree, and the hosts on them. The existence of switches
// without hosts follows from the paths between other switches; one with fewer than three links and
// no host cannot be seen, and never occurs.
type Tree struct {
	Of    []int    // the switch of each host; -1 for a host that is not there
	Links [][2]int // pairs of switches
	N     int      // number of switches
}

// Hosts returns the hosts of every switch, in ascending order.
func (t *Tree) Hosts() [][]int {
	hosts := make([][]int, t.N)
	for h, s := range t.Of {
		if s >= 0 {
			hosts[s] = append(hosts[s], h)
		}
	}
	return hosts
}

// Neighbors returns the switches that each switch has a link to.
func (t *Tree) Neighbors() [][]int {
	next := make([][]int, t.N)
	for _, l := range t.Links {
		next[l[0]] = append(next[l[0]], l[1])
		next[l[1]] = append(next[l[1]], l[0])
	}
	return next
}

// Distance returns the number of links between switches on the path from host a to host b.
func (t *Tree) Distance(a, b int) int {
	return len(t.Path(t.Of[a], t.Of[b])) - 1
}

// Path returns the switches from switch a to switch b, both included; nil where no path leads.
func (t *Tree) Path(a, b int) []int {
	next := t.Neighbors()
	from := make([]int, t.N)
	for i := range from {
		from[i] = -1
	}
	from[b] = b
	for queue := []int{b}; len(queue) > 0 && from[a] < 0; queue = queue[1:] {
		for _, s := range next[queue[0]] {
			if from[s] < 0 {
				from[s] = queue[0]
				queue = append(queue, s)
			}
		}
	}
	if from[a] < 0 {
		return nil
	}
	path := []int{a}
	for s := a; s != b; {
		s = from[s]
		path = append(path, s)
	}
	return path
}

// Share reports whether two paths between switches use a link in the same direction.
func (t *Tree) Share(p Paths) bool {
	used := map[[2]int]bool{}
	first, second := t.Path(p[0][0], p[0][1]), t.Path(p[1][0], p[1][1])
	for i := 1; i < len(first); i++ {
		used[[2]int{first[i-1], first[i]}] = true
	}
	for i := 1; i < len(second); i++ {
		if used[[2]int{second[i-1], second[i]}] {
			return true
		}
	}
	return false
}

// groups are the hosts of the switches that have any.
func (t *Tree) groups() [][]int {
	return slices.DeleteFunc(t.Hosts(), func(hosts []int) bool { return len(hosts) == 0 })
}

// Restrict returns the part of the tree for some of its hosts, which get the numbers 0, 1, ... in
// the order given: switches that cannot be seen from them are left out. A host of -1 is none of the
// tree's.
func (t *Tree) Restrict(hosts []int) *Tree {
	out := &Tree{Of: make([]int, len(hosts))}
	needed := make([]bool, t.N)
	for i, h := range hosts {
		if out.Of[i] = -1; h >= 0 && t.Of[h] >= 0 {
			out.Of[i] = t.Of[h]
			needed[t.Of[h]] = true
		}
	}
	next := t.Neighbors()
	for more := true; more; { // switches without hosts, at an end or between two others
		more = false
		for s, list := range next {
			if needed[s] || len(list) == 0 || len(list) > 2 {
				continue
			}
			more, next[s] = true, nil
			for i, n := range list {
				next[n] = slices.DeleteFunc(next[n], func(x int) bool { return x == s })
				if len(list) == 2 {
					next[n] = append(next[n], list[1-i])
				}
			}
		}
	}
	number := make([]int, t.N)
	for s := range t.N {
		if needed[s] || len(next[s]) > 0 {
			number[s] = out.N
			out.N++
		}
	}
	for s, list := range next {
		for _, n := range list {
			if s < n {
				out.Links = append(out.Links, [2]int{number[s], number[n]})
			}
		}
	}
	for i, s := range out.Of {
		if s >= 0 {
			out.Of[i] = number[s]
		}
	}
	slices.SortFunc(out.Links, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return out
}

// Splits names the tree by what can be observed of it: the sets of hosts that share a switch, and
// for each link the hosts on one of its two sides. Two trees over the same hosts are the same
// network if and only if their splits are equal.
func (t *Tree) Splits() []string {
	var all []string
	for _, hosts := range t.Hosts() {
		if len(hosts) > 0 {
			all = append(all, "switch "+ranges(hosts))
		}
	}
	next := t.Neighbors()
	first := slices.IndexFunc(t.Of, func(s int) bool { return s >= 0 })
	for _, l := range t.Links {
		side := t.beyond(next, l[0], l[1])
		if slices.Contains(side, first) { // the side without the first host
			side = t.beyond(next, l[1], l[0])
		}
		all = append(all, "link "+ranges(side))
	}
	slices.Sort(all)
	return all
}

// beyond returns the hosts that are reached from switch a over its link to switch b, in ascending
// order.
func (t *Tree) beyond(next [][]int, a, b int) []int {
	in := make([]bool, t.N)
	in[a], in[b] = true, true
	for queue := []int{b}; len(queue) > 0; queue = queue[1:] {
		for _, s := range next[queue[0]] {
			if !in[s] {
				in[s] = true
				queue = append(queue, s)
			}
		}
	}
	in[a] = false
	var hosts []int
	for h, s := range t.Of {
		if s >= 0 && in[s] {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// String draws the tree with hosts by their numbers.
func (t *Tree) String() string {
	return t.Text(func(list []int) string { return "hosts " + ranges(list) })
}

// Roots are the switches in the middle of each linked part, next being Neighbors: one, or where
// links are not known, more.
func (t *Tree) Roots(next [][]int) (list []int) {
	seen := make([]bool, t.N)
	for s := range t.N {
		if seen[s] {
			continue
		}
		list = append(list, t.middle(next, s))
		seen[s] = true
		for queue := []int{s}; len(queue) > 0; queue = queue[1:] {
			for _, n := range next[queue[0]] {
				if !seen[n] {
					seen[n] = true
					queue = append(queue, n)
				}
			}
		}
	}
	return list
}

// Text draws the tree, a switch a line, from the switch in its middle; names writes a list of
// hosts.
func (t *Tree) Text(names func(hosts []int) string) string {
	if t.N == 0 {
		return "no switches\n"
	}
	next, hosts := t.Neighbors(), t.Hosts()
	var b strings.Builder
	var draw func(s, from int, indent string)
	draw = func(s, from int, indent string) {
		fmt.Fprintf(&b, "%sswitch %d", indent, s)
		if len(hosts[s]) > 0 {
			fmt.Fprintf(&b, ": %s", names(hosts[s]))
		}
		b.WriteByte('\n')
		for _, child := range next[s] {
			if child != from {
				draw(child, s, indent+"  ")
			}
		}
	}
	for _, root := range t.Roots(next) {
		draw(root, -1, "")
	}
	return b.String()
}

// middle returns a switch from which the farthest one that is linked with switch s is as near as
// can be.
func (t *Tree) middle(next [][]int, s int) int {
	farthest := func(from int) int {
		last, seen := from, make([]bool, t.N)
		seen[from] = true
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			last = queue[0]
			for _, s := range next[last] {
				if !seen[s] {
					seen[s] = true
					queue = append(queue, s)
				}
			}
		}
		return last
	}
	end := farthest(s)
	path := t.Path(end, farthest(end))
	return path[len(path)/2]
}

// ranges writes a sorted list of numbers as 0-3,7.
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if fmt.Fprintf(&b, "%d", list[i]); j > i {
			fmt.Fprintf(&b, "-%d", list[j])
		}
		i = j + 1
	}
	return b.String()
}
