package coll

// Operations in which all ranks have data for all ranks, where ranks are on several hosts: data
// go from host to host once for all ranks there.

// hostBlock is the longest block of MPI_Alltoall that goes with those of others: longer ones are
// not worth the copies.
const hostBlock = 2 << 10

// innermost is the domain of each rank in the innermost level.
func innermost(a *Args) []int32 { return a.Levels[len(a.Levels)-1] }

// alltoallByHost: as by switch, though nothing is relayed.
func alltoallByHost(b *builder) { b.alltoallVia(innermost(b.Args)) }

// allgatherLevels: the ranks of a domain give their blocks to its first one. These leaders exchange
// the blocks of their domains, short ones with all leaders at once, long ones around a ring; a
// leader forwards received blocks inside its domain while the next arrive.
func allgatherLevels(b *builder) {
	const short = 64 << 10
	level := innermost(b.Args)
	domains, index := bySwitch(level)
	own, n := int(level[b.Rank]), len(domains)
	b.note("groups", int64(n))
	s := stage{members: domains[own], at: index[b.Rank]}
	parent, children := s.place(fanoutOf(b.Args, s))
	run := func(from, to int) Ref {
		return b.blocks(domains[from][0],
			domains[to][len(domains[to])-1]+1)
	}
	down := func(ref Ref) {
		if parent >= 0 {
			b.wait(b.recv(parent, ref))
		}
		for _, c := range children {
			b.send(c, ref)
		}
	}

	b.mine()
	if s.at != 0 {
		b.wait(b.send(s.members[0], b.blocks(b.Rank, b.Rank+1)))
	} else {
		var slots []int32
		for _, rank := range s.members[1:] {
			slots = append(slots, b.recv(rank, b.blocks(rank, rank+1)))
		}
		b.wait(slots...)
	}
	if b.Data()*int64(b.Size) <= short {
		if s.at == 0 {
			b.leadersExchange(domains, own, run)
		}
		down(b.blocks(0, b.Size))
		return
	}
	next, prev := domains[(own+1)%n][0], domains[(own+n-1)%n][0]
	down(run(own, own))
	for i := 1; i < n; i++ {
		in, out := (own-i+n)%n, (own-i+1+n)%n
		if s.at == 0 {
			r := b.recv(prev, run(in, in))
			b.send(next, run(out, out))
			b.wait(r)
		}
		down(run(in, in))
	}
}

// leadersExchange: each leader gets the blocks of all domains: by doubling where it can, else by a
// message for each other one.
func (b *builder) leadersExchange(domains [][]int, own int, run func(from, to int) Ref) {
	n := len(domains)
	if n&(n-1) == 0 {
		for d := 1; d < n; d <<= 1 {
			peer := own ^ d
			have, get := own&^(d-1), peer&^(d-1)
			r := b.recv(domains[peer][0], run(get, get+d-1))
			b.send(domains[peer][0], run(have, have+d-1))
			b.wait(r)
		}
		return
	}
	var slots []int32
	for i := 1; i < n; i++ {
		from := (own - i + n) % n
		slots = append(slots, b.recv(domains[from][0], run(from, from)))
	}
	for i := 1; i < n; i++ {
		slots = append(slots, b.send(domains[(own+i)%n][0], run(own, own)))
	}
	b.wait(slots...)
}
