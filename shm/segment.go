// Package shm makes and watches the memory file of one host and job: the memfd that all processes
// of the job on this host and their agent share. Its layout is capi/dataplane/segment/layout.h;
// zz_layout.go is generated from that header.
//
// It owns the geometry of the file, the cells that the agent writes (which process lives, with
// which pid; deaths), and the reading of the state that processes publish. It must not touch
// channels, rings or descriptors: those belong to the C data plane. There is one writer per cell:
// everything that this package writes after creation is the agent's.
//
// The file is sparse. It has no name in any file system, so nothing is left behind, whichever
// processes die.
package shm

//go:generate go run ./layoutgen ../capi/dataplane/segment/layout.h zz_layout.go

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// Flags of Create.
const (
	WithFT uint32 = cSegWithFt // survivors are notified of deaths, whatever their error handlers
	TCP    uint32 = cSegTcp    // processes talk over the network although they share a host
	Hosts  uint32 = cSegHosts  // the job has several hosts
)

// States that a process publishes of itself (OwnerState).
const (
	OwnerNone      = cOwnerNone      // not in MPI_Init yet, or not an MPI program
	OwnerInit      = cOwnerInit      // between MPI_Init and the end of MPI_Finalize
	OwnerFinalized = cOwnerFinalized // after MPI_Finalize
	OwnerAborted   = cOwnerAborted   // in MPI_Abort
	OwnerDone      = cOwnerDone      // in MPI_Finalize, and no other process needs it any more
)

// States that the agent publishes of a process (AgentState).
const (
	AgentEmpty   = cAgentEmpty
	AgentStarted = cAgentStarted
	AgentDead    = cAgentDead
	AgentExited  = cAgentExited
)

// MaxProcsLimit is the largest capacity that Create accepts.
const MaxProcsLimit = 1 << 16

// A Segment is the agent's view of the memory file. Its methods may be called from several
// goroutines.
type Segment struct {
	file *os.File
	mem  []byte // offset 0 up to the channels
	geo  geometry

	mu sync.Mutex // guards the agent's cells against two goroutines of the agent
	// under mu: descriptor + 1 of the socket that datagrams are sent from; 0: not made yet
	bells int

	together int  // under mu: calls of Together under way
	ringDue  bool // under mu: a wake-up is due when they return
}

type geometry struct {
	maxProcs, procOff, dirtyOff, dirtyStride, heldOff, heldStride, shareOff, diagOff, chanOff, chanRow, ringOff, ringRow, ringBytes, sdescOff, sdescRow, total int
}

const pageBytes = 4096

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// ringBytes is the size of a ring in a world of n processes. Many processes may each have all their
// rings: smaller ones then, so that their memory stays within 256 MiB on a host, and with smaller
// rings within 1 GiB.
func ringBytes(n int) int {
	size := cRingBytes
	if n*cRingsPerProc*size > 1<<28 {
		size /= 2
	}
	for n*cRingsPerProc*size > 1<<30 && size > 16384 {
		size /= 2
	}
	return size
}

func geometryFor(maxProcs, worldSize int) geometry {
	g := geometry{maxProcs: maxProcs, ringBytes: ringBytes(worldSize)}
	g.procOff = roundUp(segBytes, pageBytes)
	g.dirtyOff = roundUp(g.procOff+maxProcs*procBytes, pageBytes)
	g.dirtyStride = roundUp(maxProcs, cLine)
	g.heldOff, g.heldStride = roundUp(g.dirtyOff+maxProcs*g.dirtyStride, pageBytes), g.dirtyStride
	g.shareOff = roundUp(g.heldOff+maxProcs*g.heldStride, pageBytes)
	g.diagOff = roundUp(g.shareOff+cShareEntries*dirEntryBytes, pageBytes)
	g.chanOff = g.diagOff + maxProcs*cDiagBytes
	g.chanRow = roundUp(maxProcs*cChanBytes, pageBytes)
	g.sdescOff = g.chanOff + maxProcs*g.chanRow
	g.sdescRow = roundUp(cSdescPerProc*8, pageBytes)
	g.ringOff = roundUp(g.sdescOff+maxProcs*g.sdescRow, 2<<20)
	g.ringRow = cRingsPerProc * g.ringBytes
	g.total = g.ringOff + maxProcs*g.ringRow
	return g
}

