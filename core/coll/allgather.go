package coll

// blocks is blocks [from, to) of the receive buffer of an allgather.
func (b *builder) blocks(from, to int) Ref {
	return b.recvRef(int64(from)*b.RCount, int64(to-from)*b.RCount)
}

// mine puts this rank's contribution into its block.
func (b *builder) mine() { b.own(b.sendRef(0, b.SCount), b.blocks(b.Rank, b.Rank+1)) }

// ring passes blocks around: in each round a rank sends on the block that it got in the round
// before.
func (b *builder) ring(block func(i int) Ref) {
	b.note("rounds", int64(b.Size-1))
	next, prev := (b.Rank+1)%b.Size, (b.Rank+b.Size-1)%b.Size
	for s := 0; s < b.Size-1; s++ {
		r := b.recv(prev, block((b.Rank-s-1+b.Size)%b.Size))
		b.send(next, block((b.Rank-s+b.Size)%b.Size))
		b.wait(r)
	}
}

func allgatherRing(b *builder) {
	b.mine()
	b.ring(func(i int) Ref { return b.blocks(i, i+1) })
}

// allgatherLinear: every rank sends its block to every other: many messages, but no rank waits for
// another's turn to run.
func allgatherLinear(b *builder) {
	b.mine()
	b.linear(func(int) Ref { return b.blocks(b.Rank, b.Rank+1) },
		func(i int) Ref { return b.blocks(i, i+1) })
}

// allgatherDoubling: in round k partners 2^k apart exchange all that they have; for powers of two.
func allgatherDoubling(b *builder) {
	b.noteRounds()
	b.mine()
	for d := 1; d < b.Size; d <<= 1 {
		peer := b.Rank ^ d
		have, get := b.Rank&^(d-1), peer&^(d-1)
		r := b.recv(peer, b.blocks(get, get+d))
		b.send(peer, b.blocks(have, have+d))
		b.wait(r)
	}
}

// allgatherBruck: as recursive doubling for any number of ranks, in packed form counted from the
// own block; log2(n) rounds and two copies.
func allgatherBruck(b *builder) {
	b.noteRounds()
	block := b.Data()
	t := b.region(int64(b.Size)*block, 0)
	mine := b.sendRef(0, b.SCount)
	if b.InPlace {
		mine = b.blocks(b.Rank, b.Rank+1)
	}
	b.copy(mine, bytesAt(t, 0, block))
	for d := 1; d < b.Size; d <<= 1 {
		n := int64(min(d, b.Size-d)) * block
		r := b.recv((b.Rank+d)%b.Size, bytesAt(t, int64(d)*block, n))
		b.send((b.Rank-d+b.Size)%b.Size, bytesAt(t, 0, n))
		b.wait(r)
	}
	high := b.Size - b.Rank
	b.copy(bytesAt(t, 0, int64(high)*block), b.blocks(b.Rank, b.Size))
	if b.Rank > 0 {
		b.copy(bytesAt(t, int64(high)*block, int64(b.Rank)*block), b.blocks(0, b.Rank))
	}
}

// allgatherGatherBcast: up a tree to rank 0 and down again: 2(n-1) messages.
func allgatherGatherBcast(b *builder) {
	b.mine()
	t := b.tree(b.Rank)
	var slots []int32
	for i, c := range t.children {
		slots = append(slots, b.recv(c, b.blocks(c, c+t.spans[i])))
	}
	b.wait(slots...)
	if t.parent >= 0 {
		b.wait(b.send(t.parent, b.blocks(b.Rank, b.Rank+t.span)))
	}
	b.bcast(b.blocks(0, b.Size), 0)
}

func allgathervRing(b *builder) {
	b.own(ownSend(), recvBlock(b.Rank))
	b.ring(recvBlock)
}

func allgathervLinear(b *builder) {
	b.own(ownSend(), recvBlock(b.Rank))
	b.linear(func(int) Ref { return recvBlock(b.Rank) }, recvBlock)
}

// allgathervGatherBcast: as allgatherGatherBcast, in packed form: the blocks may be anywhere in the
// receive buffer.
func allgathervGatherBcast(b *builder) {
	buf := b.region(0, b.RType.Size)
	packed := func(from, to int) Ref {
		return Ref{Buf: buf, Mode: Prefix, Type: TypeByte, A: int32(from), B: int32(to)}
	}
	if b.InPlace {
		b.copy(recvBlock(b.Rank), packed(b.Rank, b.Rank+1))
	} else {
		b.copy(ownSend(), packed(b.Rank, b.Rank+1))
	}
	t := b.tree(b.Rank)
	var slots []int32
	for i, c := range t.children {
		slots = append(slots, b.recv(c, packed(c, c+t.spans[i])))
	}
	b.wait(slots...)
	if t.parent >= 0 {
		b.wait(b.send(t.parent, packed(b.Rank, b.Rank+t.span)))
	}
	b.bcast(packed(0, b.Size), 0)
	for i := 0; i < b.Size; i++ {
		if i != b.Rank || !b.InPlace {
			b.copy(packed(i, i+1), recvBlock(i))
		}
	}
}
