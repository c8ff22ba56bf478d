package coll

// Schedules over the memory that the ranks of a communicator share (capi/dataplane/coll/share.h).
//
// Time in that memory counts in ticks. In each tick a rank may post once: a word that says so, with
// up to CellBytes beside it in a cell of its own, or more data in the part of the bulk memory that
// the tick has. Others wait for the post, and read. A cell and a part are used again some ticks
// later, when every rank has said that it is through with the tick before. All ranks count the same
// number of ticks in an operation, whatever they do in it.

// CellBytes is what fits beside the word that a rank posts; Parts is the number of parts of the
// bulk memory. Operations whose cells hold no more than SmallSlotBytes, and that use no parts, post
// into small slots in place of cells: several share a cache line, and there are more of them.
const (
	CellBytes      = 48
	SmallSlotBytes = 8
	Parts          = 4
)

// post makes tick known, with the data that `data` names (Count 0: none) put at `to`. flags:
// FlagWakeAll, FlagWakeRoot, FlagWakeOne.
func (b *builder) post(tick int32, data, to Ref, flags uint8) {
	b.p.Steps = append(b.p.Steps, Step{Op: OpPost, Flags: flags, Peer: int32(b.Root), Slot: tick,
		X: data, Y: to})
}

// await waits until the others of the ranks [from, to) have posted tick.
func (b *builder) await(tick int32, from, to int) {
	if to > from {
		b.p.Steps = append(b.p.Steps, Step{Op: OpAwait, Slot: tick, First: int32(from),
			N: int32(to - from)})
	}
}

// room waits until bytes from `to` on, in the part of a tick, may be written. Posts with data do so
// themselves.
func (b *builder) room(tick int32, to Ref, bytes int64) {
	to.Count = bytes
	b.p.Steps = append(b.p.Steps, Step{Op: OpRoom, Slot: tick, Y: to})
}

// through says that this rank has read what it wanted of all ticks up to this one.
func (b *builder) through(tick int32) {
	b.p.Steps = append(b.p.Steps, Step{Op: OpThrough, Slot: tick})
}

// collect copies what the ranks [from, to) have in shared memory (src, stride bytes apart where it
// is bulk memory) into blocks that follow each other in `into`, or into the caller's blocks; all
// but skip's.
func (b *builder) collect(from, to, skip int, src Ref, stride int64, into Ref, flags uint8) {
	src.Count = stride
	b.p.Steps = append(b.p.Steps, Step{Op: OpCollect, Flags: flags, Peer: int32(skip),
		First: int32(from), N: int32(to - from), X: src, Y: into})
}

// fold reduces what the ranks [from, to) have in shared memory, in their order, into `into`.
func (b *builder) fold(from, to int, src Ref, stride int64, into Ref) {
	src.Count = stride
	b.p.Steps = append(b.p.Steps, Step{Op: OpFold, First: int32(from), N: int32(to - from), X: src,
		Y: into})
}

// ticks takes the next n ticks of the operation.
func (b *builder) ticks(n int32) int32 {
	t := b.p.Ticks
	b.p.Ticks += n
	return t
}

// cellOf is a rank's cell in a tick, in steps over several ranks the first's.
func cellOf(rank int, tick int32) Ref {
	return Ref{Buf: BufCell, Type: TypeByte, A: int32(rank), B: tick}
}

// partAt is a place in the part of a tick.
func partAt(tick int32, off int64) Ref {
	return Ref{Buf: BufPart, Type: TypeByte, B: tick,
		Off: off}
}

// slotBytes is the share of a part that each rank may have for itself.
func (a *Args) slotBytes() int64 { return a.Shared / int64(a.Size) &^ 63 }

// notePieces notes how data go through shared memory: in a cell of each rank, or so many bytes at a
// time.
func (b *builder) notePieces(n, most int64) {
	if n <= CellBytes {
		b.noteBytes("cell", CellBytes)
		return
	}
	b.noteBytes("piece", min(n, most))
	b.note("pieces", (n+most-1)/most)
}

// streams says that some ranks may run ahead of others in this operation, and how much lies in each
// cell of it, at all ranks alike. Where all wait for all, cells are better than small slots: two
// ranks on one core take 10 % longer for a barrier with small slots.
func (b *builder) streams(n int64) { b.p.SmallSlots = n <= SmallSlotBytes }

// place is where a rank puts up to n bytes in a tick: its cell, or its slot of the part; and how
// far apart such places are.
func (b *builder) place(rank int, tick int32, n int64) (at Ref, stride int64) {
	if n <= CellBytes {
		return cellOf(rank, tick), 0
	}
	slot := b.slotBytes()
	return partAt(tick, int64(rank)*slot), slot
}

