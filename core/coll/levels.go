package coll

import "slices"

// Schedules by levels: ranks that are near each other (a host, what is behind one switch, what
// shares a cache) make a domain, and a domain's leader communicates with the other leaders for all
// its members. So data cross slow links once for each domain and direction, whatever the order of
// the ranks.
//
// Args.Levels gives for each level, the outermost first, the domain of each rank. A stage is the
// communication among the members of a domain: those of an innermost one, the leaders of these in
// the next one, at last the leaders of the outermost. The root leads wherever it is.

// Levels makes one list of domains for each relevant level: an inner level divides the domains of
// the outer ones further. Levels whose domains are single ranks, or the whole, are irrelevant.
// Input numbers are arbitrary; the result is numbered from 0.
func Levels(levels ...[]uint32) [][]int32 {
	var out [][]int32
	var outer []int32
	count := 1
	for _, level := range levels {
		ids := map[[2]uint32]int32{}
		inner := make([]int32, len(level))
		for rank, domain := range level {
			key := [2]uint32{0, domain}
			if outer != nil {
				key[0] = uint32(outer[rank])
			}
			id, seen := ids[key]
			if !seen {
				id = int32(len(ids))
				ids[key] = id
			}
			inner[rank] = id
		}
		if len(ids) > count && len(ids) < len(level) {
			out, outer, count = append(out, inner), inner, len(ids)
		}
	}
	return out
}

// ByNetwork makes the levels of ranks on several hosts; switched: the outermost are the switches
// behind which hosts stand together.
func ByNetwork(switches, hosts []uint32) (levels [][]int32, switched bool) {
	byHost, bySwitch := Levels(hosts), Levels(switches)
	domains := func(levels [][]int32) int {
		if len(levels) == 0 {
			return len(hosts)
		}
		return int(slices.Max(levels[0])) + 1
	}
	if len(bySwitch) == 0 || domains(bySwitch) >= domains(byHost) {
		return byHost, false
	}
	return Levels(switches, hosts), true
}

func hasLevels(a *Args) bool { return len(a.Levels) > 0 }

// runs: each domain is a run of ranks, so that a result made of partial results of domains keeps
// the order of the ranks.
func runs(a *Args) bool {
	for _, level := range a.Levels {
		for rank := 1; rank < len(level); rank++ { // numbered in the order in which they appear
			if level[rank] < level[rank-1] {
				return false
			}
		}
	}
	return true
}

// stage is one domain's part: its members by rank, and the places among them of the leader and of
// this rank.
type stage struct {
	members  []int
	lead, at int
	last     bool // the leaders of the outermost domains
}

// stages are those that this rank takes part in, the innermost first: as a member of the last one
// of them, as leader of those before.
func (b *builder) stages(root int) []stage {
	if len(b.Levels) > 0 {
		b.note("levels", int64(len(b.Levels)))
		b.note("groups", int64(slices.Max(b.Levels[0]))+1)
	}
	left := make([]int, b.Size)
	for rank := range left {
		left[rank] = rank
	}
	var out []stage
	for l := len(b.Levels); l >= 0; l-- {
		s := stage{last: l == 0}
		domain := func(rank int) int32 { return 0 }
		if l > 0 {
			domain = func(rank int) int32 { return b.Levels[l-1][rank] }
		}
		leaders := map[int32]int{}
		for _, rank := range left {
			if _, led := leaders[domain(rank)]; !led || rank == root {
				leaders[domain(rank)] = rank
			}
			if domain(rank) != domain(b.Rank) {
				continue
			}
			if rank == b.Rank {
				s.at = len(s.members)
			}
			s.members = append(s.members, rank)
		}
		if s.last && b.near != nil {
			s.sort(b.near, root, b.Rank)
		}
		for i, rank := range s.members {
			if rank == leaders[domain(b.Rank)] {
				s.lead = i
			}
		}
		if out = append(out, s); s.at != s.lead {
			break
		}
		next := left[:0:0]
		for _, rank := range left {
			if leaders[domain(rank)] == rank {
				next = append(next, rank)
			}
		}
		left = next
	}
	return out
}

