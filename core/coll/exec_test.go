package coll

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// The simulated network: it runs the plans of all ranks in a random order. A receive fills its
// buffer, and a rendezvous send reads its own, at any moment between start and completion, so that
// a plan that touches a buffer too early computes something else. When no rank can continue, that
// is a deadlock.

// layout is a datatype of the test: the data bytes of an element, in order, relative to the
// element's address.
type layout struct {
	Type
	offsets []int64
}

// memory is a buffer whose byte 0 is at origin, so that offsets may be negative.
type memory struct {
	data   []byte
	origin int64
}

// proc is one rank: its call, its plan and what the plan's symbols mean.
type proc struct {
	net              *network
	args             Args
	plan             *Plan
	mem              []memory // by Buf
	types            [3]layout
	sTypes, rTypes   []layout // MPI_Alltoallw
	sCounts, rCounts []int64
	sDispls, rDispls []int64 // elements, or bytes with MPI_Alltoallw
	sOwn, rOwn       int64   // own counts of v forms
	prefix           []int64
	op               func(lo, hi []byte) // on the data bytes of an element: hi = lo op hi
	pc               int
	done             []bool
	through          int32 // tick
}

// sharedMemory is the memory that the ranks of a group share. Cells and parts are poisoned when
// they may be reused, so that a rank that reads too late or writes too early computes something
// else.
type sharedMemory struct {
	cells [][]cell // by rank and tick modulo cellDepth
	parts [Parts]memory
	owner [Parts]int32
}

type cell struct {
	tick       int32
	open       int32 // the tick for which it is being written
	signature  uint32
	small_slot bool
	data       []byte
}

const cellDepth = 8

type message struct {
	from, to     *proc
	sSlot, rSlot int32
	sRef, rRef   Ref
	most         bool // as much as the sender has
	eager        []byte
}

type network struct {
	procs        []*proc
	sends, recvs map[[3]int][]*message
	flying       []*message
	rng          *rand.Rand
	eager        bool
	shared       sharedMemory
}

// bind makes the temporary regions.
func (p *proc) bind() {
	total := int64(0)
	p.prefix = []int64{0}
	for i, c := range p.rCounts {
		if p.rTypes != nil {
			c *= p.rTypes[i].Size
		}
		total += c
		p.prefix = append(p.prefix, total)
	}
	for _, r := range p.plan.Regions {
		m := memory{data: make([]byte, r.Fixed+abs(r.PerUnit)*total)}
		if r.PerUnit < 0 {
			m.origin = -r.PerUnit * total
		}
		for i := range m.data {
			m.data[i] = 0xD7
		}
		p.mem = append(p.mem, m)
	}
	p.done = make([]bool, p.plan.Slots)
}

// resolve gives the memory, datatype, offset and count of a ref.
func (p *proc) resolve(r Ref) (m memory, t layout, off, count int64) {
	switch t, off, count = p.types[r.Type], r.Off, r.Count; r.Buf {
	case BufCell:
		m = memory{data: p.net.shared.cells[r.A][r.B%cellDepth].data}
	case BufPart:
		m = p.net.shared.parts[r.B%Parts]
		if r.Mode == Prefix {
			off += p.prefix[r.A] * p.plan.Unit
		}
		return m, t, off, count
	default:
		m = p.mem[r.Buf]
	}
	counts, displs, types := p.rCounts, p.rDispls, p.rTypes
	if r.Buf == BufSend {
		counts, displs, types = p.sCounts, p.sDispls, p.sTypes
	}
	switch r.Mode {
	case Row:
		at := m.origin + off
		end := 8 * int64(r.B)
		for i := range int64(r.A) {
			if n := int64(binary.LittleEndian.Uint64(m.data[at+8*i:])); uint64(n) <= uint64(
				p.plan.Limit) {
				end += (n + 7) &^ 7
			}
		}
		if r.A == r.B {
			return m, t, off, end
		}
		if count = p.rowLength(r); uint64(count) > uint64(p.plan.Limit) {
			count = 0
		}
		return m, t, off + end, count
	case Index:
		count = counts[r.A]
		if types != nil {
			t, off = types[r.A], displs[r.A]
		} else {
			off = displs[r.A] * t.Extent
		}
	case Prefix:
		unit, scale := t.Extent, int64(1)
		if r.Type == TypeByte {
			unit, scale = p.plan.Unit, p.plan.Unit
		}
		off += p.prefix[r.A] * unit
		count = (p.prefix[r.B] - p.prefix[r.A]) * scale
	case Count:
		count = p.rCounts[r.A]
	case Own:
		if count = p.rOwn; r.Buf == BufSend {
			count = p.sOwn
		}
	}
	return m, t, off, count
}

