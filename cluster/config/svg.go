package config

import (
	"fmt"
	"strings"
)

// Sizes of the drawing, in pixels.
const (
	svgBox, svgHeight = 190, 74
	svgAcross, svgGap = 130, 36
	svgMargin         = 24
)

// Paint is how a cluster is shown: a line of text, and a colour of SVG for its box.
type Paint struct{ Text, Colour string }

// SVG draws the system: clusters from left to right along the links. paint, if not nil, returns the
// state of each.
func (s *System) SVG(paint func(cluster string) Paint) string {
	s = s.withOthers()
	order, layer := s.order()
	x, y := make([]int, len(s.Clusters)), make([]int, len(s.Clusters))
	var used []int // boxes in each layer
	for _, i := range order {
		for len(used) <= layer[i] {
			used = append(used, 0)
		}
		x[i] = svgMargin + layer[i]*(svgBox+svgAcross)
		y[i] = svgMargin + 30 + used[layer[i]]*(svgHeight+svgGap)
		used[layer[i]]++
	}
	tallest, back := 0, false
	for _, n := range used {
		tallest = max(tallest, n)
	}
	var links strings.Builder
	for _, a := range s.arrows() {
		back = back || layer[a.to] <= layer[a.from]
		s.drawLink(&links, a, x, y, layer)
	}
	width := 2*svgMargin + len(used)*svgBox + (len(used)-1)*svgAcross
	height := 2*svgMargin + 30 + tallest*(svgHeight+svgGap) - svgGap
	if back {
		height += svgGap + svgHeight
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	b.WriteString(
		`<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>` + "\n")
	fmt.Fprintf(&b,
		`<rect width="%d" height="%d" fill="white"/><text x="%d" y="%d" font-size="16" font-weight="bold">%s</text>`+"\n", width, height, svgMargin, svgMargin+6, escape(s.Name))
	b.WriteString(links.String())
	for i := range s.Clusters {
		drawBox(&b, &s.Clusters[i], x[i], y[i], paint)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawLink draws a curve: to the right between layers, else below the boxes.
func (s *System) drawLink(b *strings.Builder, a arrow, x, y, layer []int) {
	l := &s.Links[a.link]
	start := ""
	if l.Bidirectional {
		start = ` marker-start="url(#a)"`
	}
	x1, y1, x2, y2 := x[a.from]+svgBox, y[a.from]+svgHeight/2, x[a.to], y[a.to]+svgHeight/2
	mx, my := (x1+x2)/2, (y1+y2)/2
	path := fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, mx, y1, mx, y2, x2, y2)
	if layer[a.to] <= layer[a.from] {
		x1, x2 = x[a.from]+svgBox/2, x[a.to]+svgBox/2
		y1, y2 = y[a.from]+svgHeight, y[a.to]+svgHeight
		low := max(y1, y2) + svgHeight
		path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, low, x2, low, x2, y2)
		mx, my = (x1+x2)/2, (y1+y2+6*low)/8
	}
	fmt.Fprintf(b,
		`<path d="%s" fill="none" stroke="#444" stroke-width="1.5" marker-end="url(#a)"%s/>`+"\n",
		path, start)
	fmt.Fprintf(b,
		`<circle cx="%d" cy="%d" r="11" fill="#fff" stroke="#444"/><text x="%d" y="%d" text-anchor="middle">%d</text>`+"\n", mx, my, mx, my+5, l.IOPs)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-size="10" fill="#444">%s</text>`+
		"\n", mx, my-16, escape(l.Choice))
}

func drawBox(b *strings.Builder, c *Cluster, x, y int, paint func(string) Paint) {
	p := Paint{Colour: "#dde8f5"}
	if paint != nil {
		p = paint(c.Name)
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="#333"/>`+
		"\n", x, y, svgBox, svgHeight, escape(p.Colour))
	texts := []string{c.Name, c.size(), shorten(c.Program, 28), shorten(p.Text, 30)}
	if c.Ranks == 0 {
		texts = []string{c.Name, elsewhere}
	}
	for k, text := range texts {
		weight := ""
		if k == 0 {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(b, `<text x="%d" y="%d"%s>%s</text>`+"\n", x+10, y+18+k*16, weight,
			escape(text))
	}
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return "..." + string(r[len(r)-most+3:])
	}
	return s
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes text fit for XML, also where a control character has come into it.
func escape(s string) string {
	return escapes.Replace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0xFFFE || c == 0xFFFF || c == 0x7f {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(s, "?")))
}