// operand is where this rank's data for a reduction or an in-place operation are.
func (b *builder) operand(n int64) Ref {
	if b.InPlace {
		return b.recvRef(0, n)
	}
	return b.sendRef(0, n)
}

func barrierShared(b *builder) {
	t := b.ticks(1)
	b.post(t, Ref{}, Ref{}, 0)
	b.await(t, 0, b.Size)
}

// chunkOf is how much of long data is put into a part at once: where ranks wait for their turn to
// run, as much as there is room for.
func (b *builder) chunkOf() int64 {
	if b.crowded() {
		return b.Shared / 2
	}
	return min(b.Shared, 32<<10)
}

// bcastShared: the root puts the data into its cell or, in pieces, into the parts.
func bcastShared(b *builder) {
	n, whole := b.RCount*b.RType.Size, b.recvRef(0, b.RCount)
	if n <= CellBytes {
		b.notePieces(n, CellBytes)
		b.streams(n)
		t := b.ticks(1)
		if b.Rank == b.Root {
			b.post(t, whole, cellOf(b.Rank, t), FlagWakeAll)
		} else {
			b.await(t, b.Root, b.Root+1)
			b.copy(cellOf(b.Root, t), whole)
		}
		return
	}
	at, finish := func(from, to int64) Ref { return whole }, func() {}
	chunk := b.chunkOf()
	b.notePieces(n, chunk)
	if n > chunk {
		at, finish = b.stream()
	}
	for from := int64(0); from < n; from += chunk {
		t := b.ticks(1)
		if b.Rank == b.Root {
			b.post(t, at(from, min(from+chunk, n)), partAt(t, 0), FlagWakeAll)
		} else {
			b.await(t, b.Root, b.Root+1)
			b.copy(partAt(t, 0), at(from, min(from+chunk, n)))
		}
		b.through(t)
	}
	finish()
}

// packed gives n elements of a buffer as a run of bytes: where they are, or the packed form in
// temporary memory, filled now when they are `given`. The returned function puts it back where it
// belongs.
func (b *builder) packed(r Ref, t Type, given bool) (at func(from, to int64) Ref, finish func()) {
	n := r.Count * t.Size
	if t.Contig {
		return func(from, to int64) Ref { return bytesAt(r.Buf, r.Off+from, to-from) }, func() {}
	}
	tmp := b.region(n, 0)
	all := bytesAt(tmp, 0, n)
	if given {
		b.copy(r, all)
	}
	return func(from, to int64) Ref { return bytesAt(tmp, from, to-from) },
		func() { b.copy(all, r) }
}

// pieces calls do for each piece of a block of n bytes, at most `most` long.
func pieces(n, most int64, do func(from, to int64)) {
	for from := int64(0); from < n; from += most {
		do(from, min(from+most, n))
	}
}

// allgatherShared: every rank puts its block, or a piece of it, into its place, and copies those of
// all.
func allgatherShared(b *builder) {
	n := b.Data()
	b.notePieces(n, b.slotBytes())
	mine := b.sendRef(0, b.SCount)
	if b.InPlace {
		mine = b.blocks(b.Rank, b.Rank+1)
	}
	if n <= b.slotBytes() {
		t := b.ticks(1)
		skip := -1
		if b.InPlace {
			skip = b.Rank
		}
		to, _ := b.place(b.Rank, t, n)
		from, stride := b.place(0, t, n)
		b.post(t, mine, to, 0)
		b.await(t, 0, b.Size)
		b.collect(0, b.Size, skip, from, stride, b.blocks(0, 1), 0)
		return
	}
	t := b.SType
	if b.InPlace {
		t = b.RType
	}
	out, _ := b.packed(mine, t, true)
	in, finish := b.packed(b.blocks(0, b.Size), b.RType, b.InPlace)
	slot := b.slotBytes()
	pieces(n, slot, func(from, to int64) {
		t := b.ticks(1)
		b.post(t, out(from, to), partAt(t, int64(b.Rank)*slot), 0)
		b.await(t, 0, b.Size)
		for i := range b.Size {
			if i != b.Rank || !b.InPlace {
				b.copy(partAt(t, int64(i)*slot), in(int64(i)*n+from, int64(i)*n+to))
			}
		}
		b.through(t)
	})
	finish()
}

