// Package detect finds hosts that have fallen silent, and ensures that no host continues that the
// other hosts have excluded: the agents of a job's hosts, one machine each, beat along a tree.
// Processes take no part in it.
//
// # Protocol
//
// Host 0 decides; it is the root of a tree of the hosts (tree.go), in which a host that is out is
// bypassed. Once in a Period it counts a tick and sends it down; a host that receives a new tick
// forwards it at once and answers the sender.
//
//	Beat    down  the newest tick, the excluded hosts with their epochs, and the reasons
//	Echo    up    the answer, and whether all hosts below have answered
//	Seek    up    to all ancestors: no tick has come for a while. They send theirs from now on, so the loss of an inner host costs no other host
//	Report  root  hosts below that have been silent for nearly the Limit
//	Out           to an excluded host, in reply to any message, with the reason
//
// A host that has been silent for the Limit is *suspected*: it may have died, hang, or be cut off.
// Only host 0 acts on that: the host is out in a new epoch, if host 0's side has at least half of
// the hosts of the epoch before, without all that have been silent for nearly as long (with exactly
// half of them it goes on because it has the lowest number); else its own side has to end (Split),
// unless Config.Alone. A host that has got no tick for the Limit less two Periods has lost host 0,
// whose side alone may go on: it is Fenced, as is one that learns that it is out. The echoes of its
// last two ticks may have been lost, hence the Periods: a host is fenced before it is excluded, if
// it runs at all. Only a host that got a tick more than two Periods after its last echo arrived may
// run for that much longer, or until it is notified that it is out; hosts that were notified refuse
// its messages.
//
// The limit follows what is seen: where beats stayed without answer for a while and the host
// answered later, silence does not mean death, and host 0 waits for `patience` times the longest
// such silence, if that is more than Limit; never for more than Most. Echoes report silences below
// to it, and beats carry the current limit to all hosts: the limit only grows, and a host that has
// not yet received a longer one is fenced earlier. Where no silence was seen, it is Limit.
//
// An end that is *certain* (the agent's connection has ended) is reported by Gone and needs no
// majority: 20 of 24 hosts may end one after another. The reason of an exclusion goes with it: a
// host that still runs reports it to its user.
//
// No host is suspected before its first message arrived, so a network that passes none of these
// messages raises no alarm. Time in which this machine itself was not run does not count as
// silence: neither a suspended machine nor an agent that waits for a processor takes its own
// absence for that of its peers.
//
// Where hosts are reached only through relays (Tree), the relays beat for them, so that one message
// passes each way in a Period, and the caller forwards messages for a host that it does not reach.
// If the relay falls silent, so do the hosts behind it, even if they run: they count for neither
// side of a network that is cut then.
//
// Hosts may be added while the machines run (Grow), with the next number each time. Host 0's side
// decides, and only that side can continue, so the other hosts may learn of the new host at any
// time: until then they do not beat for it, and a host that was never heard is not suspected. The
// exclusion of a host may arrive before its addition. Numbers are not reused.
//
// # What the caller must do
//
//  1. Pass in messages that are authenticated to come from a host of the job, then call Tick when
//     Deadline has come; messages before Tick, if both wait.
//  2. Perform an Output before the next event. Messages may be lost, delayed, doubled and
//     reordered.
//  3. End the processes of the host when Fenced is set, the job when Split is.
package detect

import (
	"fmt"
	"slices"

	"libspx/ft/rankset"
)

// Time is a moment of the caller's clock, or a span, in microseconds.
type Time int64

// Never is a deadline that does not come.
const Never = Time(1<<63 - 1)

// Config is the machine's initial configuration.
type Config struct {
	Self, Hosts int
	Period      Time // between two ticks; at most Limit/5
	Limit       Time // of silence
	Most        Time // up to which the limit grows; 0: it does not
	Alone       bool // host 0's side continues even with less than half of the hosts
	Tree        Tree
}

// Send is a message to a host.
type Send struct {
	To   int
	Data []byte
}

// Reason is why a host has to end its processes.
type Reason int

// Reasons. From OutSilent on they are host 0's for the exclusion of a host.
const (
	NotFenced   Reason = iota
	LostContact        // host 0 has been silent for nearly the limit
	OutSilent          // the host was silent for the limit
	OutClosed          // its connection with host 0 has ended
	OutChanged         // bytes of that connection were changed on the way
)

// Output is what the caller has to perform after an event.
type Output struct {
	Sends  []Send
	Lost   []int  // on host 0: the hosts that are out from now on because they were silent
	Split  []int  // on host 0: the hosts that are silent, more than half of all: this side ends
	Fenced Reason // on another host
}

// peer is the state kept of another host.
type peer struct {
	said     uint64 // number of its latest message
	heard    Time   // when it came, or when watching began
	asked    Time   // when the first beat went there that is not answered
	asking   bool   // there is one
	armed    bool   // it was heard
	complete bool   // as it reports, all hosts below it were
	adopted  bool   // it has sought: it gets our beats though it is no child
	silence  Time   // at host 0: as reported by another host, at time reported
	reported Time
}

