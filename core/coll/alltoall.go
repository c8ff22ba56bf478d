package coll

// window is the number of peers that a linear all-to-all talks to at once.
const window = 32

// linear exchanges a block with every other rank, nearest first, in windows, so that not all meet
// at one rank.
func (b *builder) linear(out, in func(peer int) Ref) {
	b.note("window", window)
	for s := 1; s < b.Size; s += window {
		var slots []int32
		end := min(s+window, b.Size)
		for i := s; i < end; i++ {
			peer := (b.Rank - i + b.Size) % b.Size
			slots = append(slots, b.recv(peer, in(peer)))
		}
		for i := s; i < end; i++ {
			peer := (b.Rank + i) % b.Size
			slots = append(slots, b.send(peer, out(peer)))
		}
		if end < b.Size {
			b.wait(slots...)
		}
	}
}

// outgoing gives the blocks to send. In place they are the receive buffer's, saved in packed form
// first.
func (b *builder) outgoing() func(peer int) Ref {
	if !b.InPlace {
		return func(i int) Ref { return b.sendRef(int64(i)*b.SCount, b.SCount) }
	}
	block := b.Data()
	n := int64(b.Size) * block
	t := b.region(n, 0)
	b.copy(b.recvRef(0, int64(b.Size)*b.RCount), bytesAt(t, 0, n))
	return func(i int) Ref { return bytesAt(t, int64(i)*block, block) }
}

func (b *builder) incoming(i int) Ref { return b.recvRef(int64(i)*b.RCount, b.RCount) }

func alltoallLinear(b *builder) {
	out := b.outgoing()
	b.linear(out, b.incoming)
	b.own(out(b.Rank), b.incoming(b.Rank))
}

// alltoallPairwise: one exchange at a time, so that memory and links are not overrun by long
// blocks.
func alltoallPairwise(b *builder) {
	b.note("rounds", int64(b.Size-1))
	out := b.outgoing()
	b.own(out(b.Rank), b.incoming(b.Rank))
	for s := 1; s < b.Size; s++ {
		to, from := (b.Rank+s)%b.Size, (b.Rank-s+b.Size)%b.Size
		r := b.recv(from, b.incoming(from))
		b.wait(r, b.send(to, out(to)))
	}
}

// alltoallBruck: a block for the rank i further on travels along the ones in i's binary form;
// log2(n) messages a rank, each of half of all blocks.
func alltoallBruck(b *builder) {
	b.noteRounds()
	block, n := b.Data(), int64(b.Size)
	t, out, in := b.region(n*block, 0), b.region((n+1)/2*block, 0), b.region((n+1)/2*block, 0)
	b.rotateIn(t, block)
	for d := 1; d < b.Size; d <<= 1 {
		total := int64(0)
		each := func(do func(at, from, count int64)) { // runs of blocks whose number has bit d
			total = 0
			for i := d; i < b.Size; i += 2 * d {
				count := int64(min(d, b.Size-i)) * block
				do(total, int64(i)*block, count)
				total += count
			}
		}
		each(func(at, from, count int64) {
			b.copy(bytesAt(t, from, count),
				bytesAt(out, at, count))
		})
		r := b.recv((b.Rank-d+b.Size)%b.Size, bytesAt(in, 0, total))
		b.wait(r, b.send((b.Rank+d)%b.Size, bytesAt(out, 0, total)))
		each(func(at, from, count int64) {
			b.copy(bytesAt(in, at, count),
				bytesAt(t, from, count))
		})
	}
	for i := 0; i < b.Size; i++ {
		b.copy(bytesAt(t, int64(i)*block, block), b.incoming((b.Rank-i+b.Size)%b.Size))
	}
}

// rotateIn packs the blocks to send so that block i is the one for the rank i further on.
func (b *builder) rotateIn(t Buf, block int64) {
	from := func(first, n int64) Ref { return b.sendRef(first*b.SCount, n*b.SCount) }
	if b.InPlace {
		from = func(first, n int64) Ref { return b.recvRef(first*b.RCount, n*b.RCount) }
	}
	high := int64(b.Size - b.Rank)
	b.copy(from(int64(b.Rank), high), bytesAt(t, 0, high*block))
	if b.Rank > 0 {
		b.copy(from(0, int64(b.Rank)), bytesAt(t, high*block, int64(b.Rank)*block))
	}
}

// alltoallvLinear serves MPI_Alltoallv and MPI_Alltoallw. In place, the receive buffer's blocks are
// saved in packed form.
func alltoallvLinear(b *builder) {
	if !b.InPlace {
		b.linear(sendBlock, recvBlock)
		b.own(sendBlock(b.Rank), recvBlock(b.Rank))
		return
	}
	t := b.region(0, b.p.Unit)
	packed := func(i int) Ref {
		return Ref{Buf: t, Mode: Prefix, Type: TypeByte, A: int32(i), B: int32(i + 1)}
	}
	for i := 0; i < b.Size; i++ {
		if i != b.Rank {
			b.copy(recvBlock(i), packed(i))
		}
	}
	b.linear(packed, recvBlock)
}
