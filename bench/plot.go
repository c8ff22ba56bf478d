package main

import (
	"fmt"
	"strings"

	"libspx/bench/stats"
	svgfile "libspx/bench/svg"
)

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
				c.points = append(c.points, [2]float64{float64(bytes), l.times * stats.Median(r.values(key, row, "bare"))})
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
				c.points = append(c.points, [2]float64{float64(bytes), stats.Median(r.values(key, name, impl))})
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
				c.points = append(c.points, [2]float64{float64(setRanks(key)), stats.Median(v)})
			}
		}
		if len(c.points) > 2 {
			curves = append(curves, c)
		}
	}
	return curves
}

func svg(title string, curves []curve, label func(float64) string) string {
	drawn := make([]svgfile.Curve, len(curves))
	for i, c := range curves {
		drawn[i] = svgfile.Curve{Name: c.name, Colour: colours[c.name], Points: c.points}
	}
	return svgfile.Draw(title, drawn, label)
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
