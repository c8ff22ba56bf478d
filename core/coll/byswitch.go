package coll

import "slices"

// All-to-all where what goes from switch to switch is relayed (SPX_CONNECTIONS=topology:K): a
// process has connections to all behind its own switch, and to one behind each other, or a few
// (net/conn.Static). Messages for each pair would mostly be relayed; here each rank sends its
// blocks for ranks behind another switch to the rank of its own switch that is connected with them,
// and that rank forwards the blocks from all of its switch as one message: as many messages as
// there are connections, whatever the number of ranks.
//
//	source --all blocks for the ranks that k is connected with--> rank k of the own switch --the blocks from all of the switch--> destination
//
// The length of a block of the v forms is known only at its two ends, so there the blocks of a
// message follow their lengths (the mode Row): no more than the data is moved. Blocks that are
// longer than a row takes go from end to end.

const (
	switchRow   = 8 << 10 // bytes of the longest block that goes in a row, in the v forms
	switchBlock = 4 << 10 // longest block of MPI_Alltoall
)

// A batch is the blocks of one message between switches: n places of the same size, or a row of n
// blocks.
type batch struct {
	buf Buf
	off int64
	n   int
}

// gathers: to go by these groups saves messages.
func gathers(near []int32, size int) bool {
	groups, _ := bySwitch(near)
	most := 0
	for _, g := range groups {
		most = max(most, len(g))
	}
	return len(groups) > 1 && 2*(len(groups)+most) <= size
}

// bySwitch lists the ranks behind each switch, and the position of each rank in its list.
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

// viaSwitches moves blocks between the ranks, whose groups are given by near: put
// fills the place of the block for a peer, take empties that of a peer's block. size is that of a
// place; with rows the most that a block takes in one, with its length.
func (b *builder) viaSwitches(near []int32, size int64, rows bool, put,
	take func(peer int, place Ref)) {
	groups, index := bySwitch(near)
	b.note("groups", int64(len(groups)))
	own, me := near[b.Rank], index[b.Rank]
	mine := groups[own]
	// the ranks that get their blocks from the k-th of this switch
	through := make([][]int, len(mine))
	for rank, i := range index {
		through[i%len(mine)] = append(through[i%len(mine)], rank)
	}
	here := through[me]
	batches := func(buf Buf, sizes ...int) (out []batch) { // one behind the other
		off := int64(0)
		for _, n := range sizes {
			out = append(out, batch{buf, off, n})
			off += int64(n) * size
		}
		return out
	}
	place := func(x batch, i int) Ref {
		if rows {
			return Ref{Buf: x.buf, Mode: Row, Type: TypeByte, Off: x.off, A: int32(i),
				B: int32(x.n)}
		}
		return bytesAt(x.buf, x.off+int64(i)*size, size)
	}
	send := func(peer int, x batch) int32 {
		if rows {
			return b.send(peer, place(x, x.n))
		}
		return b.send(peer, bytesAt(x.buf, x.off, int64(x.n)*size))
	}
	recv := func(peer int, x batch) int32 {
		flags := b.flags
		if rows {
			flags |= FlagMost
		}
		return b.transfer(OpRecv, peer, bytesAt(x.buf, x.off, int64(x.n)*size), flags)
	}
	sizes := func(groups [][]int) (out []int) {
		for _, g := range groups {
			out = append(out, len(g))
		}
		return out
	}

	// by rank of the switch: for those behind all switches that get it from that one
	out := batches(b.region(int64(b.Size)*size, 0), sizes(through)...)
	// by rank of the switch: what that one has for those that get it from here
	in := batches(b.region(int64(len(mine)*len(here))*size, 0),
		slices.Repeat([]int{len(here)}, len(mine))...)
	// by such a rank: what all of the switch have for it
	on := batches(b.region(int64(len(here)*len(mine))*size, 0),
		slices.Repeat([]int{len(mine)}, len(here))...)
	// by switch: what those behind it have for this rank
	far := batches(b.region(int64(b.Size)*size, 0), sizes(groups)...)
	in[me] = out[me]

	var handing, beyond []int32
	for i, peer := range mine {
		if i != me {
			handing = append(handing, recv(peer, in[i]))
		}
	}
	for s, g := range groups {
		if s != int(own) && len(g) > 0 {
			beyond = append(beyond, recv(g[me%len(g)], far[s]))
		}
	}
	for k, list := range through {
		for i, rank := range list {
			if rank != b.Rank {
				put(rank, place(out[k], i))
			} else if rows {
				// the rows of a message are complete
				b.copy(bytesAt(out[k].buf, 0, 0), place(out[k], i))
			}
		}
	}
	for s := 1; s < len(mine); s++ {
		k := (me + s) % len(mine)
		handing = append(handing, send(mine[k], out[k]))
	}
	b.wait(handing...)

	for x, rank := range here {
		if near[rank] == own {
			continue
		}
		for i := range mine {
			b.copy(place(in[i], x), place(on[x], i))
		}
		beyond = append(beyond, send(rank, on[x]))
	}
	for i, peer := range mine {
		if i != me {
			take(peer, place(in[i], slices.Index(here, b.Rank)))
		}
	}
	b.wait(beyond...)
	for s, g := range groups {
		for i, peer := range g {
			if s != int(own) {
				take(peer, place(far[s], i))
			}
		}
	}
}

func alltoallBySwitch(b *builder) { b.alltoallVia(b.Near) }

func (b *builder) alltoallVia(near []int32) {
	b.viaSwitches(near, b.Data(), false,
		func(peer int, place Ref) { b.copy(b.sendRef(int64(peer)*b.SCount, b.SCount), place) },
		func(peer int, place Ref) { b.copy(place, b.incoming(peer)) })
	b.own(b.sendRef(int64(b.Rank)*b.SCount, b.SCount), b.incoming(b.Rank))
}

// alltoallvBySwitch serves MPI_Alltoallv and MPI_Alltoallw. What goes from end to end is put on its
// way first.
func alltoallvBySwitch(b *builder) { b.alltoallvVia(b.Near) }

func (b *builder) alltoallvVia(near []int32) {
	b.p.Limit = switchRow
	b.noteBytes("limit", switchRow)
	for s := 1; s < b.Size; s++ { // FlagTake finds the transfers by this order
		peer := (b.Rank - s + b.Size) % b.Size
		b.transfer(OpRecv, peer, recvBlock(peer), FlagLong)
	}
	for s := 1; s < b.Size; s++ {
		peer := (b.Rank + s) % b.Size
		b.transfer(OpSend, peer, sendBlock(peer), FlagLong)
	}
	b.viaSwitches(near, lengthBytes+switchRow, true,
		func(peer int, place Ref) { b.copy(sendBlock(peer), place) },
		func(peer int, place Ref) {
			b.p.Steps = append(b.p.Steps, Step{Op: OpCopy, Flags: FlagTake, Peer: int32(peer),
				X: place, Y: recvBlock(peer)})
		})
	b.own(sendBlock(b.Rank), recvBlock(b.Rank))
}
