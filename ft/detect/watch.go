package detect

import (
	"maps"
	"slices"

	"libspx/ft/rankset"
)

// A silent host, and for how long it has been.
type silent struct {
	host int
	time Time
}

// silents lists the hosts below that have been silent for at least the early time: those watched
// and, below them, those that have not sought.
func (m *Machine) silents(now Time) (list []silent) {
	for _, h := range m.watched() {
		if time := now - m.peers[h].heard; time >= m.early() && m.sure(h) {
			list = append(list, silent{h, time})
			if m.peers[h].complete {
				list = m.unsought(list, h, time)
			}
		}
	}
	return list
}

func (m *Machine) unsought(list []silent, h int, time Time) []silent {
	for _, c := range m.below(h) {
		if !m.peers[c].adopted {
			list = m.unsought(append(list, silent{c, time}), c, time)
		}
	}
	return list
}

// Quiet lists the hosts that were not heard for half of the limit, as recorded at this one. If one
// of them is then found to have certainly ended, the cause may be that it was cut off.
func (m *Machine) Quiet(now Time) (list []int) {
	for h := range m.peers {
		if p := &m.peers[h]; m.known(h, now) > 0 || slices.Contains(m.watched(), h) && m.sure(h) &&
			now-p.heard >= m.cfg.Limit/2 {
			list = append(list, h)
		}
	}
	return list
}

// report sends host 0 the hosts that are silent here.
func (m *Machine) report(now Time) {
	if m.ended || now < m.tellAt {
		return
	}
	if list := m.silents(now); len(list) > 0 {
		m.tellAt = now + m.cfg.Period
		m.send(0, message{kind: kindReport, silents: list})
	}
}

func (m *Machine) onReport(msg message, now Time) {
	if !m.root() {
		return
	}
	for _, s := range msg.silents {
		if s.host > 0 && !m.out.Has(s.host) {
			p := &m.peers[s.host]
			p.silence, p.reported = min(s.time, m.limit), now
		}
	}
	m.judge(now)
}

// known is the silence of a host as reported by another host; 0: no valid report.
func (m *Machine) known(h int, now Time) Time {
	p := &m.peers[h]
	if p.silence == 0 || m.out.Has(h) || now-p.reported > 3*m.cfg.Period || p.armed &&
		now-p.heard < m.early() {
		return 0
	}
	return p.silence + now - p.reported
}

// judge excludes the hosts that have been silent for the limit. A host that is nearly silent counts
// against the majority at once, so that in a network cut in two each host is counted on the right
// side; but it is excluded only at its own limit, before which it may not have ended its processes.
func (m *Machine) judge(now Time) {
	group := map[int]Time{}
	for _, s := range m.silents(now) {
		group[s.host] = s.time
	}
	for h := range m.peers {
		if time := m.known(h, now); time >= m.early() {
			group[h] = max(group[h], time)
		}
	}
	var lost []int
	for _, h := range slices.Sorted(maps.Keys(group)) {
		if group[h] >= m.limit {
			lost = append(lost, h)
		}
	}
	if lost == nil {
		return
	}
	if here, all := m.sides(group); 2*here < all && !m.cfg.Alone {
		m.ended, m.pending.Split = true, slices.Sorted(maps.Keys(group))
		return
	}
	m.pending.Lost = lost
	m.exclude(lost, OutSilent, now)
}

// sides counts the hosts that are on the side of this one, and all that count.
func (m *Machine) sides(silent map[int]Time) (here, all int) {
	for h := range m.peers {
		if m.out.Has(h) || m.hidden(h, silent) {
			continue
		}
		all++
		if _, is := silent[h]; !is {
			here++
		}
	}
	return here, all
}

// hidden: a host is reached through one alone that is silent.
func (m *Machine) hidden(h int, silent map[int]Time) bool {
	for h = m.by(h); h > 0; h = m.by(h) {
		if _, is := silent[h]; is {
			return true
		}
	}
	return false
}

// exclude begins an epoch without some hosts, and notifies all hosts, the excluded ones included.
func (m *Machine) exclude(list []int, why Reason, now Time) {
	m.epoch++
	set := rankset.Of(list...)
	m.out = m.out.Union(set)
	switch why {
	case OutClosed:
		m.closed = m.closed.Union(set)
	case OutChanged:
		m.changed = m.changed.Union(set)
	}
	for _, h := range list {
		m.sendOut(h)
	}
	m.retree(now)
	if m.tick > 0 {
		m.beat(now)
	}
}

// firstDue is when host 0 will have to judge.
func (m *Machine) firstDue(now Time) Time {
	due := Never
	for _, h := range m.Watching() {
		due = min(due, m.peers[h].heard+m.limit)
	}
	for h := range m.peers {
		if p := &m.peers[h]; p.silence > 0 && !m.out.Has(h) && m.known(h, now) > 0 {
			due = min(due, p.reported+m.limit-p.silence)
		}
	}
	return due
}