// rowLength is the length of a block as stored in its row.
func (p *proc) rowLength(r Ref) int64 {
	m := p.mem[r.Buf]
	return int64(binary.LittleEndian.Uint64(m.data[m.origin+r.Off+8*int64(r.A):]))
}

func (p *proc) size(r Ref) int64 {
	_, t, _, n := p.resolve(r)
	return n * t.Size
}

func (p *proc) pack(r Ref) []byte {
	m, t, off, n := p.resolve(r)
	out := make([]byte, 0, n*t.Size)
	for i := int64(0); i < n; i++ {
		for _, o := range t.offsets {
			out = append(out, m.data[m.origin+off+i*t.Extent+o])
		}
	}
	return out
}

func (p *proc) unpack(r Ref, from []byte) {
	m, t, off, n := p.resolve(r)
	if int64(len(from)) != n*t.Size {
		panic(fmt.Sprintf("rank %d: %d bytes for a place of %d: %+v", p.args.Rank, len(from),
			n*t.Size, r))
	}
	k := 0
	for i := int64(0); i < n; i++ {
		for _, o := range t.offsets {
			m.data[m.origin+off+i*t.Extent+o] = from[k]
			k++
		}
	}
}

// step performs the next step if it can, and reports whether it did.
func (n *network) step(p *proc) bool {
	if p.pc == len(p.plan.Steps) {
		return false
	}
	s := p.plan.Steps[p.pc]
	switch s.Op {
	case OpWait:
		for _, slot := range p.plan.Waits[s.First : s.First+s.N] {
			if !p.done[slot] {
				return false
			}
		}
	case OpSend, OpRecv:
		n.start(p, s)
	case OpCopy:
		if s.Y.Mode == Row {
			size := p.size(s.X)
			if s.X.Mode == Row {
				size = p.rowLength(s.X)
			}
			m := p.mem[s.Y.Buf]
			binary.LittleEndian.PutUint64(m.data[m.origin+s.Y.Off+8*int64(s.Y.A):], uint64(size))
			if size <= p.plan.Limit {
				p.share(s.X, s.Y)
			}
			break
		}
		if s.Flags&FlagTake != 0 {
			if n, sent := p.size(s.Y), p.rowLength(s.X); sent != n {
				panic(fmt.Sprintf("rank %d: %d bytes from rank %d, whose length is given as %d",
					p.args.Rank, n, s.Peer, sent))
			} else if n <= p.plan.Limit {
				p.share(s.X, s.Y)
			}
			break
		}
		if s.Flags&FlagShort != 0 {
			*p.length(s.Y) = byte(p.size(s.X))
		}
		if n := p.size(dataSide(s)); s.Flags&FlagShort != 0 && n > p.plan.Limit ||
			s.Flags&FlagLong != 0 && n <= p.plan.Limit {
			break
		}
		p.share(s.X, s.Y)
	case OpReduce:
		lo, hi := p.pack(s.X), p.pack(s.Y)
		if len(lo) != len(hi) {
			panic(fmt.Sprintf("rank %d reduces %d with %d bytes", p.args.Rank, len(lo), len(hi)))
		}
		for i := 0; i < len(lo); i += int(p.args.RType.Size) {
			p.op(lo[i:i+int(p.args.RType.Size)], hi[i:i+int(p.args.RType.Size)])
		}
		p.assign(s.X, n.rng)
		p.assign(s.Y, n.rng)
		p.unpack(s.Y, hi)
	}
	if s.Op >= OpPost && !n.stepShared(p, s) {
		return false
	}
	p.pc++
	return true
}

// assign is what a user function may also do: it reads and writes whole structures, including bytes
// outside the datatype. Temporary memory must have room for that. In the user's buffers it is the
// user's responsibility.
func (p *proc) assign(r Ref, rng *rand.Rand) {
	m, t, off, n := p.resolve(r)
	if r.Buf < BufTemp || r.Buf >= BufCell || t.TrueLB < 0 || t.TrueLB+t.TrueExtent > t.Extent {
		return
	}
	data := p.pack(r)
	for i := m.origin + off; i < m.origin+off+n*t.Extent; i++ {
		m.data[i] = byte(rng.Uint32())
	}
	p.unpack(r, data)
}