// sort puts the members in the order of their switches: the root first, and those behind its
// switch.
func (s *stage) sort(switches []int32, root, rank int) {
	order := func(r int) [3]int {
		switch {
		case r == root:
			return [3]int{-2}
		case switches[r] == switches[root]:
			return [3]int{-1, 0, r}
		}
		return [3]int{0, int(switches[r]), r}
	}
	slices.SortFunc(s.members, func(a, b int) int {
		x, y := order(a), order(b)
		return slices.Compare(x[:], y[:])
	})
	s.at = slices.Index(s.members, rank)
}

// pastSwitches lets do make steps as if switches were unknown, except that hosts are in their
// order.
func (b *builder) pastSwitches(do func()) {
	args := b.Args
	a := *args
	a.Levels, a.Switched = args.Levels[1:], false
	b.Args, b.near = &a, args.Levels[0]
	do()
	b.Args, b.near = args, nil
}

// hosts is the number of the outermost domains but for switches.
func hosts(a *Args) int {
	if !a.Switched {
		return int(slices.Max(a.Levels[0])) + 1
	}
	if len(a.Levels) == 1 {
		return a.Size
	}
	return int(slices.Max(a.Levels[1])) + 1
}

// within lets do make steps among the members of a stage as if they were all there is, with the
// leader as root.
func (b *builder) within(s stage, do func()) {
	args, members, fanout := b.Args, b.members, b.fanout
	a := *args
	a.Rank, a.Size, a.Root = s.at, len(s.members), s.lead
	b.Args, b.members, b.fanout = &a, s.members, fanoutOf(args, s)
	do()
	b.Args, b.members, b.fanout = args, members, fanout
}

// fanoutOf is the tree of a stage: a flat one where the ranks of a host wait for their turn to run.
func fanoutOf(a *Args, s stage) int {
	if !s.last && len(s.members) > 4*a.CPUs {
		return flat
	}
	return 0
}

// place is this rank's parent (-1: none) and its children in the tree of a stage, whose root is the
// leader.
func (s stage) place(fanout int) (parent int, children []int) {
	n := len(s.members)
	rank := func(v int) int { return s.members[(v+s.lead)%n] }
	t := treeOf((s.at-s.lead+n)%n, n, fanout)
	if parent = t.parent; parent >= 0 {
		parent = rank(parent)
	}
	for _, c := range t.children {
		children = append(children, rank(c))
	}
	return parent, children
}

// down is this rank's place in the tree that goes down through stages: its parent, and its
// children, those that are farthest first.
func (b *builder) down(list []stage) (parent int, children []int) {
	parent = -1
	for i := len(list) - 1; i >= 0; i-- {
		up, below := list[i].place(fanoutOf(b.Args, list[i]))
		parent = max(parent, up)
		children = append(children, below...)
	}
	return parent, children
}

// inner is the stages but for the last of all.
func inner(list []stage) []stage {
	if n := len(list); list[n-1].last {
		return list[:n-1]
	}
	return list
}

// barrierLevels: every domain gathers at its leader, the leaders of the outermost ones meet, and
// the word goes back.
func barrierLevels(b *builder) {
	list := b.stages(0)
	parent, children := b.down(inner(list))
	var slots []int32
	for _, c := range children {
		slots = append(slots, b.recv(c, empty()))
	}
	b.wait(slots...)
	if parent >= 0 {
		b.send(parent, empty())
		b.wait(b.recv(parent, empty()))
	} else {
		b.within(list[len(list)-1], func() { barrierDissemination(b) })
	}
	for _, c := range children {
		b.send(c, empty())
	}
}

// segmentBytes is the least that long data are cut into on their way down a tree; where the ranks
// of a host wait for their turn to run, and each piece costs all of them one, turnBytes.
const (
	segmentBytes = 128 << 10
	turnBytes    = 1 << 20
)

