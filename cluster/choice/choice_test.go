package choice

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"round-robin", "weighted", "least-loaded", "shortest-queue",
		"tag", "key", "library:/a/b.so"} {
		p, err := Parse(name)
		if err != nil || p.String() != name {
			t.Errorf("%s: %v %v", name, p, err)
		}
	}
	if p, err := Parse(""); err != nil || p.String() != "round-robin" {
		t.Errorf("the default is %v, %v", p, err)
	}
	for _, name := range []string{"random", "library:", "Tag"} {
		if _, err := Parse(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func candidates(weights ...int) (out []Candidate) {
	for i, w := range weights {
		out = append(out, Candidate{Index: 10 + i, Weight: w})
	}
	return out
}

func count(slots []int) map[int]int {
	n := map[int]int{}
	for _, s := range slots {
		n[s]++
	}
	return n
}

func TestRoundRobin(t *testing.T) {
	if got := Make(Policy{}, candidates(1, 5, 1)); !slices.Equal(got.Slots, []int{10, 11, 12}) ||
		got.Mode != Cycle {
		t.Errorf("%+v", got)
	}
	if got := Make(Policy{Mode: Key}, nil); len(got.Slots) != 0 {
		t.Errorf("of none: %+v", got)
	}
}

// In a weighted cycle each has exactly its share, and no IOP waits longer for its turn than
// its share allows.
func TestWeighted(t *testing.T) {
	for _, weights := range [][]int{{1, 1}, {5, 1, 1}, {2, 4, 6}, {0, 3}, {100000, 1},
		{1000, 999, 7}} {
		slots := Make(Policy{Weighted: true}, candidates(weights...)).Slots
		n, total := count(slots), 0
		for _, w := range weights {
			total += max(w, 1)
		}
		if len(slots) > maxCycle+len(weights) {
			t.Errorf("%v: %d slots", weights, len(slots))
		}
		for i, w := range weights {
			share := float64(max(w, 1)) / float64(total)
			if got := float64(n[10+i]) / float64(len(slots)); n[10+i] == 0 || got < share-0.001 ||
				got > share+0.001 {
				t.Errorf("%v: %d has %.4f of the slots, its share is %.4f", weights, i, got, share)
			}
			longest, since := 0, 0
			for range 2 {
				for _, s := range slots {
					if since++; s == 10+i {
						longest, since = max(longest, since), 0
					}
				}
			}
			if float64(longest) > 2/share+1 && n[10+i] > 1 {
				t.Errorf("%v: %d waits %d messages, its share is one of %.1f", weights, i, longest,
					1/share)
			}
		}
	}
}

// Tags and keys are shared out evenly, and stay where they are when an IOP goes, unless they were
// its own.
func TestHashedSlotsStay(t *testing.T) {
	for _, mode := range []Mode{Tag, Key} {
		all := candidates(1, 1, 1, 1)
		before := Make(Policy{Mode: mode}, all)
		for i, n := range count(before.Slots) {
			if n < hashSlots/8 || n > hashSlots/2 {
				t.Errorf("mode %d: IOP %d has %d of %d slots", mode, i, n, hashSlots)
			}
		}
		after := Make(Policy{Mode: mode}, slices.Delete(slices.Clone(all), 1, 2))
		for s, i := range before.Slots {
			if i != 11 && after.Slots[s] != i || after.Slots[s] == 11 {
				t.Errorf("mode %d: slot %d was %d's and is %d's, though 11 has gone", mode, s, i,
					after.Slots[s])
			}
		}
	}
	heavy := count(Make(Policy{Mode: Key}, candidates(7, 1)).Slots)
	if heavy[10] < 4*heavy[11] {
		t.Errorf("weights 7 and 1: %v", heavy)
	}
}
