package main

import (
	"fmt"
	"math"
	"strings"
)

const plotWidth, plotHeight, plotLeft, plotBottom = 640, 360, 60, 40

var colours = map[string]string{"spx": "#c2410c", "mpich": "#1d4ed8", "openmpi": "#15803d", "base": "#a16207", "get": "#7c3aed", "stream": "#0891b2",
	"memcpy": "#6b7280", "cma": "#111827", "handover": "#9ca3af"}

// curve is one line of a plot: points (bytes or ranks, microseconds), both above 0.
type curve struct {
	name   string
	points [][2]float64
}

// plots are the SVG files: rows with several sizes, by number of ranks; rows that every number of ranks has, over the ranks; and getting
// beside streaming.
func (r *result) plots() map[string]string {
	files := map[string]string{}
	for _, n := range []string{"2", "4", "16"} {
		for _, row := range []string{"pingpong", "bcast", "allreduce", "allgather", "alltoall"} {
			if curves := r.overBytes(n, row, r.Impls); len(curves) > 0 {
				files[fmt.Sprintf("%s-%s.svg", row, n)] = svg(fmt.Sprintf("%s, %s ranks: microseconds by bytes", row, n), curves, bytesText)
			}
		}
	}
	for _, row := range append([]string{"jacobi 0", "barrier 0", "allreduce 8"}, hpccRows...) {
		if curves := r.overRanks(row); len(curves) > 0 {
			name, _ := splitRow(row)
			title := fmt.Sprintf("%s on %d processors: microseconds by ranks", name, r.Processors)
			files[name+"-ranks.svg"] = svg(title, curves, func(v float64) string { return fmt.Sprint(v) })
		}
	}
	for _, key := range r.sets() {
		if !strings.HasSuffix(key, " curve") {
			continue
		}
		if curves := r.overBytes(key, "curve", []string{"spx", "get", "stream"}); len(curves) > 0 {
			ranks := setRanks(key)
			title := fmt.Sprintf("half a round trip, %d ranks in pairs, beside copies: microseconds by bytes", ranks)
			files[fmt.Sprintf("get-stream-%d.svg", ranks)] = svg(title, append(curves, r.copyCurves(key)...), bytesText)
		}
	}
	return files
}

// copyCurves are the bare copies beside which a set of getting and streaming stands: all that its pairs move, with all processors.
func (r *result) copyCurves(key string) (curves []curve) {
	for _, l := range copyLimits(setRanks(key), r.Processors) {
		c := curve{name: strings.TrimSuffix(l.name, "2")}
		for _, row := range r.rows(key, "bare") {
			if name, bytes := splitRow(row); name == l.name && r.values(key, fmt.Sprint("curve ", bytes), "spx") != nil {
				c.points = append(c.points, [2]float64{float64(bytes), l.times * median(r.values(key, row, "bare"))})
			}
		}
		if len(c.points) > 1 {
			curves = append(curves, c)
		}
	}
	return curves
}

// overBytes has a curve for each implementation, over the sizes of a row.
func (r *result) overBytes(key, row string, impls []string) (curves []curve) {
	for _, impl := range impls {
		c := curve{name: impl}
		for _, name := range r.rows(key, impl) {
			if rowName, bytes := splitRow(name); rowName == row {
				c.points = append(c.points, [2]float64{float64(bytes), median(r.values(key, name, impl))})
			}
		}
		if len(c.points) > 1 {
			curves = append(curves, c)
		}
	}
	return curves
}

// overRanks has a curve for each implementation, over the numbers of ranks that have the row.
func (r *result) overRanks(row string) (curves []curve) {
	for _, impl := range r.Impls {
		c := curve{name: impl}
		for _, key := range r.sets() {
			if v := r.values(key, row, impl); len(v) > 0 {
				c.points = append(c.points, [2]float64{float64(setRanks(key)), median(v)})
			}
		}
		if len(c.points) > 2 {
			curves = append(curves, c)
		}
	}
	return curves
}

// svg draws curves on two logarithmic axes.
func svg(title string, curves []curve, label func(float64) string) string {
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
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(p[0]), plotHeight-plotBottom+18, label(p[0]))
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