// Machine is the part of one host.
type Machine struct {
	cfg     Config
	epoch   uint64
	out     rankset.Set
	closed  rankset.Set // of out, with OutClosed
	changed rankset.Set // of out, with OutChanged; the rest with OutSilent
	peers   []peer
	// by host: those of which it is the host above; nil: that follows from the numbers
	under    [][]int
	children []int
	adopted  []int

	sent    uint64 // messages, by which they are numbered
	tick    uint64 // host 0: sent; others: the newest
	tickAt  Time
	wake    Time // Deadline
	beatAt  Time // host 0: the next tick
	seekAt  Time
	tellAt  Time // the next Report
	limit   Time // of silence, as it holds now
	longest Time
	worst   Time // the longest silence that has ended, here or below
	again   uint64
	ended   bool
	pending Output
}

// New makes the machine of host Self at time now.
func New(cfg Config, now Time) *Machine {
	m := &Machine{cfg: cfg, limit: cfg.Limit, peers: make([]peer, cfg.Hosts), beatAt: now,
		wake: Never}
	m.buildTree()
	m.retree(now)
	return m.done(now)
}

func (m *Machine) root() bool { return m.cfg.Self == 0 }

// early is the silence from which a host counts as silent when another one has reached the limit,
// and after which a host that receives nothing ends itself.
func (m *Machine) early() Time { return m.limit - 2*m.cfg.Period }

// patience is how many times the longest silence that has ended a host may be silent: a host that
// has returned from one silence may return from a longer one.
const patience = 4

// learn takes note of a silence that has ended.
func (m *Machine) learn(span Time) {
	m.worst = max(m.worst, span)
	if m.root() {
		m.limit = max(m.limit, min(patience*m.worst, m.cfg.Most))
	}
}

// Limit is the silence after which a host is excluded, at its current value.
func (m *Machine) Limit() Time { return m.limit }

// Worst is the longest time that beats stayed without answer, of a host that answered later, as
// recorded at this host.
func (m *Machine) Worst() Time { return m.worst }

// seekAfter is how long a host waits for ticks before it seeks other hosts that have them.
func (m *Machine) seekAfter() Time { return m.cfg.Limit/2 - m.cfg.Period }

// Deadline is when Tick is to be called.
func (m *Machine) Deadline() Time { return m.wake }

// Epoch counts the changes of the hosts that are out.
func (m *Machine) Epoch() uint64 { return m.epoch }

// Longest is the longest silence that has come to its end, of a host that is watched or of host 0:
// what the limit must exceed.
func (m *Machine) Longest() Time { return m.longest }

// Again counts messages that came after a later one of their sender: late ones, and replayed ones.
func (m *Machine) Again() uint64 { return m.again }

// OutSet is the hosts that are out.
func (m *Machine) OutSet() rankset.Set { return m.out }

// Watching lists the hosts whose silence this one would report, and that were heard.
func (m *Machine) Watching() []int {
	return slices.DeleteFunc(m.watched(), func(h int) bool { return !m.sure(h) })
}

// Tick is to be called at the Deadline; earlier does no harm.
func (m *Machine) Tick(now Time) Output {
	m.excuse(now)
	switch {
	case m.ended:
	case m.root():
		m.judge(now)
		if now >= m.beatAt && !m.ended {
			m.beat(now)
		}
	default:
		m.seek(now)
		m.report(now)
	}
	return m.take(now)
}

// Receive handles a message. An error means that it is malformed; it is then ignored.
func (m *Machine) Receive(from int, data []byte, now Time) (Output, error) {
	m.excuse(now)
	if from < 0 || from >= len(m.peers) || from == m.cfg.Self {
		return m.take(now), fmt.Errorf(
			"detect: message from host %d, which is not another one of 0..%d", from, len(m.peers)-1)
	}
	msg, err := decode(data, len(m.peers))
	if err != nil || m.ended {
		return m.take(now), err
	}
	p := &m.peers[from]
	if msg.number <= p.said { // late, or replayed
		m.again++
		return m.take(now), nil
	}
	p.said = msg.number
	if m.out.Has(from) {
		m.sendOut(from)
		return m.take(now), nil
	}
	if p.armed && (msg.kind == kindEcho || msg.kind == kindReport) {
		m.longest = max(m.longest, now-p.heard)
	}
	// a host that got no beats, since one in between is dead, was not silent
	if p.armed && p.asking {
		m.learn(now - p.asked)
	}
	p.heard, p.armed, p.asking = now, true, false
	switch msg.kind {
	case kindBeat:
		m.onBeat(from, msg, now)
	case kindEcho:
		p.complete = msg.complete
		m.learn(msg.worst)
	case kindSeek:
		m.onSeek(from, now)
	case kindReport:
		m.onReport(msg, now)
	case kindOut:
		if msg.epoch >= m.epoch && !m.root() {
			m.fence(msg.why)
		}
	}
	return m.take(now), nil
}

// Gone notifies host 0 that a host has certainly ended, or is assumed to have: why is OutClosed or
// OutChanged.
func (m *Machine) Gone(host int, why Reason, now Time) Output {
	m.excuse(now)
	if m.root() && !m.ended && host > 0 && host < len(m.peers) && !m.out.Has(host) {
		m.exclude([]int{host}, why, now)
	}
	return m.take(now)
}

