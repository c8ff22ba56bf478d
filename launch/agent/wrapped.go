package agent

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/launch/process"
	"libspx/launch/service"
	"libspx/shm"
)

// Ranks behind a wrapper: `sh -c './prog; clean-up'`, or a script that puts the program into the
// background. The process that the agent has started is not the one that calls MPI_Init then. That
// one sends a pidfd of itself (service.Enter), so that both are ended before the rank is declared
// dead, and that the end of either is noticed.

// An inside is the process that has called MPI_Init as a rank that the agent has started as another
// process.
type inside struct {
	pidfd int
	pid   int
	gone  bool
}

// wrapperGrace is how long a wrapper may live on when the program in it has died: most end at once,
// with its exit status.
const wrapperGrace = 200 * time.Millisecond

// wrapped are the wrappers whose programs have died.
type wrapped struct {
	proc  int
	until time.Time
}

// takeInside takes note of the process that has called MPI_Init as process q.Number of the job. The
// answer comes before it communicates.
func (a *agent) takeInside(q *question) *service.Message {
	i, fd := int(q.Number), q.FD
	if fd < 0 || i < 0 || i >= len(a.ranks) {
		if fd >= 0 {
			unix.Close(fd)
		}
		return refuse(mpierr.Arg, "process %d enters the job without a pidfd", i)
	}
	pid := process.PidOf(fd)
	r := &a.ranks[i]
	if pid <= 0 || !a.own(i) || r.foreign() || r.inside != nil {
		unix.Close(fd)
		return refuse(mpierr.Other, "the process that was started for it has ended")
	}
	if pid == r.pid {
		unix.Close(fd)
		return &service.Message{FD: -1}
	}
	r.inside = &inside{pidfd: fd, pid: pid}
	if err := a.watchInside(i); err != nil {
		a.dropInside(i)
		return refuse(mpierr.Other, "its end cannot be watched: %v", err)
	}
	return &service.Message{FD: -1}
}

func (a *agent) watchInside(i int) error {
	fd := a.ranks[i].inside.pidfd
	return unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd), Pad: int32(i)})
}

// dropInside forgets the process behind the wrapper of rank i.
func (a *agent) dropInside(i int) {
	if p := a.ranks[i].inside; p != nil {
		a.stopWatching(p.pidfd)
		unix.Close(p.pidfd)
		a.ranks[i].inside = nil
	}
}

// stopWatching has poll report a pidfd no more: it stays readable.
func (a *agent) stopWatching(fd int) {
	unix.EpollCtl(a.epoll, unix.EPOLL_CTL_DEL, fd, nil) //nolint:errcheck // it is not watched then
}

// insideEnded reports whether no process is left that has called MPI_Init as rank i behind its
// wrapper.
func (a *agent) insideEnded(i int) bool {
	p := a.ranks[i].inside
	if p == nil || p.gone {
		return true
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}, 0)
	if n == 0 && (err == nil || err == unix.EINTR) {
		return false
	}
	p.gone = true
	a.stopWatching(p.pidfd)
	return true
}

// endInside ends the process behind a wrapper that has ended, if that is the death of the rank;
// false: it has yet to end, and poll reports when it has.
func (a *agent) endInside(i int) bool {
	if a.insideEnded(i) {
		return true
	}
	r := &a.ranks[i]
	if a.segment.OwnerState(i) == shm.OwnerFinalized {
		return true // no death: whatever is left is ended with the job
	}
	a.stopWatching(r.pidfd)
	a.kill(i)
	return a.insideEnded(i)
}

// kill ends process i, its wrapper, and their process group. The wrapper has not been reaped: the
// group's number is no other's.
func (a *agent) kill(i int) { a.signalRank(i, int(unix.SIGKILL)) }

// signalInside sends a signal to the process behind a wrapper, unless it has got it with the
// wrapper's group.
func (r *rank) signalInside(number int) {
	p := r.inside
	if p == nil || p.gone {
		return
	}
	if group, err := unix.Getpgid(p.pid); unix.Signal(number) == unix.SIGKILL || err != nil ||
		group != r.pid {
		// it has ended then
		unix.PidfdSendSignal(p.pidfd, unix.Signal(number), nil, 0) //nolint:errcheck
	}
}

// wrapperLeft: the process behind the wrapper of rank i has ended, and the wrapper has not. Without
// MPI_Finalize that is the death of the rank.
func (a *agent) wrapperLeft(i int) {
	r := &a.ranks[i]
	if r.inside == nil || r.inside.gone || !a.insideEnded(i) {
		return
	}
	if a.segment.OwnerState(i) != shm.OwnerFinalized {
		a.wrapped = append(a.wrapped, wrapped{i, time.Now().Add(wrapperGrace)})
	}
}

// endWrappers ends the wrappers whose time is over.
func (a *agent) endWrappers() {
	now := time.Now()
	a.wrapped = slices.DeleteFunc(a.wrapped, func(w wrapped) bool {
		r := &a.ranks[w.proc]
		if r.alive && r.inside != nil && now.Before(w.until) {
			return false
		}
		if r.alive && r.inside != nil {
			r.cut = true
			a.kill(w.proc)
		}
		return true
	})
}
