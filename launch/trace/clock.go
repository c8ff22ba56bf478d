package trace

// The clocks of hosts differ. The deciding agent queries the other agents for the time, some times
// when they are ready and again at the end; the answer with the shortest round trip is the most
// accurate. Between the two the difference is assumed to change linearly.

// clock brings the times of a host to those of the first.
type clock struct {
	at     float64 // ns on that host's clock, for which offset holds
	offset float64 // ns that it is ahead
	drift  float64 // ns of offset for each ns
	err    float64 // ns: half the time of the best answer's way
}

// clockOf makes it of the comparisons with one host.
func clockOf(notes []ClockNote) clock {
	if len(notes) == 0 {
		return clock{}
	}
	first, last := notes[0].Before, notes[len(notes)-1].Before
	var best [2]*ClockNote // of the beginning, of the end
	for i := range notes {
		n := &notes[i]
		half := 0
		if n.Before-first > (last-first)/2 {
			half = 1
		}
		if b := best[half]; b == nil || n.After-n.Before < b.After-b.Before {
			best[half] = n
		}
	}
	at, offset := best[0].difference()
	c := clock{at: at, offset: offset, err: float64(best[0].After-best[0].Before) / 2}
	if best[1] != nil {
		later, offset := best[1].difference()
		if gap := later - at; gap > longEnough {
			c.drift = (offset - c.offset) / gap
		}
		c.err = max(c.err, float64(best[1].After-best[1].Before)/2)
	}
	return c
}

// longEnough is the time, in ns, over which clocks may be seen to run differently: before, the ways
// of messages differ more.
const longEnough = 1e9

// difference is how far the other clock is ahead, and when that was, by it.
func (n *ClockNote) difference() (at, offset float64) {
	return float64(n.There), float64(n.There) - (float64(n.Before)+float64(n.After))/2
}

// here is a time of that host on the first host's clock.
func (c clock) here(ns uint64) float64 {
	t := float64(ns)
	return t - c.offset - c.drift*(t-c.at)
}
