// Package agree is a uniform agreement among the living members of a communicator: all members that
// return from one agreement return the same decision, including those that die afterwards.
// MPIX_Comm_agree and MPIX_Comm_shrink are both one agreement.
//
// # Protocol
//
// Ranks, which are places of package place, form fixed trees, one on each host, and one of the
// hosts. A dead rank is bypassed: its children belong to its nearest living ancestor, and where
// there is none, to the lowest living rank of the host. The root is the lowest living rank of all,
// and its rank is the ballot: when it dies, the next lowest becomes root of a higher ballot.
// Because failure knowledge is certain (package ft), every member that learns that all ranks below
// b are dead has thereby promised to accept no proposal of a ballot below b.
//
// A member that has reported to its parent that its subtree has contributed, or accepted, has
// reported for all living members below it, including those that join it later: these were below
// one of its descendants that has died. A member that moves to another parent reports again there;
// the next head of a host has another parent than before.
//
//	Gather   up    contributions of a whole subtree
//	Propose  down  the root's decision: the proposal that it has accepted before if there is any, else the merged contributions
//	Accept   up    a whole subtree has accepted the proposal
//	Commit   down  the decision is final: the receiver returns at once, and goes on to forward it
//
// A decision is committed only after every living member has accepted it. So every later root has
// accepted it, too, and proposes it again: that is uniformity. Fault-free cost: four traversals of
// the tree, 4(n-1) messages. The number of deaths adds no rounds unless roots die one after
// another: a subtree is re-attached as soon as its members learn of the death.
//
// # What the caller must do
//
//  1. Perform the sends of an Output in order, then return the decision to the application when
//     Done is set.
//  2. Deliver messages between living ranks once and in order.
//  3. Notify every living member of every death eventually (Failed).
//  4. Keep the machine, and go on feeding it, until the next agreement of the communicator has been
//     decided: a member that has returned still answers those that have not returned.
package agree

import (
	"fmt"
	"slices"

	"libspx/ft/place"
	"libspx/ft/rankset"
)

// Contribution is what one member brings in.
type Contribution struct {
	Flags uint32      // MPIX_Comm_agree: combined by bitwise and
	Acked rankset.Set // failures that this member has acknowledged: combined by intersection
	// a fresh context id; the one of the root that decides is taken (MPIX_Comm_shrink)
	Context uint64
}

// Decision is what all members return.
type Decision struct {
	Flags   uint32
	Acked   rankset.Set // acknowledged by every contributor
	Failed  rankset.Set // the deaths that all agree upon
	Context uint64
}

// Send is a message to be sent.
type Send struct {
	To   int
	Data []byte
}

// Output is what the caller has to perform after an event.
type Output struct {
	// unless 0: this member's context, which stands in its decision from now on; no other member
	// has it before Sends
	Fresh uint64
	Sends []Send
	Done  *Decision // set once: the agreement returns this
}

// none is the ballot before all ballots.
const none = -1

// gather is the latest contribution of a child's subtree.
type gather struct {
	ballot        int
	flags         uint32
	acked, failed rankset.Set
}

// Machine is one member's part in one agreement.
type Machine struct {
	places  *place.Map
	n, self int
	failed  rankset.Set
	ballot  int // lowest rank not known to be dead: proposals below are refused

	parent   int // none for the root
	children []int

	called bool
	mine   Contribution

	gathers map[int]gather // by sender
	accepts map[int]int    // by sender: the ballot accepted

	acceptedBallot       int
	accepted             Decision
	sentGather, sentAcpt int // ballot reported to the parent, none: not yet

	committed bool
	decision  Decision

	out Output
}

// New makes the machine of the rank at place self of a communicator, of which the members in failed
// are known to be dead.
func New(places *place.Map, self int, failed rankset.Set) *Machine {
	m := &Machine{places: places, n: places.Len(), self: self, gathers: map[int]gather{},
		accepts:        map[int]int{},
		acceptedBallot: none, sentGather: none, sentAcpt: none, failed: failed}
	m.ballot = failed.FirstAbsent()
	m.parent, m.children = m.places.Relatives(m.self, m.failed)
	return m
}

// Committed reports whether the decision is known here.
func (m *Machine) Committed() bool { return m.committed }

// Call is the application's call. It is made at most once.
func (m *Machine) Call(c Contribution) Output {
	m.called, m.mine = true, c
	// possible only when the other members decided without this one, which the agreement excludes
	// while it lives
	if m.committed {
		d := m.decision
		m.out.Done = &d
	}
	m.advance()
	return m.take()
}

// Failed notifies the machine of deaths; deaths already known are ignored.
func (m *Machine) Failed(dead rankset.Set) Output {
	m.learn(dead)
	m.advance()
	return m.take()
}

// Receive handles a message from another member. An error means that the message is malformed; it
// is then ignored.
func (m *Machine) Receive(from int, data []byte) (Output, error) {
	msg, err := decode(data, m.n)
	if err != nil {
		return Output{}, err
	}
	if from < 0 || from >= m.n || from == m.self {
		return Output{}, fmt.Errorf(
			"agree: message from rank %d, which is not another member of 0..%d", from, m.n-1)
	}
	switch msg.kind {
	case kindGather:
		m.onGather(from, msg)
	case kindPropose:
		m.onPropose(from, msg)
	case kindAccept:
		m.onAccept(from, msg)
	case kindCommit:
		m.commit(msg.decision, from)
	}
	m.advance()
	return m.take(), nil
}

