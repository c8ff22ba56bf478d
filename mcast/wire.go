package mcast

import (
	"encoding/binary"
	"errors"
	"math"
)

// Member is one process of a set, and the number that the message has among those from its master
// to it: 1, 2, 3 ... A member delivers them in this order, whichever way each of them has come.
type Member struct{ Proc, Number uint32 }

// An item is the unit of the wire form: count members, stride apart from first on, whose
// messages have the same number.
type item struct {
	first, number uint32
	count, stride uint16
}

// ItemBytes is the size of an item on the wire: first and number (4 bytes each), count and stride
// (2 each), little endian.
const ItemBytes = 12

// Encode is the wire form of members, which are in ascending order of process. Sets that programs
// make (neighbours, every k-th, all but one) take a few items; each lone member takes one.
func Encode(dst []byte, members []Member) []byte {
	for i := 0; i < len(members); {
		it := item{first: members[i].Proc, number: members[i].Number, count: 1}
		for i++; i < len(members) && it.grows(members[i]); i++ {
			it.stride = uint16(members[i].Proc - it.last())
			it.count++
		}
		dst = binary.LittleEndian.AppendUint32(dst, it.first)
		dst = binary.LittleEndian.AppendUint32(dst, it.number)
		dst = binary.LittleEndian.AppendUint16(dst, it.count)
		dst = binary.LittleEndian.AppendUint16(dst, it.stride)
	}
	return dst
}

func (it *item) last() uint32 { return it.first + uint32(it.count-1)*uint32(it.stride) }

// grows reports whether m is the next one of the progression.
func (it *item) grows(m Member) bool {
	gap := m.Proc - it.last()
	return m.Number == it.number && it.count < math.MaxUint16 && gap <= math.MaxUint16 &&
		(it.count == 1 || gap == uint32(it.stride))
}

var errMalformed = errors.New("mcast: malformed set")

// Decode reads the wire form of a set of processes below procs. What is not exactly one is an
// error: items out of order, empty or overlapping ones, processes that do not exist.
func Decode(src []byte, procs uint32) ([]Member, error) {
	if len(src)%ItemBytes != 0 {
		return nil, errMalformed
	}
	var out []Member
	next := uint64(0) // what the next member is at least
	for ; len(src) > 0; src = src[ItemBytes:] {
		first, number := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:])
		count, stride := binary.LittleEndian.Uint16(src[8:]), binary.LittleEndian.Uint16(src[10:])
		if count == 0 || (count == 1) != (stride == 0) || uint64(first) < next || number == 0 {
			return nil, errMalformed
		}
		last := uint64(first) + uint64(count-1)*uint64(stride)
		if last >= uint64(procs) {
			return nil, errMalformed
		}
		for k := range uint32(count) {
			out = append(out, Member{first + k*uint32(stride), number})
		}
		next = last + 1
	}
	return out, nil
}
