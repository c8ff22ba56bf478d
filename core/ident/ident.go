// Package ident names processes. Every process of a job, however it was started, has one ProcID for
// its lifetime; groups (MPI-5.0, section 7.3) are lists of ProcIDs, and communicators map ranks to
// them. The package is independent of hosts, memory and connections.
package ident

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
)

// ProcID identifies one process. A process that was restarted, or a standby that took a rank over,
// has the same Job, World and Rank as the process that died, and a higher Incarnation.
type ProcID struct {
	Job         uint64 // the job's identity: the first eight bytes of its random number
	World       uint32 // which MPI_COMM_WORLD of the job: 0 is the first, others were spawned
	Rank        uint32 // rank in that world
	Incarnation uint32
}

// WireSize is the length of an encoded ProcID in bytes.
const WireSize = 20

// Compare orders ProcIDs by job, world, rank and incarnation: negative, 0 or positive.
func Compare(a, b ProcID) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.World, b.World),
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.Incarnation, b.Incarnation))
}

// Next returns the ProcID that is step ranks away in the same world.
func (p ProcID) Next(step int) ProcID {
	p.Rank = uint32(int64(p.Rank) + int64(step))
	return p
}

// SameWorld reports whether p and q differ in their ranks at most.
func (p ProcID) SameWorld(q ProcID) bool {
	q.Rank = p.Rank
	return p == q
}

func (p ProcID) String() string {
	return fmt.Sprintf("job %x world %d rank %d.%d", p.Job, p.World, p.Rank, p.Incarnation)
}

// Append adds the encoded form of p, WireSize bytes, to b.
func Append(b []byte, p ProcID) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.Job)
	b = binary.LittleEndian.AppendUint32(b, p.World)
	b = binary.LittleEndian.AppendUint32(b, p.Rank)
	return binary.LittleEndian.AppendUint32(b, p.Incarnation)
}

// Decode reads a ProcID from the first WireSize bytes of b; ok is false when b is shorter.
func Decode(b []byte) (p ProcID, ok bool) {
	if len(b) < WireSize {
		return p, false
	}
	p.Job = binary.LittleEndian.Uint64(b)
	p.World = binary.LittleEndian.Uint32(b[8:])
	p.Rank = binary.LittleEndian.Uint32(b[12:])
	p.Incarnation = binary.LittleEndian.Uint32(b[16:])
	return p, true
}

// maxCluster is the most letters of a cluster's name.
const maxCluster = 64

// CheckCluster returns an error unless name can name a cluster: 1 to 64 letters, digits, dots,
// underscores and hyphens of ASCII.
func CheckCluster(name string) error {
	strange := strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune(
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
	})
	if name == "" || len(name) > maxCluster || strange {
		return fmt.Errorf(
			"%q is no name of a cluster, which has 1 to %d letters, digits, and . _ -", name,
			maxCluster)
	}
	return nil
}
