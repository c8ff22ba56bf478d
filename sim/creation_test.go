package sim

import (
	"flag"
	"fmt"
	"math/rand"
	"testing"
)

var creationSeed = flag.Int64("creation-seed", 0, "the seed of the one creation that TestCreations shall run")

// randomCreation draws a kind, its processes, and who dies when.
func randomCreation(seed int64) Creation {
	rnd := rand.New(rand.NewSource(seed))
	c := Creation{Kind: Creations[rnd.Intn(len(Creations))], Ranks: 1 + rnd.Intn(12), Seed: seed}
	if c.Kind == "spawn" || c.Kind == "join" || c.Kind == "inter" || c.Kind == "merge" {
		c.Others = 1 + rnd.Intn(6)
	}
	c.Root = rnd.Intn(c.Ranks)
	c.Victim = rnd.Intn(c.Ranks + c.Others)
	c.After = rnd.Intn(16)
	if c.Kind == "window" { // which has as many rounds, of all with all
		c.After = rnd.Intn(10*c.Ranks + 1)
	}
	return c
}

// Whoever dies at whichever step of a creation, all others return.
func TestCreations(t *testing.T) {
	from, to := int64(1), int64(20000)
	if testing.Short() {
		to = 2000
	}
	if *creationSeed != 0 {
		from, to = *creationSeed, *creationSeed
	}
	for seed := from; seed <= to; seed++ {
		if c := randomCreation(seed); RunCreation(c) != nil {
			t.Fatalf("seed %d: %+v: %v\nagain: go test ./sim -run TestCreations -creation-seed %d", seed, c, RunCreation(c), seed)
		}
	}
}

// Every step of every kind, with a few orders of what happens each.
func TestCreationsStepByStep(t *testing.T) {
	for _, kind := range Creations {
		t.Run(kind, func(t *testing.T) {
			for victim := range 12 {
				for after := range 14 {
					for seed := range int64(4) {
						c := Creation{Kind: kind, Ranks: 8, Others: 4, Root: victim % 3, Victim: victim, After: after, Seed: seed}
						if kind != "spawn" && kind != "join" && kind != "inter" && kind != "merge" {
							c.Others = 0
						}
						if victim >= c.Ranks+c.Others {
							continue
						}
						if err := RunCreation(c); err != nil {
							t.Fatal(fmt.Sprintf("%+v: %v", c, err))
						}
					}
				}
			}
		})
	}
}
