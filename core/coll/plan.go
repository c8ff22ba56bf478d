package coll

import (
	"math/bits"
	"slices"
)

// Op is what a step does.
type Op uint8

// The steps. Their values are those of SPX_P_* in capi/dataplane/coll/plan.h.
const (
	OpSend   Op = 1 // starts sending X to Peer
	OpRecv   Op = 2 // starts receiving into X from Peer
	OpWait   Op = 3 // waits for the sends and receives Plan.Waits[First:First+N], by slot
	OpCopy   Op = 4 // copies X to Y, from one datatype into another
	OpReduce Op = 5 // Y = X op Y; X holds the operand of the lower ranks

	// In shared memory (shared.go); Slot is the tick, counted from the operation's first.
	OpPost    Op = 6 // copies X to Y and posts the tick
	OpAwait   Op = 7 // waits for the posts of the other ranks in [First, First+N)
	OpRoom    Op = 8 // waits until Y.Count bytes at Y may be written
	OpThrough Op = 9 // this rank has read all that it wants of the ticks up to this one
	// copies X of each rank in [First, First+N) but Peer, X.Count bytes apart, to the block of that
	// rank in Y
	OpCollect Op = 10
	OpFold    Op = 11 // Y = X of rank First op ... op X of rank First+N-1, X.Count bytes apart
)

// Buf names a buffer that is bound when the plan is run. BufTemp and above are the plan's own
// regions of temporary memory, but for BufCell, the cell of rank A in tick B, and BufPart, the part
// of tick B. With the mode Prefix, the blocks before A lie before what is meant in a part.
type Buf uint8

// The buffers.
const (
	BufSend Buf = 0
	BufRecv Buf = 1
	BufTemp Buf = 2
	BufCell Buf = 254
	BufPart Buf = 255
)

// Mode defines how a Ref finds its offset and count.
type Mode uint8

// The modes.
const (
	Fixed Mode = 0 // Off and Count
	// count and displacement of block A in the caller's arrays of that buffer, Off is ignored
	Index Mode = 1
	Count Mode = 3 // Off, and the count of block A in the caller's array of receive counts
	// Off, and the caller's own count for that buffer: of the v forms, where counts differ from
	// call to call
	Own Mode = 4
	Row Mode = 5 // block A of a row of B blocks at Off; with A = B the whole row (see below)
	// the blocks A to B-1 laid end to end: from Off + (sum of counts before A), (sum of counts in
	// A..B-1)
	Prefix Mode = 2
)

// A row is blocks whose lengths are known only to their producers and consumers: B words of 8 bytes
// with the lengths of the blocks in bytes, and then the blocks, each from a multiple of 8 bytes on.
// A block of more than Plan.Limit bytes is not there, only its length is. Its blocks are put there
// in their order, by OpCopy.

// Kind of datatype that a Ref is read with.
type TypeRef uint8

// The datatypes. With MPI_Alltoallw, TypeSend and TypeRecv of an Index ref mean element A of the
// caller's array of types.
const (
	TypeByte TypeRef = 0
	TypeSend TypeRef = 1
	TypeRecv TypeRef = 2
)

// Ref is a piece of a buffer: Count elements of a datatype from Off bytes.
type Ref struct {
	Buf   Buf
	Mode  Mode
	Type  TypeRef
	A, B  int32
	Off   int64 // bytes
	Count int64 // elements
}

// Flags of a step.
const (
	FlagLocal    = 1  // intercommunicator: Peer is a rank of the local group
	FlagWakeAll  = 2  // OpPost: all ranks may wait for it
	FlagWakeRoot = 4  // OpPost: rank Peer may wait for it and those of all others
	FlagWakeOne  = 32 // OpPost: rank Peer may wait for it
	// only what has at most Plan.Limit bytes; where it is put its length stands before it, in any
	// case
	FlagShort = 8
	FlagLong  = 16 // only what has more
	// OpCopy: X is a block of rank Peer in a row, which is there if it has at most Plan.Limit bytes
	FlagTake = 64
	FlagMost = 128 // OpRecv: at most so many bytes come: a row
)

