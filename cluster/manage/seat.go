package manage

import "sort"

// A seat is a place that one agent holds at a time: master of a cluster, or of the system. Its
// voters are agents or, for the system, clusters, whose masters represent them.
//
// A candidate sends beats. A voter that answers with its promise supports no other agent until
// LimitMS after the beat has arrived. The holder counts the same time from when it has sent the
// beat, less a tenth for clocks: its lease ends before the promises do.
type seat struct {
	voters     []int
	candidates []int

	// as a voter
	term     uint64
	promised int // to which agent, -1: none
	until    int64

	// as its holder, or a candidate
	standing bool
	acked    map[int]int64 // when the last beat was sent that a voter has answered with its promise
	nextBeat int64
	since    int64 // of holding it: a new holder waits before it votes for its cluster
	held     bool  // as of the last look
}

func newSeat(voters, candidates []int) *seat {
	return &seat{voters: append([]int(nil), voters...), candidates: candidates, promised: -1,
		acked: map[int]int64{}}
}

// grant answers a beat: whether from is promised to.
func (s *seat) grant(from int, term uint64, now, limit int64) bool {
	if term < s.term || s.promised != from && now < s.until {
		return false
	}
	s.term, s.promised, s.until = term, from, now+limit
	return true
}

// taken is the agent that has the current promise; -1: none.
func (s *seat) taken(now int64) int {
	if now < s.until {
		return s.promised
	}
	return -1
}

// yield stops to want the seat, and takes the promise back that this agent has given itself.
func (s *seat) yield(self int, now int64) {
	s.standing = false
	clear(s.acked)
	if s.promised == self {
		s.promised, s.until = -1, now
	}
}

// lease is until when this agent may act in the seat: so long as a majority's promises hold. Of two
// halves that with the lowest voter counts.
func (s *seat) lease(limit int64) int64 {
	if !s.standing || len(s.voters) == 0 {
		return 0
	}
	var times []int64
	for _, v := range s.voters {
		if t, ok := s.acked[v]; ok {
			times = append(times, t)
		}
	}
	sort.Slice(times, func(i, j int) bool { return times[i] > times[j] })
	n := len(s.voters)
	var best int64
	if k := n/2 + 1; len(times) >= k {
		best = times[k-1] + limit*9/10
	}
	if t, ok := s.acked[lowest(s.voters)]; ok && n%2 == 0 && len(times) >= n/2 {
		best = max(best, min(t, times[n/2-1])+limit*9/10)
	}
	return best
}

func lowest(list []int) int {
	low := list[0]
	for _, v := range list {
		low = min(low, v)
	}
	return low
}

// drop removes a voter that is gone for good, and whose promises have run out.
func (s *seat) drop(voter int) {
	for i, v := range s.voters {
		if v == voter && len(s.voters) > 1 {
			s.voters = append(s.voters[:i], s.voters[i+1:]...)
			delete(s.acked, voter)
			return
		}
	}
}
