package coll

import (
	"bytes"
	"fmt"
)

// The shared memory of the simulated network (exec_test.go).

// testPart is a small part, so that operations take many ticks.
const testPart = 4096

func (n *network) share() {
	n.shared.cells = make([][]cell, len(n.procs))
	for i := range n.shared.cells {
		n.shared.cells[i] = make([]cell, cellDepth)
		for k := range n.shared.cells[i] {
			n.shared.cells[i][k] = cell{tick: -1, open: -1,
				data: bytes.Repeat([]byte{0xCC}, CellBytes)}
		}
	}
	for i := range n.shared.parts {
		n.shared.parts[i], n.shared.owner[i] = memory{data: bytes.Repeat([]byte{0xCD}, testPart)},
			-1
	}
	for _, p := range n.procs {
		p.through = -1
	}
}

// dataSide is the side of a copy that is not in shared memory.
func dataSide(s Step) Ref {
	if s.X.Buf >= BufCell {
		return s.Y
	}
	return s.X
}

// share copies; a side in shared memory is as long as the other.
func (p *proc) share(from, to Ref) {
	if from.Buf >= BufCell {
		from.Count = p.size(to)
	} else if to.Buf >= BufCell {
		to.Count = p.size(from)
	}
	p.unpack(to, p.pack(from))
}

// length is the last byte of the word before the place of a block: it stands for the word.
func (p *proc) length(at Ref) *byte {
	m, _, off, _ := p.resolve(at)
	return &m.data[off-1]
}

// free reports whether all ranks have finished with the previous use of a tick's memory, and takes
// it.
func (n *network) free(by *proc, tick int32, part bool) bool {
	for _, p := range n.procs {
		if p.through < tick-cellDepth || part && p.through < tick-Parts {
			return false
		}
	}
	if c := &n.shared.cells[by.args.Rank][tick%cellDepth]; c.open != tick {
		c.open = tick
		for k := range c.data {
			c.data[k] = 0xCF
		}
	}
	if i := tick % Parts; part && n.shared.owner[i] != tick {
		n.shared.owner[i] = tick
		for k := range n.shared.parts[i].data {
			n.shared.parts[i].data[k] = 0xCE
		}
	}
	return true
}

func (n *network) stepShared(p *proc, s Step) bool {
	tick := s.Slot
	switch s.Op {
	case OpRoom:
		return n.free(p, tick, s.Y.Buf == BufPart)
	case OpPost:
		if !n.free(p, tick, s.Y.Buf == BufPart) {
			return false
		}
		c := &n.shared.cells[p.args.Rank][tick%cellDepth]
		if s.Y.Buf != 0 {
			p.share(s.X, s.Y)
		}
		if p.plan.SmallSlots && (s.Y.Buf == BufPart || s.Y.Buf == BufCell &&
			p.size(s.X) > SmallSlotBytes) {
			panic(fmt.Sprintf("rank %d posts %d bytes in tick %d, which do not fit into a slip",
				p.args.Rank, p.size(s.X), tick))
		}
		c.tick, c.signature, c.small_slot = tick, p.plan.Signature, p.plan.SmallSlots
	case OpAwait:
		for i := s.First; i < s.First+s.N; i++ {
			if int(i) == p.args.Rank {
				continue
			}
			c := &n.shared.cells[i][tick%cellDepth]
			if c.tick > tick || c.tick == tick && c.signature != p.plan.Signature {
				panic(fmt.Sprintf("rank %d waits for tick %d of rank %d, whose cell has %d",
					p.args.Rank, tick, i, c.tick))
			}
			if c.tick < tick {
				return false
			}
			if c.small_slot != p.plan.SmallSlots {
				panic(fmt.Sprintf(
					"rank %d waits for tick %d of rank %d at another place than where that posts",
					p.args.Rank, tick, i))
			}
		}
	case OpThrough:
		p.through = tick
	case OpCollect:
		for i := s.First; i < s.First+s.N; i++ {
			from, to := s.X, s.Y
			if from.Count = 0; i == s.Peer {
				continue
			}
			n.each(&from, s.X.Count, i)
			if to.A = i; to.Mode == Fixed {
				to.Off += int64(i) * to.Count * p.types[to.Type].Extent
			}
			if s.Flags&FlagShort != 0 {
				if length := p.length(from); *length != byte(p.size(to)) {
					panic(fmt.Sprintf("rank %d expects %d bytes of rank %d, whose length says %d",
						p.args.Rank, p.size(to), i, *length))
				}
			}
			if s.Flags&FlagShort == 0 || p.size(to) <= p.plan.Limit {
				p.share(from, to)
			}
		}
	case OpFold:
		n.fold(p, s)
	}
	return true
}

// each makes ref that of rank i.
func (n *network) each(ref *Ref, stride int64, i int32) {
	switch {
	case ref.Buf == BufCell:
		ref.A = i
	case ref.Mode == Prefix && stride == 0:
		ref.A = i
	default:
		ref.Off += int64(i) * stride
	}
}

func (n *network) fold(p *proc, s Step) {
	size := p.size(s.Y)
	var sum []byte
	for i := s.First; i < s.First+s.N; i++ {
		from := s.X
		n.each(&from, s.X.Count, i)
		from.Count = size
		next := p.pack(from)
		for k := 0; k < len(next) && sum != nil; k += int(p.args.RType.Size) {
			p.op(sum[k:k+int(p.args.RType.Size)], next[k:k+int(p.args.RType.Size)])
		}
		sum = next
	}
	p.unpack(s.Y, sum)
}
