// Package member is one process's part in all failure protocols of one communicator: it numbers the
// agreements, keeps the last ones alive for members that are behind, and carries revocations. It is
// pure; see package ft for its shell.
//
// Agreements of a communicator happen in the same order at all members (they are collective calls),
// so their number names them. A member may be one agreement behind another, never more: the later
// one cannot be decided without it.
package member

import (
	"encoding/binary"
	"errors"
	"fmt"

	"libspx/ft/agree"
	"libspx/ft/place"
	"libspx/ft/rankset"
	"libspx/ft/revoke"
)

// Envelope kinds: the first byte of a message.
const (
	kindAgree  = 1 // then the agreement's number as a varint, then the message of package agree
	kindRevoke = 2
)

// keep is how many decided agreements stay to answer members that are behind.
const keep = 2

// Output is what the caller has to perform after an event, in this order.
type Output struct {
	Fresh   uint64 // as agree.Output's
	Sends   []agree.Send
	Done    *agree.Decision // the running agreement returns this
	Revoked bool            // the communicator has become revoked by this event
}

// Machine is the member's state.
type Machine struct {
	places  *place.Map
	self    int // place of this member, as everything in here counts places
	failed  rankset.Set
	running uint64 // number of the running or last agreement, 0: there was none
	agrees  map[uint64]*agree.Machine
	revoke  *revoke.Machine
}

// New makes the machine of rank self of a communicator whose ranks have the places given by places,
// of which the ranks in failed are known to be dead. Arguments and results are ranks.
func New(places *place.Map, self int, failed rankset.Set) *Machine {
	self, failed = places.Place(self), places.Places(failed)
	return &Machine{places: places, self: self, failed: failed, agrees: map[uint64]*agree.Machine{},
		revoke: revoke.New(places, self, failed)}
}

// FailedSet is the set of ranks known dead.
func (m *Machine) FailedSet() rankset.Set { return m.places.Members(m.failed) }

// Agree starts the next agreement. One at a time.
func (m *Machine) Agree(c agree.Contribution) Output {
	m.running++
	for num := range m.agrees {
		if num+keep <= m.running {
			delete(m.agrees, num)
		}
	}
	c.Acked = m.places.Places(c.Acked)
	return m.wrap(m.running, m.agreement(m.running).Call(c))
}

func (m *Machine) agreement(num uint64) *agree.Machine {
	a := m.agrees[num]
	if a == nil {
		a = agree.New(m.places, m.self, m.failed)
		m.agrees[num] = a
	}
	return a
}

func (m *Machine) wrap(num uint64, in agree.Output) Output {
	out := Output{Fresh: in.Fresh}
	if num == m.running && in.Done != nil {
		done := *in.Done
		done.Acked, done.Failed = m.places.Members(done.Acked), m.places.Members(done.Failed)
		out.Done = &done
	}
	for _, s := range in.Sends {
		data := binary.AppendUvarint([]byte{kindAgree}, num)
		out.Sends = append(out.Sends, agree.Send{To: m.places.Member(s.To),
			Data: append(data, s.Data...)})
	}
	return out
}

func (m *Machine) revocations(places []int) (sends []agree.Send) {
	for _, p := range places {
		sends = append(sends, agree.Send{To: m.places.Member(p), Data: []byte{kindRevoke}})
	}
	return sends
}

// Revoked reports whether the communicator is known to be revoked here.
func (m *Machine) Revoked() bool { return m.revoke.Revoked() }

// Revoke revokes the communicator. Again: no effect.
func (m *Machine) Revoke() Output {
	if m.revoke.Revoked() {
		return Output{}
	}
	return Output{Sends: m.revocations(m.revoke.Revoke()), Revoked: true}
}

// Failed records deaths.
func (m *Machine) Failed(dead rankset.Set) Output {
	dead = m.places.Places(dead)
	if m.failed.Contains(dead) {
		return Output{}
	}
	m.failed = m.failed.Union(dead)
	out := Output{Sends: m.revocations(m.revoke.Failed(dead))}
	first := uint64(1)
	if m.running >= keep {
		first = m.running - keep + 1
	}
	// in order: maps have none, and runs must be repeatable
	for num := first; num <= m.running+1; num++ {
		if a := m.agrees[num]; a != nil {
			more := m.wrap(num, a.Failed(dead))
			out.Sends = append(out.Sends, more.Sends...)
			out.Fresh = max(out.Fresh, more.Fresh)
			if more.Done != nil {
				out.Done = more.Done
			}
		}
	}
	return out
}

var errMalformed = errors.New("member: malformed message")

// Receive handles a message of another member. An error means that it was malformed or out of
// place, and had no effect.
func (m *Machine) Receive(from int, data []byte) (Output, error) {
	if from < 0 || from >= m.places.Len() || len(data) == 0 {
		return Output{}, errMalformed
	}
	from = m.places.Place(from)
	if from == m.self {
		return Output{}, errMalformed
	}
	switch data[0] {
	case kindRevoke:
		was := m.revoke.Revoked()
		return Output{Sends: m.revocations(m.revoke.Receive(from)), Revoked: !was}, nil
	case kindAgree:
		num, k := binary.Uvarint(data[1:])
		switch {
		case k <= 0 || num == 0:
			return Output{}, errMalformed
		case num > m.running+1:
			return Output{}, fmt.Errorf(
				"member: rank %d is at agreement %d, we are at %d: a member cannot be two ahead",
				from, num, m.running)
		case num+keep <= m.running:
			return Output{}, nil // decided everywhere: a late repetition
		}
		out, err := m.agreement(num).Receive(from, data[1+k:])
		return m.wrap(num, out), err
	}
	return Output{}, errMalformed
}