// Step is one entry of a plan.
type Step struct {
	Op    Op
	Flags uint8
	Peer  int32
	Slot  int32 // OpSend, OpRecv: number of the transfer, by which waits name it
	First int32 // OpWait: in Plan.Waits; in shared memory: a rank
	N     int32
	X, Y  Ref
}

// Region is a piece of temporary memory: Fixed bytes, and PerUnit bytes for each unit of the sum of
// the caller's receive counts. A unit is an element of the receive type; with MPI_Alltoallw, which
// has a type for each block, a byte of data. When PerUnit is negative (the extent is), offsets
// count from the end of that part, which takes -PerUnit bytes a unit.
type Region struct {
	Fixed   int64
	PerUnit int64
}

// Plan is what one rank does in one collective operation.
type Plan struct {
	Steps   []Step
	Waits   []int32
	Slots   int32
	Regions []Region
	// bytes of TypeByte that a unit of the caller's receive counts stands for, in Prefix refs
	Unit       int64
	Algorithm  string // for diagnosis, like the two that follow
	Choice     Choice
	Parameters []Parameter
	Ticks      int32  // of shared memory
	Limit      int64  // see FlagShort, and rows
	Signature  uint32 // ranks whose posts have another take part in another operation
	// posts carry up to SmallSlotBytes each, and parts are unused: cells are small slots
	SmallSlots bool
}

// Parameter is a number that an algorithm works with: a size in bytes, a number of children, of
// rounds.
type Parameter struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Unit  string `json:"unit,omitempty"` // "bytes"; "": it is a number of Name
}

// note puts a parameter into the plan, once. Which ones there are may differ between ranks: those
// that lead a group have more.
func (b *builder) note(name string, value int64) { b.noted(Parameter{Name: name, Value: value}) }

func (b *builder) noteBytes(name string, value int64) { b.noted(Parameter{name, value, "bytes"}) }

// noteRounds notes the rounds of an algorithm that doubles what has been reached.
func (b *builder) noteRounds() { b.note("rounds", int64(bits.Len(uint(b.Size-1)))) }

// noteTree notes a binomial tree.
func (b *builder) noteTree() {
	b.note("radix", 2)
	b.note("depth", int64(bits.Len(uint(b.Size-1))))
}

func (b *builder) noted(p Parameter) {
	if b.members != nil {
		return // a part of the ranks: what is done among them, the schedule by levels notes
	}
	if !slices.ContainsFunc(b.p.Parameters, func(q Parameter) bool { return q.Name == p.Name }) {
		b.p.Parameters = append(b.p.Parameters, p)
	}
}

// builder collects the steps of a plan.
type builder struct {
	*Args
	p      Plan
	flags  uint8 // of the transfers made now
	fanout int   // of the tree that the schedule uses; 0: binomial
	// Schedules by levels: the ranks that the numbers of peers stand for (nil: themselves), and the
	// partial result that this one has already (nil: its operand alone).
	members []int
	have    *Ref
	near    []int32 // the switches in whose order hosts stand; nil: in that of the ranks
}

func (b *builder) transfer(op Op, peer int, r Ref, flags uint8) int32 {
	if b.members != nil {
		peer = b.members[peer]
	}
	slot := b.p.Slots
	b.p.Slots++
	b.p.Steps = append(b.p.Steps, Step{Op: op, Flags: flags, Peer: int32(peer), Slot: slot, X: r})
	return slot
}

func (b *builder) send(peer int, r Ref) int32 { return b.transfer(OpSend, peer, r, b.flags) }
func (b *builder) recv(peer int, r Ref) int32 { return b.transfer(OpRecv, peer, r, b.flags) }

// wait makes what follows depend on the transfers of the given slots.
func (b *builder) wait(slots ...int32) {
	if len(slots) == 0 {
		return
	}
	b.p.Steps = append(b.p.Steps, Step{Op: OpWait, First: int32(len(b.p.Waits)),
		N: int32(len(slots))})
	b.p.Waits = append(b.p.Waits, slots...)
}

func (b *builder) copy(from, to Ref) {
	b.p.Steps = append(b.p.Steps, Step{Op: OpCopy, X: from, Y: to})
}

