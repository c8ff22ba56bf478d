package inspect

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"libspx/launch/process"
	"libspx/shm"
)

const unseen = "the stack is not shown: none of the processes that its rank was started with is " +
	"the one that has called MPI_Init"

// pidOf is the pid, as this process sees it, of the process that has called MPI_Init: the agent may
// have started a wrapper, whose child it is, maybe in a pid namespace of its own. It is recognized
// by its nonce (capi/dataplane/segment/segment.c). Before MPI_Init it is the one that was started;
// 0: not found.
func pidOf(segment *shm.Segment, p Process) int {
	at, nonce := segment.Nonce(p.Number)
	if at == 0 || p.Pid <= 0 {
		return p.Pid
	}
	word, err := peek(p.Pid, at)
	// where the kernel forbids it, the stack will show it
	if err == nil && word == nonce || err == unix.EPERM || err == unix.ENOSYS {
		return p.Pid
	}
	for _, pid := range process.Descendants(p.Pid) {
		if word, err := peek(pid, at); err == nil && word == nonce {
			return pid
		}
	}
	return 0
}

// peek reads a word of the memory of a process.
func peek(pid int, at uint64) (uint64, error) {
	var b [8]byte
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}},
		0)
	if err == nil && n != len(b) {
		err = unix.EFAULT
	}
	return binary.LittleEndian.Uint64(b[:]), err
}
