package shm

import (
	"encoding/binary"
	"io"
)

// A Pulse is a process's published sign of activity on this host, by which hangs are judged
// (package launch/watch).
type Pulse struct {
	Moves   uint64 // grows with all that it does for MPI (spx_stat_moves)
	Sleeps  bool   // it sleeps in a call of MPI, and was not woken
	Pending bool   // other processes of this host have written to it, and it has not looked
	// Its announcements of its own silence (MPISP_Alive): their number, the duration of the last
	// one, and Moves then.
	Promises   uint32
	PromiseMS  uint64
	PromisedAt uint64
}

// Pulse is that of process i.
func (s *Segment) Pulse(i int) (p Pulse) {
	var b [countersBytes]byte
	u := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	if _, err := s.file.ReadAt(b[:], int64(s.geo.diagOff+i*cDiagBytes+cDiagCounts)); err != nil && err != io.EOF {
		return p
	}
	p.Moves = u(countersOffSent) + u(countersOffReceived) + u(countersOffCollectives) + u(countersOffSleeps) + u(countersOffIdleNs) + u(countersOffPolls)
	at := s.proc(i)
	p.Sleeps = u(countersOffAsleep) != 0 && s.get32(at+procOffSleeping) != 0
	row := s.geo.dirtyOff + i*s.geo.dirtyStride
	for w := 0; w < s.geo.dirtyStride && !p.Pending; w += 8 {
		p.Pending = s.get64(row+w) != 0
	}
	p.Promises = s.get32(at + procOffPromises)
	p.PromiseMS, p.PromisedAt = s.get64(at+procOffPromiseMs), s.get64(at+procOffPromisedAt)
	return p
}

// SetHangs publishes that process i, an I/O process, does not run, or runs again: senders of this
// host choose another one meanwhile.
func (s *Segment) SetHangs(i int, hangs bool) {
	v := uint32(0)
	if hangs {
		v = 1
	}
	s.put32(s.proc(i)+procOffHangs, v)
}
