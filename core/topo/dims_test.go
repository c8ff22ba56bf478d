package topo

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/core/mpierr"
)

// grids lists all ways to write n as k factors, largest first.
func grids(n, k, most int) (out [][]int) {
	if k == 0 {
		if n == 1 {
			out = append(out, nil)
		}
		return out
	}
	for d := 1; d <= min(n, most); d++ {
		if n%d != 0 {
			continue
		}
		for _, rest := range grids(n/d, k-1, d) {
			out = append(out, append([]int{d}, rest...))
		}
	}
	return out
}

// better compares two grids by the rule of Balance.
func better(a, b []int) bool {
	last := len(a) - 1
	if sa, sb := a[0]-a[last], b[0]-b[last]; sa != sb {
		return sa < sb
	}
	for i := last; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] > b[i]
		}
	}
	return false
}

func TestBalanceAgainstAllGrids(t *testing.T) {
	for n := 1; n <= 400; n++ {
		for k := 1; k <= 6; k++ {
			all := grids(n, k, n)
			best := all[0]
			for _, g := range all {
				if better(g, best) {
					best = g
				}
			}
			got, err := Balance(n, make([]int, k))
			if diff := cmp.Diff(best, got); err != nil || diff != "" {
				t.Fatalf("%d points in %d dimensions: %v %s", n, k, err, diff)
			}
		}
	}
}

// TestBalanceStandard: the examples of MPI-5.0, 9.5.2, and its text on given dimensions.
func TestBalanceStandard(t *testing.T) {
	for _, c := range []struct {
		n          int
		dims, want []int
		class      mpierr.Class
	}{
		{6, []int{0, 0}, []int{3, 2}, 0},
		{7, []int{0, 0}, []int{7, 1}, 0},
		{6, []int{0, 3, 0}, []int{2, 3, 1}, 0},
		{7, []int{0, 3, 0}, nil, mpierr.Dims},
		{1, []int{}, []int{}, 0},
		{2, []int{}, nil, mpierr.Dims},
		{12, []int{4, 3}, []int{4, 3}, 0},
		{12, []int{4, 1}, nil, mpierr.Dims},
		{24, []int{0, 2, 0, 0}, []int{3, 2, 2, 2}, 0},
		{4, []int{-2, 0}, nil, mpierr.Dims},
		{0, []int{0}, nil, mpierr.Arg},
		{-3, []int{0}, nil, mpierr.Arg},
	} {
		before := slices.Clone(c.dims)
		got, err := Balance(c.n, c.dims)
		if mpierr.ClassOf(err) != c.class {
			t.Errorf("%d, %v: %v", c.n, c.dims, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%d, %v: %s", c.n, c.dims, diff)
		}
		if !slices.Equal(before, c.dims) {
			t.Errorf("%d, %v: the argument was changed", c.n, before)
		}
	}
}

// TestBalanceLarge: numbers with very many divisors or only one, and more dimensions than factors,
// end soon and are right.
func TestBalanceLarge(t *testing.T) {
	for _, c := range []struct{ n, k int }{
		{2095133040, 2}, {2095133040, 3}, {2095133040, 6}, {2095133040, 12}, {2095133040, 15},
		{2147483647, 4}, {1 << 30, 30},
		{1 << 30, 7}, {1 << 30, 64}, {1999 << 20, 9}, {1999 << 20, 21}, {1000000000, 3},
		{1102701600, 10}, {46337 * 46337, 2}, {1, 40},
	} {
		got, err := Balance(c.n, make([]int, c.k))
		if err != nil {
			t.Fatal(err)
		}
		product := 1
		for i, d := range got {
			product *= d
			if i > 0 && d > got[i-1] {
				t.Errorf("%d in %d dimensions: %v increases", c.n, c.k, got)
			}
		}
		if product != c.n {
			t.Errorf("%d in %d dimensions: the product of %v is %d", c.n, c.k, got, product)
		}
	}
	if got, _ := Balance(1000000000, make([]int, 3)); !slices.Equal(got, []int{1000, 1000, 1000}) {
		t.Errorf("a billion is %v", got)
	}
}
