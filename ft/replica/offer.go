package replica

import (
	"slices"

	"go.etcd.io/raft/v3"
)

// The way of a proposal into the log. Its agent offers it to the leader, with those behind it,
// until it is applied; an offer may be lost, and come twice.

// Bounds of an offer.
const (
	window     = 64            // proposals that are under way
	offerBytes = 128 << 10     // of one message
	patienceOf = electionTicks // ticks after which they are offered again
)

// proposals are those of this agent that are not applied yet, in their order.
type proposals struct {
	list    [][]byte
	before  uint64 // number of the last that was applied
	offered int    // of the list: those that the leader has been offered
	idle    int    // ticks since something happened to them
	asked   int    // agents queried while no leader is known
}

func (p *proposals) add(data []byte) { p.list = append(p.list, slices.Clone(data)) }

// anew restarts with the first.
func (p *proposals) anew() { p.offered, p.idle = 0, 0 }

// tick reports whether they are to be offered again.
func (p *proposals) tick() bool {
	if len(p.list) == 0 {
		return false
	}
	if p.idle++; p.idle < patienceOf {
		return false
	}
	p.anew()
	p.asked++
	return true
}

// done: those up to a number have been applied.
func (p *proposals) done(seq uint64) {
	if seq <= p.before {
		return
	}
	n := min(int(seq-p.before), len(p.list))
	p.list, p.before = p.list[n:], seq
	p.offered, p.idle = max(p.offered-n, 0), 0
}

// next are the proposals to be offered now: the number of the first, and their bytes.
func (p *proposals) next() (first uint64, list [][]byte) {
	size := 0
	first = p.before + uint64(p.offered) + 1
	for p.offered < min(window, len(p.list)) {
		data := p.list[p.offered]
		if size += len(data); size > offerBytes && len(list) > 0 { // one alone may be longer
			break
		}
		list = append(list, data)
		p.offered++
	}
	return first, list
}

// offer sends the leader what this agent proposes. While none is known, other agents are queried in
// turn.
func (m *Machine) offer() {
	for m.proposals.offered < min(window, len(m.proposals.list)) {
		to := m.Leader()
		if to < 0 && !m.isMember(m.cfg.Self) && len(m.wanted) > 0 {
			to = m.wanted[m.proposals.asked%len(m.wanted)]
		}
		if to < 0 || to == m.cfg.Self && m.role != raft.StateLeader {
			return
		}
		first, list := m.proposals.next()
		o := &offer{origin: m.cfg.Self, first: first, list: list}
		if to == m.cfg.Self {
			m.take(o)
			m.drain()
		} else {
			m.out = append(m.out, Send{Message{From: m.cfg.Self, To: to, offer: o}})
		}
	}
}

// offered takes an offer, or hands it on to the leader, once.
func (m *Machine) offered(msg *Message) {
	o := msg.offer
	switch {
	case m.role == raft.StateLeader:
		m.take(o)
	case m.leader >= 0 && m.leader != m.cfg.Self && !o.passed:
		m.out = append(m.out, Send{Message{From: m.cfg.Self, To: m.leader,
			offer: &offer{o.origin, o.first, o.list, true}}})
	}
}

// take puts what is new of an offer into the leader's log.
func (m *Machine) take(o *offer) {
	for i, data := range o.list {
		seq := o.first + uint64(i)
		if seq != max(m.last[o.origin], m.given[o.origin])+1 {
			continue
		}
		e := Entry{Origin: o.origin, Seq: seq, At: max(m.now, m.applied.At), Data: data}
		if m.node.Propose(appendProposal(nil, &e)) != nil {
			break // too much is under way; it is offered again
		}
		m.given[o.origin] = seq
	}
	if o.origin != m.cfg.Self && o.first <= m.last[o.origin] && !m.isMember(o.origin) {
		m.answer(o.origin)
	}
}

// answer reports to an agent that does not have the entries which of its own have been applied.
func (m *Machine) answer(origin int) {
	m.out = append(m.out, Send{Message{From: m.cfg.Self, To: origin, taken: m.last[origin]}})
}

// taken processes the report of which of this agent's proposals have been applied, and of the
// leader.
func (m *Machine) taken(msg *Message) {
	if !m.isMember(m.cfg.Self) {
		m.hint = msg.From
	}
	m.proposals.done(msg.taken)
}
