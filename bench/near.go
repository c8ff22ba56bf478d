package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"libspx/bench/stats"
)

// The host of a virtual machine moves its processors: at times they are two threads of a core (a word from one to the other: 0.03 us), at times two
// cores with a cache in common (0.07), at times without (0.25), and what two ranks do with short messages takes two to five times as long then, under
// every library. It may do so several times a second. So runs of two ranks tell with each batch how far the processors were from each other
// (programs/near.c), and only figures of the same distance are compared: a round of the results has for each row figures of all libraries that were
// taken at one distance, though not always in one go.

// distance is a class of distances, a factor of two wide: 0 are 0.021 to 0.042 us, 1 up to 0.085, 2 up to 0.17.
type distance int

// classOf is false for a batch in which the processors were moved.
func classOf(us float64) (distance, bool) {
	return distance(math.Floor(math.Log2(us/0.03) + 0.5)), us > 0
}

// parseTold reads lines "row bytes microseconds distance", of several batches each: the median by row and distance.
func parseTold(text string) (map[string]map[distance]float64, error) {
	batches := map[string]map[distance][]float64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 4 {
			return nil, fmt.Errorf("not a batch: %q", line)
		}
		us, err := strconv.ParseFloat(f[2], 64)
		far, err2 := strconv.ParseFloat(f[3], 64)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("not a batch: %q", line)
		}
		row := f[0] + " " + f[1]
		if batches[row] == nil {
			batches[row] = map[distance][]float64{}
		}
		if d, ok := classOf(far); ok {
			batches[row][d] = append(batches[row][d], us)
		}
	}
	medians := map[string]map[distance]float64{}
	for row, by := range batches {
		medians[row] = map[distance]float64{}
		for d, us := range by {
			medians[row][d] = stats.Median(us)
		}
	}
	return medians, nil
}

// pairing puts figures together that were taken at the same distance.
type pairing struct {
	rows, impls []string
	waiting     map[string]map[distance]map[string][]float64 // row, distance, implementation
	together    map[string][]map[string]float64              // row: figures of all implementations
}

func newPairing(rows, impls []string) *pairing {
	p := &pairing{rows, impls, map[string]map[distance]map[string][]float64{}, map[string][]map[string]float64{}}
	for _, row := range rows {
		p.waiting[row] = map[distance]map[string][]float64{}
	}
	return p
}

// add takes in what a run of an implementation has measured.
func (p *pairing) add(impl string, told map[string]map[distance]float64) {
	for row, by := range told {
		for d, us := range by {
			w := p.waiting[row]
			if w == nil {
				continue
			}
			if w[d] == nil {
				w[d] = map[string][]float64{}
			}
			w[d][impl] = append(w[d][impl], us)
			p.match(row, w[d])
		}
	}
}

func (p *pairing) match(row string, by map[string][]float64) {
	if slices.ContainsFunc(p.impls, func(impl string) bool { return len(by[impl]) == 0 }) {
		return
	}
	figures := map[string]float64{}
	for _, impl := range p.impls {
		figures[impl], by[impl] = by[impl][0], by[impl][1:]
	}
	p.together[row] = append(p.together[row], figures)
}

// take returns a round, if there are figures for every row.
func (p *pairing) take() map[string]map[string]float64 {
	for _, row := range p.rows {
		if len(p.together[row]) == 0 {
			return nil
		}
	}
	us := map[string]map[string]float64{}
	for _, row := range p.rows {
		us[row], p.together[row] = p.together[row][0], p.together[row][1:]
	}
	return us
}

// inPairs tells whether the rounds of a set are made of figures of the same distance.
func (s set) inPairs() bool { return s.ranks == 2 && s.program != "hpcc" }

// told runs every implementation and the limits once, in a shuffled order, and adds what the undisturbed runs have measured. bare: the limits.
func (b *bench) told(s set, p *pairing, order *rand.Rand) (bare map[string]float64, err error) {
	who := append(slices.Clone(p.impls), "bare")
	order.Shuffle(len(who), func(i, j int) { who[i], who[j] = who[j], who[i] })
	for _, impl := range who {
		before := time.Now()
		out, share, err := b.runOne(s, impl)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", s.key, impl, err)
		}
		fmt.Printf("%s: %s %.1fs\n", s.key, impl, time.Since(before).Seconds())
		if why := b.spoilt(share); why != "" {
			fmt.Printf("%s, %s: stolen %.1f %%, foreign %.1f %%\n", s.key, impl, 100*share.stolen, 100*share.foreign)
			b.result.Dropped[why]++
			continue
		}
		if impl == "bare" {
			bare, err = parseRows(out)
		} else {
			var told map[string]map[distance]float64
			told, err = parseTold(out)
			p.add(impl, told)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", s.key, impl, err)
		}
	}
	return bare, nil
}

// pairedRound measures until a round is there, or time has run out.
func (b *bench) pairedRound(s set, order *rand.Rand, end time.Time) (us map[string]map[string]float64, why string, err error) {
	p := b.pairings[s.key]
	if p == nil {
		p = newPairing(s.rows, b.implsOf(s))
		b.pairings[s.key] = p
	}
	for {
		if us = p.take(); us != nil {
			for name, value := range b.bare[s.key] {
				if us[name] == nil {
					us[name] = map[string]float64{}
				}
				us[name]["bare"] = value
			}
			return us, "", nil
		}
		if now := time.Now(); now.After(end) || b.budget > 0 && now.Sub(b.began)+b.estimate(s) > b.budget {
			return nil, "", nil
		}
		bare, err := b.told(s, p, order)
		if err != nil {
			return nil, "", err
		}
		if bare != nil {
			b.bare[s.key] = bare
		}
	}
}
