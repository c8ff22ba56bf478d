package stats

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	if m := Median([]float64{5, 1, 3}); m != 3 {
		t.Errorf("median of 5, 1, 3 = %v", m)
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median of 4, 1, 3, 2 = %v", m)
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

// A constant ratio has an interval of no width; noise around 2 has one that holds 2 and excludes 1.
func TestRatios(t *testing.T) {
	a, b := make([]float64, 15), make([]float64, 15)
	for i := range a {
		b[i] = float64(10 + i)
		a[i] = b[i] / 2
	}
	if r := Ratios(a, b); r.Median != 0.5 || r.Low != 0.5 || r.High != 0.5 {
		t.Errorf("ratio of halves = %+v", r)
	}
	for i := range a {
		a[i] = b[i] * (2 + 0.1*float64(i%5-2))
	}
	if r := Ratios(a, b); r.Low > 2 || r.High < 2 || r.Low < 1.5 {
		t.Errorf("ratio around 2 = %+v", r)
	}
}
