// Package takeover decides which communicators a standby inherits with the rank that it takes over,
// and which remain usable after the loss of a member (MPI/SPx: M+N redundancy). The processes that
// will work together exchange what they have (a Statement each), and each computes the same list
// (Merge).
//
// It is pure: statements in, a list out. It deals with neither processes nor messages;
// capi/takeover.go performs its decisions.
package takeover

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// A Comm is a communicator that has been made of the cluster's MPI_COMM_WORLD, or is that. Members
// are ranks of MPI_COMM_WORLD.
type Comm struct {
	Ctx    uint64 // context so far: it names the communicator
	New    uint64 // context from now on
	Parent uint64 // context so far of the one that it was made of; 0: it is MPI_COMM_WORLD
	Birth  uint32 // its number among the communicators made of that one
	First  bool   // intercommunicator: the local group decides for both
	Local  []int
	Remote []int // intercommunicator: the other group
	Name   string

	// From Merge alone.
	Births uint32   // communicators made of it so far
	Freed  []uint32 // numbers of those that were freed
}

// A Has states that a process has a communicator.
type Has struct {
	Ctx    uint64
	Births uint32
	Freed  []uint32
}

// A Statement lists one process's communicators; those that no lower rank reports are given in
// full.
type Statement struct {
	Has []Has
	Led []Comm
}

var order = binary.LittleEndian

// Encode returns the form in which a statement travels.
func (s *Statement) Encode() []byte {
	var b []byte
	b = order.AppendUint32(b, uint32(len(s.Has)))
	for _, h := range s.Has {
		b = order.AppendUint64(b, h.Ctx)
		b = order.AppendUint32(b, h.Births)
		b = numbers(b, h.Freed)
	}
	b = order.AppendUint32(b, uint32(len(s.Led)))
	for _, c := range s.Led {
		b = order.AppendUint64(order.AppendUint64(order.AppendUint64(b, c.Ctx), c.New), c.Parent)
		b = order.AppendUint32(b, c.Birth)
		first := byte(0)
		if c.First {
			first = 1
		}
		b = append(b, first)
		b = numbers(numbers(b, c.Local), c.Remote)
		b = order.AppendUint32(b, uint32(len(c.Name)))
		b = append(b, c.Name...)
	}
	return b
}

func numbers[T ~int | ~uint32](b []byte, list []T) []byte {
	b = order.AppendUint32(b, uint32(len(list)))
	for _, v := range list {
		b = order.AppendUint32(b, uint32(v))
	}
	return b
}

var errShort = errors.New("takeover: a statement is cut short")

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, 8)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u32() uint32 { return order.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return order.Uint64(r.take(8)) }

// count is a number of entries, each of which takes so many bytes at least.
func (r *reader) count(bytes int) int {
	n := int(r.u32())
	if n > len(r.b)/bytes {
		r.bad = true
		return 0
	}
	return n
}

func list[T ~int | ~uint32](r *reader) (out []T) {
	for range r.count(4) {
		out = append(out, T(r.u32()))
	}
	return out
}

// Decode reads what Encode has written.
func Decode(b []byte) (*Statement, error) {
	r, s := &reader{b: b}, &Statement{}
	for range r.count(16) {
		s.Has = append(s.Has, Has{Ctx: r.u64(), Births: r.u32(), Freed: list[uint32](r)})
	}
	for range r.count(41) {
		c := Comm{Ctx: r.u64(), New: r.u64(), Parent: r.u64(), Birth: r.u32()}
		c.First = r.take(1)[0] != 0
		c.Local, c.Remote = list[int](r), list[int](r)
		c.Name = string(r.take(r.count(1)))
		s.Led = append(s.Led, c)
	}
	if r.bad || len(r.b) > 0 {
		return nil, errShort
	}
	return s, nil
}

// Merge computes the communicators that all ranks have from now on, parents before their children.
// Statements are by rank; replaced marks the ranks that a standby has now, which has no
// communicators. The first of them leads a new MPI_COMM_WORLD, used if all are new. A communicator
// stays if all of its members that were not replaced have it.
func Merge(statements []*Statement, replaced []bool) []Comm {
	has := make([]map[uint64]*Has, len(statements))
	for rank, s := range statements {
		has[rank] = map[uint64]*Has{}
		for i := range s.Has {
			has[rank][s.Has[i].Ctx] = &s.Has[i]
		}
	}
	var kept []Comm
	survivors := slices.Contains(replaced, false)
	for rank, s := range statements {
		for _, c := range s.Led {
			// a communicator led by a new process counts only if all are new
			if replaced[rank] == survivors {
				continue
			}
			if agree(&c, has, replaced) {
				kept = append(kept, c)
			}
		}
	}
	slices.SortFunc(kept, func(a, b Comm) int { return cmp.Compare(a.Ctx, b.Ctx) })
	kept = slices.CompactFunc(kept, func(a, b Comm) bool { return a.Ctx == b.Ctx })
	return inOrder(kept)
}

// agree reports whether all ranks that should have c do, and computes the number of its children.
func agree(c *Comm, has []map[uint64]*Has, replaced []bool) bool {
	c.Births = ^uint32(0)
	for _, m := range slices.Concat(c.Local, c.Remote) {
		if m < 0 || m >= len(has) {
			return false
		}
		if replaced[m] {
			continue
		}
		h := has[m][c.Ctx]
		if h == nil {
			return false
		}
		c.Births = min(c.Births, h.Births)
		c.Freed = append(c.Freed, h.Freed...)
	}
	slices.Sort(c.Freed)
	c.Freed = slices.Compact(c.Freed)
	if c.Births == ^uint32(0) { // no rank had it
		c.Births = 0
		return c.Parent == 0
	}
	return true
}

// inOrder puts parents first. A communicator whose parent is gone stays at the ranks that have it,
// but is not inherited.
func inOrder(kept []Comm) (out []Comm) {
	births := map[uint64]uint32{}
	for _, c := range kept {
		births[c.Ctx] = c.Births
	}
	var add func(parent uint64)
	add = func(parent uint64) {
		for _, c := range kept {
			if c.Parent == parent {
				out = append(out, c)
				add(c.Ctx)
			}
		}
	}
	for i := range kept {
		if n, there := births[kept[i].Parent]; kept[i].Parent != 0 && there && kept[i].Birth >= n {
			kept[i].Parent = lost // not all have noted it
		} else if kept[i].Parent != 0 && !there {
			kept[i].Parent = lost
		}
	}
	add(0)
	add(lost)
	return out
}

// lost is the parent of those that have none any more.
const lost = ^uint64(0)

// Inherited reports whether a standby gets c with its rank when it makes the communicator that its
// predecessor has made.
func (c *Comm) Inherited() bool { return c.Parent != lost }

// Has reports whether rank is a member of c, and in which group.
func (c *Comm) Has(rank int) (local, remote bool) {
	return slices.Contains(c.Local, rank), slices.Contains(c.Remote, rank)
}
