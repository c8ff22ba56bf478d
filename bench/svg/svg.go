// Package svg draws the plots of the benchmarks. It knows nothing of what is measured.
package svg

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const width, height, left, bottom = 640, 360, 60, 40

// Curve is one line of a plot. Points are (x, y); one that has no place on a logarithmic axis, as what
// was never measured, is left out.
type Curve struct {
	Name, Colour string
	Points       [][2]float64
}

// Draw is the text of an SVG file: curves on two logarithmic axes, with a label for each point of the first.
func Draw(title string, curves []Curve, label func(float64) string) string {
	curves = placed(curves)
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, c := range curves {
		for _, p := range c.Points {
			for k := range 2 {
				low[k], high[k] = min(low[k], math.Log10(p[k])), max(high[k], math.Log10(p[k]))
			}
		}
	}
	low[1], high[1] = math.Floor(low[1]), math.Ceil(high[1])
	x := func(v float64) float64 {
		return left + (math.Log10(v)-low[0])/max(high[0]-low[0], 1e-9)*(width-left-110)
	}
	y := func(v float64) float64 {
		return height - bottom - (math.Log10(v)-low[1])/max(high[1]-low[1], 1e-9)*(height-bottom-40)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="22" font-size="15">%s</text>`+"\n", left, title)
	for e := low[1]; e <= high[1]; e++ {
		v := math.Pow(10, e)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, width-110, y(v), y(v), left-6, y(v)+4, v)
	}
	for _, p := range first(curves).Points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(p[0]), height-bottom+18, label(p[0]))
	}
	for i, c := range curves {
		var path []string
		for _, p := range c.Points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(p[0]), y(p[1]), c.Colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), c.Colour)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-95, 60+20*i, c.Colour, c.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// placed are the curves without what has no logarithm.
func placed(curves []Curve) []Curve {
	list := slices.Clone(curves)
	for i := range list {
		list[i].Points = slices.DeleteFunc(slices.Clone(list[i].Points), func(p [2]float64) bool {
			return !(p[0] > 0 && p[1] > 0) || math.IsInf(p[0]*p[1], 1)
		})
	}
	return slices.DeleteFunc(list, func(c Curve) bool { return len(c.Points) == 0 })
}

func first(curves []Curve) Curve {
	if len(curves) == 0 {
		return Curve{}
	}
	return curves[0]
}
