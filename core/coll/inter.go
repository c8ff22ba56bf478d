package coll

// inter are the schedules on intercommunicators (MPI-5.0 6.2.3): the local group gives, the remote
// group gets, and the other way round. Scan and Exscan are not defined there. Rank 0 of a group
// speaks for it where one has to.
var inter = [Kinds]func(*builder){
	Barrier:            interBarrier,
	Bcast:              interBcast,
	Gather:             interGather,
	Gatherv:            interGather,
	Scatter:            interScatter,
	Scatterv:           interScatter,
	Allgather:          interAllgather,
	Allgatherv:         interAllgather,
	Alltoall:           interAlltoall,
	Alltoallv:          interAlltoall,
	Alltoallw:          interAlltoall,
	Reduce:             interReduce,
	Allreduce:          interAllreduce,
	ReduceScatterBlock: interReduceScatter,
	ReduceScatter:      interReduceScatter,
}

// locally makes transfers within the local group.
func (b *builder) locally(do func()) {
	b.flags = FlagLocal
	do()
	b.flags = 0
}

func interBarrier(b *builder) {
	parent, children := binomial(b.Rank, b.Size)
	var slots []int32
	b.locally(func() {
		for _, c := range children {
			slots = append(slots, b.recv(c, empty()))
		}
		b.wait(slots...)
		if parent >= 0 {
			b.send(parent, empty())
		}
	})
	if parent < 0 {
		r := b.recv(0, empty())
		b.send(0, empty())
		b.wait(r)
	}
	b.locally(func() { b.bcast(empty(), 0) })
}

func interBcast(b *builder) {
	ref := b.recvRef(0, b.RCount)
	switch {
	case b.Root == RootSelf:
		b.send(0, ref)
	case b.Root >= 0:
		if b.Rank == 0 {
			b.wait(b.recv(b.Root, ref))
		}
		b.locally(func() { b.bcast(ref, 0) })
	}
}

// given is the block that this process gives; v is the kind with arrays of counts.
func (b *builder) given(v Kind) Ref {
	if b.Kind == v {
		return ownSend()
	}
	return b.sendRef(0, b.SCount)
}

func interGather(b *builder) {
	if b.Root >= 0 {
		b.send(b.Root, b.given(Gatherv))
		return
	}
	for i := 0; b.Root == RootSelf && i < b.Remote; i++ {
		b.recv(i, b.remoteBlock(i, Gatherv))
	}
}

// remoteBlock is the place of remote rank i's block in the receive buffer; v is the kind with
// arrays of counts.
func (b *builder) remoteBlock(i int, v ...Kind) Ref {
	for _, k := range v {
		if b.Kind == k {
			return recvBlock(i)
		}
	}
	return b.recvRef(int64(i)*b.RCount, b.RCount)
}

func interScatter(b *builder) {
	if b.Root >= 0 {
		mine := b.recvRef(0, b.RCount)
		if b.Kind == Scatterv {
			mine = ownRecv()
		}
		b.recv(b.Root, mine)
		return
	}
	for i := 0; b.Root == RootSelf && i < b.Remote; i++ {
		out := b.sendRef(int64(i)*b.SCount, b.SCount)
		if b.Kind == Scatterv {
			out = sendBlock(i)
		}
		b.send(i, out)
	}
}

// interAllgather: each process sends its block to all of the other group.
func interAllgather(b *builder) {
	for i := range b.Remote {
		b.recv(i, b.remoteBlock(i, Allgatherv))
	}
	for i := range b.Remote {
		b.send((b.Rank+i)%b.Remote, b.given(Allgatherv))
	}
}

func interAlltoall(b *builder) {
	for i := range b.Remote {
		b.recv(i, b.remoteBlock(i, Alltoallv, Alltoallw))
	}
	for i := range b.Remote {
		to := (b.Rank + i) % b.Remote
		out := b.sendRef(int64(to)*b.SCount, b.SCount)
		if b.Kind != Alltoall {
			out = sendBlock(to)
		}
		b.send(to, out)
	}
}

func interReduce(b *builder) {
	switch {
	case b.Root == RootSelf:
		b.recv(0, b.recvRef(0, b.RCount))
	case b.Root >= 0:
		var sum Ref
		if b.Rank == 0 {
			sum = b.typedRegion(b.RCount)
		}
		b.locally(func() { b.reduceTree(0, sum) })
		if b.Rank == 0 {
			b.send(b.Root, sum)
		}
	}
}

func interAllreduce(b *builder) {
	dst := b.recvRef(0, b.RCount)
	var sum Ref
	if b.Rank == 0 {
		sum = b.typedRegion(b.RCount)
	}
	b.locally(func() { b.reduceTree(0, sum) })
	if b.Rank == 0 {
		r := b.recv(0, dst)
		b.send(0, sum)
		b.wait(r)
	}
	b.waitAll()
	b.locally(func() { b.bcast(dst, 0) })
}

// interReduceScatter: the sum of the remote group's vectors is scattered over the local group.
func interReduceScatter(b *builder) {
	in := b.input()
	parent, children := binomial(b.Rank, b.Size)
	p := &partial{b: b, cur: in}
	b.locally(func() {
		for i := len(children) - 1; i >= 0; i-- {
			p.higher(children[i], p.vectorScratch())
		}
		if parent >= 0 {
			b.send(parent, p.cur)
			b.recv(0, b.result())
		}
	})
	if parent >= 0 {
		return
	}
	theirs := b.vector()
	r := b.recv(0, theirs)
	b.send(0, p.cur)
	b.wait(r)
	b.locally(func() {
		for i := 1; i < b.Size; i++ {
			b.send(i, b.piece(theirs, i, i+1))
		}
	})
	b.copy(b.piece(theirs, 0, 1), b.result())
}
