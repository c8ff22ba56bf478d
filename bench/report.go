package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// result is what was measured, as it stands in results.json.
type result struct {
	Date, Machine, Commit string
	Peers, Impls          []string
	Rounds                int
	Stolen, Foreign       float64        // a round counts up to these shares of processor time taken by others
	Dropped               map[string]int // rounds thrown away, by reason
	// Microseconds by number of ranks, row ("pingpong 8") and implementation ("bare": limits): a value for each round.
	Rows map[int]map[string]map[string][]float64
}

func (r *result) add(n int, round map[string]map[string]float64) {
	if r.Rows == nil {
		r.Rows = map[int]map[string]map[string][]float64{}
	}
	if r.Rows[n] == nil {
		r.Rows[n] = map[string]map[string][]float64{}
	}
	for impl, rows := range round {
		for row, us := range rows {
			if r.Rows[n][row] == nil {
				r.Rows[n][row] = map[string][]float64{}
			}
			r.Rows[n][row][impl] = append(r.Rows[n][row][impl], us)
		}
	}
}

func (r *result) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	files := map[string][]byte{"results.json": data, "README.md": []byte(r.markdown())}
	for name, svg := range r.plots() {
		files[name] = []byte(svg)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	fmt.Print(r.markdown())
	fmt.Printf("\nwritten to %s\n", dir)
	return nil
}

func (r *result) ranks() (list []int) {
	for n := range r.Rows {
		list = append(list, n)
	}
	sort.Ints(list)
	return list
}

// rowNames are the rows of a number of ranks that an implementation has: by name, then by size.
func (r *result) rowNames(n int, impl string) (names []string) {
	for name, by := range r.Rows[n] {
		if len(by[impl]) > 0 {
			names = append(names, name)
		}
	}
	rank := map[string]int{"pingpong": 1, "window": 2, "barrier": 3, "bcast": 4, "allreduce": 5, "allgather": 6, "alltoall": 7, "ring": 8, "futex": 9, "memcpy": 10, "cma": 11}
	sort.Slice(names, func(i, j int) bool {
		a, x := splitRow(names[i])
		b, y := splitRow(names[j])
		if a != b {
			return rank[a] < rank[b]
		}
		return x < y
	})
	return names
}

func splitRow(key string) (string, int) {
	name, bytes, _ := strings.Cut(key, " ")
	n, _ := strconv.Atoi(bytes)
	return name, n
}

func (r *result) peers() []string {
	return slices.DeleteFunc(slices.Clone(r.Impls), func(i string) bool { return i == "spx" })
}

// counted is the number of rounds with n ranks.
func (r *result) counted(n int) (most int) {
	for _, by := range r.Rows[n] {
		most = max(most, len(by["spx"]))
	}
	return most
}

func (r *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measurements\n\nMade by `make bench` on %s (commit %s; %s). The same binary under every library; medians of at most %d rounds, microseconds;\n",
		r.Date, r.Commit, r.Machine, r.Rounds)
	fmt.Fprintf(&b, "ratios are taken within a round, with a 95 %% bootstrap interval of their median: below 1, libspx is faster. Peers: %s\n", strings.Join(r.Peers, " "))
	dropped := 0
	for _, n := range r.Dropped {
		dropped += n
	}
	fmt.Fprintf(&b, "A round counts while others take at most %.1f %% of the processors and the hypervisor %.1f %%; thrown away: %d %v.\n",
		100*r.Foreign, 100*r.Stolen, dropped, r.Dropped)
	if r.Foreign > 0.2 {
		b.WriteString("**These bounds are wide: other work ran at the same time. Read orders of magnitude, not figures.**\n")
	}
	b.WriteString("\npingpong: half a round trip; window: one message of 64 in flight; the others: one call, the slowest rank. All ranks on one host.\n")
	for _, n := range r.ranks() {
		fmt.Fprintf(&b, "\n## %d ranks, %d rounds\n\n| row | bytes | %s |", n, r.counted(n), strings.Join(r.Impls, " | "))
		for _, p := range r.peers() {
			fmt.Fprintf(&b, " libspx / %s |", p)
		}
		b.WriteString("\n|---|---|" + strings.Repeat("---|", len(r.Impls)+len(r.peers())) + "\n")
		for _, name := range r.rowNames(n, "spx") {
			row, bytes := splitRow(name)
			fmt.Fprintf(&b, "| %s | %d |", row, bytes)
			by := r.Rows[n][name]
			for _, impl := range r.Impls {
				fmt.Fprintf(&b, " %s |", figure(median(by[impl])))
			}
			for _, p := range r.peers() {
				q := ratios(by["spx"], by[p])
				fmt.Fprintf(&b, " %s (%s-%s) |", figure(q.Median), figure(q.Low), figure(q.High))
			}
			b.WriteString("\n")
		}
		if bare := r.rowNames(n, "bare"); len(bare) > 0 {
			b.WriteString("\nBare limits, measured in the same rounds (bench/programs/limits.c):\n\n| limit | bytes | us | GB/s |\n|---|---|---|---|\n")
			for _, name := range bare {
				row, bytes := splitRow(name)
				us := median(r.Rows[n][name]["bare"])
				fmt.Fprintf(&b, "| %s | %d | %s | %.1f |\n", row, bytes, figure(us), float64(bytes)/us/1e3)
			}
		}
	}
	b.WriteString("\n")
	for _, name := range sortedKeys(r.plots()) {
		fmt.Fprintf(&b, "![%s](%s)\n", strings.TrimSuffix(name, ".svg"), name)
	}
	return b.String()
}

// figure prints about three significant digits.
func figure(us float64) string {
	switch {
	case us != us: // not a number: not measured
		return "-"
	case us >= 100:
		return fmt.Sprintf("%.0f", us)
	case us >= 10:
		return fmt.Sprintf("%.1f", us)
	case us >= 1:
		return fmt.Sprintf("%.2f", us)
	}
	return fmt.Sprintf("%.3f", us)
}

func sortedKeys(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
