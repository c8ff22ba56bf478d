package coll

// Reductions over shared memory (shared.go): short vectors are reduced by each rank that wants the
// result, long ones in slices, one of each rank.

// slice is the elements of a vector of n that this rank reduces for all.
func (b *builder) slice(n int64) (from, to int64) {
	edge := func(i int64) int64 { return n * i / int64(b.Size) }
	return edge(int64(b.Rank)), edge(int64(b.Rank) + 1)
}

// wholeFold is the most bytes of a vector that every rank that wants the result reduces by itself.
const wholeFold = 4096

// reduceShared serves MPI_Reduce and MPI_Allreduce. Short vectors: every rank posts its own, who
// wants the result reduces them all. Long ones, piece by piece: each rank reduces a slice of the
// piece of all, in a second tick the slices are fetched.
func reduceShared(b *builder) {
	size, n := b.RType.Size, b.RCount*b.RType.Size
	dst := b.recvRef(0, b.RCount)
	wants, wake := true, uint8(0)
	if b.Kind == Reduce {
		wants, wake = b.Rank == b.Root, FlagWakeRoot
		b.streams(n)
	}
	if n <= min(wholeFold, b.slotBytes()) || n <= CellBytes {
		b.notePieces(n, n)
		t := b.ticks(1)
		to, _ := b.place(b.Rank, t, n)
		from, stride := b.place(0, t, n)
		b.post(t, b.operand(b.RCount), to, wake)
		if wants {
			b.await(t, 0, b.Size)
			b.fold(0, b.Size, from, stride, dst)
		}
		return
	}
	slot := b.slotBytes()
	most := slot / size
	b.notePieces(n, most*size)
	pieces(b.RCount, most, func(from, to int64) {
		t := b.ticks(2)
		b.post(t, b.part(b.operand(b.RCount), from, to), partAt(t, int64(b.Rank)*slot), 0)
		b.await(t, 0, b.Size)
		lo, hi := b.slice(to - from)
		sum := partAt(t+1, lo*size)
		b.room(t+1, sum, (hi-lo)*size)
		sum.Type, sum.Count = TypeRecv, hi-lo
		b.fold(0, b.Size, partAt(t, lo*size), slot, sum)
		b.through(t)
		b.post(t+1, Ref{}, Ref{}, wake)
		if wants {
			b.await(t+1, 0, b.Size)
			b.copy(partAt(t+1, 0), b.part(dst, from, to))
		}
		b.through(t + 1)
	})
}

// scanShared: every rank posts its operand; each reduces those of the ranks up to itself, or below
// it. Where ranks wait for their turn to run, the sum goes from rank to rank instead: none waits
// for those above it, so each does as many operations in a turn as there are cells.
func scanShared(b *builder) {
	if b.crowded() || b.Size == 2 {
		scanChainShared(b)
		return
	}
	n := b.RCount * b.RType.Size
	b.notePieces(n, n)
	t := b.ticks(1)
	to, _ := b.place(b.Rank, t, n)
	from, stride := b.place(0, t, n)
	last := b.Rank
	if b.Kind == Scan {
		last++
	}
	b.post(t, b.operand(b.RCount), to, FlagWakeAll)
	if last > 0 {
		b.await(t, 0, last)
		b.fold(0, last, from, stride, b.recvRef(0, b.RCount))
	}
}

func scanChainShared(b *builder) {
	n, dst := b.RCount*b.RType.Size, b.recvRef(0, b.RCount)
	b.notePieces(n, n)
	b.streams(n)
	t := b.ticks(1)
	sum := dst
	if b.Kind == Exscan {
		sum = b.operand(b.RCount)
	} else {
		b.own(b.sendRef(0, b.RCount), dst)
	}
	if b.Rank > 0 {
		below, _ := b.place(b.Rank-1, t, n)
		below.Type, below.Count = TypeRecv, b.RCount
		if b.Kind == Exscan && b.Rank < b.Size-1 {
			sum = b.typedRegion(b.RCount)
			b.copy(b.operand(b.RCount), sum)
		}
		b.await(t, b.Rank-1, b.Rank)
		if b.Kind == Scan || b.Rank < b.Size-1 {
			b.reduce(below, sum)
		}
		if b.Kind == Exscan {
			below.Type, below.Count = TypeByte, 0
			b.copy(below, dst)
		}
	}
	if b.Rank < b.Size-1 {
		to, _ := b.place(b.Rank, t, n)
		b.post(t, sum, to, FlagWakeOne)
		b.p.Steps[len(b.p.Steps)-1].Peer = int32(b.Rank + 1)
	}
}

// reduceScatterShared: every rank posts all blocks, and reduces its own of all.
func reduceScatterShared(b *builder) {
	slot := b.slotBytes()
	if b.Kind == ReduceScatter {
		t := b.ticks(1)
		b.post(t, b.input(), partAt(t, int64(b.Rank)*slot), 0)
		b.await(t, 0, b.Size)
		from := partAt(t, 0)
		from.Mode, from.A = Prefix, int32(b.Rank)
		b.fold(0, b.Size, from, slot, b.result())
		return
	}
	n, count, es := int64(b.Size), b.RCount, b.RType.Size
	in, dst := b.input(), b.recvRef(0, count)
	b.notePieces(n*count*es, slot/n/es*es*n)
	if bytes := n * count * es; bytes <= slot {
		t := b.ticks(1)
		to, _ := b.place(b.Rank, t, bytes)
		from, stride := b.place(0, t, bytes)
		from.Off += int64(b.Rank) * count * es
		b.post(t, in, to, 0)
		b.await(t, 0, b.Size)
		b.fold(0, b.Size, from, stride, dst)
		return
	}
	most := slot / n / es
	pieces(count, most, func(from, to int64) {
		t := b.ticks(1)
		b.room(t, partAt(t, int64(b.Rank)*slot), slot)
		for i := range n {
			b.copy(b.part(in, i*count+from, i*count+to), partAt(t, int64(b.Rank)*slot+i*most*es))
		}
		b.post(t, Ref{}, Ref{}, 0)
		b.await(t, 0, b.Size)
		b.fold(0, b.Size, partAt(t, int64(b.Rank)*most*es), slot, b.part(dst, from, to))
		b.through(t)
	})
}
