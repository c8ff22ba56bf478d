package sim

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var takeoverSeed = flag.Uint64("takeover-seed", 0, "the seed of the one cluster that TestTakeovers shall run")

// randomTakeover draws a cluster, of which no more processes are killed than there are standbys.
func randomTakeover(seed uint64) Takeover {
	rnd := rand.New(rand.NewPCG(seed, 1))
	t := Takeover{Ranks: 1 + rnd.IntN(4), Warm: rnd.IntN(3), Cold: rnd.IntN(3), Steps: 1 + rnd.IntN(4), Seed: seed}
	for range rnd.IntN(t.Warm + t.Cold + 1) {
		who := rnd.IntN(t.Ranks + t.Warm + t.Cold)
		t.Kills = append(t.Kills, TakeoverKill{who, rnd.IntN(40)})
	}
	return t
}

// Processes are killed at any step: each rank makes all of its steps once, and all that live
// end.
func TestTakeovers(t *testing.T) {
	from, to := uint64(1), uint64(*schedules)
	if *takeoverSeed != 0 {
		from, to = *takeoverSeed, *takeoverSeed
	}
	for seed := from; seed <= to; seed++ {
		if c := randomTakeover(seed); RunTakeover(c) != nil {
			t.Fatalf("seed %d: %v, of %+v\nagain: go test ./sim -run TestTakeovers -takeover-seed %d", seed, RunTakeover(c), c, seed)
		}
	}
}

// Every step of every process, with a few orders of what happens each.
func TestTakeoversStepByStep(t *testing.T) {
	for victim := range 5 {
		for at := range 60 {
			for second := range 4 {
				for seed := range uint64(3) {
					c := Takeover{Ranks: 3, Warm: 1, Cold: 1, Steps: 2, Seed: seed, Kills: []TakeoverKill{{victim, at}}}
					if second > 0 {
						c.Kills = append(c.Kills, TakeoverKill{(victim + second) % 5, at * second % 37})
					}
					if err := RunTakeover(c); err != nil {
						t.Fatalf("%+v: %v", c, err)
					}
				}
			}
		}
	}
}

// What the machine counts on is needed: a shell around it that does not do it is caught.
func TestTakeoverDefects(t *testing.T) {
	for name, defect := range map[string]TakeoverDefect{
		"a new rank does not look for deaths": {NoNews: true},
		"that it is done is not published":    {NoDone: true},
		"one that meets calls no other":       {NoRevoke: true},
		"a successor begins at the beginning": {Forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20000) {
				c := randomTakeover(seed)
				c.Defect = defect
				if err := RunTakeover(c); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no cluster shows it")
		})
	}
}