// gatherShared: every rank puts its block into its place; the root copies them.
func gatherShared(b *builder) {
	n := b.Data()
	b.notePieces(n, b.slotBytes())
	if n <= b.slotBytes() {
		b.streams(n)
		t := b.ticks(1)
		to, _ := b.place(b.Rank, t, n)
		from, stride := b.place(0, t, n)
		if b.Rank != b.Root {
			b.post(t, b.sendRef(0, b.SCount), to, FlagWakeRoot)
			return
		}
		b.own(b.sendRef(0, b.SCount), b.blocks(b.Rank, b.Rank+1))
		b.await(t, 0, b.Size)
		b.collect(0, b.Size, b.Rank, from, stride, b.blocks(0, 1), 0)
		return
	}
	slot := b.slotBytes()
	if b.Rank != b.Root {
		out, _ := b.packed(b.sendRef(0, b.SCount), b.SType, true)
		pieces(n, slot, func(from, to int64) {
			t := b.ticks(1)
			b.post(t, out(from, to), partAt(t, int64(b.Rank)*slot), FlagWakeRoot)
			b.through(t)
		})
		return
	}
	b.own(b.sendRef(0, b.SCount), b.blocks(b.Rank, b.Rank+1))
	in, finish := b.packed(b.blocks(0, b.Size), b.RType, true)
	pieces(n, slot, func(from, to int64) {
		t := b.ticks(1)
		b.await(t, 0, b.Size)
		for i := range b.Size {
			if i != b.Rank {
				b.copy(partAt(t, int64(i)*slot), in(int64(i)*n+from, int64(i)*n+to))
			}
		}
		b.through(t)
	})
	finish()
}

// scatterShared: the root puts the blocks of all into a part; each rank copies its own.
func scatterShared(b *builder) {
	n := b.Data()
	slot := min(b.slotBytes(), (n+63)&^63)
	whole := b.sendRef(0, b.SCount*int64(b.Size))
	mine := b.recvRef(0, b.RCount)
	if n*int64(b.Size) <= CellBytes {
		b.notePieces(0, CellBytes)
	} else {
		b.notePieces(max(n, CellBytes+1), slot)
	}
	if total := n * int64(b.Size); total <= CellBytes {
		if b.Size == 2 {
			total = n
		}
		b.streams(total)
		t := b.ticks(1)
		if b.Rank == b.Root {
			given := whole
			if other := int64(1 - b.Root); b.Size == 2 {
				given = b.part(whole, other*b.SCount, (other+1)*b.SCount)
			}
			b.post(t, given, cellOf(b.Root, t), FlagWakeAll)
			b.own(b.part(whole, int64(b.Rank)*b.SCount, int64(b.Rank+1)*b.SCount), mine)
			return
		}
		from := cellOf(b.Root, t)
		if b.Size > 2 {
			from.Off = int64(b.Rank) * n
		}
		b.await(t, b.Root, b.Root+1)
		b.copy(from, mine)
		return
	}
	if b.Rank != b.Root {
		in, finish := func(from, to int64) Ref { return mine }, func() {}
		if n > b.slotBytes() {
			in, finish = b.packed(mine, b.RType, false)
		}
		pieces(n, slot, func(from, to int64) {
			t := b.ticks(1)
			b.await(t, b.Root, b.Root+1)
			b.copy(partAt(t, int64(b.Rank)*slot), in(from, to))
			b.through(t)
		})
		finish()
		return
	}
	out := func(i int, from, to int64) Ref {
		return b.part(whole, int64(i)*b.SCount,
			int64(i+1)*b.SCount)
	}
	if n > b.slotBytes() {
		all, _ := b.packed(whole, b.SType, true)
		out = func(i int, from, to int64) Ref { return all(int64(i)*n+from, int64(i)*n+to) }
	}
	pieces(n, slot, func(from, to int64) {
		t := b.ticks(1)
		b.room(t, partAt(t, 0), slot*int64(b.Size))
		for i := range b.Size {
			if i != b.Root {
				b.copy(out(i, from, to), partAt(t, int64(i)*slot))
			}
		}
		b.post(t, Ref{}, Ref{}, FlagWakeAll)
		b.through(t)
	})
	b.own(b.part(whole, int64(b.Rank)*b.SCount, int64(b.Rank+1)*b.SCount), mine)
}

