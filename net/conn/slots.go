package conn

import "slices"

// Slots gives out the connections that a process may have: never more than so many at once. A
// connection has a slot from before it is called, or answered, until its socket is closed.
//
// A caller of this process takes precedence over this process's own calls, as it holds a slot at
// its own end meanwhile. For it, an unanswered call of this process is abandoned, if the caller has
// the lower number. So of processes that wait for each other in a circle, the one with the lowest
// number is always let in, and none waits for ever; those that only have connections close one,
// which is the task of their owner.
type Slots struct {
	self, most, used int

	doors   []seeker // have called
	waiting []seeker // are to be called, in the order of the requests
	calls   []int    // processes that are called, and have not answered, oldest first
	leaving int      // abandoned calls, whose slot is to be released
	last    Ticket
}

// A Ticket identifies a waiter for a slot.
type Ticket uint64

type seeker struct {
	ticket Ticket
	peer   int
}

// NewSlots has most slots, for the process self.
func NewSlots(self, most int) *Slots { return &Slots{self: self, most: most} }

// Used is how many are taken.
func (s *Slots) Used() int { return s.used }

// Try takes one, if there is one that no other waits for.
func (s *Slots) Try() bool {
	if s.used >= s.most || len(s.doors)+len(s.waiting) > 0 {
		return false
	}
	s.used++
	return true
}

// Call requests a slot to call peer. True: it is granted, and peer is being called; else Grant
// grants it later.
func (s *Slots) Call(peer int) (Ticket, bool) {
	s.last++
	if s.Try() {
		s.calls = append(s.calls, peer)
		return s.last, true
	}
	s.waiting = append(s.waiting, seeker{s.last, peer})
	return s.last, false
}

// Answer requests a slot for peer, which has called.
func (s *Slots) Answer(peer int) (Ticket, bool) {
	s.last++
	if s.used < s.most && len(s.doors) == 0 {
		s.used++
		return s.last, true
	}
	s.doors = append(s.doors, seeker{s.last, peer})
	return s.last, false
}

// GiveWay returns the call to be abandoned for a caller: the call to the same process, if there is
// one, else the latest.
func (s *Slots) GiveWay() (peer int, ok bool) {
	before := 0
	for _, d := range s.doors {
		if d.peer >= s.self {
			continue
		}
		if before++; before <= s.leaving || len(s.calls) == 0 {
			continue
		}
		i := slices.Index(s.calls, d.peer)
		if i < 0 {
			i = len(s.calls) - 1
		}
		peer = s.calls[i]
		s.calls = slices.Delete(s.calls, i, i+1)
		s.leaving++
		return peer, true
	}
	return 0, false
}

// Called ends the call of peer, successful or not. Its slot stays taken.
func (s *Slots) Called(peer int) {
	if i := slices.Index(s.calls, peer); i >= 0 {
		s.calls = slices.Delete(s.calls, i, i+1)
	} else if s.leaving > 0 {
		s.leaving--
	}
}

// Give takes one back.
func (s *Slots) Give() { s.used = max(0, s.used-1) }

// Limit changes how many there are. Those that are taken stay so.
func (s *Slots) Limit(most int) { s.most = most }

// Grant returns the next waiter to get a free slot; false: none is free, or no ticket waits. A
// waiting call is being made from then on.
func (s *Slots) Grant() (Ticket, bool) {
	if s.used >= s.most {
		return 0, false
	}
	var next seeker
	switch {
	case len(s.doors) > 0:
		next, s.doors = s.doors[0], s.doors[1:]
	case len(s.waiting) > 0:
		next, s.waiting = s.waiting[0], s.waiting[1:]
		s.calls = append(s.calls, next.peer)
	default:
		return 0, false
	}
	s.used++
	return next.ticket, true
}

// Withdraw ends the waiting of one; false: it had its slot already.
func (s *Slots) Withdraw(t Ticket) bool {
	for _, list := range []*[]seeker{&s.doors, &s.waiting} {
		if i := slices.IndexFunc(*list, func(w seeker) bool { return w.ticket == t }); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	return false
}

// Wanted is how many wait for connections to be closed.
func (s *Slots) Wanted() int { return max(0, len(s.doors)+len(s.waiting)-s.leaving) }
