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

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal stores the checksum into a part.
func Seal(part []byte) {
	binary.LittleEndian.PutUint32(part[8:], crc32.Checksum(part[sumEnd:], castagnoli))
}

// Head reads the fixed beginning of a part, of which size bytes are there altogether. The part is what it says, but for its regions and
// its checksum.
func Head(head []byte, size int64) (Item, error) {
	if len(head) < HeadBytes || string(head[:8]) != Magic {
		return Item{}, fmt.Errorf("this is no checkpoint")
	}
	le := binary.LittleEndian
	i := Item{
		Generation: int64(le.Uint64(head[16:])), Version: int32(le.Uint32(head[24:])), Rank: int32(le.Uint32(head[28:])),
		Ranks: int32(le.Uint32(head[32:])), Kind: File,
	}
	said, regions := int64(le.Uint64(head[40:])), int64(le.Uint32(head[12:]))
	switch {
	case said != size:
		return Item{}, fmt.Errorf("it has %d bytes instead of %d", size, said)
	case i.Rank < 0 || i.Rank >= i.Ranks || i.Version < 0 || i.Generation < 0 || HeadBytes+EntryBytes*regions > size:
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
	le := binary.LittleEndian
	if sum := crc32.Checksum(part[sumEnd:], castagnoli); sum != le.Uint32(part[8:]) {
		return Item{}, nil, fmt.Errorf("its checksum is %08x, but %08x is that of its data", le.Uint32(part[8:]), sum)
	}
	regions := make([]Region, le.Uint32(part[12:]))
	end, last := int64(HeadBytes+EntryBytes*len(regions)), int64(math.MinInt64)
	for k := range regions {
		e := part[HeadBytes+EntryBytes*k:]
		r := Region{int64(le.Uint64(e)), int64(le.Uint64(e[8:])), int64(le.Uint64(e[16:]))}
		if r.ID <= last || r.At < end || r.At > int64(len(part)) || r.Bytes < 0 || r.Bytes > int64(len(part))-r.At {
			return Item{}, nil, fmt.Errorf("region %d of it makes no sense", k)
		}
		regions[k], last, end = r, r.ID, r.At+r.Bytes
	}
	return i, regions, nil
}
