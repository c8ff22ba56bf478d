package topo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/core/mpierr"
)

// randomCart has up to four dimensions of up to five points.
func randomCart(rng *rand.Rand) *Cart {
	c := &Cart{}
	for range rng.IntN(5) {
		c.Dims = append(c.Dims, 1+rng.IntN(5))
		c.Periods = append(c.Periods, rng.IntN(2) == 0)
	}
	return c
}

// points lists the coordinates of all points in the order of ranks, by counting.
func points(dims []int) [][]int {
	out := [][]int{{}}
	for _, d := range dims {
		var next [][]int
		for _, p := range out {
			for x := range d {
				next = append(next, append(slices.Clone(p), x))
			}
		}
		out = next
	}
	return out
}

// find is the naive inverse of points: the rank of a point, wrapped where periodic; ProcNull when
// outside.
func find(c *Cart, all [][]int, p []int) int {
	p = slices.Clone(p)
	for i, d := range c.Dims {
		for ; c.Periods[i] && p[i] < 0; p[i] += d {
		}
		for ; c.Periods[i] && p[i] >= d; p[i] -= d {
		}
	}
	for r, q := range all {
		if slices.Equal(p, q) {
			return r
		}
	}
	return ProcNull
}

func TestCartAgainstPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c := randomCart(rng)
		all := points(c.Dims)
		if c.Size() != len(all) {
			t.Fatalf("%+v has %d points, not %d", c, len(all), c.Size())
		}
		for r, p := range all {
			if got := c.Coords(r); !slices.Equal(got, p) {
				t.Fatalf("%+v: rank %d at %v, not %v", c, r, p, got)
			}
			var neighbors []int
			for i := range c.Dims {
				disp := rng.IntN(23) - 11
				from, to := slices.Clone(p), slices.Clone(p)
				from[i] -= disp
				to[i] += disp
				source, dest, err := c.Shift(r, i, disp)
				if err != nil || source != find(c, all, from) || dest != find(c, all, to) {
					t.Fatalf("%+v: rank %d shifted by %d in dimension %d: %d %d %v", c, r, disp, i,
						source, dest, err)
				}
				got, err := c.Rank(to)
				if want := find(c, all, to); want != ProcNull && (got != want || err != nil) ||
					want == ProcNull && mpierr.ClassOf(err) != mpierr.Arg {
					t.Fatalf("%+v: %v is %d (%v), not %d", c, to, got, err, want)
				}
				lo, hi := slices.Clone(p), slices.Clone(p)
				lo[i]--
				hi[i]++
				neighbors = append(neighbors, find(c, all, lo), find(c, all, hi))
			}
			n := c.Neighbors(r)
			if !slices.Equal(n.Sources, neighbors) || !slices.Equal(n.Dests, neighbors) ||
				!n.Paired {
				t.Fatalf("%+v: neighbours of %d are %+v, not %v", c, r, n, neighbors)
			}
		}
	}
}

// TestCartSub: points with equal coordinates in the dropped dimensions share a grid, in which they
// are ordered as before.
func TestCartSub(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		c := randomCart(rng)
		keep := make([]bool, len(c.Dims))
		var dims []int
		var periods []bool
		for i := range keep {
			if keep[i] = rng.IntN(2) == 0; keep[i] {
				dims, periods = append(dims, c.Dims[i]), append(periods, c.Periods[i])
			}
		}
		numbers := map[string]int{}
		seen := map[[2]int]bool{}
		for r, p := range points(c.Dims) {
			sub, number, rank := c.Sub(r, keep)
			if diff := cmp.Diff(&Cart{dims, periods}, sub); diff != "" {
				t.Fatalf("%+v keeping %v: %s", c, keep, diff)
			}
			var dropped, kept []int
			for i, x := range p {
				if keep[i] {
					kept = append(kept, x)
				} else {
					dropped = append(dropped, x)
				}
			}
			name := fmt.Sprint(dropped)
			if was, ok := numbers[name]; ok && was != number {
				t.Fatalf("%+v keeping %v: rank %d is in grid %d, its companions in %d", c, keep, r,
					number, was)
			}
			numbers[name] = number
			if !slices.Equal(sub.Coords(rank), kept) || seen[[2]int{number, rank}] {
				t.Fatalf("%+v keeping %v: rank %d becomes %d of grid %d", c, keep, r, rank, number)
			}
			seen[[2]int{number, rank}] = true
		}
	}
}

func TestNewCart(t *testing.T) {
	for _, c := range []struct {
		dims  []int
		size  int
		class mpierr.Class
	}{
		{nil, 1, 0}, {[]int{2, 3}, 6, 0}, {[]int{2, 3}, 7, 0}, {[]int{2, 3}, 5, mpierr.Dims},
		{[]int{0, 3}, 5, mpierr.Dims},
		{[]int{3, -1}, 5, mpierr.Dims}, {[]int{1 << 30, 1 << 30, 1 << 30}, 1 << 30, mpierr.Dims},
	} {
		if _, err := NewCart(c.dims, make([]bool, len(c.dims)), c.size); mpierr.ClassOf(
			err) != c.class {
			t.Errorf("%v of %d: %v", c.dims, c.size, err)
		}
	}
	c := &Cart{Dims: []int{3}, Periods: []bool{true}}
	for _, d := range []int{-1, 1} {
		if _, _, err := c.Shift(0, d, 1); mpierr.ClassOf(err) != mpierr.Dims {
			t.Errorf("direction %d: %v", d, err)
		}
	}
}
