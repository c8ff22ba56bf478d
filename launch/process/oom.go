package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// When memory is used up the kernel ends the process with the highest score, which grows with what
// it uses. A rank is to be ended before its agent, without which all ranks of the host end: it gets
// a higher score from its beginning, and everything that it starts inherits that.

const (
	oomAbove = 100  // thousandths of the host's memory
	oomMost  = 1000 // what the kernel allows
)

// expose raises the score of a child that has not been reaped above this process's.
func expose(pid int) {
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return
	}
	own, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || own >= oomMost {
		return
	}
	raised := strconv.Itoa(min(own+oomAbove, oomMost))
	// it may have ended
	os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(raised), 0) //nolint:errcheck
}

// OOMKills counts the processes that the kernel has ended because memory was used up.
type OOMKills struct {
	Group int64 // those of this process's control group, in which its children are as a rule
	Host  int64 // all of the host, whose control groups are among them
}

// ReadOOMKills reads the kernel's counts below root ("/"); one that cannot be read is 0.
func ReadOOMKills(root string) (k OOMKills) {
	k.Host, _ = oomKill(filepath.Join(root, "proc/vmstat"))
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return k
	}
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(part) != 3 {
			continue
		}
		switch part[1] {
		case "":
			k.Group += groupKills(filepath.Join(root, "sys/fs/cgroup"), part[2], "memory.events")
		case "memory":
			k.Group += groupKills(filepath.Join(root, "sys/fs/cgroup/memory"), part[2],
				"memory.oom_control")
		}
	}
	return k
}

// groupKills is the count of a group. Within a container its path may not be visible, and then the
// top is that group; where it is visible, the top counts other groups' processes.
func groupKills(mount, path, file string) int64 {
	n, ok := oomKill(filepath.Join(mount, path, file))
	if !ok {
		n, _ = oomKill(filepath.Join(mount, file))
	}
	return n
}

// oomKill is the number of the line "oom_kill N" of a file, if it has one.
func oomKill(path string) (n int64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
