package coll

// piece is blocks [from, to) of a vector that is to be reduced and scattered; r is the whole
// vector.
func (b *builder) piece(r Ref, from, to int) Ref {
	if b.Kind == ReduceScatter {
		r.Mode, r.A, r.B, r.Count = Prefix, int32(from), int32(to), 0
		return r
	}
	return b.part(r, int64(from)*b.RCount, int64(to)*b.RCount)
}

// vector makes room for all blocks in temporary memory.
func (b *builder) vector() Ref {
	if b.Kind == ReduceScatter {
		return b.piece(b.unitRegion(), 0, b.Size)
	}
	return b.typedRegion(int64(b.Size) * b.RCount)
}

// input is the whole vector of this rank's operands.
func (b *builder) input() Ref {
	r := Ref{Buf: BufSend, Type: TypeSend}
	if b.InPlace {
		r = Ref{Buf: BufRecv, Type: TypeRecv}
	}
	return b.piece(r, 0, b.Size)
}

// result is where this rank's block goes: the start of the receive buffer.
func (b *builder) result() Ref {
	r := b.recvRef(0, b.RCount)
	if b.Kind == ReduceScatter {
		r = Ref{Buf: BufRecv, Type: TypeRecv, Mode: Count, A: int32(b.Rank)}
	}
	return r
}

// reduceThenScatter: up a tree to rank 0, which sends each rank its block. Few messages, operands
// in order.
func reduceThenScatter(b *builder) {
	in := b.input()
	t := b.tree(b.Rank)
	p := &partial{b: b, cur: in}
	for _, i := range t.nearest() {
		p.higher(t.children[i], p.vectorScratch())
	}
	if t.parent >= 0 {
		b.wait(b.send(t.parent, p.cur))
		b.recv(0, b.result())
		return
	}
	for i := 1; i < b.Size; i++ {
		b.send(i, b.piece(p.cur, i, i+1))
	}
	if p.cur == in && b.InPlace {
		return
	}
	b.copy(b.piece(p.cur, 0, 1), b.result())
}

// vectorScratch is scratch for all blocks.
func (p *partial) vectorScratch() Ref {
	for i := range p.spare {
		if !p.made[i] {
			p.spare[i], p.made[i] = p.b.vector(), true
		}
		if p.spare[i] != p.cur {
			return p.spare[i]
		}
	}
	panic("coll: two scratch vectors, both in use")
}

// reduceScatterPairwise: every rank sends every other its block, and reduces what it gets; for
// commutative operations. The vector is sent once, and two receives are always under way.
func reduceScatterPairwise(b *builder) {
	in := b.input()
	mine := b.piece(in, b.Rank, b.Rank+1)
	acc := b.result()
	if b.InPlace {
		acc = b.blockScratch()
	}
	b.copy(mine, acc)
	var tmp [2]Ref
	var got [2]int32
	for s := 1; s < b.Size; s++ {
		if s <= 2 {
			tmp[s%2] = b.blockScratch()
		} else {
			b.wait(got[s%2])
			b.reduce(tmp[s%2], acc)
		}
		got[s%2] = b.recv((b.Rank-s+b.Size)%b.Size, tmp[s%2])
		to := (b.Rank + s) % b.Size
		b.send(to, b.piece(in, to, to+1))
	}
	for s := max(b.Size-2, 1); s < b.Size; s++ {
		b.wait(got[s%2])
		b.reduce(tmp[s%2], acc)
	}
	if b.InPlace {
		b.waitAll()
		b.copy(acc, b.result())
	}
}

// blockScratch makes room for this rank's block in temporary memory.
func (b *builder) blockScratch() Ref {
	if b.Kind != ReduceScatter {
		return b.typedRegion(b.RCount)
	}
	r := b.unitRegion()
	r.Mode, r.A = Count, int32(b.Rank)
	return r
}
