package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"

	"libspx/launch/trace"
)

// Pictures are drawn in units of a page that is 1200 wide.
const (
	pageWidth = 1200.0
	leftWidth = 150.0 // for the names of ranks
)

// A drawing is a picture that grows downwards.
type drawing struct {
	strings.Builder
	height float64
}

func (d *drawing) rect(x, y, w, h float64, fill, title string) {
	fmt.Fprintf(d, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"`, x, y,
		max(w, 0.3), h, fill)
	if title == "" {
		d.WriteString("/>")
		return
	}
	fmt.Fprintf(d, "><title>%s</title></rect>", html.EscapeString(title))
}

// text is written at a place; anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, class, s string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor,
		class, html.EscapeString(s))
}

func (d *drawing) line(x1, y1, x2, y2 float64, stroke string, width float64) {
	fmt.Fprintf(d,
		`<line x1="%.2f" y1="%.2f" x2="%.2f" y2="%.2f" stroke="%s" stroke-width="%.2f"/>`, x1, y1,
		x2, y2, stroke, width)
}

func (d *drawing) done(title string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">%s</svg>`, pageWidth, d.height,
		html.EscapeString(title), d.String()))
}

// The kinds of calls that have a colour of their own.
var kinds = []struct{ name, colour string }{
	{"computing", "#dfe5ec"}, {"point-to-point", "#2f6fb5"}, {"waiting for requests", "#6ea8dc"},
	{"collectives", "#d9822b"}, {"one-sided", "#7a52a3"}, {"files", "#8a6d3b"},
	{"beginning and end", "#7b8794"}, {"other", "#4c9f70"},
}

const computing = 0

// kindOf is the kind of a call, by its name and chapter.
func kindOf(name, chapter string) int {
	rest := strings.TrimPrefix(name, "MPI_")
	switch {
	case strings.HasPrefix(rest, "Wait"), strings.HasPrefix(rest, "Test"):
		return 2
	case chapter == "coll", chapter == "neighbor":
		return 3
	case chapter == "p2p", chapter == "mcast":
		return 1
	case chapter == "rma":
		return 4
	case chapter == "io":
		return 5
	case strings.HasPrefix(rest, "Init"), rest == "Finalize", strings.HasPrefix(rest, "Session_"):
		return 6
	}
	return 7
}

func (d *drawing) legend(y float64, which []int) {
	x := leftWidth
	for _, k := range which {
		d.rect(x, y-9, 11, 11, kinds[k].colour, "")
		d.text(x+16, y+1, "start", "", kinds[k].name)
		x += 34 + 6.6*float64(len(kinds[k].name))
	}
}

// rowHeight is that of a rank's row when there are so many.
func rowHeight(n int) float64 { return math.Max(2, math.Min(22, 640/float64(max(1, n)))) }

// named: rows are high enough for a name in each, or in each so many.
func named(i int, h float64) bool {
	every := int(math.Ceil(13 / h))
	return i%every == 0
}

// mostArrows are drawn: more hide what is below.
const mostArrows = 300

func (t *Timeline) timeline() template.HTML {
	j, d := t.Job, &drawing{}
	n := len(j.Ranks)
	h := rowHeight(n)
	const top = 44.0
	scale := (pageWidth - leftWidth - 10) / math.Max(j.Seconds*1e6, 1)
	used := map[int]bool{computing: true}
	row := map[int]float64{}
	for i, r := range j.Ranks {
		y := top + float64(i)*h
		row[r.Proc] = y + h/2
		if named(i, h) {
			d.text(leftWidth-8, y+h/2+4, "end", "", r.Name)
		}
		d.rect(leftWidth+r.Began*1e6*scale, y+h*0.1, (r.Ended-r.Began)*1e6*scale, h*0.8,
			kinds[computing].colour, "")
		t.bars(d, r.Proc, y+h*0.1, h*0.8, scale, used)
	}
	bottom := top + float64(n)*h
	for i, a := range t.Arrows {
		if len(t.Arrows) > mostArrows && i%(len(t.Arrows)/mostArrows+1) != 0 {
			continue
		}
		if y1, ok := row[a.From]; ok {
			if y2, ok := row[a.To]; ok && y1 != y2 {
				d.line(leftWidth+a.Out*scale, y1, leftWidth+a.In*scale, y2, "rgba(20,30,45,0.45)",
					0.7)
			}
		}
	}
	for _, m := range t.Marks {
		y, ok := row[m.Process]
		if !ok {
			continue
		}
		x := leftWidth + m.Time*scale
		size := math.Min(5, h/2)
		fmt.Fprintf(d,
			`<g stroke="#a31621" stroke-width="2"><line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><title>%s</title></g>`,
			x-size, y-size, x+size, y+size, x-size, y+size, x+size, y-size,
			html.EscapeString(m.Name))
	}
	d.axis(bottom+4, scale, j.Seconds)
	d.legend(14, sorted(used))
	d.height = bottom + 28
	note := ""
	if len(t.Arrows) > mostArrows {
		note = fmt.Sprintf("<p>One of %d messages has an arrow here.</p>",
			len(t.Arrows)/mostArrows+1)
	}
	return d.done("timeline") + template.HTML(note)
}

