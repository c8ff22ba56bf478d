package agent

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Where ranks outnumber processors, an agent is not to wait behind all of them before it tells of a
// death or is heard of by others: it asks for short turns, which come soon (Linux 6.12), and for
// priority, where that is allowed. It has little to do, so the ranks do not miss the time.
const (
	urgentNice  = -10
	urgentSlice = 100_000 // ns
)

// prioritizeHeartbeat is for the thread of the heartbeats. It is not to wait for the Go runtime
// either, whose processors may belong to threads that wait for their turns.
func prioritizeHeartbeat() {
	const processors = 8
	runtime.LockOSThread()
	runtime.GOMAXPROCS(max(processors, runtime.GOMAXPROCS(0)))
	if !prioritizeRealTime() {
		hurry(0, 0)
	}
}

// prioritizeRealTime puts the calling thread before all that have no turns in real time, where that
// is allowed: a nice value counts within a session alone, where the kernel shares processors out
// among sessions (sched_autogroup), and each host's ranks may be in one.
func prioritizeRealTime() bool {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return false
	}
	attr.Policy, attr.Priority, attr.Nice, attr.Runtime = unix.SCHED_RR, 1, 0, 0
	attr.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	return unix.SchedSetAttr(0, attr, 0) == nil
}

// hurryAll is for all threads that there are. What is started by them, ranks above all, is as it
// would be otherwise.
func hurryAll() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return // it takes longer, that is all
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			hurry(tid, unix.SCHED_FLAG_RESET_ON_FORK)
		}
	}
}

// hurry is for one thread, unless it was called before or the thread has a higher priority: that
// is for the ranks to inherit.
func hurry(tid int, flags uint64) {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL || attr.Nice < 0 ||
		attr.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0 {
		return
	}
	given := attr.Nice
	attr.Flags |= flags
	attr.Runtime = urgentSlice
	if given == 0 || flags == 0 {
		attr.Nice = urgentNice
	}
	if unix.SchedSetAttr(tid, attr, 0) != nil {
		attr.Nice = given
		_ = unix.SchedSetAttr(tid, attr, 0) // an older kernel
	}
}
