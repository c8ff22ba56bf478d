// Package place determines which members communicate in the failure protocols: members of one host
// among each other, and of each host only its lowest living member, its head, with other hosts. So
// a protocol needs a connection for each pair of hosts that are neighbours, not for pairs of
// members, and wake-ups within a host use its shared memory. It is pure, and every member computes
// the same from its known deaths.
//
// Places are numbers of members, host by host, so that the lowest living place is the head of the
// first host that lives.
package place

import (
	"slices"

	"libspx/ft/rankset"
)

// Widths of the trees: of a host's members, and of the hosts. On a host each level costs every
// inner member two scheduling turns; between hosts the cost is in sending.
const (
	NearWidth = 8
	FarWidth  = 4
)

// None is no place.
const None = -1

// Map is where the members of a communicator run. It does not change.
type Map struct {
	n         int
	first     []int // place of each host's first member; at the end n
	near, far int
	member    []int // at each place; nil: places are the members' own numbers
	place     []int // of each member
}

// New makes the map of members whose hosts are named by any numbers; nil hosts: n members of one
// host. near and far are widths of the trees, 0: those of the library.
func New(n int, hosts []int, near, far int) *Map {
	m := &Map{n: n, near: near, far: far, first: []int{0}}
	if near == 0 {
		m.near = NearWidth
	}
	if far == 0 {
		m.far = FarWidth
	}
	if hosts != nil {
		m.group(hosts)
	}
	m.first = append(m.first, n)
	return m
}

// group puts members of one host beside each other, hosts in the order of their first members.
func (m *Map) group(hosts []int) {
	number, size := map[int]int{}, []int{}
	sorted, last := true, 0
	for _, h := range hosts {
		k, known := number[h]
		if !known {
			k = len(size)
			number[h] = k
			size = append(size, 0)
		}
		size[k]++
		sorted = sorted && k >= last
		last = k
	}
	for _, s := range size[:len(size)-1] {
		m.first = append(m.first, m.first[len(m.first)-1]+s)
	}
	if sorted {
		return
	}
	m.member, m.place = make([]int, m.n), make([]int, m.n)
	next := slices.Clone(m.first)
	for r, h := range hosts {
		k := number[h]
		m.member[next[k]], m.place[r] = r, next[k]
		next[k]++
	}
}

// Len is the number of places.
func (m *Map) Len() int { return m.n }

// Place is where a member is.
func (m *Map) Place(member int) int {
	if m.place == nil {
		return member
	}
	return m.place[member]
}

// Member is the member at a place.
func (m *Map) Member(place int) int {
	if m.member == nil {
		return place
	}
	return m.member[place]
}

// Places are those of some members.
func (m *Map) Places(members rankset.Set) rankset.Set { return translated(members, m.place) }

// Members are those at some places.
func (m *Map) Members(places rankset.Set) rankset.Set { return translated(places, m.member) }

func translated(set rankset.Set, to []int) rankset.Set {
	if to == nil || set.Empty() {
		return set
	}
	ranks := set.Ranks()
	for i, r := range ranks {
		ranks[i] = to[r]
	}
	return rankset.Of(ranks...)
}

func (m *Map) host(place int) int {
	h, exact := slices.BinarySearch(m.first, place)
	if !exact {
		h--
	}
	return h
}

// head is the lowest living place of a host, None if no member lives there.
func (m *Map) head(host int, failed rankset.Set) int {
	if p := failed.FirstAbsentFrom(m.first[host]); p < m.first[host+1] {
		return p
	}
	return None
}

// Relatives returns a place's neighbours in the tree of the living places, as far as deaths are
// known: the parent, None at the lowest living place, and the children. The trees are fixed, and
// dead places are bypassed: their children belong to the nearest living ancestor, or if there is
// none to the lowest living place of the tree.
func (m *Map) Relatives(self int, failed rankset.Set) (parent int, children []int) {
	if failed.Has(self) { // excluded by the other members: it decides nothing any more
		return failed.FirstAbsent(), nil
	}
	h := m.host(self)
	lo, head := m.first[h], m.head(h, failed)
	near := tree{m.first[h+1] - lo, m.near, head - lo,
		func(i int) bool { return failed.Has(lo + i) }}
	parent, children = near.relatives(self - lo)
	for i := range children {
		children[i] += lo
	}
	if parent != None {
		return parent + lo, children
	}
	if len(m.first) == 2 {
		return None, children
	}
	far := tree{len(m.first) - 1, m.far, m.host(failed.FirstAbsent()),
		func(i int) bool { return m.head(i, failed) == None }}
	above, below := far.relatives(h)
	for _, b := range below {
		children = append(children, m.head(b, failed))
	}
	if above == None {
		return None, children
	}
	return m.head(above, failed), children
}

// tree is a heap of n nodes in which the dead are bypassed; first is the lowest living node.
type tree struct {
	n, width, first int
	dead            func(int) bool
}

func (t tree) relatives(self int) (parent int, children []int) {
	for k := range t.width {
		children = t.living(t.width*self+k+1, children)
	}
	if self == t.first {
		if self != 0 { // those that have no living ancestor
			for _, top := range t.living(0, nil) {
				if top != self {
					children = append(children, top)
				}
			}
		}
		return None, children
	}
	for a := self; a > 0; {
		if a = (a - 1) / t.width; !t.dead(a) {
			return a, children
		}
	}
	return t.first, children
}

// living adds the highest living nodes of the subtree at i: i itself, or those of its children if
// it is dead.
func (t tree) living(i int, out []int) []int {
	switch {
	case i >= t.n:
		return out
	case !t.dead(i):
		return append(out, i)
	}
	for k := range t.width {
		out = t.living(t.width*i+k+1, out)
	}
	return out
}

// Neighbours lists the places to which a place forwards broadcasts: on its host those 1, 4, 16, ...
// living places behind it, in a circle; the head of a host also the heads of the hosts 1, 4, 16,
// ... behind it. The circles close over dead places.
func (m *Map) Neighbours(self int, failed rankset.Set) (out []int) {
	h := m.host(self)
	var near []int
	at := 0
	for p := m.first[h]; p < m.first[h+1]; p++ {
		if p == self {
			at = len(near)
		}
		if p == self || !failed.Has(p) {
			near = append(near, p)
		}
	}
	out = behind(near, at, nil)
	if at > 0 || len(m.first) == 2 {
		return out
	}
	var far []int
	for i := range len(m.first) - 1 {
		if i == h {
			at = len(far)
			far = append(far, self)
		} else if head := m.head(i, failed); head != None {
			far = append(far, head)
		}
	}
	return behind(far, at, out)
}

func behind(circle []int, at int, out []int) []int {
	for d := 1; d < len(circle); d *= 4 {
		out = append(out, circle[(at+d)%len(circle)])
	}
	return out
}