func (m *Machine) onGather(from int, msg message) {
	switch {
	case m.committed:
		m.send(from, message{kind: kindCommit, decision: m.decision})
	case msg.ballot >= m.ballot: // a higher one waits here until we learn of the deaths, too
		m.gathers[from] = gather{ballot: msg.ballot, flags: msg.decision.Flags,
			acked: msg.decision.Acked, failed: msg.decision.Failed}
	}
}

func (m *Machine) onPropose(from int, msg message) {
	if m.committed {
		m.send(from, message{kind: kindCommit, decision: m.decision})
		return
	}
	if msg.ballot > m.ballot { // its root has acted on the deaths of all below it
		m.learn(rankset.Below(msg.ballot))
	}
	if msg.ballot != m.ballot || m.acceptedBallot == m.ballot {
		return
	}
	m.accept(msg.decision)
}

// accept takes the proposal of the current ballot and hands it to the children.
func (m *Machine) accept(d Decision) {
	m.acceptedBallot, m.accepted = m.ballot, d
	for _, c := range m.children {
		m.send(c, message{kind: kindPropose, ballot: m.ballot, decision: d})
	}
}

func (m *Machine) onAccept(from int, msg message) {
	switch {
	case m.committed:
		m.send(from, message{kind: kindCommit, decision: m.decision})
	case msg.ballot >= m.ballot:
		m.accepts[from] = msg.ballot
	}
}

// commit makes the decision final here and forwards it to the neighbours in the tree, except the
// sender.
func (m *Machine) commit(d Decision, from int) {
	if m.committed {
		return
	}
	m.committed, m.decision = true, d
	if m.called {
		done := d
		m.out.Done = &done
	}
	for _, c := range append(slices.Clone(m.children), m.parent) {
		if c != none && c != from {
			m.send(c, message{kind: kindCommit, decision: d})
		}
	}
}

// learn records deaths: the tree changes, and new neighbours are sent this member's state.
func (m *Machine) learn(dead rankset.Set) {
	if m.failed.Contains(dead) {
		return
	}
	m.failed = m.failed.Union(dead)
	m.ballot = m.failed.FirstAbsent()
	oldParent, oldChildren := m.parent, m.children
	m.parent, m.children = m.places.Relatives(m.self, m.failed)
	if m.parent != oldParent {
		m.sentGather, m.sentAcpt = none, none
		if m.committed && m.parent != none {
			m.send(m.parent, message{kind: kindCommit, decision: m.decision})
		}
	}
	for _, c := range m.children {
		if slices.Contains(oldChildren, c) {
			continue
		}
		switch {
		case m.committed:
			m.send(c, message{kind: kindCommit, decision: m.decision})
		case m.acceptedBallot == m.ballot:
			m.send(c, message{kind: kindPropose, ballot: m.ballot, decision: m.accepted})
		}
	}
}

// advance does whatever the present state allows: gather upwards, propose, accept upwards, commit.
func (m *Machine) advance() {
	if m.committed || !m.called {
		return
	}
	if m.sentGather != m.ballot && m.acceptedBallot != m.ballot && m.gathered() {
		m.sentGather = m.ballot
		sum := m.merge()
		if m.parent != none {
			m.send(m.parent, sum)
		} else {
			m.propose(sum)
		}
	}
	if m.acceptedBallot == m.ballot && m.sentAcpt != m.ballot && m.allAccepted() {
		m.sentAcpt = m.ballot
		if m.parent != none {
			m.send(m.parent, message{kind: kindAccept, ballot: m.ballot})
		} else {
			m.commit(m.accepted, m.self)
		}
	}
}

func (m *Machine) gathered() bool {
	for _, c := range m.children {
		if g, ok := m.gathers[c]; !ok || g.ballot != m.ballot {
			return false
		}
	}
	return true
}

func (m *Machine) allAccepted() bool {
	for _, c := range m.children {
		if b, ok := m.accepts[c]; !ok || b != m.ballot {
			return false
		}
	}
	return true
}

// merge sums up this member's subtree as a Gather message.
func (m *Machine) merge() message {
	sum := message{kind: kindGather, ballot: m.ballot,
		decision: Decision{Flags: m.mine.Flags, Acked: m.mine.Acked, Failed: m.failed}}
	for _, c := range m.children {
		g := m.gathers[c]
		sum.decision.Flags &= g.flags
		sum.decision.Acked = sum.decision.Acked.Intersect(g.acked)
		sum.decision.Failed = sum.decision.Failed.Union(g.failed)
	}
	return sum
}

// propose is the root's choice once all members have contributed.
func (m *Machine) propose(sum message) {
	d := sum.decision
	if m.acceptedBallot != none { // a member that is dead now may have committed it
		d = m.accepted
	} else {
		d.Context = m.mine.Context
		m.out.Fresh = d.Context
	}
	m.accept(d)
}

func (m *Machine) send(to int, msg message) {
	m.out.Sends = append(m.out.Sends, Send{to, msg.append(nil)})
}

func (m *Machine) take() Output {
	out := m.out
	m.out = Output{}
	return out
}
