package process

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ignoreRaw ignores a signal whatever the Go runtime thinks of that. What follows is execve.
func ignoreRaw(sig int) error {
	action := struct{ handler, flags, restorer, mask uintptr }{handler: 1}
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0); errno != 0 {
		return fmt.Errorf("rt_sigaction(%v): %w", syscall.Signal(sig), errno)
	}
	return nil
}
