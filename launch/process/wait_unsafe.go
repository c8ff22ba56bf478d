package process

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Codes of siginfo for a child (waitid(2)).
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

// waitid is waitid(2) with the answer put into the form that wait4 gives. pid is 0 when no process
// has ended.
func waitid(idType, id, options int) (pid int, status syscall.WaitStatus, err error) {
	var info unix.Siginfo
	for {
		if err = unix.Waitid(idType, id, &info, options, nil); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, 0, err
	}
	// si_pid, si_uid and si_status stand behind the three common words, aligned to 8 bytes.
	f := (*struct {
		_           [4]int32
		pid, uid    int32
		childStatus int32
	})(unsafe.Pointer(&info))
	switch info.Code {
	case cldExited:
		status = syscall.WaitStatus(f.childStatus << 8)
	case cldKilled:
		status = syscall.WaitStatus(f.childStatus)
	case cldDumped:
		status = syscall.WaitStatus(f.childStatus | 0x80)
	}
	return int(f.pid), status, nil
}
