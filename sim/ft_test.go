package sim

import (
	"flag"
	"fmt"
	"testing"
)

var (
	schedules = flag.Int("schedules", 3000, "random schedules of the failure protocols")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
)

// config derives the shape of a run from its seed, too.
func config(seed uint64) FT {
	w := NewWorld(1, seed^0xc0ffee)
	n := 1 + w.Rand.IntN(24)
	if w.Rand.IntN(20) == 0 {
		n = 25 + w.Rand.IntN(200)
	}
	cfg := FT{Ranks: n, Rounds: 1 + w.Rand.IntN(3), Revoke: w.Rand.IntN(3) == 0}
	switch w.Rand.IntN(4) {
	case 0: // none
	case 1:
		cfg.Deaths = 1
	case 2:
		cfg.Deaths = w.Rand.IntN(n)
	case 3:
		cfg.Deaths = n - 1
	}
	return cfg
}

func TestFailureProtocols(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*schedules); seed++ {
		if _, err := RunFT(config(seed), seed); err != nil {
			t.Fatalf("seed %d (%+v): %v\nrerun: go test ./sim -run TestFailureProtocols -seed %d -schedules 1", seed, config(seed), err, seed)
		}
	}
}

// A run is a function of its seed.
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		a, errA := RunFT(config(seed), seed)
		b, errB := RunFT(config(seed), seed)
		if a != b || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("seed %d: %v, %v and then %v, %v", seed, a, errA, b, errB)
		}
	}
}

// The number of deaths adds no rounds: without deaths the cost is 4 messages a rank and time that grows with the
// depth of the tree.
func TestCost(t *testing.T) {
	for _, n := range []int{2, 16, 256, 4096} {
		res, err := RunFT(FT{Ranks: n, Rounds: 1}, 7)
		if err != nil {
			t.Fatal(err)
		}
		if want := 4 * (n - 1); res.Messages != want {
			t.Errorf("%d ranks: %d messages, want %d", n, res.Messages, want)
		}
	}
}

// Deliberate protocol bugs must be caught.
func TestMutations(t *testing.T) {
	const agreeKind = 1
	kindOf := func(data []byte) byte { // number is below 128 in these runs
		if data[0] != agreeKind || len(data) < 3 {
			return 0
		}
		return data[2]
	}
	mutations := map[string]func(from, to int, data []byte) []byte{
		"a commit is lost": func(from, to int, data []byte) []byte {
			if kindOf(data) == 4 && to%5 == 4 {
				return nil
			}
			return data
		},
		"a proposal is committed before all have accepted it": func(from, to int, data []byte) []byte {
			if kindOf(data) == 2 { // Propose, number, ballot, decision -> Commit, decision
				return append([]byte{data[0], data[1], 4}, data[4:]...)
			}
			return data
		},
		"an accept is lost": func(from, to int, data []byte) []byte {
			if kindOf(data) == 3 && from%3 == 2 {
				return nil
			}
			return data
		},
		"flags of one rank are ignored": func(from, to int, data []byte) []byte {
			if kindOf(data) == 1 && from == 3 {
				return setFlags(data)
			}
			return data
		},
		"the revocation is told to one neighbour only": func(from, to int, data []byte) []byte {
			if data[0] == 2 && to != (from+1)%4 {
				return nil
			}
			return data
		},
	}
	for name, mutate := range mutations {
		caught := false
		for seed := uint64(1); seed < 60000 && !caught; seed++ {
			cfg := config(seed)
			if cfg.Ranks > 24 {
				continue
			}
			cfg.Mutate = mutate
			_, err := RunFT(cfg, seed)
			caught = err != nil
		}
		if !caught {
			t.Errorf("not caught: %s", name)
		}
	}
}
