package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// median of a copy of the values; NaN when there are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	m := len(v) / 2
	if len(v)%2 == 1 {
		return v[m]
	}
	return (v[m-1] + v[m]) / 2
}

// interval is a 95 % bootstrap interval of the median of paired ratios.
type interval struct {
	Median, Low, High float64
}

// ratios returns the median of a[i]/b[i] over the rounds, with its interval: the rounds are drawn again, with replacement,
// 2000 times from a seeded source, so that the same measurements give the same interval.
func ratios(a, b []float64) interval {
	n := min(len(a), len(b))
	r := make([]float64, n)
	for i := range r {
		r[i] = a[i] / b[i]
	}
	if n == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
	}
	source := rand.New(rand.NewPCG(1, uint64(n)))
	medians := make([]float64, 2000)
	draw := make([]float64, n)
	for k := range medians {
		for i := range draw {
			draw[i] = r[source.IntN(n)]
		}
		medians[k] = median(draw)
	}
	slices.Sort(medians)
	return interval{median(r), medians[len(medians)*25/1000], medians[len(medians)*975/1000]}
}
