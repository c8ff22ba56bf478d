package group

import (
	"math/rand"
	"slices"
	"testing"

	"libspx/core/ident"
	"libspx/core/mpierr"
)

func p(rank int) ident.ProcID { return ident.ProcID{Job: 1, Rank: uint32(rank)} }

func of(ranks ...int) *Group {
	var ids []ident.ProcID
	for _, r := range ranks {
		ids = append(ids, p(r))
	}
	return Of(ids...)
}

func ranksOf(g *Group) []int {
	out := []int{}
	for _, id := range g.IDs() {
		out = append(out, int(id.Rank))
	}
	return out
}

func want(t *testing.T, what string, g *Group, ranks ...int) {
	t.Helper()
	if got := ranksOf(g); !slices.Equal(got, ranks) {
		t.Errorf("%s = %v, want %v", what, got, ranks)
	}
}

// The examples of MPI-5.0, section 7.3.2.
func TestInclExcl(t *testing.T) {
	g := of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	a, err := g.Incl([]int{3, 6, 2})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "incl", a, 3, 6, 2)
	b, err := g.Excl([]int{3, 6, 2})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "excl", b, 0, 1, 4, 5, 7, 8, 9)
	none, err := g.Incl(nil)
	if err != nil || none != Empty {
		t.Errorf("incl of nothing = %v, %v, want the empty group", none, err)
	}
	c, err := g.RangeIncl([]Range{{6, 7, 1}, {1, 6, 2}, {0, 9, 4}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "range_incl", c, 6, 7, 1, 3, 5, 0, 4, 8)
	d, err := g.RangeExcl([]Range{{9, 1, -3}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "range_excl", d, 0, 1, 2, 4, 5, 7, 8)
}

func TestBadRanks(t *testing.T) {
	g := of(0, 1, 2, 3)
	for _, ranks := range [][]int{{4}, {-1}, {1, 1}, {0, 2, 0}, {ProcNull}} {
		if _, err := g.Incl(ranks); mpierr.ClassOf(err) != mpierr.Rank {
			t.Errorf("incl %v: %v", ranks, err)
		}
		if _, err := g.Excl(ranks); mpierr.ClassOf(err) != mpierr.Rank {
			t.Errorf("excl %v: %v", ranks, err)
		}
	}
	for r, class := range map[Range]mpierr.Class{
		{0, 4, 1}: mpierr.Rank, {-1, 2, 1}: mpierr.Rank, {0, 1, 0}: mpierr.Arg,
		{0, 3, -1}: mpierr.Arg, {3, 0, 1}: mpierr.Arg,
	} {
		if _, err := g.RangeIncl([]Range{r}); mpierr.ClassOf(err) != class {
			t.Errorf("range_incl %v: %v", r, err)
		}
		if _, err := g.RangeExcl([]Range{r}); mpierr.ClassOf(err) != class {
			t.Errorf("range_excl %v: %v", r, err)
		}
	}
	if _, err := g.RangeIncl([]Range{{0, 2, 1}, {2, 3, 1}}); mpierr.ClassOf(err) != mpierr.Rank {
		t.Errorf("overlapping ranges: %v", err)
	}
	if g2, err := g.RangeIncl([]Range{{0, 4, 3}}); err != nil || g2.Size() != 2 {
		t.Errorf("a last rank outside that is not reached: %v", err)
	}
}

func TestSets(t *testing.T) {
	a, b := of(0, 1, 2, 3), of(3, 1, 7, 8)
	want(t, "union", Union(a, b), 0, 1, 2, 3, 7, 8)
	want(t, "intersection", Intersection(a, b), 1, 3)
	want(t, "intersection", Intersection(b, a), 3, 1)
	want(t, "difference", Difference(a, b), 0, 2)
	if Intersection(a, of(9)) != Empty || Difference(a, a) != Empty {
		t.Error("a set without members is not the empty group")
	}
	if id, ok := Overlap(a, b); !ok || id != p(1) {
		t.Errorf("Overlap = %v, %v", id, ok)
	}
	if _, ok := Overlap(a, of(9, 10)); ok {
		t.Error("disjoint groups overlap")
	}
}

func TestCompareAndTranslate(t *testing.T) {
	a := of(4, 5, 6)
	for _, c := range []struct {
		b    *Group
		want Relation
	}{{of(4, 5, 6), Ident}, {of(6, 5, 4), Similar}, {of(4, 5), Unequal}, {of(4, 5, 7), Unequal}} {
		if got := Compare(a, c.b); got != c.want {
			t.Errorf("Compare(%v, %v) = %d, want %d", ranksOf(a), ranksOf(c.b), got, c.want)
		}
	}
	got, err := Translate(a, []int{2, ProcNull, 0}, of(6, 7))
	if err != nil || !slices.Equal(got, []int{0, ProcNull, Undefined}) {
		t.Errorf("Translate = %v, %v", got, err)
	}
	if got := a.RanksOf(of(6, 4)); !slices.Equal(got, []int{2, 0}) {
		t.Errorf("RanksOf = %v", got)
	}
	if got := a.RanksOf(Empty); got == nil || len(got) != 0 {
		t.Errorf("RanksOf of the empty group = %v", got)
	}
	if got := a.RanksOf(of(6, 7)); got != nil {
		t.Errorf("RanksOf with one that is no member = %v", got)
	}
	if _, err := Translate(a, []int{3}, a); mpierr.ClassOf(err) != mpierr.Rank {
		t.Errorf("Translate of rank 3 of 3: %v", err)
	}
}

func TestWorldIsCompact(t *testing.T) {
	g := World(p(0), 1<<20)
	odd, err := g.RangeIncl([]Range{{1, 1<<20 - 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.runs) != 1 || len(odd.runs) != 1 {
		t.Errorf("runs: %d and %d, want 1 and 1", len(g.runs), len(odd.runs))
	}
	if odd.Rank(p(77777)) != 38888 || odd.Rank(p(77778)) != Undefined {
		t.Errorf("ranks in the odd half: %d, %d", odd.Rank(p(77777)), odd.Rank(p(77778)))
	}
}

// A group behaves as the plain list of its members does, whatever runs it is made of.
func TestAgainstPlainList(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 500 {
		list := rnd.Perm(40)[:rnd.Intn(40)]
		g := of(list...)
		if g.Size() != len(list) {
			t.Fatalf("size of %v = %d", list, g.Size())
		}
		for k, r := range list {
			if g.At(k) != p(r) || g.Rank(p(r)) != k {
				t.Fatalf("group of %v: At(%d) = %v, Rank = %d", list, k, g.At(k), g.Rank(p(r)))
			}
		}
		for r := range 40 {
			if !slices.Contains(list, r) && g.Has(p(r)) {
				t.Fatalf("group of %v has %d", list, r)
			}
		}
		back, rest, err := Decode(append(g.Encode(), 1, 2, 3))
		if err != nil || len(rest) != 3 || Compare(g, back) != Ident {
			t.Fatalf("Decode(Encode(%v)) = %v, %v, %v", list, ranksOf(back), rest, err)
		}
	}
}

func TestCutEncodingIsRefused(t *testing.T) {
	b := of(1, 2, 9).Encode()
	for k := range b {
		if _, _, err := Decode(b[:k]); err == nil {
			t.Errorf("%d of %d bytes decode", k, len(b))
		}
	}
}
