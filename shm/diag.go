package shm

import (
	"bytes"
	"encoding/binary"
	"io"
)

// What processes publish of their waiting (capi/dataplane/introspect/diag.c). The records are read
// from the file, and not by the mapping: pages that no process has written take no memory.

// What a wait is for.
const (
	WaitsEvent   = cWaitsEvent
	WaitsRecv    = cWaitsRecv
	WaitsSend    = cWaitsSend
	WaitsColl    = cWaitsColl
	WaitsProbe   = cWaitsProbe
	WaitsAny     = cWaitsAny
	WaitsRequest = cWaitsRequest
)

// Kinds of queue entries.
const (
	QueuePosted     = cQueuePosted
	QueueUnexpected = cQueueUnexpected
	QueueSent       = cQueueSent
	QueueNoRoom     = cQueueNoRoom
)

// A Wait is a thread that waits in an MPI call.
type Wait struct {
	Fn, Tid, What      uint32
	Since              uint64 // ns of CLOCK_MONOTONIC
	Context            uint64
	CommRank, CommSize int32
	PeerRank           int32
	Peer               uint32 // 1<<32 - 1: no process in particular
	Tag, Root          int32
	Coll               uint32 // kind of the collective + 1; 0: none
	Seq                uint32
	Count              int64
	Bytes              uint64
	Registers          [cDiagRegisters]uint64 // pc, sp, bp, bx, r12 to r15; pc 0: unknown
	Comm, Type         string
	Parked, Woken      bool // it sleeps until woken, and has been
	Derived            bool // the datatype is a derived one, of Type if that is not empty
	Members            []int
	MoreMembers        int
}

// A QueueEntry is a receive or message that has not found its other half.
type QueueEntry struct {
	Kind, Peer     uint32
	Rank, Tag      int32
	Context, Bytes uint64
	Comm           string
}

// Queues are the numbers of all, and the first of them.
type Queues struct {
	Posted, Unexpected, Pending int
	Entries                     []QueueEntry
}

// record reads n bytes at off of process i's row, whole: the version stands first. nil: it is being
// written all the time, or not there.
func (s *Segment) record(i, off, n int) []byte {
	at := int64(s.geo.diagOff + i*cDiagBytes + off)
	a, b := make([]byte, n), make([]byte, n)
	for range 8 {
		if _, err := s.file.ReadAt(a, at); err != nil && err != io.EOF {
			return nil
		}
		if _, err := s.file.ReadAt(b, at); err != nil && err != io.EOF {
			return nil
		}
		if binary.LittleEndian.Uint32(a)&1 == 0 && bytes.Equal(a, b) {
			return a
		}
	}
	return nil
}

func text(b []byte) string {
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		n = len(b)
	}
	return string(b[:n])
}

// Waits are the calls in which threads of process i of this host wait.
func (s *Segment) Waits(i int) (list []Wait) {
	for slot := range cDiagWaits {
		b := s.record(i, slot*cDiagStride, diagWaitBytes)
		if b == nil {
			continue
		}
		u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
		u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
		if u32(diagWaitOffWhat) == 0 {
			continue
		}
		w := Wait{Fn: u32(diagWaitOffFn), Tid: u32(diagWaitOffTid), What: u32(diagWaitOffWhat), Since: u64(diagWaitOffSince), Context: u64(diagWaitOffCtx),
			CommRank: int32(u32(diagWaitOffCommRank)), CommSize: int32(u32(diagWaitOffCommSize)), PeerRank: int32(u32(diagWaitOffPeerRank)), Peer: u32(diagWaitOffPeer),
			Tag: int32(u32(diagWaitOffTag)), Root: int32(u32(diagWaitOffRoot)), Coll: u32(diagWaitOffColl), Seq: u32(diagWaitOffSeq),
			Count: int64(u64(diagWaitOffCount)), Bytes: u64(diagWaitOffBytes), MoreMembers: int(u32(diagWaitOffMoreMembers))}
		for k := range w.Registers {
			w.Registers[k] = u64(diagWaitOffRegisters + 8*k)
		}
		w.Parked = u32(diagWaitOffParked) != 0
		w.Woken = w.Parked && s.get32(s.proc(i)+procOffSleeping) == 0
		w.Comm = text(b[diagWaitOffComm:][:cDiagName])
		name := b[diagWaitOffType:][:cDiagName]
		w.Derived = name[cDiagName-1] == 1
		w.Type = text(name[:cDiagName-1])
		for k := range cDiagMembers * 64 {
			if u64(diagWaitOffMembers+k/64*8)>>(k%64)&1 != 0 {
				w.Members = append(w.Members, k)
			}
		}
		list = append(list, w)
	}
	return list
}

// Queues are those of process i of this host, as they were when it last went to sleep in an MPI
// call; false: they are being written.
func (s *Segment) Queues(i int) (q Queues, ok bool) {
	b := s.record(i, cDiagQueues, diagQueueBytes+cDiagEntries*diagEntryBytes)
	if b == nil {
		return q, false
	}
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
	q.Posted, q.Unexpected, q.Pending = int(u32(diagQueueOffPosted)), int(u32(diagQueueOffUnexpected)), int(u32(diagQueueOffPending))
	for k := range min(int(u32(diagQueueOffEntries)), cDiagEntries) {
		e := b[diagQueueBytes+k*diagEntryBytes:][:diagEntryBytes]
		f := func(off int) uint32 { return binary.LittleEndian.Uint32(e[off:]) }
		q.Entries = append(q.Entries, QueueEntry{Kind: f(diagEntryOffKind), Peer: f(diagEntryOffPeer), Rank: int32(f(diagEntryOffRank)), Tag: int32(f(diagEntryOffTag)),
			Context: binary.LittleEndian.Uint64(e[diagEntryOffCtx:]), Bytes: binary.LittleEndian.Uint64(e[diagEntryOffBytes:]), Comm: text(e[diagEntryOffComm:][:cDiagNameShort])})
	}
	return q, true
}

// ThreadLevel is the level of threads that process i was given.
func (s *Segment) ThreadLevel(i int) uint32 { return s.get32(s.proc(i) + procOffThreadLevel) }

// ExitStatus is the wait status of process i, when it has ended.
func (s *Segment) ExitStatus(i int) uint32 { return s.get32(s.proc(i) + procOffExitStatus) }
