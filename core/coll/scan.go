package coll

// scanLinear: the result of the ranks below comes from the rank before, and is forwarded to the
// next: n-1 messages.
func scanLinear(b *builder) {
	dst, mine := b.recvRef(0, b.RCount), b.sendRef(0, b.RCount)
	if b.InPlace {
		mine = dst
	}
	first, last := b.Rank == 0, b.Rank == b.Size-1
	if first {
		if !last {
			b.send(1, mine)
		}
		if b.Kind == Scan && !b.InPlace {
			b.copy(mine, dst)
		}
		return
	}
	if b.Kind == Scan {
		below := b.typedRegion(b.RCount)
		r := b.recv(b.Rank-1, below)
		b.own(mine, dst)
		b.wait(r)
		b.reduce(below, dst)
		if !last {
			b.send(b.Rank+1, dst)
		}
		return
	}
	if last {
		b.recv(b.Rank-1, dst)
		return
	}
	// exscan: the forwarded data include this rank's, the result does not
	sum := b.typedRegion(b.RCount)
	b.copy(mine, sum)
	b.wait(b.recv(b.Rank-1, dst))
	b.reduce(dst, sum)
	b.send(b.Rank+1, sum)
}

// scanDoubling: in round k the sum of the 2^k ranks up to here goes 2^k ranks further; log2(n)
// rounds.
func scanDoubling(b *builder) {
	b.noteRounds()
	dst := b.recvRef(0, b.RCount)
	sum, tmp := b.typedRegion(b.RCount), b.typedRegion(b.RCount)
	if b.InPlace {
		b.copy(dst, sum)
	} else {
		b.copy(b.sendRef(0, b.RCount), sum)
	}
	if b.Kind == Scan {
		b.own(sum, dst)
	}
	b.double(b.Size, b.Rank, func(rank int) int { return rank }, sum, tmp, dst, b.Kind == Scan)
}

// double adds what stands before place own of n places to sum and to dst, which is only filled with
// it if it has nothing yet: in round k each place gives its sum to the one 2^k further. peer is the
// rank that speaks for a place, tmp is room for a sum.
func (b *builder) double(n, own int, peer func(int) int, sum, tmp, dst Ref, filled bool) {
	for d := 1; d < n; d *= 2 {
		var slots []int32
		if own >= d {
			slots = append(slots, b.recv(peer(own-d), tmp))
		}
		if own+d < n {
			slots = append(slots, b.send(peer(own+d), sum))
		}
		b.wait(slots...)
		if own < d {
			continue
		}
		b.reduce(tmp, sum)
		if filled {
			b.reduce(tmp, dst)
		} else {
			b.copy(tmp, dst)
			filled = true
		}
	}
}

// scanFan: rank 0 gets all operands and hands every rank its result: every rank but 0 has to get
// one turn to run.
func scanFan(b *builder) {
	dst, mine := b.recvRef(0, b.RCount), b.sendRef(0, b.RCount)
	if b.InPlace {
		mine = dst
	}
	givers := b.Size // ranks 1 to givers-1 give their operand
	if b.Kind == Exscan {
		givers--
	}
	if b.Rank > 0 {
		if b.Rank < givers {
			b.wait(b.send(0, mine))
		}
		b.recv(0, dst)
		return
	}
	var slots []int32
	all := b.vectors(givers) // that of rank 0 stays where it is
	for i := 1; i < givers; i++ {
		slots = append(slots, b.recv(i, all[i]))
	}
	b.wait(slots...)
	sum := mine
	for i := 1; i < b.Size; i++ {
		if b.Kind == Exscan {
			b.send(i, sum)
		}
		if i < givers {
			b.reduce(sum, all[i])
			sum = all[i]
		}
		if b.Kind == Scan {
			b.send(i, sum)
		}
	}
	if b.Kind == Scan {
		b.own(mine, dst)
	}
}