// alltoallShared: every rank puts its blocks, or a piece of each, into its place; each takes what
// is for it.
func alltoallShared(b *builder) {
	n, size := b.Data(), int64(b.Size)
	b.notePieces(n*size, b.slotBytes()/size&^7*size)
	whole, t := b.sendRef(0, b.SCount*size), b.SType
	if b.InPlace {
		whole, t = b.recvRef(0, b.RCount*size), b.RType
	}
	if n*size <= b.slotBytes() {
		t := b.ticks(1)
		to, _ := b.place(b.Rank, t, n*size)
		from, stride := b.place(0, t, n*size)
		from.Off += int64(b.Rank) * n
		b.post(t, whole, to, 0)
		b.await(t, 0, b.Size)
		b.collect(0, b.Size, -1, from, stride, b.incoming(0), 0)
		return
	}
	out, _ := b.packed(whole, t, true)
	in, finish := b.packed(b.recvRef(0, b.RCount*size), b.RType, b.InPlace)
	slot := b.slotBytes()
	most := slot / size &^ 7
	pieces(n, most, func(from, to int64) {
		t := b.ticks(1)
		b.room(t, partAt(t, int64(b.Rank)*slot), slot)
		for i := range size {
			b.copy(out(i*n+from, i*n+to), partAt(t, int64(b.Rank)*slot+i*most))
		}
		b.post(t, Ref{}, Ref{}, 0)
		b.await(t, 0, b.Size)
		for i := range size {
			b.copy(partAt(t, i*slot+int64(b.Rank)*most), in(i*n+from, i*n+to))
		}
		b.through(t)
	})
	finish()
}

// allgathervShared: the blocks lie end to end in a part.
func allgathervShared(b *builder) {
	t := b.ticks(1)
	mine, skip := ownSend(), -1
	if b.InPlace {
		mine, skip = recvBlock(b.Rank), b.Rank
	}
	at := func(i int) Ref {
		r := partAt(t, 0)
		r.Mode, r.A = Prefix, int32(i)
		return r
	}
	b.post(t, mine, at(b.Rank), 0)
	b.await(t, 0, b.Size)
	b.collect(0, b.Size, skip, at(0), 0, recvBlock(0), 0)
}

// short puts a block into shared memory when it fits, and its length before it always.
func (b *builder) short(from, to Ref) {
	b.p.Steps = append(b.p.Steps, Step{Op: OpCopy, Flags: FlagShort, X: from, Y: to})
}

// lengthBytes is the word before each place of a block whose length only two ranks know: there the
// sender says how long it is.
const lengthBytes = 8

// alltoallvShared: of the blocks, whose sizes only two ranks know, those that fit go through shared
// memory, the others as messages: Limit tells them apart at both ends. The lengths of all blocks go
// through shared memory, so that ends that disagree learn of it.
func alltoallvShared(b *builder) {
	t, slot := b.ticks(1), b.slotBytes()
	each := slot / int64(b.Size) &^ 7
	b.p.Limit = each - lengthBytes
	b.noteBytes("limit", b.p.Limit)
	at := func(from, to int) Ref { return partAt(t, int64(from)*slot+int64(to)*each+lengthBytes) }
	for s := 1; s < b.Size; s++ { // OpCollect finds the transfers by this order
		peer := (b.Rank - s + b.Size) % b.Size
		b.transfer(OpRecv, peer, recvBlock(peer), FlagLong)
	}
	b.room(t, partAt(t, int64(b.Rank)*slot), slot)
	for i := range b.Size {
		b.short(sendBlock(i), at(b.Rank, i))
	}
	b.post(t, Ref{}, Ref{}, 0)
	for s := 1; s < b.Size; s++ {
		peer := (b.Rank + s) % b.Size
		b.transfer(OpSend, peer, sendBlock(peer), FlagLong)
	}
	b.await(t, 0, b.Size)
	b.collect(0, b.Size, -1, at(0, b.Rank), slot, recvBlock(0), FlagShort)
	b.transferLongOwn()
}

// transferLongOwn copies this rank's block to itself when it did not fit.
func (b *builder) transferLongOwn() {
	b.p.Steps = append(b.p.Steps, Step{Op: OpCopy, Flags: FlagLong, X: sendBlock(b.Rank),
		Y: recvBlock(b.Rank)})
}

// signature is a number that the calls of all ranks agree on when they are the same operation.
func (b *builder) signature() uint32 {
	h := uint32(2166136261)
	for _, v := range []uint64{uint64(b.Kind) + 1, uint64(uint32(b.Root)), uint64(b.Data()),
		uint64(b.p.Ticks)} {
		for ; ; v >>= 8 {
			if h = (h ^ uint32(v&255)) * 16777619; v < 256 {
				break
			}
		}
	}
	return h
}
