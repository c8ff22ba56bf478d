// Command masters counts what the masters of a system of clusters have to do, in the simulator (sim.Masters, cluster/manage): 10,000 processes in 2, 8 and 32
// clusters, for both arrangements of masters: agents of any host, and only those beside I/O processes. It writes masters.json, masters.md and masters.svg
// to docs/bench. Messages and bytes are exact; the processor's time is measured.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"libspx/bench/machine"
	"libspx/bench/svg"
	"libspx/sim"
)

type row struct {
	Clusters int       `json:"clusters"`
	IOP      bool      `json:"masters_beside_iops"`
	Quiet    sim.Loads `json:"quiet"`
	Busy     sim.Loads `json:"busy"`
}

const (
	processes = 10000
	perHost   = 16
	changes   = 100
)

func main() {
	if err := run(filepath.Join("docs", "bench")); err != nil {
		fmt.Fprintln(os.Stderr, "masters:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	began := time.Now()
	clock := func() int64 { return int64(time.Since(began)) }
	var rows []row
	for _, iop := range []bool{false, true} {
		for _, clusters := range []int{2, 8, 32} {
			r := row{Clusters: clusters, IOP: iop}
			for _, x := range []struct {
				loads *sim.Loads
				n     float64
			}{{&r.Quiet, 0}, {&r.Busy, changes}} {
				var err error
				if *x.loads, err = (sim.Masters{Clusters: clusters, Processes: processes, PerHost: perHost, IOP: iop, Changes: x.n, Clock: clock}).Run(5000, 1); err != nil {
					return fmt.Errorf("%d clusters: %w", clusters, err)
				}
			}
			rows = append(rows, r)
			fmt.Printf("%+v\n", r)
		}
	}
	data, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	text := strings.NewReplacer("PROCESSES", fmt.Sprint(processes), "PERHOST", fmt.Sprint(perHost), "CHANGES", fmt.Sprint(changes), "QUIET", table(rows, false), "BUSY", table(rows, true), "MACHINE", machine.Name()).Replace(page)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "masters.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "masters.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "masters.svg"), []byte(plot(rows)), 0o644))
}

func cell(l sim.Load) string {
	return fmt.Sprintf(" %.0f | %.0f | %.1f |", l.Messages, l.Bytes/1024, l.Work/1e6)
}

func table(rows []row, busy bool) string {
	var b strings.Builder
	b.WriteString("| masters | clusters | hosts | system: messages | KiB | ms | clusters' busiest: messages | KiB | ms | beside IOPs, busiest: messages | KiB | ms | others: messages | KiB | ms | a death is known after, ms |\n|---|" + strings.Repeat("---:|", 15) + "\n")
	for _, r := range rows {
		l, who := r.Quiet, "agents"
		if busy {
			l = r.Busy
		}
		if r.IOP {
			who = "beside IOPs"
		}
		fmt.Fprintf(&b, "| %s | %d | %d |%s%s%s%s %.0f |\n", who, r.Clusters, l.Hosts, cell(l.System), cell(l.Cluster), cell(l.IO), cell(l.Host), l.Delay)
	}
	return b.String()
}

func plot(rows []row) string {
	var curves []svg.Curve
	for k, c := range []struct {
		name, colour string
		of           func(sim.Loads) sim.Load
	}{{"system", "#c2410c", func(l sim.Loads) sim.Load { return l.System }}, {"cluster", "#1d4ed8", func(l sim.Loads) sim.Load { return l.Cluster }},
		{"beside IOPs", "#7c3aed", func(l sim.Loads) sim.Load { return l.IO }}, {"others", "#15803d", func(l sim.Loads) sim.Load { return l.Host }}} {
		for _, iop := range []bool{false, true} {
			curve := svg.Curve{Name: c.name, Colour: c.colour}
			if iop {
				curve.Name, curve.Colour = c.name+" (iop)", []string{"#fdba74", "#93c5fd", "#c4b5fd", "#86efac"}[k]
			}
			for _, r := range rows {
				if r.IOP == iop {
					curve.Points = append(curve.Points, [2]float64{float64(r.Clusters), max(c.of(r.Busy).Messages, 1)})
				}
			}
			curves = append(curves, curve)
		}
	}
	return svg.Draw("messages in a second by clusters", curves, func(v float64) string { return fmt.Sprintf("%.0f", v) })
}

const page = `# Load of the masters, simulated

` + "`go run ./bench/masters`" + `: PROCESSES processes, PERHOST on a host, in 2, 8 and 32 clusters that form a chain: each has a network of its own, and between two of them stands a host with I/O processes, which is on both.
The agents run the machines of the [management tree](../systems.md#the-management-tree) in the simulator (` + "`sim.Masters`" + `), every message takes 1 ms from agent to agent; counted over 5 s. In each second: messages that came or were relayed, KiB that
were sent, and milliseconds of one processor (MACHINE). A master has what it does for its own host in its figures, and what it relays for others. *agents*: any host's agent may be a master, and those without I/O processes are the first choice; *beside IOPs*: the
arrangement of the paper (` + "`masters = \"iop\"`" + `). The last column: from the first report of a death at one end of the chain until all agents know.

## Nothing happens

QUIET
## CHANGES processes die or are replaced in each second

BUSY
![messages by clusters](masters.svg)

The master of a cluster has work by its hosts, that of the system by the clusters: as the same processes are spread over more clusters, the former falls and the latter grows, and neither has more than a few
thousand messages in a second, and some percent of a processor. A change of how a cluster is goes down the tree at once; one of how many of its processes live goes with the next heartbeat, else the masters of 313 hosts each
would send 31,000 messages in a second where 100 processes come and go. What grows most is relaying in a chain: hosts between two networks carry the heartbeats of all clusters behind them. So
agents of other hosts as masters (the preset) keep I/O processes' hosts free of all but that, and in a chain of 32 clusters the busiest of those do twice as much as the system's master.

With real processes: in a chain of 4 clusters of 4 hosts each, all on a machine of 2 processors, the busiest master has used 0.01 s of a processor in 6.7 s (` + "`go test ./tests/systems -run TestManyClusters -v`" + `; one run, in ticks of 0.01 s).
`
