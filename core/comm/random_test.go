package comm

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"libspx/core/group"
)

// step is one call in a random program: all members of the communicators in slot from make it.
type step struct {
	from  int
	kind  int   // 0 dup, 1 split, 2 create
	color []int // by world rank: color of split; create: 0 is in the group
	key   []int
}

func randomProgram(rnd *rand.Rand, n, steps int) []step {
	var prog []step
	for k := range steps {
		s := step{from: rnd.Intn(k + 1), kind: rnd.Intn(3)}
		for range n {
			s.color = append(s.color, rnd.Intn(3))
			s.key = append(s.key, rnd.Intn(4))
		}
		prog = append(prog, s)
	}
	return prog
}

// expect computes, for every slot and world rank, the members of the communicator that the rank has
// there (nil: none).
func expect(prog []step, n int) [][][]int {
	all := make([]int, n)
	slots := [][][]int{make([][]int, n)}
	for r := range n {
		all[r] = r
		slots[0][r] = all
	}
	for _, s := range prog {
		made := make([][]int, n)
		for r := range n {
			var mine []int
			for _, other := range slots[s.from][r] {
				switch {
				case s.kind == 0, s.kind == 1 && s.color[other] == s.color[r], s.kind == 2 &&
					s.color[other] == 0 && s.color[r] == 0:
					mine = append(mine, other)
				}
			}
			if s.kind == 1 {
				slices.SortStableFunc(mine, func(a, b int) int { return s.key[a] - s.key[b] })
			}
			made[r] = mine
		}
		slots = append(slots, made)
	}
	return slots
}

func runStep(w *network, c *Comm, ids *Contexts, s step) (*Comm, error) {
	me := int(c.Me().Rank)
	var m *Made
	var err error
	switch s.kind {
	case 0:
		m, err = c.Dup(ids, nil)
	case 1:
		m, err = c.Split(ids, s.color[me], s.key[me], nil)
	default:
		var in []int
		for k, id := range c.Group().IDs() {
			if s.color[id.Rank] == 0 {
				in = append(in, k)
			}
		}
		var g *group.Group
		if g, err = c.Group().Incl(in); err == nil {
			m, err = c.Create(ids, g)
		}
	}
	return w.open(m), err
}

// Random programs of creations on whatever was created before give the groups that a plain
// computation gives, and every context belongs to one group only.
func TestRandomPrograms(t *testing.T) {
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		n := 1 + rnd.Intn(12)
		prog := randomProgram(rnd, n, 12)
		want := expect(prog, n)
		w := newNetwork(t, n)
		out := run(t, w, n, func(world *Comm, ids *Contexts) []*Comm {
			have := []*Comm{world}
			for _, s := range prog {
				var made *Comm
				if c := have[s.from]; c != nil {
					var err error
					if made, err = runStep(w, c, ids, s); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
					usable(t, made)
				}
				have = append(have, made)
			}
			return have
		})
		owner := map[uint64]string{}
		for r, have := range out {
			for k, c := range have {
				if c == nil {
					if want[k][r] != nil {
						t.Errorf("seed %d, slot %d: rank %d has nothing, want %v", seed, k, r,
							want[k][r])
					}
					continue
				}
				if show(c) != fmt.Sprint(want[k][r]) {
					t.Errorf("seed %d, slot %d: rank %d has %s, want %v", seed, k, r, show(c),
						want[k][r])
				}
				name := fmt.Sprint(k, show(c))
				if old, ok := owner[c.Ctx]; ok && old != name {
					t.Errorf("seed %d: context %x is of %s and of %s", seed, c.Ctx, old, name)
				}
				owner[c.Ctx] = name
			}
		}
	}
}