func sorted(used map[int]bool) (list []int) {
	for k := range used {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// bars draws the calls of a process: those that are wide enough one by one, the rest by the
// dominant call of each piece of time.
func (t *Timeline) bars(d *drawing, proc int, y, h, scale float64, used map[int]bool) {
	const wide, piece = 2.0, 1.0
	pieces := map[int]*[8]float64{}
	for _, e := range t.Calls[proc] {
		kind := kindOf(e.Name, e.Category)
		used[kind] = true
		x, w := e.Time*scale, e.Duration*scale
		if w >= wide {
			title := fmt.Sprintf("%s, %s", e.Name, duration(e.Duration))
			if at, ok := e.Args["at"].(string); ok {
				title += ", in " + at
			}
			d.rect(leftWidth+x, y, w, h, kinds[kind].colour, title)
			continue
		}
		for at := x; at < x+w || at == x; {
			p := int(at / piece)
			end := math.Min(x+w, float64(p+1)*piece)
			if pieces[p] == nil {
				pieces[p] = &[8]float64{}
			}
			pieces[p][kind] += end - at
			if end <= at {
				break
			}
			at = end
		}
	}
	for p, shares := range pieces {
		best, sum := 1, 0.0
		for k, s := range shares {
			sum += s
			if s > shares[best] {
				best = k
			}
		}
		d.rect(leftWidth+float64(p)*piece, y, math.Min(sum, piece), h, kinds[best].colour, "")
	}
}

// duration of so many us, in words.
func duration(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g us", us)
}

// axis draws round times.
func (d *drawing) axis(y, scale, seconds float64) {
	if seconds <= 0 {
		return
	}
	step := math.Pow(10, math.Floor(math.Log10(seconds)))
	for _, f := range []float64{1, 0.5, 0.2, 0.1} {
		if seconds/(step*f) >= 5 {
			step *= f
			break
		}
	}
	for i := 0; float64(i)*step <= seconds; i++ {
		x := leftWidth + float64(i)*step*1e6*scale
		d.line(x, y, x, y+5, "#66758a", 1)
		anchor := "middle"
		if x > pageWidth-40 {
			anchor = "end"
		}
		label := duration(float64(i) * step * 1e6)
		if i == 0 {
			label = "0"
		}
		d.text(x, y+18, anchor, "dim", label)
	}
}

// balance describes how even the load is.
func (t *Timeline) balance() string {
	most, sum := 0.0, 0.0
	who := ""
	for _, r := range t.Job.Ranks {
		c := math.Max(0, r.Ended-r.Began-r.MPI)
		sum += c
		if c > most {
			most, who = c, r.Name
		}
	}
	n := float64(len(t.Job.Ranks))
	if n == 0 || most == 0 {
		return "Time of each rank, by what it did."
	}
	return fmt.Sprintf(
		"Time of each rank, by what it did. %s has computed most: %s, %.2f times the mean. With "+
			"an even load the ranks would compute %s less at the same time.",
		strings.ToUpper(who[:1])+who[1:], duration(most*1e6),
		most*n/sum, duration((most-sum/n)*1e6))
}

func (t *Timeline) load() template.HTML {
	j, d := t.Job, &drawing{}
	h := rowHeight(len(j.Ranks))
	scale := (pageWidth - leftWidth - 10) / math.Max(j.Seconds, 1e-9)
	used := map[int]bool{computing: true}
	const top = 30.0
	for i, r := range j.Ranks {
		var by [8]float64
		for _, c := range r.Calls {
			if c.Site < len(j.Sites) {
				by[kindOf(j.Sites[c.Site].Call, trace.Chapter(j.Sites[c.Site].Call))] += c.Seconds
			}
		}
		by[computing] = math.Max(0, r.Ended-r.Began-r.MPI)
		x, y := leftWidth, top+float64(i)*h
		if named(i, h) {
			d.text(leftWidth-8, y+h/2+4, "end", "", r.Name)
		}
		for k, s := range by {
			if s > 0 {
				used[k] = true
				d.rect(x, y+h*0.1, s*scale, h*0.8, kinds[k].colour,
					fmt.Sprintf("%s, %s: %s", r.Name, kinds[k].name, duration(s*1e6)))
				x += s * scale
			}
		}
	}
	bottom := top + float64(len(j.Ranks))*h
	d.axis(bottom+4, scale/1e6, j.Seconds)
	d.legend(14, sorted(used))
	d.height = bottom + 28
	return d.done("load of the ranks")
}

var waitKinds = []struct{ name, colour string }{{trace.LateSender, "#2f6fb5"},
	{trace.LateReceiver, "#7a52a3"}, {trace.AtBarrier, "#d9822b"}, {trace.AtCollective, "#e0b03c"}}

func (t *Timeline) waits() template.HTML {
	j, d := t.Job, &drawing{}
	h, most := rowHeight(len(j.Ranks)), 0.0
	for _, r := range j.Ranks {
		sum := 0.0
		for _, s := range r.Waits {
			sum += s
		}
		most = max(most, sum)
	}
	if most == 0 {
		return "<p>None was found.</p>"
	}
	scale := (pageWidth - leftWidth - 10) / most
	const top = 30.0
	x := leftWidth
	for _, k := range waitKinds {
		d.rect(x, 5, 11, 11, k.colour, "")
		d.text(x+16, 15, "start", "", k.name)
		x += 40 + 6.6*float64(len(k.name))
	}
	for i, r := range j.Ranks {
		x, y := leftWidth, top+float64(i)*h
		if named(i, h) {
			d.text(leftWidth-8, y+h/2+4, "end", "", r.Name)
		}
		for _, k := range waitKinds {
			if s := r.Waits[k.name]; s > 0 {
				d.rect(x, y+h*0.1, s*scale, h*0.8, k.colour,
					fmt.Sprintf("%s, %s: %s", r.Name, k.name, duration(s*1e6)))
				x += s * scale
			}
		}
	}
	bottom := top + float64(len(j.Ranks))*h
	d.axis(bottom+4, scale/1e6, most)
	d.height = bottom + 28
	return d.done("wait states")
}

// places is a table of what cost most.
func (t *Timeline) places() template.HTML {
	type row struct {
		seconds, most float64
		calls         uint64
		who           string
	}
	j := t.Job
	rows := make([]row, len(j.Sites))
	all := 0.0
	for _, r := range j.Ranks {
		for _, c := range r.Calls {
			if c.Site >= len(rows) {
				continue
			}
			x := &rows[c.Site]
			x.seconds, x.calls = x.seconds+c.Seconds, x.calls+c.Calls
			all += c.Seconds
			if c.Seconds > x.most {
				x.most, x.who = c.Seconds, r.Name
			}
		}
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(rows[b].seconds,
			rows[a].seconds)
	})
	var b strings.Builder
	b.WriteString(
		`<table><tr><th class="l">call</th><th class="l">at</th><th>calls</th><th>time</th><th>% of MPI</th><th>mean</th><th class="l">most in</th></tr>`)
	for _, i := range order[:min(12, len(order))] {
		x, s := rows[i], &j.Sites[i]
		if x.calls == 0 {
			continue
		}
		fmt.Fprintf(&b,
			`<tr><td class="l">%s</td><td class="l">%s</td><td>%d</td><td>%s</td><td>%.1f</td><td>%s</td><td class="l">%s</td></tr>`, html.EscapeString(s.Call), html.EscapeString(s.Place()), x.calls, duration(x.seconds*1e6),
			100*x.seconds/math.Max(all, 1e-12), duration(x.seconds*1e6/float64(x.calls)),
			html.EscapeString(x.who))
	}
	b.WriteString("</table>")
	return template.HTML(b.String())
}
