package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"libspx/bench/machine"
	"libspx/bench/stats"
	"libspx/bench/svg"
)

func (r *results) median(name, what string) (float64, bool) {
	values := r.Figures[name][what]
	if len(values) == 0 {
		return 0, false
	}
	return stats.Median(values), true
}

var names = map[string]string{"shm": "One machine, shared memory", "tcp": "One machine, TCP", "hosts": "Hosts with a network of " + rate}

var columns = []struct {
	name   string
	iops   int
	colour string
}{{"sockets", -1, "#9ca3af"}, {"direct", 0, "#111827"}, {"k = 1", 1, "#c2410c"}, {"k = 2", 2, "#1d4ed8"}, {"k = 4", 4, "#15803d"}}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d Mi", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d Ki", n>>10)
	}
	return fmt.Sprint(n)
}

func (r *results) write(dir, kept string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	var b strings.Builder
	errs := []error{os.WriteFile(kept, append(data, '\n'), 0o644)}
	for _, net := range nets {
		if r.Rounds[net+"/direct"] == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\nLatency, microseconds (half of a round trip), and what a relay adds:\n\n", names[net])
		r.table(&b, net, "latency", func(v float64, _ int) string { return fmt.Sprintf("%.4g", v) }, false)
		b.WriteString("\nMiB in a second, and how much that is of the direct connection:\n\n")
		r.table(&b, net, "rate", func(v float64, n int) string { return fmt.Sprintf("%.4g", v*float64(n)/(1<<20)) }, true)
		b.WriteString("\nThousands of messages in a second:\n\n")
		r.table(&b, net, "rate", func(v float64, _ int) string { return fmt.Sprintf("%.4g", v/1000) }, true)
		fmt.Fprintf(&b, "\n![bandwidth](link-%s.svg)\n\nMessages of 1 MiB, MiB in a second by how many are on their way at most:\n\n", net)
		r.depths(&b, net)
		fmt.Fprintf(&b, "\n![depth](link-%s-depth.svg)\n", net)
		errs = append(errs, os.WriteFile(filepath.Join(dir, "link-"+net+".svg"), []byte(r.plot(net)), 0o644),
			os.WriteFile(filepath.Join(dir, "link-"+net+"-depth.svg"), []byte(r.depthPlot(net)), 0o644))
	}
	text := strings.NewReplacer("TABLES", b.String(), "RATE", r.Rate, "MACHINES", machine.Sentence(r.Machines)).Replace(page)
	return errors.Join(append(errs, os.WriteFile(filepath.Join(dir, "link.md"), []byte(text), 0o644))...)
}

// table is one of a row for each size.
func (r *results) table(b *strings.Builder, net, what string, figure func(v float64, bytes int) string, ratio bool) {
	head, line := "| bytes |", "|---:|"
	for _, c := range columns {
		if r.Rounds[setting{net, c.iops}.String()] > 0 {
			head, line = head+" "+c.name+" |", line+"---:|"
		}
	}
	fmt.Fprintf(b, "%s\n%s\n", head, line)
	for _, n := range sizes {
		key := fmt.Sprintf("%s %d", what, n)
		direct, _ := r.median(net+"/direct", key)
		fmt.Fprintf(b, "| %s |", sizeName(n))
		for _, c := range columns {
			v, ok := r.median(setting{net, c.iops}.String(), key)
			if !ok {
				continue
			}
			text := figure(v, n)
			if c.iops > 0 && ratio {
				text += fmt.Sprintf(" (%.0f %%)", 100*v/direct)
			} else if c.iops > 0 {
				text += fmt.Sprintf(" (+%.3g)", v-direct)
			}
			fmt.Fprintf(b, " %s |", text)
		}
		b.WriteString("\n")
	}
}

var depths = []int{1, 2, 4, 8, 16}

func (r *results) depths(b *strings.Builder, net string) {
	b.WriteString("| on their way |")
	for _, c := range columns[1:] {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n|---:|---:|---:|---:|---:|\n")
	for _, d := range depths {
		fmt.Fprintf(b, "| %d |", d)
		for _, c := range columns[1:] {
			v, _ := r.median(setting{net, c.iops}.String(), fmt.Sprintf("depth %d %d", 1<<20, d))
			fmt.Fprintf(b, " %.4g |", v)
		}
		b.WriteString("\n")
	}
}

func (r *results) plot(net string) string {
	var curves []svg.Curve
	for _, c := range columns {
		curve := svg.Curve{Name: c.name, Colour: c.colour}
		for _, n := range sizes {
			if v, ok := r.median(setting{net, c.iops}.String(), fmt.Sprintf("rate %d", n)); ok {
				curve.Points = append(curve.Points, [2]float64{float64(n), v * float64(n) / (1 << 20)})
			}
		}
		if curve.Points != nil {
			curves = append(curves, curve)
		}
	}
	return svg.Draw("MiB/s by bytes of a message: "+names[net], curves, func(v float64) string { return sizeName(int(v + 0.5)) })
}

func (r *results) depthPlot(net string) string {
	var curves []svg.Curve
	for _, c := range columns[1:] {
		curve := svg.Curve{Name: c.name, Colour: c.colour}
		for _, d := range depths {
			if v, ok := r.median(setting{net, c.iops}.String(), fmt.Sprintf("depth %d %d", 1<<20, d)); ok {
				curve.Points = append(curve.Points, [2]float64{float64(d), v})
			}
		}
		if curve.Points != nil {
			curves = append(curves, curve)
		}
	}
	return svg.Draw("MiB/s by messages of 1 MiB on their way: "+names[net], curves, func(v float64) string { return fmt.Sprintf("%.0f", v) })
}

const page = `# Links

` + "`go run ./bench/link`" + `: two clusters of one rank each and a link that leads both ways, through k = 1, 2 and 4 relays (spx-iop) and round-robin choice; beside them two ranks of one job that talk directly (*direct*),
and two programs with a TCP connection and nothing else (*sockets*). Medians of the rounds. In one direction up to 64 messages, and 32 MiB, are on their way, and each half of that is answered; sockets answer at the end. Messages are kept, as is preset: [what that costs](../decisions/kept.md).
*Hosts* are network namespaces, one for each cluster and each relay, whose connections carry RATE each way; processes sleep while they wait there (SPX_SPIN=0), since each believes to have a host for itself. All of it runs on one machine, whose processors sender, relays and receiver share. MACHINES
TABLES
## What limits it

- *Hosts.* From 4 KiB on a link carries what the network does, with one relay as with two: all but what it takes when two relays have the sender's connection at the same time, and the receiver wants one message
  after the other. A relay asks a sender for one long message after the other, and for the next one only when the one before is through or nobody takes it: when it asked for all at once, each got its part of the
  connection, and 1 MiB through two relays had 73 % of the direct bandwidth.
- *One machine.* Each byte is copied four times on its way through a relay and two times on the direct way, and both ways have the same two processors: so a link has at best half of the direct bandwidth here (a quarter to a half for 1 MiB and more), and more
  relays than one are more processes to take turns with.
- A relay adds the time of one more hop, and that of waking up a process where processes sleep.

[Systems of clusters](../systems.md).
`
