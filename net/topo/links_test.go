package topo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomTree makes a tree of n switches; most have hosts, all that cannot be seen have.
func randomTree(r *rand.Rand, n, most int) *Tree {
	t := &Tree{N: n}
	for s := 1; s < n; s++ {
		t.Links = append(t.Links, [2]int{max(0, s-1-r.IntN(most)), s})
	}
	for s, next := range t.Neighbors() {
		if len(next) < 3 || r.IntN(2) == 0 {
			t.Of = append(t.Of, s, s)
		}
	}
	return t
}

// terminals renumbers a tree's switches with hosts 0, 1, ... in the order of their first hosts.
func terminals(t *Tree) (places [][]int, vertex []int) {
	for s, hosts := range t.Hosts() {
		if len(hosts) > 0 {
			places = append(places, hosts)
			vertex = append(vertex, s)
		}
	}
	return places, vertex
}

func numbers(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// shares reports whether two paths of t use a link in the same direction, or, with half, in any.
func shares(t *Tree, vertex []int, p Paths, half bool) bool {
	q := Paths{{vertex[p[0][0]], vertex[p[0][1]]}, {vertex[p[1][0]], vertex[p[1][1]]}}
	back := Paths{q[0], {q[1][1], q[1][0]}}
	return t.Share(q) || half && t.Share(back)
}

func TestLinksFindEveryTree(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		truth := randomTree(r, 1+r.IntN(24), 1+r.IntN(6))
		places, vertex := terminals(truth)
		half, blind := r.IntN(2) == 0, r.IntN(4) == 0
		near := func(a, b int) int64 {
			if blind { // times without information
				return int64(a*7+b*13) % 5
			}
			return int64(len(truth.Path(vertex[a], vertex[b])))
		}
		l := newLinks(numbers(len(places)), near, map[Paths]bool{})
		for {
			p, more := l.run()
			if !more {
				break
			}
			l.answer(p, !shares(truth, vertex, p, half))
		}
		if diff := cmp.Diff(truth.Splits(), l.tree(places, len(truth.Of)).Splits()); diff != "" {
			t.Fatalf("seed %d, half duplex %v, blind %v: want\n%sgot\n%s%s", seed, half, blind,
				truth, l.tree(places, len(truth.Of)), diff)
		}
		if s := len(places); !blind && len(l.answers) > 12*s+8 {
			t.Errorf("seed %d: %d questions for %d switches", seed, len(l.answers), s)
		}
	}
}

func TestFigure1FindsEveryTree(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		truth := randomTree(r, 1+r.IntN(10), 1+r.IntN(4))
		places, vertex := terminals(truth)
		got := &Tree{Of: slices.Repeat([]int{-1}, len(truth.Of)), N: len(places)}
		got.Links = Figure1(len(places), func(a, b, c,
			d int) bool {
			return !shares(truth, vertex, Paths{{a, b}, {c, d}}, false)
		})
		for s, hosts := range places {
			for _, h := range hosts {
				got.Of[h] = s
			}
		}
		for _, link := range got.Links {
			got.N = max(got.N, link[0]+1, link[1]+1)
		}
		if diff := cmp.Diff(truth.Splits(), got.Splits()); diff != "" {
			t.Fatalf("seed %d: want\n%sgot\n%s%s", seed, truth, got, diff)
		}
	}
}

// What a tree looks like from some of its hosts is what they would find themselves; all of them see
// the whole.
func TestRestrict(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		truth := randomTree(r, 1+r.IntN(20), 1+r.IntN(5))
		all := numbers(len(truth.Of))
		if diff := cmp.Diff(truth.Splits(), truth.Restrict(all).Splits()); diff != "" {
			t.Fatalf("seed %d, all hosts: %s", seed, diff)
		}
		some := r.Perm(len(all))[:1+r.IntN(len(all))]
		seen := truth.Restrict(some)
		for i, a := range some {
			for j, b := range some {
				if (truth.Of[a] == truth.Of[b]) != (seen.Of[i] == seen.Of[j]) {
					t.Fatalf("seed %d: hosts %d and %d\n%s%s", seed, a, b, truth, seen)
				}
			}
		}
		for s, next := range seen.Neighbors() {
			if len(seen.Hosts()[s]) == 0 && len(next) < 3 {
				t.Fatalf("seed %d: switch %d cannot be seen from hosts %v\n%s%s", seed, s, some,
					truth, seen)
			}
		}
		// paths disturb each other as before
		if places, vertex := terminals(seen); len(places) > 3 {
			p := Paths{{vertex[0], vertex[1]}, {vertex[2], vertex[3]}}
			at := func(k int) int { return truth.Of[some[places[k][0]]] }
			if seen.Share(p) != truth.Share(Paths{{at(0), at(1)}, {at(2), at(3)}}) {
				t.Fatalf("seed %d: paths %v in\n%s%s", seed, p, truth, seen)
			}
		}
	}
}
