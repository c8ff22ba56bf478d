// Package stats has what the tables of the benchmarks are made with: medians, and intervals of paired ratios.
package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Median of a copy of the values; NaN when there are none.
func Median(values []float64) float64 {
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

// Interval is a 95 % bootstrap interval of the median of paired ratios.
type Interval struct {
	Median, Low, High float64
}

// Ratios returns the median of a[i]/b[i] over the rounds, with its interval: the rounds are drawn again, with replacement,
// 2000 times from a seeded source, so that the same measurements give the same interval.
func Ratios(a, b []float64) Interval {
	n := min(len(a), len(b))
	r := make([]float64, n)
	for i := range r {
		r[i] = a[i] / b[i]
	}
	if n == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	source := rand.New(rand.NewPCG(1, uint64(n)))
	medians := make([]float64, 2000)
	draw := make([]float64, n)
	for k := range medians {
		for i := range draw {
			draw[i] = r[source.IntN(n)]
		}
		medians[k] = Median(draw)
	}
	slices.Sort(medians)
	return Interval{Median(r), medians[len(medians)*25/1000], medians[len(medians)*975/1000]}
}

func (i Interval) String() string {
	if i.Median != i.Median {
		return "-"
	}
	return fmt.Sprintf("%s (%s-%s)", Figure(i.Median), Figure(i.Low), Figure(i.High))
}

// Figure prints about three significant digits.
func Figure(us float64) string {
	switch {
	case us != us: // not a number: not measured
		return "-"
	case us >= 100:
		return fmt.Sprintf("%.0f", us)
	case us >= 10:
		return fmt.Sprintf("%.1f", us)
	case us >= 1:
		return fmt.Sprintf("%.2f", us)
	}
	return fmt.Sprintf("%.3f", us)
}
