package agent

import "golang.org/x/sys/unix"

// Descriptors whose numbers processes know.

// reserve keeps the numbers free under which processes inherit what the agent has for them: with
// many of them, sockets and pipes would have these numbers by then, and be closed by what takes
// their place.
func reserve(numbers ...int) {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // so few descriptors are possible that the job cannot start
	}
	for _, n := range numbers {
		if _, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == unix.EBADF {
			unix.Dup3(null, n, unix.O_CLOEXEC) //nolint:errcheck // likewise
		}
	}
	unix.Close(null)
}

// vacate closes the file of a number that is reserved, which stays so.
func vacate(n int) {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(n)
		return
	}
	unix.Dup3(null, n, unix.O_CLOEXEC) //nolint:errcheck // cannot fail with these arguments
	unix.Close(null)
}