// Room is the capacity to be given to the memory file of a job of n processes: there is room for as
// many more to be spawned or to connect, at least spare. The file is sparse: room that is not used
// costs nothing.
func Room(n, spare int) int { return min(max(2*n, n+spare), MaxProcsLimit) }

// Create makes the memory file for up to maxProcs processes on this host (spawned ones included),
// of which worldSize form the first world. ncpus is the number of processors that the job may use
// here; flags are WithFT and TCP. Fails when the host has no memfd or no memory.
func Create(maxProcs, worldSize, ncpus int, flags uint32) (*Segment, error) {
	if maxProcs < 1 || maxProcs > MaxProcsLimit || worldSize < 1 || ncpus < 1 {
		return nil, fmt.Errorf("shm: bad size: %d processes of capacity, world of %d, %d processors", maxProcs, worldSize, ncpus)
	}
	g := geometryFor(maxProcs, worldSize)
	file, err := memfd("spx-job")
	if err != nil {
		return nil, fmt.Errorf("shm: memfd_create: %w", err)
	}
	s, err := mapSegment(file, g)
	if err != nil {
		file.Close()
		return nil, err
	}
	s.put64(segOffTotalBytes, uint64(g.total))
	s.put32(segOffVersion, cSegVersion)
	s.put32(segOffMaxprocs, uint32(maxProcs))
	s.put32(segOffWorldSize, uint32(worldSize))
	s.put32(segOffNcpus, uint32(ncpus))
	s.put32(segOffFlags, flags)
	s.put32(segOffRingBytes, uint32(g.ringBytes))
	s.put32(segOffRingsPerProc, cRingsPerProc)
	for _, f := range []struct{ off, value int }{
		{segOffProcOff, g.procOff}, {segOffProcStride, procBytes}, {segOffDirtyOff, g.dirtyOff}, {segOffDirtyStride, g.dirtyStride},
		{segOffHeldOff, g.heldOff}, {segOffHeldStride, g.heldStride}, {segOffShareOff, g.shareOff}, {segOffDiagOff, g.diagOff},
		{segOffChanOff, g.chanOff}, {segOffChanRow, g.chanRow}, {segOffRingOff, g.ringOff}, {segOffRingRow, g.ringRow},
		{segOffSdescOff, g.sdescOff}, {segOffSdescRow, g.sdescRow},
	} {
		s.put64(f.off, uint64(f.value))
	}
	rand.Read(s.mem[segOffJobId : segOffJobId+16])
	rand.Read(s.mem[segOffKey : segOffKey+32])
	s.put64(segOffMagic, cSegMagic)
	return s, nil
}

func mapSegment(file *os.File, g geometry) (*Segment, error) {
	if err := stretch(file, int64(g.total)); err != nil {
		return nil, err
	}
	if err := keepSize(file); err != nil {
		return nil, fmt.Errorf("shm: F_ADD_SEALS: %w", err)
	}
	for _, part := range [][2]int{{0, g.procOff}, {g.shareOff, g.diagOff - g.shareOff}} {
		if err := syscall.Fallocate(int(file.Fd()), 0, int64(part[0]), int64(part[1])); err != nil {
			return nil, fmt.Errorf("shm: no memory for %d processes: %w", g.maxProcs, err)
		}
	}
	mem, err := syscall.Mmap(int(file.Fd()), 0, g.chanOff, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shm: mmap: %w", err)
	}
	return &Segment{file: file, mem: mem, geo: g}, nil
}

// windowRoom is the size of the file: windows are behind the rings, at places that are not reused.
// It has all of it from the beginning, since growing counts against each process's limit on the
// size of files.
const windowRoom = 1 << 62