// Grow sets the number of hosts of the job and their tree, which must be unchanged for the hosts
// already known.
func (m *Machine) Grow(hosts int, tree Tree, now Time) Output {
	m.excuse(now)
	if hosts > len(m.peers) {
		m.peers = append(m.peers, make([]peer, hosts-len(m.peers))...)
		before := m.cfg.Hosts
		m.cfg.Hosts, m.cfg.Tree = hosts, tree
		m.buildTree()
		m.retree(now)
		switch {
		case m.tick == 0 || m.ended:
		case m.root():
			m.beat(now)
		default: // from now on they can be missed
			for _, h := range m.children {
				if h >= before {
					m.sendBeat(h, now)
				}
			}
		}
	}
	return m.take(now)
}

// excuse does not count as silence the time for which this machine was not run.
func (m *Machine) excuse(now Time) {
	if m.wake == Never || now-m.wake <= m.cfg.Period/2 {
		return
	}
	late := now - m.wake
	m.tickAt = min(m.tickAt+late, now)
	for i := range m.peers {
		p := &m.peers[i]
		p.heard, p.asked, p.reported = min(p.heard+late, now), min(p.asked+late, now),
			min(p.reported+late, now)
	}
}

// beat begins a tick.
func (m *Machine) beat(now Time) {
	m.tick++
	m.beatAt = now + m.cfg.Period
	m.handOn(now)
}

func (m *Machine) handOn(now Time) {
	for _, h := range m.watched() {
		m.sendBeat(h, now)
	}
}

func (m *Machine) sendBeat(to int, now Time) {
	if p := &m.peers[to]; !p.asking {
		p.asked, p.asking = now, true
	}
	m.send(to, message{kind: kindBeat, tick: m.tick, epoch: m.epoch, limit: m.limit, out: m.out,
		closed: m.closed, changed: m.changed})
}

// sendOut notifies a host that it is out.
func (m *Machine) sendOut(to int) {
	m.send(to, message{kind: kindOut, epoch: m.epoch, why: m.whyOut(to)})
}

// whyOut is why a host is out.
func (m *Machine) whyOut(h int) Reason {
	switch {
	case m.changed.Has(h):
		return OutChanged
	case m.closed.Has(h):
		return OutClosed
	}
	return OutSilent
}

func (m *Machine) onBeat(from int, msg message, now Time) {
	if m.root() {
		return
	}
	if msg.epoch > m.epoch {
		m.epoch, m.out, m.closed, m.changed = msg.epoch, msg.out, msg.closed, msg.changed
		if m.out.Has(m.cfg.Self) {
			m.fence(m.whyOut(m.cfg.Self))
			return
		}
		m.retree(now)
	}
	m.limit = max(m.limit, min(msg.limit, m.cfg.Most))
	if msg.tick > m.tick {
		if m.tick > 0 {
			m.longest = max(m.longest, now-m.tickAt)
		}
		m.tick, m.tickAt = msg.tick, now
		m.handOn(now)
	}
	m.send(from, message{kind: kindEcho, complete: m.complete(), worst: m.worst})
}

// onSeek serves a host that has lost those above it.
func (m *Machine) onSeek(from int, now Time) {
	if !m.above(from) {
		return
	}
	if p := &m.peers[from]; !p.adopted && !slices.Contains(m.children, from) {
		p.adopted = true
		m.adopted = append(m.adopted, from)
	}
	if m.tick > 0 {
		m.sendBeat(from, now)
	}
}

// seek calls for help when ticks stay away, and draws the consequence when they have for too long.
func (m *Machine) seek(now Time) {
	if m.tick == 0 || now < m.tickAt+m.seekAfter() {
		return
	}
	if now >= m.tickAt+m.early() {
		m.fence(LostContact)
		return
	}
	if now < m.seekAt {
		return
	}
	m.seekAt = now + m.cfg.Period
	for h := m.cfg.Self; h != 0; {
		h = m.parent(h)
		m.send(h, message{kind: kindSeek})
	}
}

func (m *Machine) fence(why Reason) {
	m.ended, m.pending.Fenced = true, why
}

func (m *Machine) send(to int, msg message) {
	m.sent++
	msg.number = m.sent
	m.pending.Sends = append(m.pending.Sends, Send{to, msg.append(nil)})
}

func (m *Machine) take(now Time) Output {
	m.done(now)
	out := m.pending
	m.pending = Output{}
	return out
}

// done sets the deadline.
func (m *Machine) done(now Time) *Machine {
	m.wake = Never
	if m.ended {
		return m
	}
	if m.root() {
		m.wake = min(m.beatAt, m.firstDue(now))
		return m
	}
	if m.tick > 0 {
		m.wake = min(max(m.tickAt+m.seekAfter(), m.seekAt), m.tickAt+m.early())
	}
	for _, h := range m.Watching() {
		m.wake = min(m.wake, max(m.peers[h].heard+m.early(), m.tellAt))
	}
	return m
}
