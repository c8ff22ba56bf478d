package coll

// bcastBinomial: the data go down a binomial tree, as they are.
func bcastBinomial(b *builder) { b.bcast(b.recvRef(0, b.RCount), b.Root) }

// bcast sends what ref names from root down the tree.
func (b *builder) bcast(ref Ref, root int) {
	v := (b.Rank - root + b.Size) % b.Size
	t := b.tree(v)
	if t.parent >= 0 {
		b.wait(b.recv((t.parent+root)%b.Size, ref))
	}
	for _, c := range t.children {
		b.send((c+root)%b.Size, ref)
	}
}

// stream gives the broadcast data as one run of bytes: the buffer itself, or the packed form in
// temporary memory, which the root fills now; the returned function unpacks it elsewhere. Ranks may
// describe the same data by different types.
func (b *builder) stream() (at func(from, to int64) Ref, finish func()) {
	n := b.RCount * b.RType.Size
	if b.RType.Contig {
		return func(from, to int64) Ref { return bytesAt(BufRecv, from, to-from) }, func() {}
	}
	t := b.region(n, 0)
	all := bytesAt(t, 0, n)
	if b.Rank == b.Root {
		b.copy(b.recvRef(0, b.RCount), all)
	}
	return func(from, to int64) Ref { return bytesAt(t, from, to-from) }, func() {
		if b.Rank != b.Root {
			b.copy(all, b.recvRef(0, b.RCount))
		}
	}
}

// bcastScatterAllgather: the data are cut into a piece per rank, scattered down a binomial tree,
// and gathered around a ring, so that about twice the data pass through each rank, however many
// there are.
func bcastScatterAllgather(b *builder) {
	n := b.RCount * b.RType.Size
	piece := (n + int64(b.Size) - 1) / int64(b.Size)
	b.noteBytes("piece", piece)
	edge := func(v int) int64 { return min(int64(v)*piece, n) }
	at, finish := b.stream()
	v := b.rel()
	parent, children := binomial(v, b.Size)
	if end := v + span(v, b.Size); parent >= 0 && edge(end) > edge(v) {
		b.wait(b.recv(b.rank(parent), at(edge(v), edge(end))))
	}
	for _, c := range children {
		if end := c + span(c, b.Size); edge(end) > edge(c) {
			b.send(b.rank(c), at(edge(c), edge(end)))
		}
	}
	next, prev := b.rank((v+1)%b.Size), b.rank((v+b.Size-1)%b.Size)
	for s := 0; s < b.Size-1; s++ {
		out, in := (v-s+b.Size)%b.Size, (v-s-1+b.Size)%b.Size
		if edge(out+1) > edge(out) && !b.owns(v+1, out) {
			b.send(next, at(edge(out), edge(out+1)))
		}
		if edge(in+1) > edge(in) && !b.owns(v, in) {
			b.wait(b.recv(prev, at(edge(in), edge(in+1))))
		}
	}
	finish()
}

// owns reports whether relative rank v got piece p already by the binomial scatter.
func (b *builder) owns(v, p int) bool {
	v %= b.Size
	return p >= v && p < v+span(v, b.Size)
}

// bcastChain: the data go from rank to rank in segments, so that all ranks are busy at once.
func bcastChain(b *builder) {
	const segment, most = 128 << 10, 256
	n := b.RCount * b.RType.Size
	size := max(segment, (n+most-1)/most)
	b.noteBytes("segment", min(size, n))
	at, finish := b.stream()
	v := b.rel()
	ref := func(from int64) Ref { return at(from, min(from+size, n)) }
	var ahead int32
	if v > 0 {
		ahead = b.recv(b.rank(v-1), ref(0))
	}
	for from := int64(0); from < n; from += size {
		if v > 0 {
			now := ahead
			if from+size < n {
				ahead = b.recv(b.rank(v-1), ref(from+size))
			}
			b.wait(now)
		}
		if v+1 < b.Size {
			b.send(b.rank(v+1), ref(from))
		}
	}
	finish()
}