func (n *network) start(p *proc, s Step) {
	if size := p.size(s.X); s.X.Mode != Fixed && size == 0 || s.Flags&FlagLong != 0 &&
		size <= p.plan.Limit {
		p.done[s.Slot] = true
		return
	}
	peer := n.peer(p, s)
	if s.Op == OpSend {
		m := &message{from: p, sSlot: s.Slot, sRef: s.X}
		if n.eager {
			m.eager = p.pack(s.X)
			p.done[s.Slot] = true
		}
		key := [3]int{n.index(p), n.index(peer), int(s.Flags & FlagLong)}
		n.sends[key] = append(n.sends[key], m)
		n.match(key)
		return
	}
	junk := make([]byte, p.size(s.X))
	for i := range junk {
		junk[i] = byte(n.rng.Uint32())
	}
	p.unpack(s.X, junk)
	key := [3]int{n.index(peer), n.index(p), int(s.Flags & FlagLong)}
	n.recvs[key] = append(n.recvs[key], &message{to: p, rSlot: s.Slot, rRef: s.X,
		most: s.Flags&FlagMost != 0})
	n.match(key)
}

// peer finds the process that a step talks to: of the same group, or of the other one on an
// intercommunicator.
func (n *network) peer(p *proc, s Step) *proc {
	other := p.args.Remote > 0 && s.Flags&FlagLocal == 0
	first := n.index(p) - p.args.Rank
	if other {
		if first == 0 {
			first = p.args.Size
		} else {
			first = 0
		}
	}
	return n.procs[first+int(s.Peer)]
}

func (n *network) index(p *proc) int {
	for i := range n.procs {
		if n.procs[i] == p {
			return i
		}
	}
	panic("no such process")
}

func (n *network) match(key [3]int) {
	for len(n.sends[key]) > 0 && len(n.recvs[key]) > 0 {
		s, r := n.sends[key][0], n.recvs[key][0]
		n.sends[key], n.recvs[key] = n.sends[key][1:], n.recvs[key][1:]
		s.to, s.rSlot, s.rRef, s.most = r.to, r.rSlot, r.rRef, r.most
		n.flying = append(n.flying, s)
	}
}

func (n *network) deliver(i int) {
	m := n.flying[i]
	n.flying[i] = n.flying[len(n.flying)-1]
	n.flying = n.flying[:len(n.flying)-1]
	data := m.eager
	if data == nil {
		data = m.from.pack(m.sRef)
		m.from.done[m.sSlot] = true
	}
	if m.most && int64(len(data)) < m.rRef.Count {
		m.rRef.Count = int64(len(data))
	}
	m.to.unpack(m.rRef, data)
	m.to.done[m.rSlot] = true
}

// run executes all plans. It returns the number of messages, or an error naming the blocked ranks.
func (n *network) run() (int, error) {
	n.sends, n.recvs = map[[3]int][]*message{}, map[[3]int][]*message{}
	n.share()
	for _, p := range n.procs {
		p.net = n
		p.bind()
	}
	messages := 0
	for {
		moved := false
		for _, i := range n.rng.Perm(len(n.procs)) {
			for burst := n.rng.IntN(8); burst >= 0 && n.step(n.procs[i]); burst-- {
				moved = true
			}
			if len(n.flying) > 0 && n.rng.IntN(2) == 0 {
				n.deliver(n.rng.IntN(len(n.flying)))
				messages++
				moved = true
			}
		}
		if !moved && len(n.flying) > 0 {
			n.deliver(n.rng.IntN(len(n.flying)))
			messages++
			moved = true
		}
		if !moved {
			return messages, n.verdict()
		}
	}
}

func (n *network) verdict() error {
	for i, p := range n.procs {
		if p.pc < len(p.plan.Steps) {
			return fmt.Errorf("deadlock: rank %d stands at step %d of %d: %+v", i, p.pc,
				len(p.plan.Steps), p.plan.Steps[p.pc])
		}
		for s, d := range p.done {
			if !d {
				return fmt.Errorf("rank %d: transfer %d never completes", i, s)
			}
		}
	}
	for k, q := range n.sends {
		if len(q) > 0 {
			return fmt.Errorf("%d messages from %d to %d that nobody receives", len(q), k[0], k[1])
		}
	}
	return nil
}
