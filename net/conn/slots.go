package conn

import "slices"

// Slots gives out the connections that a process may have: never more than so many at once, whoever
// wants them. A connection has a slot from before it is called, or answered, until its socket is
// closed.
//
// Who has called this process comes before those that it calls itself: it holds a slot at its own
// end meanwhile. For it, a call of this process that has no answer yet is given up, if the caller
// has the lower number. So of processes that wait for each other in a circle, the one with the
// lowest number is always let in, and none waits for ever; those that have connections alone close
// one, which is the business of who has them.
type Slots struct {
	self, most, used int

	doors   []seeker // have called
	waiting []seeker // are to be called, in the order in which that was asked for
	calls   []int    // processes that are called, and have not answered, oldest first
	leaving int      // calls that were given up, whose slot is to come
	last    Ticket
}

// A Ticket is one who waits for a slot.
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

// Call asks for one to call peer. True: it is there, and peer is being called; else Grant says
// when.
func (s *Slots) Call(peer int) (Ticket, bool) {
	s.last++
	if s.Try() {
		s.calls = append(s.calls, peer)
		return s.last, true
	}
	s.waiting = append(s.waiting, seeker{s.last, peer})
	return s.last, false
}

// Answer asks for one for peer, which has called.
func (s *Slots) Answer(peer int) (Ticket, bool) {
	s.last++
	if s.used < s.most && len(s.doors) == 0 {
		s.used++
		return s.last, true
	}
	s.doors = append(s.doors, seeker{s.last, peer})
	return s.last, false
}

// GiveWay says which call is to be given up for one that has called: the one with the same process,
// if there is such a one, else the latest.
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

// Called says that the call of peer is over, one way or the other. Its slot stays taken.
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

// Grant is who gets the next one that is free; false: none is, or wanted. A process that was to be
// called is being called from then on.
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
