package follow_test

import (
	"flag"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"libspx/sim"
)

var (
	schedules = flag.Int("schedules", 500, "random schedules of agents of which one decides")
	limit     = flag.Duration("limit", 0,
		"no further schedule is begun after this time; 0: all of them")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
)

// TestLeaderships runs random schedules of agents of which one decides.
func TestLeaderships(t *testing.T) {
	start := time.Now()
	var next, acts, tables, eras, left atomic.Int64
	var mu sync.Mutex
	var gaps []sim.Time
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for !t.Failed() && (*limit == 0 || time.Since(start) < *limit) {
				k := next.Add(1) - 1
				if k >= int64(*schedules) {
					return
				}
				s := randomLeadership(*firstSeed + uint64(k))
				out, err := run(s)
				if err != nil {
					t.Errorf(
						"seed %d: %v\n%+v\nrerun: go test ./launch/follow -run TestLeaderships "+
							"-seed %d -schedules 1", s.Seed, err, s, s.Seed)
					return
				}
				acts.Add(int64(out.Acts))
				tables.Add(int64(out.Tables))
				eras.Add(int64(out.Eras))
				left.Add(int64(out.Left))
				mu.Lock()
				gaps = append(gaps, out.Gaps...)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	done := min(next.Load(), int64(*schedules))
	slices.Sort(gaps)
	if len(gaps) > 0 {
		t.Logf("without one that decides, in periods: median %d, 99 of 100 %d, most %d",
			gaps[len(gaps)/2]/tickEvery, gaps[len(gaps)*99/100]/tickEvery,
			gaps[len(gaps)-1]/tickEvery)
	}
	t.Logf("%d schedules: %d acts, %d tables, %d times another agent came to decide, %d hosts left",
		done, acts.Load(), tables.Load(), eras.Load(), left.Load())
	if done >= 500 && (acts.Load() < 5*done || tables.Load() < 2*done || eras.Load() < done/5 ||
		left.Load() < done/5) {
		t.Error("too tame")
	}
}

// That who decides waits until a majority knows is needed, and that it looks who decides by then:
// without, two act that do not know of each other. So is that it hears all others before it tells
// them what it follows from.
func TestLeadershipDefects(t *testing.T) {
	for what, of := range map[string]defect{"hasty": {Hasty: true}, "deaf": {Deaf: true},
		"rash": {Rash: true}} {
		found, first := false, uint64(0)
		switch { // they are rare
		case of.Deaf:
			first = 1500
		case of.Rash:
			first = 600
		}
		for seed := first; seed < 20000 && !found; seed++ {
			s := randomLeadership(seed)
			s.Defect = of
			if _, err := run(s); err != nil {
				t.Logf("%s: seed %d: %v", what, seed, err)
				found = true
			}
		}
		if !found {
			t.Errorf("%s: no schedule shows it", what)
		}
	}
}
