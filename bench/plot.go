package main

import (
	"fmt"
	"math"
	"strings"
)

const plotWidth, plotHeight, plotLeft, plotBottom = 640, 360, 60, 40

var colours = map[string]string{"spx": "#c2410c", "mpich": "#1d4ed8", "openmpi": "#15803d", "bare": "#6b7280"}

// curve is one line of a plot: points (bytes, microseconds), both above 0.
type curve struct {
	name   string
	points [][2]float64
}

// plots are the SVG files: one for each row that has several sizes, by number of ranks.
func (r *result) plots() map[string]string {
	files := map[string]string{}
	for _, n := range r.ranks() {
		for _, row := range []string{"pingpong", "bcast", "allreduce", "allgather", "alltoall"} {
			var curves []curve
			for _, impl := range r.Impls {
				c := curve{name: impl}
				for _, name := range r.rowNames(n, impl) {
					if rowName, bytes := splitRow(name); rowName == row {
						c.points = append(c.points, [2]float64{float64(bytes), median(r.Rows[n][name][impl])})
					}
				}
				if len(c.points) > 1 {
					curves = append(curves, c)
				}
			}
			if len(curves) > 0 {
				files[fmt.Sprintf("%s-%d.svg", row, n)] = svg(fmt.Sprintf("%s, %d ranks: microseconds by bytes", row, n), curves)
			}
		}
	}
	return files
}

// svg draws curves on two logarithmic axes.
func svg(title string, curves []curve) string {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, c := range curves {
		for _, p := range c.points {
			for k := range 2 {
				low[k], high[k] = min(low[k], math.Log10(p[k])), max(high[k], math.Log10(p[k]))
			}
		}
	}
	low[1], high[1] = math.Floor(low[1]), math.Ceil(high[1])
	x := func(v float64) float64 {
		return plotLeft + (math.Log10(v)-low[0])/max(high[0]-low[0], 1e-9)*(plotWidth-plotLeft-110)
	}
	y := func(v float64) float64 {
		return plotHeight - plotBottom - (math.Log10(v)-low[1])/max(high[1]-low[1], 1e-9)*(plotHeight-plotBottom-40)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="22" font-size="15">%s</text>`+"\n", plotLeft, title)
	for e := low[1]; e <= high[1]; e++ {
		v := math.Pow(10, e)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			plotLeft, plotWidth-110, y(v), y(v), plotLeft-6, y(v)+4, v)
	}
	for _, p := range curves[0].points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(p[0]), plotHeight-plotBottom+18, bytesText(p[0]))
	}
	for i, c := range curves {
		var path []string
		for _, p := range c.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(p[0]), y(p[1]), colours[c.name])
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colours[c.name])
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotWidth-95, 60+20*i, colours[c.name], c.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func bytesText(v float64) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%gM", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%gK", v/(1<<10))
	}
	return fmt.Sprintf("%g", v)
}
