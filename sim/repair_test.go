package sim

import (
	"math/rand/v2"
	"testing"
)

// randomRepair draws the processes, what they do, and which die when.
func randomRepair(seed uint64) Repair {
	r := rand.New(rand.NewPCG(seed, 0x4e9a))
	c := Repair{Working: 1 + r.IntN(6), Spares: r.IntN(4), Cluster: r.IntN(2) == 0, Steps: r.IntN(20), Seed: seed}
	if c.Cluster {
		c.Late = r.IntN(4)
	}
	n := c.Working + c.Spares + c.Late
	for range n {
		c.Deaths = append(c.Deaths, -1)
	}
	if r.IntN(4) == 0 {
		c.Flaws = 1 + r.IntN(3)
	}
	for range r.IntN(n) {
		c.Deaths[r.IntN(n)] = r.IntN(60)
	}
	return c
}

// Whichever processes die at whichever steps, all living ones come to the same active communicators, and return.
func TestRepairs(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*schedules); seed++ {
		if c := randomRepair(seed); RunRepair(c) != nil {
			t.Fatalf("seed %d: %+v: %v", seed, c, RunRepair(c))
		}
	}
}

// A death at every step, and another one soon after.
func TestRepairStepByStep(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		for victim := range 6 {
			for at := range 50 {
				c := Repair{Working: 3, Spares: 3, Cluster: cluster, Steps: 6, Seed: uint64(at), Deaths: []int{-1, -1, -1, -1, -1, -1}}
				if cluster {
					c.Spares, c.Late = 1, 2
				}
				c.Deaths[victim] = at
				if at%2 == 1 {
					c.Deaths[(victim+1+at/2%5)%6] = at + at%7
				}
				if err := RunRepair(c); err != nil {
					t.Fatalf("seed %d: %+v: %v", c.Seed, c, err)
				}
			}
		}
	}
}
