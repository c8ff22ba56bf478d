package shm

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
)

// A Member identifies a process.
type Member struct {
	World, Rank uint32 // its MPI_COMM_WORLD, and its rank there
	Serial      uint32 // its number in the job, never given twice
	Host        uint32 // that it runs on
	// An external process: a process of the job whose id begins with Job, where it has the
	// incarnation Incarnation. Zero for the job's own.
	Job         uint64
	Incarnation uint32
	// Life is the number's incarnation, the same in the files of all hosts; 0: one more than the
	// last here.
	Life uint32
	Near Near
}

// Near is the memory and the last-level cache that all processors of a process of this host share:
// 1 + the number of the NUMA node, 1 + a number of the cache; 0: not bound to one.
type Near struct{ Node, Cache uint8 }

// AddProc prepares slot i for a process that is about to start. All processes of a world should be
// added before the first of them is started. The state of an earlier process in the slot is
// cleared. Fails if a process lives there or memory is exhausted.
func (s *Segment) AddProc(i int, m Member) error {
	if i < 0 || i >= s.geo.maxProcs {
		return fmt.Errorf("shm: process %d of at most %d", i, s.geo.maxProcs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc(i)
	if m.Life == 0 {
		m.Life = s.Incarnation(i) + 1
	}
	switch st := s.get32(p + procOffAgentState); st {
	case AgentEmpty:
	case AgentDead, AgentExited:
		if err := s.clear(i, m.Life); err != nil {
			return err
		}
	default:
		return fmt.Errorf("shm: slot %d is in use (state %d)", i, st)
	}
	for _, part := range []struct{ off, size int }{{p, procBytes}, {s.geo.dirtyOff + i*s.geo.dirtyStride, s.geo.dirtyStride},
		{s.geo.heldOff + i*s.geo.heldStride, s.geo.heldStride}} {
		if err := syscall.Fallocate(int(s.file.Fd()), 0, int64(part.off), int64(part.size)); err != nil {
			return fmt.Errorf("shm: no memory for process %d: %w", i, err)
		}
	}
	s.put32(p+procOffWorldRank, m.Rank)
	s.put32(p+procOffWorldId, m.World)
	s.put32(p+procOffSerial, m.Serial)
	s.put32(p+procOffHost, m.Host)
	s.mem[p+procOffNode], s.mem[p+procOffCache] = m.Near.Node, m.Near.Cache
	s.put64(p+procOffHomeJob, m.Job)
	s.put32(p+procOffHomeIncarnation, m.Incarnation)
	s.put32(p+procOffIncarnation, m.Life)
	if n := uint32(i + 1); n > s.get32(segOffNprocs) {
		s.put32(segOffNprocs, n)
	}
	return nil
}

// SetNear publishes where process i is bound, before it may read that.
func (s *Segment) SetNear(i int, n Near) {
	p := s.proc(i)
	s.mem[p+procOffNode], s.mem[p+procOffCache] = n.Node, n.Cache
}

// Place is where process i runs: the number of its host in the job, and what it is bound to there,
// which the file of that host has alone.
func (s *Segment) Place(i int) (host int, near Near) {
	p := s.proc(i)
	return int(s.get32(p + procOffHost)), Near{s.mem[p+procOffNode], s.mem[p+procOffCache]}
}

// CPUs is how many processors the job may use on this host.
func (s *Segment) CPUs() int { return int(s.get32(segOffNcpus)) }

// clear empties slot i for the process that is to be its incarnation life: the entry, with all that
// its predecessor has published, the rows that other processes write to and hold, its channels,
// descriptors and rings. The bell counter is kept.
func (s *Segment) clear(i int, life uint32) error {
	p, g := s.proc(i), &s.geo
	for _, off := range []int{procOffAgentState, procOffPid, procOffExitStatus} {
		s.put32(p+off, 0)
	}
	for off := procOffSleeping; off < procBytes; off += 4 {
		s.put32(p+off, 0)
	}
	clear(s.mem[g.dirtyOff+i*g.dirtyStride:][:g.dirtyStride])
	clear(s.mem[g.heldOff+i*g.heldStride:][:g.heldStride])
	for _, hole := range []struct{ off, size int }{{g.chanOff + i*g.chanRow, g.chanRow}, {g.sdescOff + i*g.sdescRow, g.sdescRow}, {g.diagOff + i*cDiagBytes, cDiagBytes}, {g.ringOff + i*g.ringRow, g.ringRow}} {
		if err := syscall.Fallocate(int(s.file.Fd()), fallocKeepSize|fallocPunchHole, int64(hole.off), int64(hole.size)); err != nil {
			return fmt.Errorf("shm: slot %d cannot be emptied: %w", i, err)
		}
	}
	if life>>16 != s.Incarnation(i)>>16 {
		return s.forget(i)
	}
	return nil
}

// forget empties the channels in which slot i has written to other slots. Remains of its earlier
// processes there are distinguished by the low 16 bits of the incarnation, which are about to
// repeat after 2^16 processes.
func (s *Segment) forget(i int) error {
	var is, none [cChanBytes]byte
	for r := range s.geo.maxProcs {
		at := int64(s.geo.chanOff + r*s.geo.chanRow + i*cChanBytes)
		// memory that was never written stays a hole
		if _, err := s.file.ReadAt(is[:], at); err != nil {
			return fmt.Errorf("shm: slot %d cannot be read: %w", i, err)
		}
		if is == none {
			continue
		}
		if _, err := s.file.WriteAt(none[:], at); err != nil {
			return fmt.Errorf("shm: slot %d cannot be emptied: %w", i, err)
		}
	}
	return nil
}

// Flags of fallocate(2).
const (
	fallocKeepSize  = 1
	fallocPunchHole = 2
)

// Free returns n slots for new processes, the lowest, including those of ended processes to which
// no process can send any more. It returns fewer if there are not so many. may reports whether an
// ended process's slot may be used.
func (s *Segment) Free(n int, may func(i int) bool) []int {
	var out []int
	for i := 0; i < s.geo.maxProcs && len(out) < n; i++ {
		if s.IsFree(i) && (s.AgentState(i) == AgentEmpty || may(i)) {
			out = append(out, i)
		}
	}
	return out
}

// IsFree reports whether slot i can be given to a new process, as far as this host's processes are
// concerned.
func (s *Segment) IsFree(i int) bool {
	switch s.AgentState(i) {
	case AgentEmpty: // never used, or prepared for one that is about to start
		return s.Incarnation(i) == 0
	case AgentDead, AgentExited:
		return !s.held(i)
	}
	return false
}

// held reports whether a process that lives holds process i: by a communicator, or as one of its
// own world.
func (s *Segment) held(i int) bool {
	for r := range s.Procs() {
		if r != i && s.lives(r) && (s.Holds(r, i) || s.sameWorld(r, i)) {
			return true
		}
	}
	return false
}

func (s *Segment) lives(i int) bool { return s.AgentState(i) == AgentStarted }

// Holds reports whether a communicator of process holder leads to process i.
func (s *Segment) Holds(holder, i int) bool {
	return s.mem[s.geo.heldOff+holder*s.geo.heldStride+i] != 0
}

func (s *Segment) sameWorld(a, b int) bool {
	p, q := s.proc(a), s.proc(b)
	return s.get32(p+procOffWorldId) == s.get32(q+procOffWorldId) && s.get64(p+procOffHomeJob) == s.get64(q+procOffHomeJob)
}

// tied: one of two processes has a communicator that leads to the other, and that it is not
// disconnecting. While both disconnect, or one has done so, they are not: neither can have left
// MPI_Comm_disconnect before both were in it.
func (s *Segment) tied(a, b int) bool {
	x, y := s.mem[s.geo.heldOff+a*s.geo.heldStride+b], s.mem[s.geo.heldOff+b*s.geo.heldStride+a]
	if s.abroad(a) || s.abroad(b) { // which publishes here what it holds of no process
		return x == cTieHeld || y == cTieHeld
	}
	return x == cTieHeld && y != cTieNone || y == cTieHeld && x != cTieNone
}

// abroad: process i is an external process that does not have this file.
func (s *Segment) abroad(i int) bool {
	_, listens := s.Address(i)
	return listens && s.get64(s.proc(i)+procOffHomeJob) != 0
}

// Connected lists the processes that live and are connected with process i, itself first: of its
// world, or by communicators, directly or through other processes (MPI-5.0, 11.10.4).
func (s *Segment) Connected(i int) []int {
	seen := map[int]bool{i: true}
	out := []int{i}
	for k := 0; k < len(out); k++ {
		for r := range s.Procs() {
			if !seen[r] && s.lives(r) && (s.sameWorld(r, out[k]) || s.tied(r, out[k])) {
				seen[r] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// Member returns the process in slot i.
func (s *Segment) Member(i int) Member {
	p := s.proc(i)
	return Member{World: s.get32(p + procOffWorldId), Rank: s.get32(p + procOffWorldRank), Serial: s.get32(p + procOffSerial),
		Job: s.get64(p + procOffHomeJob), Incarnation: s.get32(p + procOffHomeIncarnation)}
}

// Incarnation counts the processes that slot i has had.
func (s *Segment) Incarnation(i int) uint32 { return s.get32(s.proc(i) + procOffIncarnation) }

// SetLayout publishes the version of the layout of a system of clusters; Announce is to follow.
func (s *Segment) SetLayout(version uint64) { s.put32(segOffLayoutSeq, uint32(version)) }

// Announce makes all processes re-read the list of processes: call it when processes have been
// added or have gone.
func (s *Segment) Announce() {
	s.add32(segOffDeathSeq, 1)
	s.RingAll()
}

// TCP reports whether the processes of the job talk over the network although they share a host.
func (s *Segment) TCP() bool { return s.get32(segOffFlags)&TCP != 0 }

// SetAddress publishes where process i listens; before it is started.
func (s *Segment) SetAddress(i int, at netip.AddrPort) {
	p, addr := s.proc(i), at.Addr().As16()
	copy(s.mem[p+procOffAddr:], addr[:])
	binary.LittleEndian.PutUint16(s.mem[p+procOffPort:], at.Port())
}

// Address is where process i listens, if it does.
func (s *Segment) Address(i int) (netip.AddrPort, bool) {
	p := s.proc(i)
	port := binary.LittleEndian.Uint16(s.mem[p+procOffPort:])
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(s.mem[p+procOffAddr:])).Unmap(), port), port != 0
}

// SetUniverse sets MPI_UNIVERSE_SIZE; before the first process starts.
func (s *Segment) SetUniverse(n int) { s.put32(segOffUniverseSize, uint32(n)) }

// MarkStarted publishes that slot i is the process pid. Call it right after the process was made.
func (s *Segment) MarkStarted(i, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put32(s.proc(i)+procOffPid, uint32(pid))
	s.put32(s.proc(i)+procOffAgentState, AgentStarted)
}

// SetOrder publishes that process i is the n-th of its cluster that is started in the place of a
// rank, from 1, possibly on another host: the living processes invite it when they are notified of
// the death that is the reason.
func (s *Segment) SetOrder(i, n int) { s.put32(s.proc(i)+procOffOrder, uint32(n)) }

// Order is what SetOrder has published.
func (s *Segment) Order(i int) int { return int(s.get32(s.proc(i) + procOffOrder)) }

// MarkDead publishes that process i died with this wait status while others depend on it, and wakes
// all processes. Call it after the kernel has reported it (pidfd readable) and before the process
// is reaped, so that its pid cannot be another's yet.
func (s *Segment) MarkDead(i int, status syscall.WaitStatus) { s.mark(i, AgentDead, status) }

// MarkExited publishes that process i has ended and that no process is concerned: after
// MPI_Finalize, or without ever having called MPI.
func (s *Segment) MarkExited(i int, status syscall.WaitStatus) { s.mark(i, AgentExited, status) }

func (s *Segment) mark(i int, state uint32, status syscall.WaitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put32(s.proc(i)+procOffExitStatus, uint32(status))
	s.put32(s.proc(i)+procOffAgentState, state)
	switch {
	case state == AgentDead || s.get32(s.proc(i)+procOffHost) != s.get32(segOffHost):
		s.add32(segOffDeathSeq, 1)
		s.ringAll()
	default: // it has itself published that it has finalized, but not that it no longer forwards
		s.add32(segOffDeathSeq, 1)
		s.ringSleepers()
	}
}

// ringSleepers wakes those that sleep in an MPI call, where no process can have died that was about
// to do so.
func (s *Segment) ringSleepers() {
	for i := range s.Procs() {
		sleeping := s.get32(s.proc(i) + procOffSleeping)
		if sleeping == 0 {
			continue
		}
		s.add32(s.proc(i)+procOffBell, 1)
		s.futexWake(s.proc(i) + procOffBell)
		if sleeping == cSleepsOnSockets {
			s.wakeOnSocket(i)
		}
	}
}

// RingAll wakes every process that sleeps in an MPI call.
func (s *Segment) RingAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ringAll()
}

// Together calls do, which may publish many ends; sleeping processes are woken once for all of
// them.
func (s *Segment) Together(do func()) {
	s.mu.Lock()
	s.together++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.together--; s.together == 0 && s.ringDue {
			s.ringDue = false
			s.ringAll()
		}
	}()
	do()
}

func (s *Segment) ringAll() {
	if s.together > 0 {
		s.ringDue = true
		return
	}
	for i := range s.Procs() {
		s.add32(s.proc(i)+procOffBell, 1)
		s.futexWake(s.proc(i) + procOffBell)
		// whether it seems to sleep or not: the dead process may have marked it as woken without
		// waking it
		if s.get64(s.proc(i)+procOffBellName) != 0 {
			s.wakeOnSocket(i)
		}
	}
}

// wakeOnSocket sends a datagram to the socket on which process i sleeps. One whose queue is full is
// awake anyhow.
func (s *Segment) wakeOnSocket(i int) {
	if s.bells == 0 {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			return // out of descriptors: it looks again when its next message comes
		}
		s.bells = fd + 1
	}
	name := fmt.Sprintf("@spx-bell-%016x", s.get64(s.proc(i)+procOffBellName))
	syscall.Sendto(s.bells-1, []byte{0}, syscall.MSG_NOSIGNAL, &syscall.SockaddrUnix{Name: name}) //nolint:errcheck // see above
}

// AgentState is what the agent has published of process i.
func (s *Segment) AgentState(i int) uint32 { return s.get32(s.proc(i) + procOffAgentState) }

// Pid is the process id of slot i, 0 before MarkStarted.
func (s *Segment) Pid(i int) int { return int(s.get32(s.proc(i) + procOffPid)) }

// OwnerState is what process i has published of itself: OwnerNone, OwnerInit ...
func (s *Segment) OwnerState(i int) uint32 { return s.get32(s.proc(i) + procOffOwnerState) }

// FTReturns reports whether process i has installed an error handler that returns on a communicator
// of several processes: it is to be notified of a death instead of dying with the job.
func (s *Segment) FTReturns(i int) bool { return s.get32(s.proc(i)+procOffFtFlags)&cFtReturns != 0 }

// Met reports whether process i, a spawned one, is connected with its parents.
func (s *Segment) Met(i int) bool { return s.get32(s.proc(i)+procOffFtFlags)&cFtMet != 0 }

// Call is the index (SPX_FN_*) of the MPI call that process i is in, 0 outside: for diagnosis.
func (s *Segment) Call(i int) uint32 { return s.get32(s.proc(i) + procOffCall) }

// ClearAbort clears the claim of MPI_Abort: it was that of processes that are gone, and the job
// continues.
func (s *Segment) ClearAbort() {
	s.put32(segOffAbortCode, 0)
	s.put32(segOffAbortClaim, 0)
}

// AbortCode reports whether some process has claimed MPI_Abort, which world rank, and with which
// code.
func (s *Segment) AbortCode() (claimed bool, rank, code int) {
	claim := s.get32(segOffAbortClaim)
	if claim == 0 {
		return false, 0, 0
	}
	return true, int(claim) - 1, int(int32(s.get32(segOffAbortCode)))
}

// WithFT reports whether survivors are notified of deaths, whatever their error handlers.
func (s *Segment) WithFT() bool { return s.get32(segOffFlags)&WithFT != 0 }

// Nonce is a word that process i has in its memory at an address, and no other process: a reader
// that finds it there by a pid has verified that the pid is that of process i. at is 0 before
// MPI_Init.
func (s *Segment) Nonce(i int) (at, nonce uint64) {
	p := s.proc(i)
	return s.get64(p + procOffCmaNonceAddr), s.get64(p + procOffCmaNonce)
}