// stretch gives the sparse file its size: windowRoom, or at least total bytes where this process's
// limit on the size of files (ulimit -f) lets it have no more.
func stretch(file *os.File, total int64) error {
	size := int64(windowRoom)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(rlimitFsize, &l); err == nil && l.Cur != rlimInfinity {
		if l.Max != rlimInfinity {
			size = int64(min(l.Max, windowRoom))
		}
		if size < total { // the kernel would send SIGXFSZ
			return fmt.Errorf("shm: the limit on the size of files (ulimit -f) is %d KiB; the job's memory file counts as one and needs %d KiB, most of which is never used", l.Max>>10, total>>10)
		}
		raised := syscall.Rlimit{Cur: l.Max, Max: l.Max}
		if err := syscall.Setrlimit(rlimitFsize, &raised); err == nil {
			defer syscall.Setrlimit(rlimitFsize, &l)
		}
	}
	if err := file.Truncate(size); err != nil {
		return fmt.Errorf("shm: size %d: %w", size, err)
	}
	return nil
}

const (
	rlimitFsize  = 1 // RLIMIT_FSIZE of Linux
	rlimInfinity = ^uint64(0)
)

// Open is the view of an agent on a memory file that another process has made with Create.
func Open(file *os.File) (*Segment, error) {
	head, err := syscall.Mmap(int(file.Fd()), 0, roundUp(segBytes, pageBytes), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shm: mmap: %w", err)
	}
	h := &Segment{mem: head}
	sound := h.get64(segOffMagic) == cSegMagic && h.get32(segOffVersion) == cSegVersion
	g := geometryFor(int(h.get32(segOffMaxprocs)), int(h.get32(segOffWorldSize)))
	sound = sound && uint64(g.total) == h.get64(segOffTotalBytes)
	if err := syscall.Munmap(head); err != nil || !sound {
		return nil, fmt.Errorf("shm: the file is not a memory file of this version (%v)", err)
	}
	mem, err := syscall.Mmap(int(file.Fd()), 0, g.chanOff, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shm: mmap: %w", err)
	}
	return &Segment{file: file, mem: mem, geo: g}, nil
}

// Close drops the agent's view. The file lives as long as a process has it.
func (s *Segment) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil {
		return nil
	}
	err := syscall.Munmap(s.mem)
	s.mem = nil
	if s.bells > 0 {
		syscall.Close(s.bells - 1)
	}
	return firstError(err, s.file.Close())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// File is the memfd, to be inherited by the processes. It is close-on-exec; the child's copy must
// not be.
func (s *Segment) File() *os.File { return s.file }

// MaxProcs is the capacity in processes.
func (s *Segment) MaxProcs() int { return s.geo.maxProcs }

// Procs is the number of process slots in use.
func (s *Segment) Procs() int { return int(s.get32(segOffNprocs)) }

// IDOf is the id of the job whose memory file a file is, if it is one.
func IDOf(file io.ReaderAt) (id [16]byte, ok bool) {
	head := make([]byte, segOffJobId+len(id))
	if _, err := file.ReadAt(head, 0); err != nil || binary.LittleEndian.Uint64(head[segOffMagic:]) != cSegMagic {
		return id, false
	}
	copy(id[:], head[segOffJobId:])
	return id, true
}

// JobID is the random identity of the job.
func (s *Segment) JobID() (id [16]byte) {
	copy(id[:], s.mem[segOffJobId:])
	return id
}

// SetJobID replaces the identity; before the first process starts.
func (s *Segment) SetJobID(id [16]byte) { copy(s.mem[segOffJobId:], id[:]) }

// Key is the secret that the processes of the job share.
func (s *Segment) Key() (key [32]byte) {
	copy(key[:], s.mem[segOffKey:])
	return key
}

// SetKey replaces it; before the first process starts.
func (s *Segment) SetKey(key [32]byte) { copy(s.mem[segOffKey:], key[:]) }

// SetHost sets the number of this host in the job; before the first process starts.
func (s *Segment) SetHost(number int) { s.put32(segOffHost, uint32(number)) }

func (s *Segment) proc(i int) int { return s.geo.procOff + i*procBytes }
