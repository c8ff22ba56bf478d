// Package revoke is a reliable broadcast: once a living member knows that a communicator is
// revoked, every living member is notified (MPIX_Comm_revoke), whichever members die meanwhile.
//
// Members flood along circles of the living (place.Neighbours): on a host from each to those 1, 4,
// 16, ... places behind it, and the same from head to head of the hosts. When ranks die the circles
// close over them, and every member that has the revocation sends it to its new neighbours: the
// rings of distance 1 alone then reach all who live. A member sends at most once to each rank, and
// to at most log4 n while no member dies: where ranks outnumber processors, each message is a turn
// at a processor for its receiver.
package revoke

import (
	"libspx/ft/place"
	"libspx/ft/rankset"
)

// Machine is one member's part in the revocation of one communicator.
type Machine struct {
	places  *place.Map
	self    int
	failed  rankset.Set
	revoked bool
	told    map[int]bool // ranks that have been sent the revocation, or have sent it
}

// New makes the machine of the rank at place self of a communicator, of which the ranks in failed
// are known to be dead.
func New(places *place.Map, self int, failed rankset.Set) *Machine {
	return &Machine{places: places, self: self, failed: failed, told: map[int]bool{}}
}

// Revoked reports whether the revocation is known here.
func (m *Machine) Revoked() bool { return m.revoked }

// Revoke is the application's call; it returns the ranks to notify, in this order.
func (m *Machine) Revoke() []int {
	m.revoked = true
	return m.spread()
}

// Receive handles the revocation from another member; it returns the ranks to notify.
func (m *Machine) Receive(from int) []int {
	m.told[from] = true
	if m.revoked {
		return nil
	}
	m.revoked = true
	return m.spread()
}

// Failed records deaths; it returns the ranks to notify because they have become neighbours.
func (m *Machine) Failed(dead rankset.Set) []int {
	if m.failed.Contains(dead) {
		return nil
	}
	m.failed = m.failed.Union(dead)
	if !m.revoked {
		return nil
	}
	return m.spread()
}

// spread lists the neighbours not notified yet, and counts them as notified.
func (m *Machine) spread() []int {
	var out []int
	for _, r := range m.places.Neighbours(m.self, m.failed) {
		if !m.told[r] {
			m.told[r] = true
			out = append(out, r)
		}
	}
	return out
}
