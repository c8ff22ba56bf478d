// Command topology counts what it takes to infer networks of up to 10,000 hosts from measured times, in the simulator: measurements of round-trip
// times and of throughputs, and simulated time. It writes topology.json, topology.md and two plots to docs/bench. The counts are exact: nothing of this machine
// is measured.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"libspx/bench/svg"
	"libspx/net/topo"
	"libspx/sim"
)

// row is the median of some seeds.
type row struct {
	Hosts      int     `json:"hosts"`
	Shuffled   bool    `json:"shuffled"` // addresses do not follow the network
	Switches   int     `json:"switches"`
	Pings      int     `json:"round_trip_times"`
	Streams    int     `json:"throughputs"`
	Seconds    float64 `json:"simulated_seconds"`
	Seeds      int     `json:"seeds"`
	ByNLogN    float64 `json:"round_trip_times_by_n_log2_n"`
	ByAllPairs float64 `json:"round_trip_times_by_all_pairs"`
}

const seeds = 5

func main() {
	if err := run(filepath.Join("docs", "bench")); err != nil {
		fmt.Fprintln(os.Stderr, "topology:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	var rows []row
	for _, shuffled := range []bool{false, true} {
		for _, n := range []int{32, 100, 316, 1000, 3162, 10000} {
			r, err := measure(n, shuffled)
			if err != nil {
				return err
			}
			rows = append(rows, r)
			fmt.Println(r)
		}
	}
	data, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	text := strings.NewReplacer("SEEDS", fmt.Sprint(seeds), "TABLE", table(rows)).Replace(page)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "topology.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "topology.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "topology.svg"), []byte(plot(rows)), 0o644),
		os.WriteFile(filepath.Join(dir, "topology-time.svg"), []byte(plotTime(rows)), 0o644))
}

// measure infers one network with several seeds; a result that is not the network is an error.
func measure(n int, shuffled bool) (row, error) {
	var pings, streams, took []int
	switches := 0
	for seed := range uint64(seeds) {
		var r *rand.Rand
		if shuffled {
			r = rand.New(rand.NewPCG(seed, 1))
		}
		truth := sim.Hierarchy(n, r)
		got, err := sim.NewNetwork(truth).Infer(topo.Config{Hosts: n}, seed, nil, nil)
		if err != nil {
			return row{}, err
		}
		if !slices.Equal(truth.Splits(), got.Tree.Splits()) {
			return row{}, fmt.Errorf("%d hosts, seed %d: another network came out", n, seed)
		}
		switches = truth.N
		pings, streams, took = append(pings, got.Cost.Pings), append(streams, got.Cost.Streams), append(took, int(got.Took))
	}
	p := median(pings)
	return row{Hosts: n, Shuffled: shuffled, Switches: switches, Pings: p, Streams: median(streams), Seconds: float64(median(took)) / 1e6, Seeds: seeds,
		ByNLogN: float64(p) / (float64(n) * math.Log2(float64(n))), ByAllPairs: float64(p) / (float64(n) * float64(n-1) / 2)}, nil
}

func median(list []int) int {
	slices.Sort(list)
	return list[len(list)/2]
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| hosts | switches | addresses | round-trip times | by N log2 N | of all pairs | throughputs | simulated time |\n|---:|---:|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		addresses := "follow the network"
		if r.Shuffled {
			addresses = "shuffled"
		}
		fmt.Fprintf(&b, "| %d | %d | %s | %d | %.2f | %.2g %% | %d | %.3g s |\n", r.Hosts, r.Switches, addresses, r.Pings, r.ByNLogN, 100*r.ByAllPairs, r.Streams, r.Seconds)
	}
	return b.String()
}

func plot(rows []row) string {
	curves := []svg.Curve{{Name: "in order", Colour: "#15803d"}, {Name: "shuffled", Colour: "#c2410c"}, {Name: "throughputs", Colour: "#1d4ed8"},
		{Name: "N log2 N", Colour: "#9ca3af"}, {Name: "all pairs", Colour: "#111827"}}
	for _, r := range rows {
		n := float64(r.Hosts)
		add := func(c int, v float64) { curves[c].Points = append(curves[c].Points, [2]float64{n, max(v, 1)}) }
		if r.Shuffled {
			add(1, float64(r.Pings))
			add(2, float64(r.Streams))
			continue
		}
		add(0, float64(r.Pings))
		add(3, n*math.Log2(n))
		add(4, n*(n-1)/2)
	}
	return svg.Draw("measurements by hosts", curves, func(v float64) string { return fmt.Sprintf("%g", v) })
}

// plotTime has the time by hosts, beside lines through its last point that grow as N and as N log N do.
func plotTime(rows []row) string {
	curves := []svg.Curve{{Name: "in order", Colour: "#15803d"}, {Name: "shuffled", Colour: "#c2410c"}, {Name: "as N log2 N", Colour: "#9ca3af"}, {Name: "as N", Colour: "#d1d5db"}}
	last := rows[len(rows)-1]
	nLogN := func(n int) float64 { return float64(n) * math.Log2(float64(n)) }
	for _, r := range rows {
		add := func(c int, v float64) { curves[c].Points = append(curves[c].Points, [2]float64{float64(r.Hosts), v}) }
		if !r.Shuffled {
			add(0, r.Seconds)
			continue
		}
		add(1, r.Seconds)
		add(2, last.Seconds*nLogN(r.Hosts)/nLogN(last.Hosts))
		add(3, last.Seconds*float64(r.Hosts)/float64(last.Hosts))
	}
	return svg.Draw("simulated time by hosts, in s", curves, func(v float64) string { return fmt.Sprintf("%.3g", v) })
}

const page = `# Inferring networks, simulated

Counted in the [simulator](../simulation.md) (` + "`go run ./bench/topology`" + `): networks that grow by levels, 16 hosts on a switch, at most 8 switches below another one; switches of 8 us,
echoes with exponential noise of 3 us and 2 % late ones, throughputs with 3 % error. Medians of SEEDS seeds; each result is compared with the network, and is right.
A round-trip time is the least of 8 echoes; throughputs are measured one at a time, which is nearly all of the time.

TABLE
![measurements by hosts](topology.svg)
![time by hosts](topology-time.svg)

Where addresses follow the network a host costs little more than the look at its neighbour. Where they do not, it asks a switch of each branch, level by level: 4 of 8 on the average, log8 of N levels, and the switches that are new are told apart.
[How it is done](../connections.md#the-network-from-measured-times-alone-nettopo).
`
