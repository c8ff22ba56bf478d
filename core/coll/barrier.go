package coll

// empty is a message without data.
func empty() Ref { return Ref{Buf: BufRecv, Type: TypeByte} }

// barrierTree: every rank notifies its parent in a binomial tree that its subtree has arrived, and
// rank 0's release comes back down. 2(n-1) messages in all, which is what counts when a message
// wakes a sleeper.
func barrierTree(b *builder) {
	t := b.tree(b.Rank)
	var slots []int32
	for _, c := range t.children {
		slots = append(slots, b.recv(c, empty()))
	}
	b.wait(slots...)
	if t.parent >= 0 {
		b.send(t.parent, empty())
		b.wait(b.recv(t.parent, empty()))
	}
	for _, c := range t.children {
		b.send(c, empty())
	}
}

// barrierDissemination: in round k every rank notifies the rank 2^k further on; log2(n) rounds.
func barrierDissemination(b *builder) {
	b.noteRounds()
	for d := 1; d < b.Size; d <<= 1 {
		r := b.recv((b.Rank-d+b.Size)%b.Size, empty())
		b.send((b.Rank+d)%b.Size, empty())
		b.wait(r)
	}
}

// node is a place in a tree over 0..n-1 rooted at 0: its parent (-1 at the root), its children and
// the size of the subtree of each. A subtree is a run of numbers that begins with its root. The
// child to send to first stands first; the one with the nearest numbers, whose partial result comes
// next in order, is at the low end: see nearest.
type node struct {
	parent   int
	children []int
	spans    []int
	span     int
}

// nearest gives the indices of the children in the order of their numbers.
func (t *node) nearest() []int {
	out := make([]int, len(t.children))
	for i := range out {
		if out[i] = i; len(out) > 1 && t.children[0] > t.children[1] {
			out[i] = len(out) - 1 - i
		}
	}
	return out
}

// tree gives v's place in the tree of this schedule.
func (b *builder) tree(v int) node {
	if b.fanout == 0 {
		b.noteTree()
	}
	return treeOf(v, b.Size, b.fanout)
}

// treeOf is v's place in the tree over 0..n-1 of so many children a node; 0: the binomial tree.
func treeOf(v, n, fanout int) node {
	if fanout > 0 {
		return fanNode(v, n, fanout)
	}
	t := node{span: span(v, n)}
	t.parent, t.children = binomial(v, n)
	for _, c := range t.children {
		t.spans = append(t.spans, span(c, n))
	}
	return t
}

// flat is the number of children of a node in a flat tree. Each further level costs every rank a
// turn: a barrier of 128 ranks on 2 processors takes 0.4 ms with one level and 4.9 ms with trees of
// 32 children a node.
const flat = 256

// fan makes a schedule use a tree of the given number of children a node. When ranks outnumber the
// processors, a rank waits for its turn to run, and each level of a tree may cost every rank a
// turn.
func fan(children int, build func(*builder)) func(*builder) {
	return func(b *builder) {
		b.fanout = children
		b.note("fanout", int64(min(children, max(b.Size-1, 1))))
		build(b)
	}
}

// fanNode is v's place in the tree in which every node divides the numbers after its own among k
// children evenly.
func fanNode(v, n, k int) node {
	at, parent, size := 0, -1, n
	for {
		t := node{parent: parent, span: size}
		parts := min(k, size-1)
		for i := range parts {
			from, to := at+1+(size-1)*i/parts, at+1+(size-1)*(i+1)/parts
			t.children, t.spans = append(t.children, from), append(t.spans, to-from)
		}
		if v == at {
			return t
		}
		for i, c := range t.children {
			if v >= c && v < c+t.spans[i] {
				at, parent, size = c, at, t.spans[i]
				break
			}
		}
	}
}

// binomial gives the parent (-1 at 0) and the children of v in the binomial tree over 0..n-1 rooted
// at 0, the child with the largest subtree first. The subtree of v has the numbers v to
// min(v+span(v,n), n)-1.
func binomial(v, n int) (parent int, children []int) {
	parent = -1
	mask := 1
	for ; mask < n; mask <<= 1 {
		if v&mask != 0 {
			parent = v - mask
			break
		}
	}
	for mask >>= 1; mask > 0; mask >>= 1 {
		if v+mask < n {
			children = append(children, v+mask)
		}
	}
	return parent, children
}

// span is the size of v's subtree in the binomial tree over 0..n-1.
func span(v, n int) int {
	s := n
	if v > 0 {
		s = v & -v
	}
	return min(s, n-v)
}

// rel is a rank's number when the root is 0, and rank its inverse.
func (b *builder) rel() int       { return (b.Rank - b.Root + b.Size) % b.Size }
func (b *builder) rank(v int) int { return (v + b.Root) % b.Size }
