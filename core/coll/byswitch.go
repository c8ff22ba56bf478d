package coll

// All-to-all where what goes from switch to switch is relayed (SPX_CONNECTIONS=topology:K): a process has connections to all behind its own switch, and
// to one behind each other, or a few (net/conn.Static). A message for each pair would go through others mostly; here each rank hands what is for
// others behind the switch to the one of its own switch that is connected with them, and that one hands on what it got from all of its switch, as one message:
// as many messages as there are connections, whatever the number of ranks.
//
//	source --all blocks for the ranks that k is connected with--> rank k of the own switch --the blocks from all of the switch--> destination
//
// Nobody but its two ends knows how long a block of the v forms is, so each block has a place of the same size there, with its length before it. Blocks that
// do not fit go from end to end.

const (
	switchPlace = 512     // bytes of a block's place in the v forms, with its length
	switchBlock = 4 << 10 // longest block of MPI_Alltoall
)

// relayed: there are several switches, with so many ranks behind them that to go by them saves messages.
func relayed(a *Args) bool { return a.Near != nil && gathers(a.Near, a.Size) }

// gathers: to go by these groups saves messages.
func gathers(near []int32, size int) bool {
	groups, _ := bySwitch(near)
	most := 0
	for _, g := range groups {
		most = max(most, len(g))
	}
	return len(groups) > 1 && 2*(len(groups)+most) <= size
}

// bySwitch lists the ranks behind each switch, and says the place of each rank in its list.
func bySwitch(near []int32) (groups [][]int, index []int) {
	index = make([]int, len(near))
	for rank, s := range near {
		for int(s) >= len(groups) {
			groups = append(groups, nil)
		}
		index[rank] = len(groups[s])
		groups[s] = append(groups[s], rank)
	}
	return groups, index
}

// viaSwitches moves places of the given size between the ranks, of which each is in the group that near says: put fills the one with the block for a peer, take empties the
// one with a peer's block.
func (b *builder) viaSwitches(near []int32, size int64, put, take func(peer int, place Ref)) {
	groups, index := bySwitch(near)
	own, me := near[b.Rank], index[b.Rank]
	mine := groups[own]
	through := make([][]int, len(mine)) // the ranks that get what is for them from the k-th of this switch
	for rank, i := range index {
		through[i%len(mine)] = append(through[i%len(mine)], rank)
	}
	here := through[me]
	handed, passed := int64(len(here))*size, int64(len(mine))*size // what comes from one of this switch, and goes to one behind another

	out := b.region(int64(b.Size)*size, 0)
	in := b.region(int64(len(mine))*handed, 0)
	on := b.region(int64(len(here))*passed, 0)
	far := b.region(int64(b.Size-len(mine))*size, 0)
	at := func(buf Buf, i int) Ref { return bytesAt(buf, int64(i)*size, size) }

	var handing, beyond []int32
	for i, peer := range mine {
		if i != me {
			handing = append(handing, b.recv(peer, bytesAt(in, int64(i)*handed, handed)))
		}
	}
	first := make([]int, len(groups)) // of the places in far
	places := 0
	for s, g := range groups {
		if first[s] = places; s != int(own) && len(g) > 0 {
			beyond = append(beyond, b.recv(g[me%len(g)], bytesAt(far, int64(places)*size, int64(len(g))*size)))
			places += len(g)
		}
	}

	start := make([]int64, len(mine))
	places = 0
	for k, list := range through {
		start[k] = int64(places) * size
		for _, rank := range list {
			if rank != b.Rank {
				put(rank, at(out, places))
			}
			places++
		}
	}
	for s := 1; s < len(mine); s++ {
		k := (me + s) % len(mine)
		handing = append(handing, b.send(mine[k], bytesAt(out, start[k], int64(len(through[k]))*size)))
	}
	b.copy(bytesAt(out, start[me], handed), bytesAt(in, int64(me)*handed, handed))
	b.wait(handing...)

	self := 0
	for x, rank := range here {
		if rank == b.Rank {
			self = x
		}
		if near[rank] == own {
			continue
		}
		for i := range mine {
			b.copy(at(in, i*len(here)+x), at(on, x*len(mine)+i))
		}
		beyond = append(beyond, b.send(rank, bytesAt(on, int64(x)*passed, passed)))
	}
	for i, peer := range mine {
		if i != me {
			take(peer, at(in, i*len(here)+self))
		}
	}
	b.wait(beyond...)
	for s, g := range groups {
		for i, peer := range g {
			if s != int(own) {
				take(peer, at(far, first[s]+i))
			}
		}
	}
}

func alltoallBySwitch(b *builder) { b.alltoallVia(b.Near) }

func (b *builder) alltoallVia(near []int32) {
	b.viaSwitches(near, b.data(),
		func(peer int, place Ref) { b.copy(b.sendRef(int64(peer)*b.SCount, b.SCount), place) },
		func(peer int, place Ref) { b.copy(place, b.incoming(peer)) })
	b.own(b.sendRef(int64(b.Rank)*b.SCount, b.SCount), b.incoming(b.Rank))
}

// alltoallvBySwitch serves MPI_Alltoallv and MPI_Alltoallw. What goes from end to end is put on its way first.
func alltoallvBySwitch(b *builder) { b.alltoallvVia(b.Near) }

func (b *builder) alltoallvVia(near []int32) {
	b.p.Limit = switchPlace - lengthBytes
	for s := 1; s < b.Size; s++ { // FlagTake finds the transfers by this order
		peer := (b.Rank - s + b.Size) % b.Size
		b.transfer(OpRecv, peer, recvBlock(peer), FlagLong)
	}
	for s := 1; s < b.Size; s++ {
		peer := (b.Rank + s) % b.Size
		b.transfer(OpSend, peer, sendBlock(peer), FlagLong)
	}
	inside := func(place Ref) Ref { return bytesAt(place.Buf, place.Off+lengthBytes, place.Count-lengthBytes) }
	b.viaSwitches(near, switchPlace,
		func(peer int, place Ref) { b.short(sendBlock(peer), inside(place)) },
		func(peer int, place Ref) {
			b.p.Steps = append(b.p.Steps, Step{Op: OpCopy, Flags: FlagTake, Peer: int32(peer), X: inside(place), Y: recvBlock(peer)})
		})
	b.own(sendBlock(b.Rank), recvBlock(b.Rank))
}
