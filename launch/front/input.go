package front

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
)

// input is the descriptor that becomes the agent's standard input. A file or pipe is passed as it
// is: the reader reads from the source, to any size, and closing it is seen there. A terminal stays
// ours, because the ranks are in other process groups, which a terminal stops when they read; it is
// copied into a pipe.
type input struct {
	fd   int
	own  []int // descriptors that are the agent's alone once it runs
	copy int   // write end of the pipe to copy a terminal into, or -1
}

// openInput decides where the agent reads.
func openInput(spec *control.Job) (*input, error) {
	in := &input{fd: 0, copy: -1}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/null: %w", err)
	}
	in.own = append(in.own, null)
	if !spec.StdinAll && spec.StdinRank < 0 {
		in.fd = null
		return in, nil
	}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err != nil {
		return in, nil
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	in.fd, in.copy = p[0], p[1]
	in.own = append(in.own, p[0])
	return in, nil
}

// started is called once the agent has its copy.
func (in *input) started() {
	if in.copy >= 0 {
		go copyTerminal(os.NewFile(uintptr(in.copy), "stdin pipe"))
	} else {
		unix.Dup2(in.own[0], 0) //nolint:errcheck // /dev/null: standard input is not ours any more
	}
	for _, fd := range in.own {
		unix.Close(fd)
	}
}

// background is the interval at which a background job checks whether it is in the foreground,
// where it may read its terminal.
const background = 250 * time.Millisecond

// copyTerminal copies what is typed, as long as it is typed for this job: a background process that
// reads its terminal is stopped.
func copyTerminal(out *os.File) {
	defer out.Close()
	b := make([]byte, 4096)
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, -1); err != nil &&
			err != unix.EINTR {
			return
		}
		if group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil &&
			group != unix.Getpgrp() {
			time.Sleep(background)
			continue
		}
		n, err := unix.Read(0, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if n <= 0 {
			return
		}
		if _, err := out.Write(b[:n]); err != nil {
			return
		}
	}
}
