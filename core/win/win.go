// Package win makes and frees windows for one-sided communication (MPI-5.0, 12.2): which arguments
// make one, which processes share memory, where the memory of each is in the memory file, and the
// rounds in which all processes agree that they have the window, or that none has.
//
// It owns no memory and sends nothing by itself. Create and Leave work through a Peers (what the
// processes of the window do together) and a Host (what one process does with its memory):
// capi/win_make.go has them for the library, sim/windows.go for the simulator.
package win

import (
	"fmt"

	"libspx/core/mpierr"
)

// Flavor is how a window gets its memory, by the values of MPI_WIN_CREATE_FLAVOR in the standard
// ABI.
type Flavor int

// The flavors (MPI-5.0, 12.2.1 to 12.2.4).
const (
	FromUser  Flavor = 311 // MPI_Win_create: memory of the program
	Allocated Flavor = 312
	Dynamic   Flavor = 313 // MPI_Win_attach brings the memory
	Shared    Flavor = 314
)

// Allocates reports whether the library provides the memory.
func (f Flavor) Allocates() bool { return f == Allocated || f == Shared }

// Most is the greatest size of one process's part, in bytes: the sum over all processes has room in
// 63 bits.
const Most = 1 << 46

// inPlace is MPI_IN_PLACE.
const inPlace = 1

// Args are the arguments of a creation that may differ between processes, but for the flavor.
type Args struct {
	Flavor Flavor
	Base   uint64 // address of FromUser's memory
	Size   int64  // bytes
	Unit   int64  // disp_unit, bytes
	Apart  bool   // the hint alloc_shared_noncontig: each part begins on a page of its own
}

// Check returns what is wrong with the arguments, nil if nothing is. inter: comm is an
// intercommunicator; far: some of its processes share no memory file.
func (a Args) Check(inter, far bool) error {
	switch {
	case inter:
		return mpierr.New(mpierr.Comm,
			"comm is an intercommunicator; a window needs an intracommunicator")
	case far && a.Flavor == Shared:
		return mpierr.New(mpierr.RMAShared,
			"comm has processes of several jobs or hosts; memory is shared within a job")
	case a.Size < 0:
		return mpierr.New(mpierr.Size, "size = %d is negative", a.Size)
	case a.Flavor.Allocates() && a.Size > Most:
		return mpierr.New(mpierr.NoMem, "size = %d: at most %d bytes are possible", a.Size,
			int64(Most))
	case a.Unit <= 0:
		return mpierr.New(mpierr.Disp, "disp_unit = %d is not positive", a.Unit)
	}
	if a.Flavor != FromUser {
		return nil
	}
	return CheckBase(a.Base, a.Size)
}

// CheckBase returns what is wrong with size bytes of the program's memory at base: that they cannot
// be memory.
func CheckBase(base uint64, size int64) error {
	switch {
	case size <= 0 || base > inPlace:
		return nil
	case base == inPlace:
		return mpierr.New(mpierr.Base, "base is MPI_IN_PLACE")
	}
	return mpierr.New(mpierr.Base, "base is NULL")
}

// Chunk is a part of a memory file, in bytes. Without bytes it is none.
type Chunk struct{ Offset, Bytes uint64 }

// Target is how this process reaches a process of the window.
type Target struct {
	Base uint64 // its address at the target; 0 where operations count from the window's beginning
	Size int64  // bytes; -1: a dynamic window
	Unit int64
	Far  bool   // over the network
	Here bool   // its memory is in the window's chunk, at At
	At   uint64 // bytes from the beginning of the chunk
}

// Window is what all processes have agreed on.
type Window struct {
	Args
	// the lowest rank that shares memory with this process; it takes and gives back the chunk there
	Leader    int
	Elsewhere bool  // some process is reached over the network
	AM        bool  // for some pair of processes active messages are the only way
	Boxed     bool  // there are mailboxes
	Chunk     Chunk // the window's memory; none while there is none
	Used      uint64
	Targets   []Target // by rank
}

const page = 4096

func pages(bytes uint64) uint64 { return (bytes + page - 1) / page * page }

// layOut is where the memory of each process begins in the window's chunk, behind the control part,
// and how many bytes the chunk needs. Parts of a shared window follow each other without gaps
// unless a process has requested pages of its own (MPI-5.0, 12.2.3); processes that are far have
// none here.
func layOut(flavor Flavor, control uint64, parts []share, near func(rank int) bool) (at []uint64,
	end uint64) {
	end = control
	at = make([]uint64, len(parts))
	if !flavor.Allocates() {
		return at, end
	}
	apart := flavor == Allocated
	for _, p := range parts {
		apart = apart || p.flags&flagApart != 0
	}
	for i, p := range parts {
		at[i] = end
		switch {
		case !near(i):
		case apart:
			end += pages(uint64(p.size))
		default:
			end += uint64(p.size)
		}
	}
	return at, end
}

// targets are the ways in which this process reaches the others.
func targets(flavor Flavor, parts []share, at []uint64, near func(rank int) bool) []Target {
	out := make([]Target, len(parts))
	for i, p := range parts {
		t := Target{Size: p.size, Unit: p.unit, Far: !near(i), At: at[i]}
		if flavor == Dynamic {
			t.Size = -1
		}
		t.Here = !t.Far && flavor.Allocates()
		if !t.Far && !t.Here {
			t.Base = uint64(p.base)
		}
		out[i] = t
	}
	return out
}

// Segment is memory that is attached to a dynamic window.
type Segment struct{ Base, Size uint64 }

// Attach returns what is wrong with attaching size bytes at base (MPI-5.0, 12.2.4) beside what is
// attached.
func Attach(attached []Segment, base uint64, size int64) error {
	if size < 0 {
		return mpierr.New(mpierr.Size, "size = %d is negative", size)
	}
	if err := CheckBase(base, size); err != nil {
		return err
	}
	for _, s := range attached {
		if base < s.Base+s.Size && s.Base < base+uint64(size) {
			return mpierr.New(mpierr.RMAAttach,
				"part of the %d bytes at base = %s is attached already: MPI_Win_detach it first",
				size, pointer(base))
		}
	}
	return nil
}

// Detach finds the segment that begins at base.
func Detach(attached []Segment, base uint64) (int, error) {
	for i, s := range attached {
		if s.Base == base {
			return i, nil
		}
	}
	return 0, mpierr.New(mpierr.Base, "base = %s: no memory that begins there is attached",
		pointer(base))
}

// pointer is an address as C prints it.
func pointer(addr uint64) string {
	if addr == 0 {
		return "(nil)"
	}
	return fmt.Sprintf("%#x", addr)
}
