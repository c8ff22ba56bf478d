package detect

import "slices"

// Arity is how many hosts one beats for. A job of up to Arity + 1 hosts is a star.
const Arity = 8

func up(h int) int { return (h - 1) / Arity }

// parent is the nearest host above that is not out.
func (m *Machine) parent(h int) int {
	for h = up(h); m.out.Has(h); {
		h = up(h)
	}
	return h
}

// above: this host is an ancestor of h.
func (m *Machine) above(h int) bool {
	for h > m.cfg.Self {
		h = up(h)
	}
	return h == m.cfg.Self
}

// below lists the hosts that host h beats for: in place of one that is out, those below it.
func (m *Machine) below(h int) (list []int) {
	for c := h*Arity + 1; c <= h*Arity+Arity && c < len(m.peers); c++ {
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
		p.adopted = !m.out.Has(h) && !slices.Contains(m.children, h) // who has sought may depend on it for long
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

// sure: host h, which is below this one, was heard, here or by one in between that has said so.
func (m *Machine) sure(h int) bool {
	if m.peers[h].armed {
		return true
	}
	for h = up(h); h > m.cfg.Self; h = up(h) {
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
