package coll

// Operations with a root, and prefixes, where ranks are on several hosts: a host's blocks, or its
// sum, go to other hosts in one message.

// aHost is a host's ranks, and the one of them that speaks for all: the root where it is.
type aHost struct {
	members []int
	leader  int
}

// hostsWith lists the hosts, and the one of this rank.
func (b *builder) hostsWith(root int) (hosts []aHost, own int) {
	level := innermost(b.Args)
	groups, _ := bySwitch(level)
	b.note("groups", int64(len(groups)))
	for _, members := range groups {
		hosts = append(hosts, aHost{members, members[0]})
	}
	if root >= 0 {
		hosts[level[root]].leader = root
	}
	return hosts, int(level[b.Rank])
}

// runsOf calls do for each run of consecutive ranks: at is the place of the first of them in the
// list.
func runsOf(ranks []int, do func(at, first, n int)) {
	for at := 0; at < len(ranks); {
		n := 1
		for at+n < len(ranks) && ranks[at+n] == ranks[at]+n {
			n++
		}
		do(at, ranks[at], n)
		at += n
	}
}

// gatherByHost: the ranks of a host give their blocks to its leader, which sends them to the root
// together.
func gatherByHost(b *builder) {
	hosts, own := b.hostsWith(b.Root)
	here, block := hosts[own], b.Data()
	mine := b.sendRef(0, b.SCount)
	if b.Rank != here.leader {
		b.send(here.leader, mine)
		return
	}
	if b.Rank != b.Root {
		t := b.region(int64(len(here.members))*block, 0)
		var slots []int32
		for i, rank := range here.members {
			at := bytesAt(t, int64(i)*block, block)
			if rank == b.Rank {
				b.copy(mine, at)
				continue
			}
			slots = append(slots, b.recv(rank, at))
		}
		b.wait(slots...)
		b.send(b.Root, bytesAt(t, 0, int64(len(here.members))*block))
		return
	}
	at := func(first, n int) Ref { return b.recvRef(int64(first)*b.RCount, int64(n)*b.RCount) }
	var scattered []func()
	next := b.scattered(hosts, own, block)
	for i, h := range hosts {
		if i == own {
			for _, rank := range h.members {
				if rank != b.Rank {
					b.recv(rank, at(rank, 1))
				}
			}
			continue
		}
		n := len(h.members)
		if first := h.members[0]; h.members[n-1] == first+n-1 {
			b.recv(h.leader, at(first, n))
			continue
		}
		all := next(n)
		slot := b.recv(h.leader, all)
		scattered = append(scattered, func() {
			b.wait(slot)
			runsOf(h.members, func(place, first, n int) {
				b.copy(bytesAt(all.Buf, all.Off+int64(place)*block, int64(n)*block), at(first, n))
			})
		})
	}
	b.own(mine, at(b.Rank, 1))
	for _, do := range scattered {
		do()
	}
}

// scattered gives places, one after the other, for the packed blocks of those other hosts whose
// ranks are not a run. They share one region: there may be more hosts than a plan can have regions.
func (b *builder) scattered(hosts []aHost, own int, block int64) func(n int) Ref {
	total, taken := int64(0), int64(0)
	for i, h := range hosts {
		if n := len(h.members); i != own && h.members[n-1] != h.members[0]+n-1 {
			total += int64(n) * block
		}
	}
	if total == 0 {
		return nil
	}
	t := b.region(total, 0)
	return func(n int) Ref {
		taken += int64(n) * block
		return bytesAt(t, taken-int64(n)*block, int64(n)*block)
	}
}

// scatterByHost: the root sends the blocks of a host to its leader together.
func scatterByHost(b *builder) {
	hosts, own := b.hostsWith(b.Root)
	here, block := hosts[own], b.Data()
	mine := b.recvRef(0, b.RCount)
	if b.Rank != here.leader {
		b.recv(here.leader, mine)
		return
	}
	if b.Rank != b.Root {
		t := b.region(int64(len(here.members))*block, 0)
		b.wait(b.recv(b.Root, bytesAt(t, 0, int64(len(here.members))*block)))
		for i, rank := range here.members {
			if rank != b.Rank {
				b.send(rank, bytesAt(t, int64(i)*block, block))
			}
		}
		i := 0
		for here.members[i] != b.Rank {
			i++
		}
		b.copy(bytesAt(t, int64(i)*block, block), mine)
		return
	}
	at := func(first, n int) Ref { return b.sendRef(int64(first)*b.SCount, int64(n)*b.SCount) }
	next := b.scattered(hosts, own, block)
	for i, h := range hosts {
		if i == own {
			continue
		}
		n := len(h.members)
		if first := h.members[0]; h.members[n-1] == first+n-1 {
			b.send(h.leader, at(first, n))
			continue
		}
		all := next(n)
		runsOf(h.members, func(place, first, n int) {
			b.copy(at(first, n), bytesAt(all.Buf, all.Off+int64(place)*block, int64(n)*block))
		})
		b.send(h.leader, all)
	}
	for _, rank := range here.members {
		if rank != b.Rank {
			b.send(rank, at(rank, 1))
		}
	}
	b.own(at(b.Rank, 1), mine)
}

// scanByHost: prefixes within a host go from rank to rank; the last of each has the host's sum, and
// these ranks make the prefixes of hosts by doubling, which go to all ranks there. Ranks of a host
// are consecutive, so that the order of the operands is kept.
func scanByHost(b *builder) {
	hosts, own := b.hostsWith(-1)
	members := hosts[own].members
	first, last := members[0], members[len(members)-1]
	dst, mine := b.recvRef(0, b.RCount), b.sendRef(0, b.RCount)
	if b.InPlace {
		mine = dst
	}
	before := b.typedRegion(b.RCount) // of the hosts before this one
	upTo := b.typedRegion(b.RCount)   // of this host's ranks up to this one
	b.copy(mine, upTo)
	below := b.typedRegion(b.RCount) // of those before this one
	if b.Rank > first {
		b.wait(b.recv(b.Rank-1, below))
		b.reduce(below, upTo)
	}
	if b.Rank < last {
		b.send(b.Rank+1, upTo)
	}
	if b.Rank == last {
		b.hostPrefix(hosts, own, upTo, before)
	}
	if own > 0 {
		b.waitAll() // of upTo, too
		if b.Rank == last {
			for _, rank := range members[:len(members)-1] {
				b.send(rank, before)
			}
		} else {
			b.wait(b.recv(last, before))
		}
	}
	result := upTo
	if b.Kind == Exscan {
		result = below
		if b.Rank == first {
			if own > 0 {
				b.copy(before, dst)
			}
			return
		}
	}
	b.waitAll()
	if own > 0 {
		b.reduce(before, result)
	}
	b.copy(result, dst)
}

// hostPrefix leaves in before, at the last rank of each host but the first, the sum of the hosts
// before it, by doubling. sum is not changed.
func (b *builder) hostPrefix(hosts []aHost, own int, sum, before Ref) {
	peer := func(host int) int { m := hosts[host].members; return m[len(m)-1] }
	total, tmp := b.typedRegion(b.RCount), b.typedRegion(b.RCount)
	b.copy(sum, total)
	b.double(len(hosts), own, peer, total, tmp, before, false)
}
