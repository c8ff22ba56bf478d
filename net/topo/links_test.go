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

// shares says whether two paths of t use a link in the same direction, or, with half, in any.
func shares(t *Tree, vertex []int, p Paths, half bool) bool {
	used := map[[2]int]bool{}
	for i, ends := range p {
		path := t.Path(vertex[ends[0]], vertex[ends[1]])
		for j := range len(path) - 1 {
			l := [2]int{path[j], path[j+1]}
			if i == 1 && (used[l] || half && used[[2]int{l[1], l[0]}]) {
				return true
			}
			if i == 0 {
				used[l] = true
			}
		}
	}
	return false
}

func TestLinksFindEveryTree(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		truth := randomTree(r, 1+r.IntN(24), 1+r.IntN(6))
		places, vertex := terminals(truth)
		half, blind := r.IntN(2) == 0, r.IntN(4) == 0
		near := func(a, b int) int64 {
			if blind { // times that say nothing
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
			t.Fatalf("seed %d, half duplex %v, blind %v: want\n%sgot\n%s%s", seed, half, blind, truth, l.tree(places, len(truth.Of)), diff)
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
		got.Links = Figure1(len(places), func(a, b, c, d int) bool { return !shares(truth, vertex, Paths{{a, b}, {c, d}}, false) })
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
