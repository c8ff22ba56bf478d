package coll

// partial is a partial result on its way: its location, and where the next one may be put.
type partial struct {
	b     *builder
	cur   Ref    // holds the result so far
	spare [2]Ref // scratch, made on first use
	made  [2]bool
	count int64
}

// begin is what this rank has: its own data, or a partial result.
func (b *builder) begin() Ref {
	if b.have != nil {
		return *b.have
	}
	return b.operand(b.RCount)
}

// startPartial begins with this rank's own data, where the user has them: no copy is made.
func (b *builder) startPartial() *partial {
	return &partial{b: b, cur: b.begin(), count: b.RCount}
}

// scratch is a temporary vector other than the one that holds the result.
func (p *partial) scratch() Ref {
	for i := range p.spare {
		if !p.made[i] {
			p.spare[i], p.made[i] = p.b.typedRegion(p.count), true
		}
		if p.spare[i] != p.cur {
			return p.spare[i]
		}
	}
	panic("coll: two scratch vectors, both in use")
}

// higher receives the partial result of the ranks just above into `into` and makes it the result of
// both.
func (p *partial) higher(peer int, into Ref) {
	p.b.wait(p.b.recv(peer, into))
	p.b.reduce(p.cur, into)
	p.cur = into
}

// reduceTree reduces up the tree over numbers counted from `first`. The result lands in dst at
// number 0; elsewhere dst is ignored. Operands stay in the order of the numbers.
func (b *builder) reduceTree(first int, dst Ref) {
	rank := func(v int) int { return (v + first) % b.Size }
	v := (b.Rank - first + b.Size) % b.Size
	t := b.tree(v)
	p := b.startPartial()
	if b.eager(len(t.children)) {
		p.cur = b.reduceAtOnce(&t, rank, p.cur)
	} else {
		for k, i := range t.nearest() {
			into := dst
			if t.parent >= 0 || k < len(t.children)-1 || p.cur == dst {
				into = p.scratch()
			}
			p.higher(rank(t.children[i]), into)
		}
	}
	if t.parent >= 0 {
		b.send(rank(t.parent), p.cur)
	} else if p.cur != dst {
		b.copy(p.cur, dst)
	}
}

// eager: a node's n partial results are received all at once, each into memory of its own, and
// reduced when all are there.
func (b *builder) eager(n int) bool {
	const most = 64 << 10
	low, high := b.RType.footprint(b.RCount)
	return n > 1 && int64(n)*(high-low) <= most
}

// reduceAtOnce receives the children's results and reduces them in order; it returns where the sum
// is.
func (b *builder) reduceAtOnce(t *node, rank func(int) int, cur Ref) Ref {
	var slots []int32
	all := b.vectors(len(t.children))
	for k, i := range t.nearest() {
		slots = append(slots, b.recv(rank(t.children[i]), all[k]))
	}
	b.wait(slots...)
	for _, part := range all {
		b.reduce(cur, part)
		cur = part
	}
	return cur
}

// reduceBinomial: up a binomial tree to the root; when the order of operands matters, to rank 0,
// which hands the result on.
func reduceBinomial(b *builder) {
	dst := b.recvRef(0, b.RCount)
	if b.Commute || b.Root == 0 {
		b.reduceTree(b.Root, dst)
		return
	}
	switch b.Rank {
	case 0:
		t := b.typedRegion(b.RCount)
		b.reduceTree(0, t)
		b.send(b.Root, t)
	case b.Root:
		b.reduceTree(0, dst)
		b.waitAll()
		b.recv(0, dst)
	default:
		b.reduceTree(0, dst)
	}
}

// waitAll waits for every transfer started so far.
func (b *builder) waitAll() {
	var slots []int32
	for s := int32(0); s < b.p.Slots; s++ {
		slots = append(slots, s)
	}
	b.wait(slots...)
}

