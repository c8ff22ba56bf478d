// Package io implements files in the engine (MPI-5.0, chapter 15): views, that is mappings from
// positions in what a process sees to ranges of the file; pointers; and the algorithms by which the
// processes of a file move data together.
//
// Duties:
//  1. A View never changes. Positions count bytes of the view, in the file's data representation;
//     offsets count bytes of the file.
//  2. Data access knows the file as a Backend, user memory as a Memory, and the other processes as
//     Peers. The package opens nothing, and imports no operating system: io/posix has the backend
//     for POSIX files.
//  3. A collective call returns on all processes, whatever fails on one: errors are agreed upon
//     before it returns, and all processes return the same one.
//
// It must not depend on handles, datatypes in C, or callbacks: capi/ converts data representations
// before data come here.
package io

import "libspx/core/mpierr"

// Backend is an open file. Methods may be called by several goroutines at once. Errors carry MPI
// error classes.
type Backend interface {
	// ReadAt reads len(p) bytes at off; fewer only where the file ends (then without an error).
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes all of p at off.
	WriteAt(p []byte, off int64) error
	// Map gives bytes [from, to) of the file as memory to store into, until done is called; a
	// shorter file grows to `to` bytes. It returns nil where that is not possible: then WriteAt is.
	Map(from, to int64) (p []byte, done func())
	// Size returns the length of the file in bytes.
	Size() (int64, error)
	// SetSize cuts or extends the file.
	SetSize(n int64) error
	// Preallocate makes sure that the first n bytes have room on the device; a shorter file grows
	// to n bytes.
	Preallocate(n int64) error
	// Sync brings what was written to the device.
	Sync() error
	// Lock keeps other processes and goroutines that lock from bytes [from, to) until unlock is
	// called. Shared locks go together.
	Lock(from, to int64, exclusive bool) (unlock func(), err error)
	Close() error
}

// Memory is a buffer of the user in its packed form: a sequence of bytes.
type Memory interface {
	// Size returns the length of the packed form.
	Size() int64
	// Load copies packed bytes from position from on to p.
	Load(p []byte, from int64)
	// Store copies p to where packed bytes from position from on belong.
	Store(p []byte, from int64)
	// Direct returns the memory itself when it is in packed form, else nil.
	Direct(from, n int64) []byte
}

// Bytes is a Memory that is a slice.
type Bytes []byte

func (b Bytes) Size() int64                 { return int64(len(b)) }
func (b Bytes) Load(p []byte, from int64)   { copy(p, b[from:]) }
func (b Bytes) Store(p []byte, from int64)  { copy(b[from:], p) }
func (b Bytes) Direct(from, n int64) []byte { return b[from : from+n] }

// Message is a part of an exchange: data to, or room for exactly as many from, a process.
type Message struct {
	Peer int
	Data []byte
}

// Peers are the processes that have opened a file together.
type Peers interface {
	Rank() int
	Size() int
	// Exchange sends and receives at the same time, and returns when all is done. Between two
	// processes, messages come in the order in which they were sent. It fails when a process is
	// dead.
	Exchange(sends, recvs []Message) error
}

// Gatherer is what Peers may be, too: they gather faster than by exchanges.
type Gatherer interface {
	// Gather puts the records of all processes, which have the same length, into all, one after the
	// other by rank. It fails when a process is dead.
	Gather(record, all []byte) error
}

// Counter is a number that all processes of a file share: the shared file pointer.
type Counter interface {
	// Add adds n and returns the value before. It fails when the counter is on a process that has
	// died.
	Add(n int64) (int64, error)
}

// The flags of MPI_File_open by their values in the standard ABI.
const (
	Append        = 1
	Create        = 2
	DeleteOnClose = 4
	Excl          = 8
	ReadOnly      = 16
	ReadWrite     = 32
	Sequential    = 64
	UniqueOpen    = 128
	WriteOnly     = 256
)

// CheckMode checks an access mode (MPI-5.0, 15.2.1).
func CheckMode(mode int) error {
	const all = Append | Create | DeleteOnClose | Excl | ReadOnly | ReadWrite | Sequential |
		UniqueOpen | WriteOnly
	if mode&^all != 0 {
		return mpierr.New(mpierr.Amode, "amode is %d: bits 0x%x are none of MPI_MODE_*", mode,
			mode&^all)
	}
	switch mode & (ReadOnly | ReadWrite | WriteOnly) {
	case ReadOnly:
		if mode&(Create|Excl) != 0 {
			return mpierr.New(mpierr.Amode,
				"amode: MPI_MODE_RDONLY goes neither with MPI_MODE_CREATE nor with MPI_MODE_EXCL")
		}
	case WriteOnly:
	case ReadWrite:
		if mode&Sequential != 0 {
			return mpierr.New(mpierr.Amode,
				"amode: MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL")
		}
	default:
		return mpierr.New(mpierr.Amode,
			"amode is %d: it must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and "+
				"MPI_MODE_WRONLY", mode)
	}
	return nil
}
