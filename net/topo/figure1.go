package topo

import "slices"

// Figure1 is the algorithm of figure 1 in the paper: it joins switches 0 to n-1 to a tree, given
// for all pairs of paths whether they slow each other down. apart(a, b, c, d) reports that the path
// from a to b and the one from c to d do not; a, b, c, d are switches with hosts, b and d may be
// the same one. The result's switches from n on have no hosts.
//
// It needs about n^4 answers; Machine needs about n log n and must produce the same tree. Where the
// paper is short, this is what it takes: merge's sets are the classes of switches whose paths to
// each other disturb no path between other switches (for a set of two or three the paper's
// condition is void); a switch that joins others and has hosts of its own, which the paper
// considers only for the last three (lines 5 to 8), is searched for in every set; f gives a fresh
// switch the relations of a switch below it; and two fresh switches are one if no path over the
// link between them slows another down (siblings may come up in different rounds).
func Figure1(n int, apart func(a, b, c, d int) bool) [][2]int {
	v := &figure{apart: apart}
	// the switches left, by number; leaf[i] is a switch with hosts in the direction of x[i]
	x := make([]int, n)
	for i := range x {
		x[i] = i
		v.leaf = append(v.leaf, i)
	}
	for len(x) > 1 {
		if len(x) == 2 {
			v.links = append(v.links, [2]int{x[0], x[1]})
			break
		}
		sets := v.merge(x)
		if len(sets) == len(x) { // contradictory answers: what is left becomes one star
			sets = [][]int{x}
		}
		var up []int
		for _, set := range sets {
			up = append(up, v.join(x, set, n))
		}
		x = up
	}
	return v.links
}

type figure struct {
	apart func(a, b, c, d int) bool
	links [][2]int
	leaf  []int
}

// merge partitions the switches left into those that hang on the same switch.
func (v *figure) merge(x []int) (sets [][]int) {
	if len(x) == 3 {
		return [][]int{x}
	}
next:
	for _, u := range x {
		for i := range sets {
			if v.siblings(x, sets[i][0], u) {
				sets[i] = append(sets[i], u)
				continue next
			}
		}
		sets = append(sets, []int{u})
	}
	return sets
}

func (v *figure) siblings(x []int, u, w int) bool {
	for _, a := range x {
		for _, b := range x {
			if a != b && a != u && a != w && b != u && b != w &&
				!v.apart(v.leaf[u], v.leaf[w], v.leaf[a], v.leaf[b]) {
				return false
			}
		}
	}
	return true
}

// join links a set of siblings, some of x, by the one among them that is in the middle, or by a
// fresh switch, and returns that one.
func (v *figure) join(x, set []int, n int) int {
	if len(set) == 1 {
		return set[0]
	}
	for _, c := range set {
		if c < n && v.center(set, c, n) {
			for _, s := range set {
				if s != c {
					v.links = append(v.links, [2]int{s, c})
				}
			}
			return c
		}
	}
	fresh := len(v.leaf)
	v.leaf = append(v.leaf, v.leaf[set[0]])
	for _, s := range set {
		if others := append(without(set, s), without(x, set...)...); s >= n && len(others) > 1 &&
			v.same(s, others) {
			for j := range v.links {
				if v.links[j][1] == s {
					v.links[j][1] = fresh
				}
			}
			continue
		}
		v.links = append(v.links, [2]int{s, fresh})
	}
	return fresh
}

func without(x []int, drop ...int) []int {
	return slices.DeleteFunc(slices.Clone(x), func(y int) bool { return slices.Contains(drop, y) })
}

// same reports whether fresh switch s is the one that joins it and the others.
func (v *figure) same(s int, others []int) bool {
	var below []int
	for _, l := range v.links {
		if l[1] == s {
			below = append(below, v.leaf[l[0]])
		}
	}
	return v.apart(below[0], v.leaf[others[0]], below[1], v.leaf[others[1]])
}

// center reports whether paths from a sibling of c and from anywhere else come to c over different
// links.
func (v *figure) center(set []int, c, n int) bool {
	for _, s := range set {
		if s == c {
			continue
		}
		for w := range n {
			if l := v.leaf[s]; w != l && w != c && !v.sameSide(s, w) && !v.apart(l, c, w, c) {
				return false
			}
		}
	}
	return true
}

// sameSide reports whether leaf w is below s, as far as the tree is known.
func (v *figure) sameSide(s, w int) bool {
	seen := map[int]bool{s: true}
	for queue := []int{s}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == w {
			return true
		}
		for _, l := range v.links {
			for i := range 2 {
				if l[i] == queue[0] && !seen[l[1-i]] {
					seen[l[1-i]] = true
					queue = append(queue, l[1-i])
				}
			}
		}
	}
	return false
}
