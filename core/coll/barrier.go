package coll

// empty is a message without data.
func empty() Ref { return Ref{Buf: BufRecv, Type: TypeByte} }

// barrierTree: every rank tells its parent in a binomial tree that its subtree is there, and rank 0's word comes back down.
// 2(n-1) messages in all, which is what counts when a message wakes a sleeper.
func barrierTree(b *builder) {
	parent, children := binomial(b.Rank, b.Size)
	var slots []int32
	for i := len(children) - 1; i >= 0; i-- {
		slots = append(slots, b.recv(children[i], empty()))
	}
	b.wait(slots...)
	if parent >= 0 {
		b.send(parent, empty())
		b.wait(b.recv(parent, empty()))
	}
	for _, c := range children {
		b.send(c, empty())
	}
}

// barrierDissemination: in round k every rank tells the rank 2^k further on; log2(n) rounds.
func barrierDissemination(b *builder) {
	for d := 1; d < b.Size; d <<= 1 {
		r := b.recv((b.Rank-d+b.Size)%b.Size, empty())
		b.send((b.Rank+d)%b.Size, empty())
		b.wait(r)
	}
}

// binomial gives the parent (-1 at 0) and the children of v in the binomial tree over 0..n-1 rooted at 0, the child with the
// largest subtree first. The subtree of v has the numbers v to min(v+span(v,n), n)-1.
func binomial(v, n int) (parent int, children []int) {
	parent = -1
	mask := 1
	for ; mask < n; mask <<= 1 {
		if v&mask != 0 {
			parent = v - mask
			break
		}
	}
	for mask >>= 1; mask > 0; mask >>= 1 {
		if v+mask < n {
			children = append(children, v+mask)
		}
	}
	return parent, children
}

// span is the size of v's subtree in the binomial tree over 0..n-1.
func span(v, n int) int {
	s := n
	if v > 0 {
		s = v & -v
	}
	return min(s, n-v)
}

// rel is a rank's number when the root is 0, and rank its inverse.
func (b *builder) rel() int       { return (b.Rank - b.Root + b.Size) % b.Size }
func (b *builder) rank(v int) int { return (v + b.Root) % b.Size }
