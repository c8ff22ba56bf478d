package place

import (
	"math/rand/v2"
	"slices"
	"testing"

	"libspx/ft/rankset"
)

// With any members dead, the living are one tree, whose root is the lowest of them, parents and
// children agree, and few pairs are on different hosts; and flooding over the neighbours reaches
// all places.
func TestLiving(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(60)
		hosts, names := make([]int, n), map[int]bool{}
		for i := range hosts {
			hosts[i] = r.IntN(1 + r.IntN(8))
		}
		m := New(n, hosts, 1+r.IntN(4), 1+r.IntN(4))
		var dead []int
		for i := range n {
			if r.IntN(4) == 0 {
				dead = append(dead, i)
			}
		}
		failed := rankset.Of(dead...)
		if len(dead) == n {
			continue
		}
		living, far := 0, 0
		above := map[int]int{}
		for i := range n {
			if failed.Has(i) {
				continue
			}
			living++
			names[hosts[m.Member(i)]] = true
			parent, children := m.Relatives(i, failed)
			if (parent == None) != (i == failed.FirstAbsent()) {
				t.Fatalf("seed %d: %d has the parent %d", seed, i, parent)
			}
			for _, c := range children {
				if _, twice := above[c]; twice || failed.Has(c) {
					t.Fatalf("seed %d: %d is a child of %d and of %d, dead: %v", seed, c, above[c],
						i, failed.Has(c))
				}
				above[c] = i
				if hosts[m.Member(c)] != hosts[m.Member(i)] {
					far++
				}
			}
		}
		for c, a := range above {
			if parent, _ := m.Relatives(c, failed); parent != a {
				t.Fatalf("seed %d: %d is a child of %d, but has the parent %d", seed, c, a, parent)
			}
		}
		if len(above) != living-1 || far != len(names)-1 {
			t.Fatalf("seed %d: %d living places on %d hosts have %d pairs, %d of them on two hosts",
				seed, living, len(names), len(above), far)
		}
		first := failed.FirstAbsent()
		reached := []int{first}
		for k := 0; k < len(reached); k++ {
			for _, p := range m.Neighbours(reached[k], failed) {
				if !slices.Contains(reached, p) && !failed.Has(p) {
					reached = append(reached, p)
				}
			}
		}
		if len(reached) != living {
			t.Fatalf("seed %d: %d of %d hear of it", seed, len(reached), living)
		}
	}
}

// Members whose hosts take turns are put beside each other, and back.
func TestTurns(t *testing.T) {
	m := New(6, []int{7, 3, 7, 3, 7, 5}, 0, 0)
	want := []int{0, 2, 4, 1, 3, 5}
	for p, member := range want {
		if m.Member(p) != member || m.Place(member) != p {
			t.Errorf("at place %d is %d, and %d is at %d; want %d", p, m.Member(p), member,
				m.Place(member), member)
		}
	}
	set := rankset.Of(1, 2, 5)
	if got := m.Places(set); !got.Equal(rankset.Of(1, 3, 5)) || !m.Members(got).Equal(set) {
		t.Errorf("places %v, back %v", got, m.Members(got))
	}
}

// A member that is notified of its own death takes no part: it has a parent, so that it never
// decides.
func TestGivenUp(t *testing.T) {
	m := New(6, []int{0, 0, 1, 1, 2, 2}, 0, 0)
	if parent, children := m.Relatives(1, rankset.Below(3)); parent != 3 || len(children) > 0 {
		t.Errorf("parent %d, children %v", parent, children)
	}
}
