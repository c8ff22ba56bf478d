package detect

import "slices"

// Arity is how many hosts one beats for. A job of up to Arity + 1 hosts is a star.
const Arity = 8

// A Tree specifies which host beats for which one where that does not follow from the host numbers:
// where hosts are reached only through relays.
type Tree struct {
	// by host, the one that beats for it: one of a lower number; -1, or not there: that follows
	// from the numbers
	Up []int
	// by host, the one through which alone host 0 reaches it, likewise; -1, or not there: there is
	// none
	By []int
}

// up is the host above.
func (m *Machine) up(h int) int {
	if up := m.cfg.Tree.Up; h < len(up) && up[h] >= 0 && up[h] < h {
		return up[h]
	}
	return (h - 1) / Arity
}

// by is the host through which alone host 0 reaches another one; 0: it needs none.
func (m *Machine) by(h int) int {
	if by := m.cfg.Tree.By; h < len(by) && by[h] > 0 && by[h] < h {
		return by[h]
	}
	return 0
}

// build takes note of the tree.
func (m *Machine) buildTree() {
	if m.cfg.Tree.Up == nil {
		m.under = nil
		return
	}
	m.under = make([][]int, len(m.peers))
	for h := 1; h < len(m.peers); h++ {
		m.under[m.up(h)] = append(m.under[m.up(h)], h)
	}
}

// directly lists the hosts of which this one is the host above, whether they are out or not.
func (m *Machine) directly(h int) (list []int) {
	if m.under != nil {
		return m.under[h]
	}
	for c := h*Arity + 1; c <= h*Arity+Arity && c < len(m.peers); c++ {
		list = append(list, c)
	}
	return list
}

// parent is the nearest host above that is not out.
func (m *Machine) parent(h int) int {
	for h = m.up(h); m.out.Has(h); {
		h = m.up(h)
	}
	return h
}

// above: this host is an ancestor of h.
func (m *Machine) above(h int) bool {
	for h > m.cfg.Self {
		h = m.up(h)
	}
	return h == m.cfg.Self
}

// below lists the hosts that host h beats for: in place of one that is out, those below it.
func (m *Machine) below(h int) (list []int) {
	for _, c := range m.directly(h) {
		if m.out.Has(c) {
			list = append(list, m.below(c)...)
		} else {
			list = append(list, c)
		}
	}
	return list
}

// retree takes note of a new epoch.
func (m *Machine) retree(now Time) {
	before := m.watched()
	m.children = m.below(m.cfg.Self)
	m.adopted = slices.DeleteFunc(m.adopted, func(h int) bool {
		p := &m.peers[h]
		// a host that has sought may depend on this one for long
		p.adopted = !m.out.Has(h) && !slices.Contains(m.children, h)
		return !p.adopted
	})
	for _, h := range m.children {
		if !slices.Contains(before, h) {
			m.peers[h].heard = now
		}
	}
}

// watched are the hosts that get beats from here, and are to answer.
func (m *Machine) watched() []int {
	return append(slices.Clone(m.children), m.adopted...)
}

// sure: host h, which is below this one, was heard, by this host or by one in between that has
// reported so.
func (m *Machine) sure(h int) bool {
	if m.peers[h].armed {
		return true
	}
	for h = m.up(h); h > m.cfg.Self; h = m.up(h) {
		if m.peers[h].complete {
			return true
		}
	}
	return false
}

// complete: all below were heard.
func (m *Machine) complete() bool {
	for _, h := range m.children {
		if p := &m.peers[h]; !p.armed || !p.complete {
			return false
		}
	}
	return true
}