// reduce makes hi = lo op hi.
func (b *builder) reduce(lo, hi Ref) {
	b.p.Steps = append(b.p.Steps, Step{Op: OpReduce, X: lo, Y: hi})
}

func (b *builder) region(fixed, perUnit int64) Buf {
	b.p.Regions = append(b.p.Regions, Region{Fixed: fixed, PerUnit: perUnit})
	return BufTemp + Buf(len(b.p.Regions)-1)
}

// bytes is n bytes at off of a buffer.
func bytesAt(buf Buf, off, n int64) Ref { return Ref{Buf: buf, Type: TypeByte, Off: off, Count: n} }

// sendRef is n elements from element i of the send buffer; recvRef of the receive buffer.
func (b *builder) sendRef(i, n int64) Ref {
	return Ref{Buf: BufSend, Type: TypeSend, Off: i * b.SType.Extent, Count: n}
}

func (b *builder) recvRef(i, n int64) Ref {
	return Ref{Buf: BufRecv, Type: TypeRecv, Off: i * b.RType.Extent, Count: n}
}

// memAlign is what temporary memory begins at a multiple of, and at least the alignment of the
// user's buffers.
const memAlign = 64

func aligned(n int64) int64 { return (n + memAlign - 1) &^ (memAlign - 1) }

// footprint is the memory taken by a vector of n elements: the bytes [low, high) from the address
// of its first element. Where the data lie within the extent, they are taken for those of a
// structure, which a user function may assign as a whole, so that the extent counts as well.
// Elements may overlap, and a vector reaches beyond n extents when its data do.
func (t *Type) footprint(n int64) (low, high int64) {
	if n <= 0 {
		return 0, 0
	}
	low, high = t.TrueLB, t.TrueLB+t.TrueExtent
	if low >= 0 && high <= t.Extent {
		low, high = 0, t.Extent
	}
	if t.Extent < 0 {
		return low + (n-1)*t.Extent, high
	}
	return low, high + (n-1)*t.Extent
}

// place returns the layout of vectors of n elements in temporary memory: off is the offset of an
// element's address, so that the first vector fits and the user function finds its data aligned as
// in the user's buffers; one vector takes size bytes.
func (t *Type) place(n int64) (off, size int64) {
	low, high := t.footprint(n)
	off = aligned(-low)
	return off, off + high
}

// typedRegion makes a region that holds n elements of the receive type, and a ref to them.
func (b *builder) typedRegion(n int64) Ref {
	off, size := b.RType.place(n)
	return Ref{Buf: b.region(size, 0), Type: TypeRecv, Off: off, Count: n}
}

// vectors makes a region that holds k vectors of RCount elements of the receive type, none of which
// touches another.
func (b *builder) vectors(k int) []Ref {
	off, size := b.RType.place(b.RCount)
	stride := aligned(size)
	buf := b.region(int64(k)*stride, 0)
	out := make([]Ref, k)
	for i := range out {
		out[i] = Ref{Buf: buf, Type: TypeRecv, Off: off + int64(i)*stride, Count: b.RCount}
	}
	return out
}

// unitRegion makes a region that holds as many elements of the receive type as all blocks have,
// whose counts are the caller's.
func (b *builder) unitRegion() Ref {
	t := &b.RType
	low, high := t.footprint(1)
	off := aligned(-low)
	return Ref{Buf: b.region(off+high, t.Extent), Type: TypeRecv, Off: off}
}

// ownSend and ownRecv are what the caller passes or gets in a v form: the number of elements is
// given at the call.
func ownSend() Ref { return Ref{Buf: BufSend, Mode: Own, Type: TypeSend} }
func ownRecv() Ref { return Ref{Buf: BufRecv, Mode: Own, Type: TypeRecv} }

// part is elements [from, to) of a typed ref.
func (b *builder) part(r Ref, from, to int64) Ref {
	r.Off += from * b.extentOf(r.Type)
	r.Count = to - from
	return r
}

func (b *builder) extentOf(t TypeRef) int64 {
	switch t {
	case TypeSend:
		return b.SType.Extent
	case TypeRecv:
		return b.RType.Extent
	}
	return 1
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
