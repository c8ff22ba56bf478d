package agree

// relatives is this member's place in the tree as far as deaths are known: its parent (none for the root), and its children.
func (m *Machine) relatives() (parent int, children []int) {
	children = m.living(2*m.self+1, nil)
	children = m.living(2*m.self+2, children)
	if m.self == m.ballot { // the root also takes those who have no living ancestor
		if m.self != 0 {
			for _, top := range m.living(0, nil) {
				if top != m.self {
					children = append(children, top)
				}
			}
		}
		return none, children
	}
	for a := m.self; a > 0; {
		a = (a - 1) / 2
		if !m.failed.Has(a) {
			return a, children
		}
	}
	return m.ballot, children
}

// living adds the highest living ranks of the subtree at r: r itself, or those of its children if it is dead.
func (m *Machine) living(r int, out []int) []int {
	switch {
	case r >= m.n:
		return out
	case !m.failed.Has(r):
		return append(out, r)
	}
	return m.living(2*r+2, m.living(2*r+1, out))
}
