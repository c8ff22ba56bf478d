package coll

// own copies this rank's contribution into its place at the root, unless it is there
// (MPI_IN_PLACE).
func (b *builder) own(from, to Ref) {
	if !b.InPlace {
		b.copy(from, to)
	}
}

// gatherLinear: all ranks send to the root.
func gatherLinear(b *builder) {
	if b.Rank != b.Root {
		b.send(b.Root, b.sendRef(0, b.SCount))
		return
	}
	for i := 1; i < b.Size; i++ {
		r := b.rank(i)
		b.recv(r, b.recvRef(int64(r)*b.RCount, b.RCount))
	}
	b.own(b.sendRef(0, b.SCount), b.recvRef(int64(b.Rank)*b.RCount, b.RCount))
}

// gatherBinomial: the packed blocks of a subtree go up together.
func gatherBinomial(b *builder) {
	b.noteTree()
	v, block := b.rel(), b.Data()
	parent, children := binomial(v, b.Size)
	if v == 0 {
		b.gatherAtRoot(children, block)
		return
	}
	out := b.sendRef(0, b.SCount)
	if len(children) > 0 {
		t := b.region(int64(span(v, b.Size))*block, 0)
		var slots []int32
		for _, c := range children {
			slots = append(slots, b.recv(b.rank(c),
				bytesAt(t, int64(c-v)*block, int64(span(c, b.Size))*block)))
		}
		b.copy(out, bytesAt(t, 0, block))
		b.wait(slots...)
		out = bytesAt(t, 0, int64(span(v, b.Size))*block)
	}
	b.send(b.rank(parent), out)
}

// gatherAtRoot receives subtrees straight into the receive buffer where they are one run of ranks,
// else by a region.
func (b *builder) gatherAtRoot(children []int, block int64) {
	b.own(b.sendRef(0, b.SCount), b.recvRef(int64(b.Rank)*b.RCount, b.RCount))
	for _, c := range children {
		first, n := b.rank(c), span(c, b.Size)
		if first+n <= b.Size {
			b.recv(first, b.recvRef(int64(first)*b.RCount, int64(n)*b.RCount))
			continue
		}
		t := b.region(int64(n)*block, 0)
		b.wait(b.recv(first, bytesAt(t, 0, int64(n)*block)))
		low := int64(b.Size - first)
		b.copy(bytesAt(t, 0, low*block), b.recvRef(int64(first)*b.RCount, low*b.RCount))
		b.copy(bytesAt(t, low*block, (int64(n)-low)*block), b.recvRef(0, (int64(n)-low)*b.RCount))
	}
}

// scatterLinear: the root sends to all ranks.
func scatterLinear(b *builder) {
	if b.Rank != b.Root {
		b.recv(b.Root, b.recvRef(0, b.RCount))
		return
	}
	for i := 1; i < b.Size; i++ {
		r := b.rank(i)
		b.send(r, b.sendRef(int64(r)*b.SCount, b.SCount))
	}
	b.own(b.sendRef(int64(b.Rank)*b.SCount, b.SCount), b.recvRef(0, b.RCount))
}

// scatterBinomial: the packed blocks of a subtree go down together.
func scatterBinomial(b *builder) {
	b.noteTree()
	v, block := b.rel(), b.Data()
	parent, children := binomial(v, b.Size)
	if v == 0 {
		b.scatterAtRoot(children, block)
		return
	}
	if len(children) == 0 {
		b.recv(b.rank(parent), b.recvRef(0, b.RCount))
		return
	}
	n := int64(span(v, b.Size)) * block
	t := b.region(n, 0)
	b.wait(b.recv(b.rank(parent), bytesAt(t, 0, n)))
	for _, c := range children {
		b.send(b.rank(c), bytesAt(t, int64(c-v)*block, int64(span(c, b.Size))*block))
	}
	b.copy(bytesAt(t, 0, block), b.recvRef(0, b.RCount))
}

// scatterAtRoot sends subtrees straight from the send buffer where they are one run of ranks,
// else from a region.
func (b *builder) scatterAtRoot(children []int, block int64) {
	for _, c := range children {
		first, n := b.rank(c), span(c, b.Size)
		if first+n <= b.Size {
			b.send(first, b.sendRef(int64(first)*b.SCount, int64(n)*b.SCount))
			continue
		}
		t := b.region(int64(n)*block, 0)
		low := int64(b.Size - first)
		b.copy(b.sendRef(int64(first)*b.SCount, low*b.SCount), bytesAt(t, 0, low*block))
		b.copy(b.sendRef(0, (int64(n)-low)*b.SCount), bytesAt(t, low*block, (int64(n)-low)*block))
		b.send(first, bytesAt(t, 0, int64(n)*block))
	}
	b.own(b.sendRef(int64(b.Rank)*b.SCount, b.SCount), b.recvRef(0, b.RCount))
}

// sendBlock and recvBlock are block i of the caller's arrays of counts and displacements.
func sendBlock(i int) Ref { return Ref{Buf: BufSend, Mode: Index, Type: TypeSend, A: int32(i)} }
func recvBlock(i int) Ref { return Ref{Buf: BufRecv, Mode: Index, Type: TypeRecv, A: int32(i)} }

// gathervLinear: every rank that has data sends them to the root.
func gathervLinear(b *builder) {
	if b.Rank != b.Root {
		b.send(b.Root, ownSend())
		return
	}
	for i := 1; i < b.Size; i++ {
		b.recv(b.rank(i), recvBlock(b.rank(i)))
	}
	b.own(ownSend(), recvBlock(b.Rank))
}

// scattervLinear: the root sends to every rank that gets data.
func scattervLinear(b *builder) {
	if b.Rank != b.Root {
		b.recv(b.Root, ownRecv())
		return
	}
	for i := 1; i < b.Size; i++ {
		b.send(b.rank(i), sendBlock(b.rank(i)))
	}
	b.own(sendBlock(b.Rank), ownRecv())
}
