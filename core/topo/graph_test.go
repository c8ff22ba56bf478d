package topo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"libspx/core/mpierr"
)

func TestGraph(t *testing.T) {
	// The example of MPI-5.0, 9.5.3.
	g, err := NewGraph([]int{2, 3, 4, 6}, []int{1, 3, 0, 3, 0, 2}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int{{1, 3}, {0}, {3}, {0, 2}} {
		n := g.Neighbors(i)
		if !slices.Equal(g.Of(i), want) || !slices.Equal(n.Sources, want) ||
			!slices.Equal(n.Dests, want) || n.Paired {
			t.Errorf("neighbours of %d: %v %+v", i, g.Of(i), n)
		}
	}
	for _, c := range []struct {
		index, edges []int
		class        mpierr.Class
	}{
		{nil, nil, 0}, {[]int{0, 0, 0}, nil, 0}, {[]int{1, 0}, []int{1}, mpierr.Arg},
		{[]int{-1}, nil, mpierr.Arg},
		{[]int{0, 0, 0, 0, 0}, nil, mpierr.Arg}, {[]int{1, 2}, []int{1, 2}, mpierr.Rank},
		{[]int{1, 2}, []int{1, -1}, mpierr.Rank},
		{[]int{1, 2}, []int{1, 0, 99}, 0}, {[]int{1, 2}, []int{1}, mpierr.Arg},
	} {
		if _, err := NewGraph(c.index, c.edges, 4); mpierr.ClassOf(err) != c.class {
			t.Errorf("%v %v: %v", c.index, c.edges, err)
		}
	}
}

type edge struct{ from, to, weight int }

// TestRoute: whichever process contributes an edge, both its ends get it, in the same order at
// both.
func TestRoute(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 200 {
		n := 1 + rng.IntN(7)
		weighted := round%2 == 0
		var want []edge
		all := make([][]byte, n)
		for i := range all {
			c := Contribution{Weighted: weighted}
			for range rng.IntN(4) {
				from, degree := rng.IntN(n), rng.IntN(4)
				c.Sources, c.Degrees = append(c.Sources, from), append(c.Degrees, degree)
				for range degree {
					e := edge{from: from, to: rng.IntN(n)}
					if weighted {
						e.weight = rng.IntN(1000)
						c.Weights = append(c.Weights, e.weight)
					}
					c.Dests = append(c.Dests, e.to)
					want = append(want, e)
				}
			}
			if err := c.Check(n); err != nil {
				t.Fatal(err)
			}
			all[i] = c.Encode()
		}
		parts, err := Route(all)
		if err != nil {
			t.Fatal(err)
		}
		checkParts(t, parts, want, weighted)
	}
}

func checkParts(t *testing.T, parts [][]byte, want []edge, weighted bool) {
	t.Helper()
	var out, in []edge
	for r, b := range parts {
		g, err := DecodePart(b)
		if err != nil || g.Weighted != weighted || weighted &&
			(len(g.SourceWeights) != len(g.Sources) || len(g.DestWeights) != len(g.Dests)) {
			t.Fatalf("rank %d: %+v %v", r, g, err)
		}
		weight := func(list []int, i int) int {
			if weighted {
				return list[i]
			}
			return 0
		}
		for i, to := range g.Dests {
			out = append(out, edge{r, to, weight(g.DestWeights, i)})
		}
		for i, from := range g.Sources {
			in = append(in, edge{from, r, weight(g.SourceWeights, i)})
		}
	}
	// Stable sorts: parallel edges keep the order in which they were contributed.
	byEnds := func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from),
			cmp.Compare(a.to, b.to))
	}
	want = slices.Clone(want)
	for _, list := range [][]edge{want, out, in} {
		slices.SortStableFunc(list, byEnds)
	}
	if !slices.Equal(want, out) || !slices.Equal(want, in) {
		t.Fatalf("edges %v\nout   %v\nin    %v", want, out, in)
	}
}

func TestRouteModes(t *testing.T) {
	none, would := (&Contribution{}).Encode(), (&Contribution{Weighted: true}).Encode()
	plain := (&Contribution{Sources: []int{0}, Degrees: []int{1}, Dests: []int{1}}).Encode()
	heavy := (&Contribution{Sources: []int{1}, Degrees: []int{1}, Dests: []int{0},
		Weights: []int{7}, Weighted: true}).Encode()
	for _, c := range []struct {
		all      [][]byte
		weighted bool
		class    mpierr.Class
	}{
		{[][]byte{none, none}, false, 0}, {[][]byte{would, would}, true, 0},
		{[][]byte{plain, none}, false, 0},
		{[][]byte{plain, would}, false, 0}, {[][]byte{heavy, none}, true, 0},
		{[][]byte{heavy, plain}, false, mpierr.Arg},
		{[][]byte{heavy[:7], none}, false, mpierr.Intern}, {[][]byte{heavy}, false, mpierr.Intern},
		{[][]byte{{}}, false, mpierr.Intern},
	} {
		parts, err := Route(c.all)
		if mpierr.ClassOf(err) != c.class {
			t.Fatalf("%v: %v", c.all, err)
		}
		for _, b := range parts {
			if g, err := DecodePart(b); err != nil || g.Weighted != c.weighted {
				t.Errorf("%v: %+v %v", c.all, g, err)
			}
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 9), appendWords(nil, 0, 5, 1, 1)} {
		if g, err := DecodePart(bad); err == nil {
			t.Errorf("% x is %+v", bad, g)
		}
	}
}

func TestDistGraphErrors(t *testing.T) {
	for _, c := range []struct {
		in, inw, out, outw []int
		class              mpierr.Class
	}{
		{[]int{0, 2}, nil, []int{1, 1}, nil, 0}, {[]int{3}, nil, nil, nil, mpierr.Rank},
		{nil, nil, []int{-1}, nil, mpierr.Rank},
		{[]int{0}, []int{-1}, nil, nil, mpierr.Arg}, {nil, nil, []int{0}, []int{-5}, mpierr.Arg},
		{[]int{1}, []int{0}, []int{2}, []int{4}, 0},
	} {
		g, err := NewAdjacent(c.in, c.inw, c.out, c.outw, c.inw != nil, 3)
		if mpierr.ClassOf(err) != c.class {
			t.Errorf("%v: %v", c, err)
		}
		if err == nil {
			if diff := gocmp.Diff(Neighbors{Sources: c.in, Dests: c.out},
				g.Neighbors(0)); diff != "" {
				t.Error(diff)
			}
		}
	}
	for _, c := range []struct {
		c     Contribution
		class mpierr.Class
	}{
		{Contribution{Sources: []int{0}, Dests: []int{2}}, 0},
		{Contribution{Sources: []int{3}}, mpierr.Rank},
		{Contribution{Dests: []int{-1}}, mpierr.Rank},
		{Contribution{Weights: []int{1, -1}}, mpierr.Arg},
	} {
		if err := c.c.Check(3); mpierr.ClassOf(err) != c.class {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
	if _, err := EndCount([]int{1, -1}); mpierr.ClassOf(err) != mpierr.Arg {
		t.Error(err)
	}
}
