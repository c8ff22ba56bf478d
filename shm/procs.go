package shm

import (
	"fmt"
	"syscall"
)

// AddProc prepares slot i for a process that is about to start as worldRank of world worldID. All processes of a world should be
// added before the first of them is started. Fails when the slot is in use or memory is out.
func (s *Segment) AddProc(i int, worldID, worldRank uint32) error {
	if i < 0 || i >= s.geo.maxProcs {
		return fmt.Errorf("shm: process %d of at most %d", i, s.geo.maxProcs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.get32(s.proc(i) + procOffAgentState); st != AgentEmpty {
		return fmt.Errorf("shm: slot %d is in use (state %d)", i, st)
	}
	row := s.geo.dirtyOff + i*s.geo.dirtyStride
	if err := syscall.Fallocate(int(s.file.Fd()), 0, int64(row), int64(s.geo.dirtyStride)); err != nil {
		return fmt.Errorf("shm: no memory for process %d: %w", i, err)
	}
	p := s.proc(i)
	s.put32(p+procOffIncarnation, s.get32(p+procOffIncarnation)+1)
	s.put32(p+procOffWorldRank, worldRank)
	s.put32(p+procOffWorldId, worldID)
	if n := uint32(i + 1); n > s.get32(segOffNprocs) {
		s.put32(segOffNprocs, n)
	}
	return nil
}

// MarkStarted publishes that slot i is the process pid. Call it right after the process was made.
func (s *Segment) MarkStarted(i, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put32(s.proc(i)+procOffPid, uint32(pid))
	s.put32(s.proc(i)+procOffAgentState, AgentStarted)
}

// MarkDead publishes that process i died with this wait status while others depend on it, and wakes everybody. Call it after
// the kernel has said so (pidfd readable) and before the process is reaped, so that its pid cannot be another's yet.
func (s *Segment) MarkDead(i int, status syscall.WaitStatus) { s.mark(i, AgentDead, status) }

// MarkExited publishes that process i has ended and that nobody has to care: after MPI_Finalize, or without ever having called MPI.
func (s *Segment) MarkExited(i int, status syscall.WaitStatus) { s.mark(i, AgentExited, status) }

func (s *Segment) mark(i int, state uint32, status syscall.WaitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put32(s.proc(i)+procOffExitStatus, uint32(status))
	s.put32(s.proc(i)+procOffAgentState, state)
	if state == AgentDead {
		s.add32(segOffDeathSeq, 1)
		s.ringAll()
	}
}

// RingAll wakes every process that sleeps in an MPI call.
func (s *Segment) RingAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ringAll()
}

func (s *Segment) ringAll() {
	for i := range s.Procs() {
		s.add32(s.proc(i)+procOffBell, 1)
		s.futexWake(s.proc(i) + procOffBell)
	}
}

// AgentState is what the agent has published of process i.
func (s *Segment) AgentState(i int) uint32 { return s.get32(s.proc(i) + procOffAgentState) }

// Pid is the process id of slot i, 0 before MarkStarted.
func (s *Segment) Pid(i int) int { return int(s.get32(s.proc(i) + procOffPid)) }

// OwnerState is what process i has published of itself: OwnerNone, OwnerInit ...
func (s *Segment) OwnerState(i int) uint32 { return s.get32(s.proc(i) + procOffOwnerState) }

// FTReturns reports whether process i has installed an error handler that returns on a communicator of several processes: it
// wants to be told of a death instead of dying with the job.
func (s *Segment) FTReturns(i int) bool { return s.get32(s.proc(i)+procOffFtFlags)&cFtReturns != 0 }

// Call is the index (SPX_FN_*) of the MPI call that process i is in, 0 outside: for diagnosis.
func (s *Segment) Call(i int) uint32 { return s.get32(s.proc(i) + procOffCall) }

// AbortCode reports whether some process has claimed MPI_Abort, which world rank, and with which code.
func (s *Segment) AbortCode() (claimed bool, rank, code int) {
	claim := s.get32(segOffAbortClaim)
	if claim == 0 {
		return false, 0, 0
	}
	return true, int(claim) - 1, int(int32(s.get32(segOffAbortCode)))
}

// WithFT reports whether deaths are told to the survivors whatever their error handlers.
func (s *Segment) WithFT() bool { return s.get32(segOffFlags)&WithFT != 0 }
