package topo

import (
	"math"
	"slices"

	"libspx/core/mpierr"
)

// Balance is MPI_Dims_create (MPI-5.0, 9.5.2): it returns dims with its zeros replaced, so that the
// product is n. What it sets does not increase. Of all such grids it takes the most balanced: the
// difference of the largest and the smallest of the new dimensions is as small as can be; then the
// smallest is as large as can be, then the second smallest, and so on.
//
// Errors: MPI_ERR_ARG when n is not positive; MPI_ERR_DIMS for a negative dimension, or when no
// grid with the given dimensions has n points.
func Balance(n int, dims []int) ([]int, error) {
	if n < 1 {
		return nil, mpierr.New(mpierr.Arg, "nnodes is %d: it must be 1 or more", n)
	}
	rest, free := n, 0
	for i, d := range dims {
		switch {
		case d < 0:
			return nil, mpierr.New(mpierr.Dims,
				"dims[%d] is %d: it must be 0, or the number of points that is wanted", i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return nil, mpierr.New(mpierr.Dims,
				"dims %v: nnodes = %d is not a multiple of the product of the given dimensions",
				dims, n)
		default:
			rest /= d
		}
	}
	if free == 0 && rest != 1 {
		return nil, mpierr.New(mpierr.Dims,
			"dims %v: all dimensions are given, and their product is not nnodes = %d", dims, n)
	}
	factors := factorize(rest, free)
	out := slices.Clone(dims)
	for i, d := range out {
		if d == 0 {
			free--
			out[i] = factors[free]
		}
	}
	return out, nil
}

// factorize writes n as the product of k factors, in ascending order, as Balance wants them.
func factorize(n, k int) []int {
	if k == 0 {
		return nil
	}
	s := splitter{divisors: divisors(n)}
	best := math.MaxInt
	var found []int
	for i := len(s.divisors) - 1; i >= 0; i-- {
		smallest := s.divisors[i]
		if smallest > root(n, k) {
			continue
		}
		if k == 1 {
			return []int{n}
		}
		// With a smaller smallest factor the others must be larger: no better from here on.
		if ceilRoot(n/smallest, k-1)-smallest >= best {
			break
		}
		for _, largest := range s.divisors {
			if largest < smallest || largest-smallest >= best {
				continue
			}
			s.largest, s.failed = largest, map[task]bool{}
			if rest := s.fill(n/smallest, k-1, smallest, nil); rest != nil {
				best, found = largest-smallest, append([]int{smallest}, rest...)
				break
			}
		}
	}
	return found
}

// splitter looks for factors that are at most largest.
type splitter struct {
	divisors []int // of the whole, ascending
	largest  int
	failed   map[task]bool // has no solution
}

type task struct{ n, k, least int }

// fill appends k factors of n to out, each at least least, in ascending order, the first as large
// as can be, then the second, and so on; nil when there are none.
func (s *splitter) fill(n, k, least int, out []int) []int {
	if k == 1 {
		if n < least || n > s.largest {
			return nil
		}
		return append(out, n)
	}
	t := task{n, k, least}
	if ceilRoot(n, k) > s.largest || s.failed[t] {
		return nil
	}
	at, _ := slices.BinarySearch(s.divisors, root(n, k)+1)
	for at--; at >= 0 && s.divisors[at] >= least; at-- {
		if d := s.divisors[at]; n%d == 0 {
			if found := s.fill(n/d, k-1, d, append(out, d)); found != nil {
				return found
			}
		}
	}
	s.failed[t] = true
	return nil
}

// divisors lists the divisors of n, ascending.
func divisors(n int) []int {
	var low, high []int
	for d := 1; d*d <= n; d++ {
		if n%d == 0 {
			low = append(low, d)
			if d*d < n {
				high = append(high, n/d)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

// root is the largest r with r^k <= n; ceilRoot the smallest with r^k >= n. n and k are 1 or more.
func root(n, k int) int {
	r := int(math.Pow(float64(n), 1/float64(k)))
	for r > 1 && powerExceeds(r, k, n) {
		r--
	}
	for !powerExceeds(r+1, k, n) {
		r++
	}
	return r
}

func ceilRoot(n, k int) int {
	r := root(n, k)
	if r > 1 && powerExceeds(r, k, n-1) || n == 1 {
		return r
	}
	return r + 1
}

// powerExceeds reports whether r^k > n.
func powerExceeds(r, k, n int) bool {
	p := 1
	for range k {
		if p *= r; p > n {
			return true
		}
		if r == 1 {
			break
		}
	}
	return p > n
}
