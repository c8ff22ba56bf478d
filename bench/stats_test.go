package main

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	if m := median([]float64{5, 1, 3}); m != 3 {
		t.Errorf("median of 5, 1, 3 = %v", m)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median of 4, 1, 3, 2 = %v", m)
	}
	if !math.IsNaN(median(nil)) {
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
	if r := ratios(a, b); r.Median != 0.5 || r.Low != 0.5 || r.High != 0.5 {
		t.Errorf("ratio of halves = %+v", r)
	}
	for i := range a {
		a[i] = b[i] * (2 + 0.1*float64(i%5-2))
	}
	if r := ratios(a, b); r.Low > 2 || r.High < 2 || r.Low < 1.5 {
		t.Errorf("ratio around 2 = %+v", r)
	}
}

func TestRowKeys(t *testing.T) {
	got, err := parseRows("pingpong 8 0.5\nbarrier 0 12.25\n")
	if err != nil || got["pingpong 8"] != 0.5 || got["barrier 0"] != 12.25 {
		t.Errorf("parseRows = %v, %v", got, err)
	}
	if _, err := parseRows("pingpong 8\n"); err == nil {
		t.Error("a broken line was taken")
	}
}

func TestLoad(t *testing.T) {
	before := load{busy: 100, stolen: 3, idle: 1000}
	after := load{busy: 200, stolen: 8, idle: 1900}
	d := after.since(before)
	if d.stolenShare() != 5.0/1005 {
		t.Errorf("stolen share = %v", d.stolenShare())
	}
	if share := d.foreignShare(60); share != 40.0/1005 {
		t.Errorf("foreign share = %v", share)
	}
}
