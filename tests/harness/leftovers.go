package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
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

// KillWhenUp starts a command, kills some of its processes (victims knows them by their mark) when n lines have come from it, each "up", and checks that nothing
// stays of it.
func KillWhenUp(t testing.TB, c Command, n int, victims func(mark string) []int) {
	t.Helper()
	mark := Mark(t)
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(Build(t), "lib"), mark), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer watchdog.Stop()
	for reader, up := bufio.NewReader(out), 0; up < n; up++ {
		if text, err := reader.ReadString('\n'); text != "up\n" {
			t.Fatalf("%q, %v", text, err)
		}
	}
	list := victims(mark)
	if len(list) == 0 {
		t.Fatal("there is nothing to kill")
	}
	for _, pid := range list {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
	NothingLeft(t, mark, 20*time.Second)
	cmd.Wait() //nolint:errcheck // it may end in any way
}

// NothingLeft waits until no process with the mark is left, for limit at most.
func NothingLeft(t testing.TB, mark string, limit time.Duration) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := Marked(mark, "")
		if len(left) == 0 {
			return
		}
		if time.Since(began) > Patience(limit) {
			t.Errorf("after %v there are still the processes %v", limit, left)
			return
		}
	}
}