// bcastLevels: the data go down the tree of all stages, long ones in segments, so that all levels
// are busy at once. Among the leaders of the outermost domains long data go from one to the next,
// so that each sends them once: from host to host also where switches are known, those behind one
// of them one after the other, since a leader of a switch would send the data twice.
func bcastLevels(b *builder) {
	const most = 256
	n := b.RCount * b.RType.Size
	size := max(segmentBytes, (n+most-1)/most)
	if b.Switched && n/size >= int64(hosts(b.Args)) {
		b.pastSwitches(func() { bcastLevels(b) })
		return
	}
	list := b.stages(b.Root)
	parent, children := b.down(inner(list))
	leader := list[len(list)-1].last
	var next []int // leaders
	if s := list[len(list)-1]; leader {
		parent, next = s.place(0)
		if count := len(s.members); n/size >= int64(count) {
			parent, next = -1, nil
			if v := (s.at - s.lead + count) % count; v > 0 {
				parent = s.members[(s.at+count-1)%count]
				if v < count-1 {
					next = []int{s.members[(s.at+1)%count]}
				}
			} else {
				next = []int{s.members[(s.at+1)%count]}
			}
		}
	}
	if n <= size {
		b.relay(parent, append(next, children...),
			func(int64, int64) Ref { return b.recvRef(0, b.RCount) }, 1, 1)
		return
	}
	b.noteBytes("segment", size)
	at, finish := b.stream()
	inside := size
	if b.crowdedInside() {
		inside *= max(1, turnBytes/size)
	}
	if leader {
		b.relayTwice(parent, next, children, at, n, size, inside)
	} else {
		b.relay(parent, children, at, n, inside)
	}
	finish()
}

// crowdedInside: the ranks of an innermost domain outnumber the processors of its host.
func (b *builder) crowdedInside() bool {
	if len(b.Levels) == 0 {
		return false
	}
	members := map[int32]int{}
	for _, domain := range b.Levels[len(b.Levels)-1] {
		if members[domain]++; members[domain] > b.CPUs {
			return true
		}
	}
	return false
}

// relay gets n bytes, size at a time, from the parent, and sends each piece on when it is there,
// while the next one is on its way.
func (b *builder) relay(parent int, children []int, piece func(from, to int64) Ref, n, size int64) {
	b.relayTwice(parent, children, nil, piece, n, size, size)
}

// relayTwice is relay to next, and to the children inside in pieces of a multiple of that size.
func (b *builder) relayTwice(parent int, next, children []int, piece func(from, to int64) Ref, n,
	size, inside int64) {
	part := func(from, size int64) Ref { return piece(from, min(from+size, n)) }
	var ahead int32
	if parent >= 0 {
		ahead = b.recv(parent, part(0, size))
	}
	for from := int64(0); from < n; from += size {
		if parent >= 0 {
			now := ahead
			if from+size < n {
				ahead = b.recv(parent, part(from+size, size))
			}
			b.wait(now)
		}
		for _, c := range next {
			b.send(c, part(from, size))
		}
		if (from+size)%inside != 0 && from+size < n {
			continue
		}
		for _, c := range children {
			b.send(c, part(from/inside*inside, inside))
		}
	}
}

// reduceInside reduces in all domains, up to the outermost; at their leaders the result is in acc,
// and is their contribution from now on.
func (b *builder) reduceInside(list []stage, acc Ref) {
	for _, s := range inner(list) {
		b.within(s, func() { b.reduceTree(s.lead, acc) })
		b.have = &acc
	}
}

// reduceLevels: in each domain to its leader, and among the leaders to the root.
func reduceLevels(b *builder) {
	list := b.stages(b.Root)
	acc, s := b.recvRef(0, b.RCount), list[len(list)-1]
	if b.Rank != b.Root && list[0].at == list[0].lead {
		acc = b.typedRegion(b.RCount)
	}
	b.reduceInside(list, acc)
	if s.last {
		b.within(s, func() {
			if halvable(b.Args) && b.Data() > 64<<10 {
				reduceRabenseifner(b)
			} else {
				b.reduceTree(s.lead, acc)
			}
		})
	}
}

// allreduceLevels: reduced in each domain, among the leaders of the outermost ones, and sent back.
func allreduceLevels(b *builder) {
	list := b.stages(0)
	acc, s := b.recvRef(0, b.RCount), list[len(list)-1]
	b.reduceInside(list, acc)
	if s.last {
		b.within(s, func() {
			if halvable(b.Args) && b.Data() > 32<<10 {
				allreduceRabenseifner(b)
			} else {
				allreduceDoubling(b)
			}
		})
	}
	b.waitAll()
	parent, children := b.down(inner(list))
	b.relay(parent, children, func(int64, int64) Ref { return acc }, 1, 1)
}
