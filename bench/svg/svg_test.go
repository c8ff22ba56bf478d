package svg

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// What has no logarithm has no place, and no axis begins or ends there: it would never end.
func TestNothingMeasured(t *testing.T) {
	label := func(v float64) string { return fmt.Sprint(v) }
	zero := Curve{"zero", "red", [][2]float64{{8, 0}, {0, 8}, {16, math.NaN()}, {16, math.Inf(1)}}}
	some := Curve{"some", "blue", [][2]float64{{8, 0}, {16, 100}, {32, 1000}}}
	text := Draw("title", []Curve{zero, some}, label)
	if n := strings.Count(text, "<circle"); n != 2 || strings.Contains(text, "zero") {
		t.Errorf("%d points of 2 in\n%s", n, text)
	}
	if text := Draw("title", []Curve{zero}, label); strings.Contains(text, "<circle") || !strings.HasSuffix(text, "</svg>\n") {
		t.Errorf("a plot of nothing:\n%s", text)
	}
}
