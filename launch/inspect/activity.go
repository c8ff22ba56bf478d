package inspect

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Activity is the kernel's information about a process.
type Activity struct {
	// as in /proc/PID/stat: R, S, D, T: stopped by a signal, t: by a debugger ...
	State byte
	Used  time.Duration // of processors, by all its threads
}

// ActivityOf is that of a process; false: it has ended.
func ActivityOf(pid int) (Activity, bool) {
	const perSecond = 100 // USER_HZ, of every Linux
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	at := strings.LastIndexByte(string(b), ')')
	if err != nil || at < 0 {
		return Activity{}, false
	}
	fields := strings.Fields(string(b[at+1:])) // from the third on
	if len(fields) < 13 || fields[0] == "Z" || fields[0] == "X" {
		return Activity{}, false
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return Activity{}, false
	}
	return Activity{fields[0][0], time.Duration(user+system) * time.Second / perSecond}, true
}
