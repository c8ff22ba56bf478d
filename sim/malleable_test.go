package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomMalleable draws processes, commands, and deaths.
func randomMalleable(seed uint64) Malleable {
	r := rand.New(rand.NewPCG(seed, 0xe1a5))
	c := Malleable{Ranks: 1 + r.IntN(6), Seed: seed}
	for range 1 + r.IntN(4) {
		var list []string
		for range 1 + r.IntN(2) {
			command := fmt.Sprint(1 + r.IntN(8))
			if r.IntN(4) == 0 {
				command = fmt.Sprintf("k%d,%d", r.IntN(4), r.IntN(4))
			}
			list = append(list, command)
		}
		c.Commands = append(c.Commands, strings.Join(list, ";"))
	}
	if r.IntN(4) == 0 {
		c.Flaws = 1 + r.IntN(2)
	}
	if r.IntN(3) > 0 {
		for range c.Ranks + r.IntN(4) {
			at := -1
			if r.IntN(3) == 0 {
				at = r.IntN(400)
			}
			c.Deaths = append(c.Deaths, at)
		}
	}
	return c
}

// Whichever processes die at whichever steps of whatever change, the others go on together, and every command is answered. Such a schedule is as long as four of the others.
func TestMalleables(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*schedules)/4; seed++ {
		if c := randomMalleable(seed); RunMalleable(c) != nil {
			t.Fatalf("seed %d: %+v: %v", seed, c, RunMalleable(c))
		}
	}
}

// A death at every step of growth, of a shrink, and of a drill.
func TestMalleableStepByStep(t *testing.T) {
	for _, command := range []string{"5", "2", "k1"} {
		for victim := range 5 {
			for at := range 60 {
				c := Malleable{Ranks: 3, Commands: []string{command, "4"}, Deaths: []int{-1, -1, -1, -1, -1}, Seed: uint64(at)}
				c.Deaths[victim] = at
				if err := RunMalleable(c); err != nil {
					t.Fatalf("seed %d: %+v: %v", c.Seed, c, err)
				}
			}
		}
	}
}