// halving is the state of Rabenseifner's algorithm, which is for commutative operations: first the
// ranks beyond a power of two send their data to a neighbour, then the rest halve the vector among
// them until each has reduced one piece.
type halving struct {
	b     *builder
	rank  func(v int) int // number -> rank
	v     int             // this rank's number
	pof2  int
	extra int // numbers beyond the power of two: odd numbers below 2*extra sit out
	n     int // this rank's number among the halving ranks, -1: takes no part
	acc   Ref // vector that partial results are built in
	cur   Ref // vector that the operand is read from: the user's until the first reduction
	tmp   Ref
	made  bool
}

func (b *builder) newHalving(root int, acc Ref) *halving {
	h := &halving{b: b, acc: acc, v: (b.Rank - root + b.Size) % b.Size, pof2: 1}
	h.rank = func(v int) int { return (v + root) % b.Size }
	for h.pof2*2 <= b.Size {
		h.pof2 *= 2
	}
	h.extra = b.Size - h.pof2
	b.note("pieces", int64(h.pof2))
	switch {
	case h.v >= 2*h.extra:
		h.n = h.v - h.extra
	case h.v%2 == 0:
		h.n = h.v / 2
	default:
		h.n = -1
	}
	h.cur = b.begin()
	return h
}

// number is the v of the n-th halving rank.
func (h *halving) number(n int) int {
	if n < h.extra {
		return 2 * n
	}
	return n + h.extra
}

// edge is the first element of piece i of the pof2 pieces.
func (h *halving) edge(i int) int64 {
	return int64(i)*(h.b.RCount/int64(h.pof2)) + min(int64(i), h.b.RCount%int64(h.pof2))
}

// merge receives elements [from, to) of the peer's partial result and reduces them into acc.
func (h *halving) merge(peer int, from, to int64, also ...int32) {
	b := h.b
	if h.cur != h.acc {
		b.wait(append(also, b.recv(peer, b.part(h.acc, from, to)))...)
		b.reduce(b.part(h.cur, from, to), b.part(h.acc, from, to))
		return
	}
	if !h.made {
		h.tmp, h.made = b.typedRegion(b.RCount), true
	}
	b.wait(append(also, b.recv(peer, b.part(h.tmp, from, to)))...)
	b.reduce(b.part(h.tmp, from, to), b.part(h.acc, from, to))
}

// reduceScatter leaves piece n reduced in acc at the n-th halving rank.
func (h *halving) reduceScatter() {
	b := h.b
	if h.n < 0 {
		b.wait(b.send(h.rank(h.v-1), h.cur))
		return
	}
	if h.v < 2*h.extra {
		h.merge(h.rank(h.v+1), 0, b.RCount)
		h.cur = h.acc
	}
	lo, hi := 0, h.pof2
	for d := h.pof2 / 2; d > 0; d /= 2 {
		peer, mid := h.rank(h.number(h.n^d)), lo+d
		keepLo, keepHi, giveLo, giveHi := lo, mid, mid, hi
		if h.n&d != 0 {
			keepLo, keepHi, giveLo, giveHi = mid, hi, lo, mid
		}
		s := b.send(peer, b.part(h.cur, h.edge(giveLo), h.edge(giveHi)))
		h.merge(peer, h.edge(keepLo), h.edge(keepHi), s)
		h.cur = h.acc
		lo, hi = keepLo, keepHi
	}
}

// reduceRabenseifner: reduce-scatter by halving, then the pieces are gathered up a binomial tree to
// the root.
func reduceRabenseifner(b *builder) {
	acc := b.recvRef(0, b.RCount)
	if b.Rank != b.Root {
		acc = b.typedRegion(b.RCount)
	}
	h := b.newHalving(b.Root, acc)
	h.reduceScatter()
	if h.n < 0 {
		return
	}
	for d := 1; d < h.pof2; d *= 2 {
		if h.n&d != 0 {
			b.send(h.rank(h.number(h.n-d)), b.part(acc, h.edge(h.n), h.edge(h.n+d)))
			return
		}
		b.wait(b.recv(h.rank(h.number(h.n+d)), b.part(acc, h.edge(h.n+d), h.edge(h.n+2*d))))
	}
}
