// Command masters counts what the masters of a system of clusters have to do, in the simulator (sim.Masters, cluster/manage): 10,000 processes in 1 to 32
// clusters, for both arrangements of masters: agents of any host, and only those beside I/O processes. Messages and bytes are exact; the processor's time is measured. With -hosts
// it measures what masters and agents use of a machine, with real processes on so many hosts (scripts/hosts, as root). What the other way has found is kept in masters.json;
// masters.md and masters.svg are written anew.
//
//	go run ./bench/masters
//	go run ./bench/masters -hosts 64
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"libspx/bench/machine"
	"libspx/bench/svg"
	"libspx/sim"

	"golang.org/x/sys/unix"
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

// results are those of both ways.
type results struct {
	Simulated     []row     `json:"simulated"`
	Simulators    []string  `json:"simulators"` // machines on which that was
	Real          []realRow `json:"real"`
	RealMachine   string    `json:"real_machine"`
	WindowSeconds float64   `json:"window_seconds"`
	Hosts         int       `json:"hosts"`
}

func main() {
	hosts := flag.Int("hosts", 0, "measure real processes on so many hosts, a multiple of 32, in place of simulated ones")
	budget := flag.Duration("for", 0, "begin no further system after this time; another call goes on with those that are missing. 0: until all are done")
	window := flag.Duration("window", 10*time.Second, "with -hosts: for how long to look at each system")
	page := flag.Bool("page", false, "measure nothing: write the page of what is kept")
	dir := flag.String("out", filepath.Join("docs", "bench"), "folder of masters.json, masters.md and masters.svg")
	flag.Parse()
	if err := run(*dir, *hosts, *window, *budget, *page); err != nil {
		fmt.Fprintln(os.Stderr, "masters:", err)
		os.Exit(1)
	}
}

func run(dir string, hosts int, window, budget time.Duration, page bool) error {
	if hosts%mostClusters != 0 || hosts < 0 {
		return fmt.Errorf("-hosts %d: up to %d clusters have as many hosts each", hosts, mostClusters)
	}
	kept := filepath.Join(dir, "masters.json")
	var all results
	if data, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(data, &all); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var err error
	switch {
	case page:
	case hosts > 0:
		if all.WindowSeconds != window.Seconds() || all.RealMachine != machine.Name() || all.Hosts != hosts {
			all.Real = nil // what is kept does not go with it
		}
		all.Real, err = measureReal(all.Real, hosts, window, budget)
		all.RealMachine, all.WindowSeconds, all.Hosts = machine.Name(), window.Seconds(), hosts
	default:
		all.Simulated, err = simulate(all.Simulated, budget)
		all.Simulators = machine.Add(all.Simulators)
	}
	fewest, most := mostClusters, 1
	for _, r := range all.Simulated {
		fewest, most = min(fewest, r.Clusters), max(most, r.Clusters)
	}
	data, broken := json.MarshalIndent(all, "", " ")
	if broken != nil {
		return broken
	}
	text := strings.NewReplacer("PROCESSES", fmt.Sprint(processes), "PERHOST", fmt.Sprint(perHost), "CHANGES", fmt.Sprint(changes), "QUIET", table(all.Simulated, false), "BUSY", table(all.Simulated, true),
		"MACHINES", machine.Sentence(all.Simulators), "FROM", fmt.Sprint(fewest), "TO", fmt.Sprint(most), "REAL", realTable(all.Real), "GROWTH", growth(all.Real, all.Hosts), "HOSTS", fmt.Sprint(all.Hosts), "WHERE", all.RealMachine, "WINDOW", fmt.Sprint(all.WindowSeconds)).Replace(template)
	return errors.Join(err,
		os.WriteFile(kept, append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "masters.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "masters.svg"), []byte(plot(all.Simulated)), 0o644))
}

// simulate adds the rows that are missing. It begins none after the time that it has (0: there is no such time).
func simulate(rows []row, budget time.Duration) ([]row, error) {
	began := time.Now()
	runtime.LockOSThread() // the clock is that of this thread's use of a processor: what else runs does not count
	defer runtime.UnlockOSThread()
	clock := func() int64 {
		var t unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
			return 0
		}
		return t.Nano()
	}
	for _, iop := range []bool{false, true} {
		for _, clusters := range []int{1, 2, 4, 8, 16, 32} {
			if slices.ContainsFunc(rows, func(r row) bool { return r.Clusters == clusters && r.IOP == iop }) || budget > 0 && time.Since(began) > budget {
				continue
			}
			r := row{Clusters: clusters, IOP: iop}
			var err error
			for _, x := range []struct {
				loads *sim.Loads
				n     float64
			}{{&r.Quiet, 0}, {&r.Busy, changes}} {
				if *x.loads, err = (sim.Masters{Clusters: clusters, Processes: processes, PerHost: perHost, IOP: iop, Changes: x.n, Clock: clock}).Run(5000, 1); err != nil {
					return rows, fmt.Errorf("%d clusters: %w", clusters, err)
				}
			}
			rows = append(rows, r)
			fmt.Printf("%+v\n", r)
		}
	}
	slices.SortFunc(rows, func(x, y row) int {
		if x.IOP != y.IOP {
			return boolInt(x.IOP) - boolInt(y.IOP)
		}
		return x.Clusters - y.Clusters
	})
	return rows, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
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

const template = `# Load of the masters

` + "`go run ./bench/masters`" + `: PROCESSES simulated processes, PERHOST on a host, in FROM to TO clusters that form a chain: each has a network of its own, and between two of them stands a host with I/O processes, which is on both.
The agents run the machines of the [management tree](../systems.md#the-management-tree) in the simulator (` + "`sim.Masters`" + `), every message takes 1 ms from agent to agent; counted over 5 s. In each second: messages that came or were relayed, KiB that
were sent, and milliseconds of one processor. MACHINES A master has what it does for its own host in its figures, and what it relays for others. *agents*: any host's agent may be a master, and those without I/O processes are the first choice; *beside IOPs*: the
arrangement of the paper (` + "`masters = \"iop\"`" + `). The last column: from the first report of a death at one end of the chain until all agents know.

## Nothing happens

QUIET
## CHANGES processes die or are replaced in each second

BUSY
![messages by clusters](masters.svg)

The master of a cluster has work by its hosts, that of the system by the clusters: as the same processes are spread over more clusters, the former falls and the latter grows. Most has the master of a single
cluster, which is the system's as well: ten messages in a second come from each of the other hosts, for a tenth of a processor. A change of how a cluster is goes down the tree at once; one of how many of its processes live goes with the next heartbeat, else the masters of 313 hosts each
would send 31,000 messages in a second where 100 processes come and go. What grows most is relaying in a chain: hosts between two networks carry the heartbeats of all clusters behind them. So
agents of other hosts as masters (the preset) keep I/O processes' hosts free of all but that, and in a chain of 32 clusters the busiest of those do twice as much as the system's master.

## Real processes

` + "`go run ./bench/masters -hosts HOSTS`" + ` (as root; ` + "`-for 100s`" + `: in pieces): such chains on hosts out of namespaces, all on one machine (WHERE); on all hosts with more and more clusters, and then with as many hosts for each cluster. One rank on each host, whose
messages go from cluster to cluster ten times a second; no process dies. In a second, over WINDOW s: calls of the system by which the process (` + "`spx-master`" + `, or the agent of a host) has read and written, KiB that it has, milliseconds of a processor; and MiB of memory that it has, with its
share of what it has with others. A master speaks with the agent of its host alone, which hands on what it says; the agent of spxrun's host hands on what agents of different hosts say to each other.

REAL
GROWTH`
