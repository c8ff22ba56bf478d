package coll

// Neighbourhood collectives (MPI-5.0 9.6): every rank sends a block to each of its destinations and
// receives one from each of its sources. All transfers are under way at once: a rank has few
// neighbours.

// direct starts all receives, then all sends. Between two ranks there may be several edges, whose
// messages are distinguished by their order alone: it is that of the blocks. On a grid what goes in
// negative direction arrives from the positive one, so the two receives of a dimension are started
// the other way round than its sends.
func (b *builder) direct(out, in func(i int) Ref) {
	for i := range b.Sources {
		if b.Paired {
			i ^= 1
		}
		if b.Sources[i] != RootNone {
			b.recv(b.Sources[i], in(i))
		}
	}
	for i, peer := range b.Dests {
		if peer != RootNone {
			b.send(peer, out(i))
		}
	}
}

func neighborAllgather(b *builder) {
	b.direct(func(int) Ref { return b.sendRef(0, b.SCount) }, b.incoming)
}

func neighborAllgatherv(b *builder) { b.direct(func(int) Ref { return ownSend() }, recvBlock) }

func neighborAlltoall(b *builder) {
	b.direct(func(i int) Ref { return b.sendRef(int64(i)*b.SCount, b.SCount) }, b.incoming)
}

// neighborAlltoallv serves MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw.
func neighborAlltoallv(b *builder) { b.direct(sendBlock, recvBlock) }
