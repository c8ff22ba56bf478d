package svg

import (
	"fmt"
	"math"
	"strings"
)

// Series is a mark with an interval for each row of a plot; a row without figures has Median NaN.
type Series struct {
	Name, Colour string
	Points       []Point
}

// Point is a figure with its interval.
type Point struct{ Median, Low, High float64 }

// Intervals is the text of an SVG file: a line for each row and series, on one logarithmic axis that shows 1.
func Intervals(title string, rows []string, series []Series) string {
	const name, step, gap = 150, 16, 14
	low, high := 1.0, 1.0
	for _, s := range series {
		for _, p := range s.Points {
			if p.Low > 0 && p.High > 0 {
				low, high = min(low, p.Low), max(high, p.High)
			}
		}
	}
	ticks := []float64{1}
	for v := 0.5; v > low/1.5; v /= 2 {
		ticks = append([]float64{v}, ticks...)
	}
	for v := 2.0; v < high*1.5 || v == 2; v *= 2 {
		ticks = append(ticks, v)
	}
	low, high = min(low, ticks[0])/1.05, max(high, ticks[len(ticks)-1])*1.05
	each := len(series)*step + gap
	tall := 40 + len(rows)*each + bottom
	x := func(v float64) float64 { return name + math.Log(v/low)/math.Log(high/low)*(width-name-110) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, tall)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="22" font-size="15">%s</text>`+"\n", title)
	for _, v := range ticks {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="35" y2="%d" stroke="%s"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n",
			x(v), x(v), tall-bottom, map[bool]string{true: "#555", false: "#ddd"}[v == 1], x(v), tall-bottom+18, v)
	}
	for i, row := range rows {
		top := 40 + i*each
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", name-10, top+len(series)*step/2+4, row)
		for k, s := range series {
			p, y := s.Points[i], top+k*step+step/2
			if math.IsNaN(p.Median) {
				continue
			}
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-width="2"/><circle cx="%.1f" cy="%d" r="4" fill="%s"/>`+"\n",
				x(p.Low), x(p.High), y, y, s.Colour, x(p.Median), y, s.Colour)
		}
	}
	for k, s := range series {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-95, 60+20*k, s.Colour, s.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
