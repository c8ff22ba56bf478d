package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Mark is a variable, different for each test, by which the processes of a command can be found: put it into the command's Env.
func Mark(t testing.TB) string {
	return fmt.Sprintf("SPX_TEST_MARK=%s.%d", filepath.Base(t.TempDir()), time.Now().UnixNano())
}

// Marked are the processes that have a variable in their environment and are what is asked for (a part of the command line), but for those that have ended.
func Marked(mark, command string) (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if pid, _ := strconv.Atoi(filepath.Base(dir)); err == nil && len(line) > 0 && bytes.Contains(line, []byte(command)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// NothingLeft waits until no process with the mark is left, for limit at most.
func NothingLeft(t testing.TB, mark string, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		left := Marked(mark, "")
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("after %v there are still the processes %v", limit, left)
			return
		}
	}
}
