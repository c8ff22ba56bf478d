package topo

import (
	"cmp"
	"math"
	"slices"
)

// Measured times, and what they say about distances: which are those of hosts on one switch, and
// from which difference on two distances differ.

// rtts are the round-trip times known, by unordered pair of hosts.
type rtts map[[2]int]sample

// A sample is what some echoes between two hosts say. The shortest one does not count: a clock that
// jumps makes it too short, and no other noise does.
type sample struct {
	least int64 // nanoseconds, of the second shortest
	// by which those after it are longer than the one before, in the mean: the way that is left to
	// the true time is about as long
	jitter int64
	count  int // echoes
	low    [Shortest - 1]int64
}

// sampleOf takes the shortest times of so many echoes, in ascending order.
func sampleOf(took []int64, echoes int) sample {
	switch len(took) {
	case 0:
		took = []int64{math.MaxInt64 / 4}
	case 1:
	default:
		took = took[1:]
	}
	return sampleFrom(took, echoes)
}

func sampleFrom(low []int64, echoes int) sample {
	s := sample{count: echoes, least: low[0]}
	for i := range s.low {
		s.low[i] = math.MaxInt64 / 4
	}
	if n := copy(s.low[:], low); n > 1 {
		s.jitter = (s.low[n-1] - s.low[0]) / int64(n-1)
	}
	return s
}

// with is what two measurements of the same hosts say together.
func (s sample) with(t sample) sample {
	low := append(s.low[:], t.low[:]...)
	slices.Sort(low)
	if end := slices.Index(low, math.MaxInt64/4); end > 0 {
		low = low[:end]
	}
	return sampleFrom(low, s.count+t.count)
}

func pair(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

func (r rtts) add(a, b int, s sample) {
	if old, ok := r[pair(a, b)]; ok {
		s = old.with(s)
	}
	r[pair(a, b)] = s
}

// levels is what the measured times say about distances: times up to same are those of hosts on one
// switch; two distances that differ by no more than half a unit are the same distance.
type levels struct {
	same, unit int64
	next       int64 // the least time above the gap; 0: there is no gap
	clear      int64 // the least time above the largest gap of all, as a part of the time below it
}

// significant is the least gap between two sorted times that counts as a difference in distance: a
// good part of the time itself, and far above what echoes of the same pair differ by.
func significant(at, jitter int64) int64 { return max(10*jitter, at/20, 1) }

// findLevels sorts all times and cuts where the first marked gap is (section 2.1 of the paper,
// where the gap d(i) differs most from d(i-1); the first instead of the largest, because farther
// switches make larger gaps). Between the two times of the gap may lie a distance that has not been
// measured yet, so that the cut is not far above the lower one. What counts as a gap goes by the
// noise of the times below it: where hosts are busy, longer ways are noisier by far than those of
// one switch, and would hide it.
func findLevels(times []sample) levels {
	if len(times) == 0 {
		return levels{}
	}
	times = slices.Clone(times)
	slices.SortFunc(times, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.least, b.least),
			cmp.Compare(a.jitter, b.jitter))
	})
	// of those up to a time, and of as many as say something, in ascending order
	jitters := make([]int64, 0, len(times))
	for _, t := range times {
		at, _ := slices.BinarySearch(jitters, t.jitter)
		jitters = slices.Insert(jitters, at, t.jitter)
		if len(jitters) == min(fewest, len(times)) {
			break
		}
	}
	first, clear := times[0].least, len(times)-1
	for i := range len(times) - 1 {
		if float64(times[i+1].least)*float64(times[clear].least) > float64(times[i].least)*float64(
			times[min(clear+1, len(times)-1)].least) {
			clear = i
		}
	}
	top := times[min(clear+1, len(times)-1)].least
	for i := range len(times) - 1 {
		if i >= len(jitters) {
			at, _ := slices.BinarySearch(jitters, times[i].jitter)
			jitters = slices.Insert(jitters, at, times[i].jitter)
		}
		least, jitter := times[i].least, jitters[len(jitters)/2]
		up := times[i+1]
		if up.count >= firmEchoes { // known well by itself
			jitter = min(jitter, up.jitter/2)
		}
		if gap := up.least - least; gap >= significant(least, jitter) {
			return levels{same: least + min(gap/2, max(least/8, significant(least, jitter))),
				unit: times[i+1].least - (first+least)/2,
				next: times[i+1].least, clear: top}
		}
	}
	last := times[len(times)-1].least
	jitter := jitters[len(jitters)/2]
	return levels{same: last + significant(last, jitter), unit: significant(last, jitter)}
}

// fewest is the number of times whose noise says how noisy short times are.
const fewest = 8

func (l levels) tolerance(d int64) int64 { return max(l.unit/2, d/50) }
