// Command leaders measures, in simulated time, what it takes to keep one sequence of entries at several hosts (package ft/replica): how long an entry is under way, what it costs, and
// how long it is without a leader when the host of the one that leads is lost. It prints a table in Markdown.
package main

import (
	"fmt"
	"os"
	"slices"

	"libspx/sim"
)

const (
	entries = 400
	seeds   = 1000
	hop     = 10  // of a message, in hundredths of a period, where all take the same time
	period  = 100 // likewise
)

func main() {
	fmt.Println("| hosts | entry applied after, in messages one after another: median, most | messages per entry | bytes per entry | without a leader, in periods: median, 99 of 100, most |")
	fmt.Println("|---:|---:|---:|---:|---:|")
	for _, n := range []int{1, 2, 3, 5, 7} {
		if err := row(n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func row(n int) error {
	s := sim.Sequence{Agents: n, Keep: 64, Steady: true}
	idle, err := sim.RunSequence(s)
	if err != nil {
		return err
	}
	s.Entries = entries
	busy, err := sim.RunSequence(s)
	if err != nil {
		return err
	}
	// While nothing is proposed the leader says every period that it is there: to each other agent, with an answer.
	beats := 2 * (n - 1) * (busy.Periods - idle.Periods)
	took := busy.Latencies
	slices.Sort(took)
	gaps, err := lose(n)
	if err != nil {
		return err
	}
	lost := "no leader any more"
	if len(gaps) > 0 {
		lost = fmt.Sprintf("%.1f, %.1f, %.1f", at(gaps, 0.5)/period, at(gaps, 0.99)/period, at(gaps, 1)/period)
	}
	fmt.Printf("| %d | %.0f, %.0f | %.1f | %.0f | %s |\n", n, at(took, 0.5)/hop, at(took, 1)/hop,
		float64(busy.Messages-idle.Messages-beats)/entries, float64(busy.Bytes-idle.Bytes)/entries, lost)
	return nil
}

// lose loses the agent that leads, again and again, each time in another run.
func lose(n int) (gaps []sim.Time, err error) {
	for seed := range uint64(seeds) {
		out, err := sim.RunSequence(sim.Sequence{Agents: n, Keep: 64, Entries: 5, Seed: seed, Faults: []sim.Fault{{Kind: sim.KillHost, Who: 0, At: sim.Time(1000 + seed*7%1000)}}})
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, out.Gaps...)
	}
	slices.Sort(gaps)
	return gaps, nil
}

// at is the value below which so many lie.
func at(list []sim.Time, part float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return float64(list[min(int(part*float64(len(list))), len(list)-1)])
}
