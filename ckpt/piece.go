package ckpt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// A part, in memory, between processes and in a file:
//
//	 0  8  "SPXCKPT1"
//	 8  4  CRC-32C of all that follows
//	12  4  number of regions
//	16  8  generation
//	24  4  version
//	28  4  rank that has saved it
//	32  4  ranks that have saved this version
//	36  4  0
//	40  8  bytes of the whole
//	48     for each region, in ascending order of id: id (8), position from the beginning (8), bytes (8)
//	       the regions' data, one after another, each on a multiple of 8
//
// All little endian. The checksum is computed for files alone: 0 elsewhere.
const (
	Magic      = "SPXCKPT1"
	HeadBytes  = 48
	EntryBytes = 24
	sumEnd     = 12
)

// A Region is a piece of memory that was saved.
type Region struct{ ID, At, Bytes int64 }

// Layout gives each region its position in a part, and returns the bytes of the whole.
func Layout(regions []Region) int64 {
	end := int64(HeadBytes + EntryBytes*len(regions))
	for k := range regions {
		regions[k].At = end
		end += rounded(regions[k].Bytes)
	}
	return end
}

func rounded(bytes int64) int64 { return (bytes + 7) &^ 7 }

// Begin writes all of a part but its regions' data, which are at the positions of Layout, and its
// checksum.
func Begin(part []byte, i Item, regions []Region) {
	le := binary.LittleEndian
	clear(part[:HeadBytes])
	copy(part, Magic)
	le.PutUint32(part[12:], uint32(len(regions)))
	le.PutUint64(part[16:], uint64(i.Generation))
	le.PutUint32(part[24:], uint32(i.Version))
	le.PutUint32(part[28:], uint32(i.Rank))
	le.PutUint32(part[32:], uint32(i.Ranks))
	le.PutUint64(part[40:], uint64(len(part)))
	for k, r := range regions {
		e := part[HeadBytes+EntryBytes*k:]
		le.PutUint64(e, uint64(r.ID))
		le.PutUint64(e[8:], uint64(r.At))
		le.PutUint64(e[16:], uint64(r.Bytes))
		clear(part[r.At+r.Bytes : r.At+rounded(r.Bytes)])
	}
}

// Regions reads the table of a part that is what it should be.
func Regions(part []byte) []Region {
	le := binary.LittleEndian
	out := make([]Region, le.Uint32(part[12:]))
	for k := range out {
		e := part[HeadBytes+EntryBytes*k:]
		out[k] = Region{int64(le.Uint64(e)), int64(le.Uint64(e[8:])), int64(le.Uint64(e[16:]))}
	}
	return out
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal stores the checksum into a part.
func Seal(part []byte) {
	binary.LittleEndian.PutUint32(part[8:], crc32.Checksum(part[sumEnd:], castagnoli))
}

// Head reads the fixed beginning of a part, of which size bytes are there altogether. The result
// describes the part, without its regions and checksum.
func Head(head []byte, size int64) (Item, error) {
	if len(head) < HeadBytes || string(head[:8]) != Magic {
		return Item{}, fmt.Errorf("this is no checkpoint")
	}
	le := binary.LittleEndian
	i := Item{
		Generation: int64(le.Uint64(head[16:])), Version: int32(le.Uint32(head[24:])),
		Rank:  int32(le.Uint32(head[28:])),
		Ranks: int32(le.Uint32(head[32:])), Kind: File,
	}
	said, regions := int64(le.Uint64(head[40:])), int64(le.Uint32(head[12:]))
	switch {
	case said != size:
		return Item{}, fmt.Errorf("it has %d bytes instead of %d", size, said)
	case i.Rank < 0 || i.Rank >= i.Ranks || i.Version < 0 || i.Generation < 0 ||
		HeadBytes+EntryBytes*regions > size:
		return Item{}, fmt.Errorf("its head makes no sense")
	}
	return i, nil
}

// Parse checks a whole part, and returns what it is and its regions.
func Parse(part []byte) (Item, []Region, error) {
	i, err := Head(part, int64(len(part)))
	if err != nil {
		return Item{}, nil, err
	}
	if sum := crc32.Checksum(part[sumEnd:], castagnoli); sum != binary.LittleEndian.Uint32(
		part[8:]) {
		return Item{}, nil, fmt.Errorf("its checksum is %08x, but %08x is that of its data",
			binary.LittleEndian.Uint32(part[8:]), sum)
	}
	regions := Regions(part)
	end, last := int64(HeadBytes+EntryBytes*len(regions)), int64(math.MinInt64)
	for k, r := range regions {
		if r.ID <= last || r.At < end || r.At > int64(len(part)) || r.Bytes < 0 ||
			r.Bytes > int64(len(part))-r.At {
			return Item{}, nil, fmt.Errorf("region %d of it makes no sense", k)
		}
		last, end = r.ID, r.At+r.Bytes
	}
	return i, regions, nil
}
