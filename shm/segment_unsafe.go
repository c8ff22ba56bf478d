package shm

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Numbers that the frozen syscall package lacks.
const (
	mfdCloexec  = 1
	mfdSealing  = 2
	addSeals    = 1033 // F_ADD_SEALS
	sealSeal    = 1
	sealShrink  = 2
	futexWakeOp = 1 // FUTEX_WAKE, shared between processes
)

func memfdNumber() uintptr {
	if runtime.GOARCH == "arm64" {
		return 279
	}
	return 319
}

func memfd(name string) (*os.File, error) {
	b := append([]byte(name), 0)
	fd, _, errno := syscall.Syscall(memfdNumber(), uintptr(unsafe.Pointer(&b[0])), mfdCloexec|mfdSealing, 0)
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, "memfd:"+name), nil
}

// keepSize seals a memfd against shrinking: no process can thereby end others, which have it mapped
// (SIGBUS).
func keepSize(file *os.File) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), addSeals, sealSeal|sealShrink); errno != 0 {
		return errno
	}
	return nil
}

func (s *Segment) word32(off int) *uint32 { return (*uint32)(unsafe.Pointer(&s.mem[off])) }
func (s *Segment) word64(off int) *uint64 { return (*uint64)(unsafe.Pointer(&s.mem[off])) }

func (s *Segment) get32(off int) uint32    { return atomic.LoadUint32(s.word32(off)) }
func (s *Segment) get64(off int) uint64    { return atomic.LoadUint64(s.word64(off)) }
func (s *Segment) put32(off int, v uint32) { atomic.StoreUint32(s.word32(off), v) }
func (s *Segment) put64(off int, v uint64) { atomic.StoreUint64(s.word64(off), v) }
func (s *Segment) add32(off int, v uint32) { atomic.AddUint32(s.word32(off), v) }

func (s *Segment) futexWake(off int) {
	syscall.Syscall(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(s.word32(off))), futexWakeOp, 1<<30)
}
