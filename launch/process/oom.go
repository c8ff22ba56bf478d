package process

import (
	"bytes"
	"os"
	"strconv"
)

// When memory is used up the kernel ends the process with the highest score, which grows with what it uses. A rank is to be ended before its agent, without
// which all ranks of the host end: it gets a higher score from its beginning, and everything that it starts inherits that.

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
	os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(raised), 0) //nolint:errcheck // it may have ended
}
