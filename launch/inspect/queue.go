package inspect

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Queue measures for how long a process has waited for processors: in that time it could not act.
// The zero value is one of no process yet.
type Queue struct {
	pid     int
	threads map[int]turns
}

// turns are the kernel's scheduling counts of a thread.
type turns struct {
	ready  bool          // it runs, or could
	ran    time.Duration // so far
	waited time.Duration // in which it could have run, before it last did
}

// Look returns how much of the time since the last look at this process it waited for a processor,
// with one thread or another. 0: the kernel does not report it, or it is the first look.
func (q *Queue) Look(pid int, passed time.Duration) time.Duration {
	return q.step(pid, threadsOf(pid), passed)
}

func (q *Queue) step(pid int, now map[int]turns, passed time.Duration) (sum time.Duration) {
	before := q.threads
	if pid != q.pid {
		before = nil
	}
	q.pid, q.threads = pid, now
	for id, t := range now {
		b, known := before[id]
		switch {
		case !known:
		// it still waits: the kernel counts the wait at its end
		case t.ready && b.ready && t.ran == b.ran && t.waited == b.waited:
			sum += passed
		default:
			sum += max(0, t.waited-b.waited)
		}
	}
	return min(sum, passed)
}

func threadsOf(pid int) map[int]turns {
	list := map[int]turns{}
	// it has ended: no information
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range tasks {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		counts, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, id))
		stat, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, id))
		if t, ok := turnsOf(string(counts), string(stat)); ok && err1 == nil && err2 == nil {
			list[id] = t
		}
	}
	return list
}

// turnsOf reads a thread's schedstat (nanoseconds that it ran, that it waited, and turns) and its
// stat.
func turnsOf(counts, stat string) (t turns, ok bool) {
	words, at := strings.Fields(counts), strings.LastIndexByte(stat, ')')
	if len(words) < 2 || at < 0 || len(stat) < at+3 {
		return t, false
	}
	ran, err1 := strconv.ParseInt(words[0], 10, 64)
	waited, err2 := strconv.ParseInt(words[1], 10, 64)
	return turns{stat[at+2] == 'R', time.Duration(ran), time.Duration(waited)}, err1 == nil &&
		err2 == nil
}
