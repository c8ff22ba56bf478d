// Package picture draws trees of switches. It is separate from net/topo, which the library links:
// no process of a job draws any.
package picture

import (
	"fmt"
	"html"
	"strings"

	"libspx/net/topo"
)

// Sizes in the picture, in pixels.
const (
	lineHeight  = 16
	levelHeight = 56
	letterWidth = 7.2
	mostLines   = 12 // names below a switch; more of them are counted
)

// drawing is a picture while it is made.
type drawing struct {
	next, hosts [][]int
	names       []string
	width       []float64 // of a switch with all below it
	body        strings.Builder
	bottom      float64
}

// SVG draws a tree from the switch in its middle downwards, with the names of the hosts below their
// switches.
func SVG(t *topo.Tree, names []string) string {
	d := &drawing{next: t.Neighbors(), hosts: t.Hosts(), names: names, width: make([]float64, t.N),
		bottom: levelHeight}
	total := 200.0
	if t.N > 0 {
		total = 0
		for _, root := range t.Roots(d.next) {
			wide := d.measure(root, -1)
			d.draw(root, -1, total, levelHeight/2)
			total += wide
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, total, d.bottom, total, d.bottom, d.body.String())
}

// lines are the names below a switch.
func (d *drawing) lines(s int) (list []string) {
	for i, h := range d.hosts[s] {
		if i == mostLines && len(d.hosts[s]) > mostLines+1 {
			return append(list, fmt.Sprintf("and %d more", len(d.hosts[s])-i))
		}
		list = append(list, d.names[h])
	}
	return list
}

// own is how wide a switch is, with its names.
func (d *drawing) own(s int) float64 {
	letters := len("switch 000")
	for _, line := range d.lines(s) {
		letters = max(letters, len(line))
	}
	return letterWidth*float64(letters) + 24
}

func (d *drawing) measure(s, from int) float64 {
	below := 0.0
	for _, n := range d.next[s] {
		if n != from {
			below += d.measure(n, s)
		}
	}
	d.width[s] = d.own(s) + below
	if below > 0 && len(d.hosts[s]) == 0 {
		d.width[s] = max(d.own(s), below)
	}
	return d.width[s]
}

// draw puts a switch over what is below it; its own hosts stand to the left of that.
func (d *drawing) draw(s, from int, left, y float64) (x float64) {
	x = left + d.width[s]/2
	right := left
	if len(d.hosts[s]) > 0 {
		x = left + d.own(s)/2
		right += d.own(s)
	}
	for _, n := range d.next[s] {
		if n != from {
			cx := d.draw(n, s, right, y+levelHeight)
			fmt.Fprintf(&d.body, `<path d="M%.1f %.1fV%.1fH%.1fV%.1f" fill="none" stroke="#456"/>`+
				"\n", x, y+10, y+levelHeight/2-2, cx, y+levelHeight-10)
			right += d.width[n]
		}
	}
	fmt.Fprintf(&d.body,
		`<rect x="%.1f" y="%.1f" width="76" height="20" rx="3" fill="#cde" stroke="#456"/><text x="%.1f" y="%.1f" text-anchor="middle">switch %d</text>`+"\n",
		x-38, y-10, x, y+4, s)
	for i, line := range d.lines(s) {
		d.hostLine(s, line, x-30, y+levelHeight/2+float64(i*lineHeight))
	}
	d.bottom = max(d.bottom, y+levelHeight/2)
	return x
}

func (d *drawing) hostLine(s int, line string, x, y float64) {
	if len(d.next[s]) > 0 { // beside the line down to other switches
		x += 6
	}
	fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" fill="#333">%s</text>`+"\n", x, y,
		html.EscapeString(line))
	d.bottom = max(d.bottom, y+lineHeight)
}
