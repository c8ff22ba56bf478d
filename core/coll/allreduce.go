package coll

// allreduceReduceBcast: up a binomial tree to rank 0 and down again: 2(n-1) messages.
func allreduceReduceBcast(b *builder) {
	dst := b.recvRef(0, b.RCount)
	b.reduceTree(0, dst)
	b.waitAll()
	b.bcast(dst, 0)
}

// allreduceDoubling: partners 2^k apart exchange and both reduce; log2(n) rounds. The operand of
// the lower ranks always comes first, so that all ranks compute the same bits and a non-commutative
// operation is served too. Of the ranks beyond a power of two, the even ones below twice their
// number send their data to the next rank and get the result back.
func allreduceDoubling(b *builder) {
	b.noteRounds()
	dst := b.recvRef(0, b.RCount)
	if b.have == nil {
		b.own(b.sendRef(0, b.RCount), dst)
	}
	pof2 := 1
	for pof2*2 <= b.Size {
		pof2 *= 2
	}
	extra := b.Size - pof2
	n := b.Rank - extra
	if b.Rank < 2*extra {
		if b.Rank%2 == 0 {
			b.wait(b.send(b.Rank+1, dst))
			b.recv(b.Rank+1, dst)
			return
		}
		n = b.Rank / 2
	}
	if b.Size == 1 {
		return
	}
	acc, tmp := dst, b.typedRegion(b.RCount)
	if b.Rank < 2*extra {
		b.wait(b.recv(b.Rank-1, tmp))
		b.reduce(tmp, acc)
	}
	for d := 1; d < pof2; d *= 2 {
		peer := n ^ d
		if peer < extra {
			peer = 2*peer + 1
		} else {
			peer += extra
		}
		r := b.recv(peer, tmp)
		b.wait(r, b.send(peer, acc))
		if peer < b.Rank {
			b.reduce(tmp, acc)
		} else {
			b.reduce(acc, tmp)
			acc, tmp = tmp, acc
		}
	}
	if acc != dst {
		b.copy(acc, dst)
	}
	if b.Rank < 2*extra {
		b.send(b.Rank-1, dst)
	}
}

// allreduceRabenseifner: reduce-scatter by halving, allgather by doubling; each rank sends about
// twice the vector.
func allreduceRabenseifner(b *builder) {
	acc := b.recvRef(0, b.RCount)
	h := b.newHalving(0, acc)
	h.reduceScatter()
	if h.n < 0 {
		b.recv(h.rank(h.v-1), acc)
		return
	}
	for d := 1; d < h.pof2; d *= 2 {
		peer, have := h.n^d, h.n&^(d-1)
		get := peer &^ (d - 1)
		r := b.recv(h.rank(h.number(peer)), b.part(acc, h.edge(get), h.edge(get+d)))
		s := b.send(h.rank(h.number(peer)), b.part(acc, h.edge(have), h.edge(have+d)))
		b.wait(r, s)
	}
	if h.v < 2*h.extra {
		b.send(h.rank(h.v+1), acc)
	}
}
