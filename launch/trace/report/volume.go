package report

import (
	"fmt"
	"html/template"
	"math"

	"libspx/launch/trace"
)

// Pictures of what was sent.

// mostCells is how many rows and columns the matrix has: with more ranks, several are one.
const mostCells = 128

func (t *Timeline) matrix() template.HTML {
	j, d := t.Job, &drawing{}
	n := len(j.Ranks)
	index := map[int]int{}
	for i, r := range j.Ranks {
		index[r.Proc] = i
	}
	group := (n + mostCells - 1) / mostCells
	cells := (n + max(1, group) - 1) / max(1, group)
	if cells == 0 {
		return ""
	}
	bytes, messages := make([]float64, cells*cells), make([]float64, cells*cells)
	most := 0.0
	for i, r := range j.Ranks {
		for _, v := range r.Sent {
			if k, ok := index[v.To]; ok {
				at := i/group*cells + k/group
				bytes[at] += float64(v.Bytes)
				messages[at] += float64(v.Messages)
				most = math.Max(most, bytes[at])
			}
		}
	}
	const top, left = 30.0, 90.0
	size := math.Min(28, 520/float64(cells))
	name := func(i int) string {
		if group == 1 {
			return j.Ranks[i].Name
		}
		return fmt.Sprintf("%s and %d more", j.Ranks[i*group].Name, group-1)
	}
	d.rect(left, top, size*float64(cells), size*float64(cells), "#f5f7fa", "")
	for at, b := range bytes {
		if messages[at] == 0 {
			continue
		}
		from, to := at/cells, at%cells
		d.rect(left+float64(to)*size, top+float64(from)*size, size*0.96, size*0.96, heat(b, most),
			fmt.Sprintf("%s to %s: %.0f messages, %s", name(from), name(to), messages[at],
				trace.Bytes(uint64(b))))
	}
	for i := range cells {
		if named(i, size) {
			d.text(left-6, top+(float64(i)+0.5)*size+4, "end", "",
				fmt.Sprint(j.Ranks[i*group].Rank))
			d.text(left+(float64(i)+0.5)*size, top-6, "middle", "",
				fmt.Sprint(j.Ranks[i*group].Rank))
		}
	}
	const x = 700.0
	for i := range 40 {
		d.rect(x+float64(i)*5, top+20, 5, 14, heat(math.Pow(math.Max(most, 1), float64(i)/39),
			most), "")
	}
	d.text(x, top+14, "start", "dim", "1 B")
	d.text(x+200, top+14, "end", "dim", trace.Bytes(uint64(most)))
	d.height = top + size*float64(cells) + 10
	return d.done("communication matrix")
}

// heat is a colour from light to dark, by the logarithm.
func heat(v, most float64) string {
	f := 0.0
	if most > 1 {
		f = math.Log1p(v) / math.Log1p(most)
	}
	light, dark := [3]float64{214, 230, 245}, [3]float64{14, 52, 104}
	var c [3]int
	for i := range c {
		c[i] = int(light[i] + f*(dark[i]-light[i]))
	}
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2])
}

func (t *Timeline) sizes() template.HTML {
	d := &drawing{}
	var counts []float64
	last, most, all := -1, 0.0, 0.0
	for _, r := range t.Job.Ranks {
		for i, n := range r.Sizes {
			for len(counts) <= i {
				counts = append(counts, 0)
			}
			counts[i] += float64(n)
			if counts[i] > 0 {
				last = max(last, i)
				most = math.Max(most, counts[i])
			}
			all += float64(n)
		}
	}
	if last < 0 {
		return "<p>No message was sent by a point-to-point call.</p>"
	}
	last = max(last, 11)
	const top, high = 24.0, 180.0
	w := (pageWidth - 80) / float64(last+1)
	for i := range last + 1 {
		x, h := 40+float64(i)*w, high*counts[i]/most
		from, to := sizeRange(i)
		if counts[i] > 0 {
			d.rect(x+w*0.08, top+high-h, w*0.84, h, "#2f6fb5",
				fmt.Sprintf("%s to %s: %.0f messages, %.1f %%", from, to, counts[i],
					100*counts[i]/all))
			d.text(x+w/2, top+high-h-4, "middle", "", fmt.Sprintf("%.0f", counts[i]))
		}
		d.text(x+w/2, top+high+16, "middle", "dim", from)
	}
	d.line(40, top+high, pageWidth-40, top+high, "#66758a", 1)
	d.text(40, top+high+34, "start", "dim", "bytes of a message, from; number of messages above")
	d.height = top + high + 44
	return d.done("message sizes")
}

// sizeRange is what the entry i of Sizes counts.
func sizeRange(i int) (from, to string) {
	if i == 0 {
		return "0", "0"
	}
	return bytesShort(1 << (i - 1)), bytesShort(1<<i - 1)
}

func bytesShort(n uint64) string {
	for _, u := range []string{"", "K", "M", "G"} {
		if n < 1024 {
			return fmt.Sprintf("%d%s", n, u)
		}
		n /= 1024
	}
	return fmt.Sprintf("%dT", n)
}

// topology draws the hosts in a circle, and the bytes sent between them.
func (t *Timeline) topology() template.HTML {
	j, d := t.Job, &drawing{}
	hosts := len(j.Hosts)
	if hosts == 0 {
		return ""
	}
	host := map[int]int{}
	count := make([]int, hosts)
	for _, r := range j.Ranks {
		if r.Host < hosts {
			host[r.Proc] = r.Host
			count[r.Host]++
		}
	}
	between := map[[2]int]float64{}
	within := make([]float64, hosts)
	most := 0.0
	for _, r := range j.Ranks {
		for _, v := range r.Sent {
			to, ok := host[v.To]
			switch {
			case !ok || r.Host >= hosts:
			case to == r.Host:
				within[to] += float64(v.Bytes)
			default:
				k := [2]int{min(to, r.Host), max(to, r.Host)}
				between[k] += float64(v.Bytes)
				most = math.Max(most, between[k])
			}
		}
	}
	radius := 0.0
	if hosts > 1 {
		radius = math.Min(330, 90+18*float64(hosts))
	}
	const size = 62.0
	cx, cy := pageWidth/2, radius+size+20
	at := func(i int) (x, y float64) {
		a := 2*math.Pi*float64(i)/float64(hosts) - math.Pi/2
		return cx + 1.4*radius*math.Cos(a), cy + radius*math.Sin(a)
	}
	for k, b := range between {
		x1, y1 := at(k[0])
		x2, y2 := at(k[1])
		d.line(x1, y1, x2, y2, heat(b, most), 1+7*math.Log1p(b)/math.Log1p(math.Max(most, 1)))
		if hosts <= 8 {
			d.text((x1+x2)/2, (y1+y2)/2-5, "middle", "", trace.Bytes(uint64(b)))
		}
	}
	for i, h := range j.Hosts {
		x, y := at(i)
		fmt.Fprintf(d,
			`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="8" fill="#f5f7fa" stroke="#2f6fb5" stroke-width="1.5"/>`, x-1.2*size, y-size/2, 2.4*size, size)
		d.text(x, y-12, "middle", "", short(h.Name, 22))
		d.text(x, y+4, "middle", "dim", fmt.Sprintf("%d ranks", count[i]))
		d.text(x, y+20, "middle", "dim", "inside "+trace.Bytes(uint64(within[i])))
	}
	d.height = 2*radius + 2*size + 40
	return d.done("hosts")
}

func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "…"
}
