package process

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Descendants lists the processes below pid, without zombies. Under a subreaper that is all that
// its processes have made, whatever sessions or groups they have gone to.
func Descendants(pid int) []int {
	parents := table()
	var out []int
	for next := []int{pid}; len(next) > 0; {
		p := next[0]
		next = next[1:]
		for _, c := range parents[p] {
			if !c.zombie {
				out = append(out, c.pid)
			}
			next = append(next, c.pid)
		}
	}
	return out
}

type child struct {
	pid    int
	zombie bool
}

// table reads /proc: the children of every process.
func table() map[int][]child {
	out := map[int][]child{}
	dir, err := os.Open("/proc")
	if err != nil {
		return out
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid: the name may contain anything.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(string(f[1]))
		out[parent] = append(out[parent], child{pid, f[0][0] == 'Z' || f[0][0] == 'X'})
	}
	return out
}

// EndDescendants ends every process below this one, asking first (SIGTERM) and giving grace for it,
// then by SIGKILL, until none is left or limit has passed. It returns how many are left. Processes
// that are made meanwhile are found too.
func EndDescendants(grace, limit time.Duration) int {
	self, begin := os.Getpid(), time.Now()
	asked := map[int]bool{}
	for {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.ECHILD { // without a child a subreaper has no descendants
				return 0
			}
			if pid == 0 || err != nil && err != unix.EINTR {
				break
			}
		}
		list := Descendants(self)
		passed := time.Since(begin)
		if len(list) == 0 || passed > limit {
			return len(list)
		}
		held := hold(list)
		// those that still are: no pidfd of these is a stranger's
		for _, pid := range Descendants(self) {
			fd, ok := held[pid]
			switch {
			case !ok:
			case passed >= grace:
				unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) //nolint:errcheck // it may be gone
			case !asked[pid]:
				asked[pid] = true
				unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0) //nolint:errcheck // it may be gone
				unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) //nolint:errcheck // it may be gone
			}
		}
		for _, fd := range held {
			unix.Close(fd)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// hold opens a pidfd of each process that lives: a number may be another process's a moment later.
func hold(pids []int) map[int]int {
	held := map[int]int{}
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			held[pid] = fd
		}
	}
	return held
}

// PidOf is the process that a pidfd stands for; not positive: it has ended, or the descriptor is no
// pidfd.
func PidOf(pidfd int) int {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, _ := strconv.Atoi(string(bytes.TrimSpace(value)))
			return pid
		}
	}
	return 0
}

// Signal sends a signal to a process that has not been reaped and to its process group. A stopped
// group is continued, so that it can take a signal that ends it. The first process of a container
// has no group of its own to be signalled: kill(-1) would reach all processes there are. Numbers
// that are none are left alone: 0 is the caller's own group.
func Signal(pid int, signal int) {
	s := unix.Signal(signal)
	switch {
	case pid <= 0:
		return
	case pid == 1:
		unix.Kill(pid, s) //nolint:errcheck // it may have ended
		return
	}
	if unix.Kill(-pid, s) != nil {
		unix.Kill(pid, s) //nolint:errcheck // it may have ended
	}
	if s == unix.SIGTERM || s == unix.SIGINT || s == unix.SIGHUP {
		unix.Kill(-pid, unix.SIGCONT) //nolint:errcheck // it may have ended
	}
}
