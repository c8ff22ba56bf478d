package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen collects what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *screen) shows(text string) func() string {
	return func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if strings.Contains(s.text.String(), text) {
			return ""
		}
		return fmt.Sprintf("the terminal shows %q, not %q", s.text.String(), text)
	}
}

// onTerminal starts a job whose controlling terminal is a pseudo-terminal, and returns the other
// end of that.
func onTerminal(t *testing.T, args ...string) (*run, *os.File, *screen) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := prepare(t, args...)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = slave, slave, slave
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.start()
	slave.Close()
	s := &screen{}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
		}
	}()
	return r, master, s
}

// What is typed reaches rank 0, and the end of it too; prompts and lines of other ranks are
// separate.
func TestTerminal(t *testing.T) {
	r, keys, s := onTerminal(t, "-n", "2", "sh", "-c", `[ $SPX_RANK = 0 ] || exec cat; printf 'name? '; read name; echo "hello $name"; cat; echo bye`)
	within(t, limit/2, s.shows("name? "))
	keys.WriteString("world\n")
	within(t, limit/2, s.shows("hello world\r\n"))
	keys.WriteString("more\n")
	within(t, limit/2, s.shows("more\r\nmore\r\n")) // the echo and cat's
	keys.WriteString("\x04")
	if status := r.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	within(t, limit/2, s.shows("bye\r\n"))
}

// Ctrl-C on the terminal ends the job.
func TestInterruptKey(t *testing.T) {
	dir := t.TempDir()
	r, keys, _ := onTerminal(t, "-n", "2", "sh", "-c", sleeper(dir))
	pids(t, dir, 2)
	keys.WriteString("\x03")
	if status := r.wait(); status != 130 {
		t.Errorf("status %d", status)
	}
}

// With --with-ft a job outlives spxrun.
func TestOutlivesSpxrun(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`echo $$ > %[1]s/tmp.$SPX_RANK; mv %[1]s/tmp.$SPX_RANK %[1]s/$SPX_RANK; until [ -e %[1]s/go ]; do sleep 0.01; done; echo done > %[1]s/done.$SPX_RANK`, dir)
	r := prepare(t, "--with-ft", "-n", "2", "sh", "-c", script)
	r.cmd.Dir = dir // where its output is kept
	r.start()
	pids(t, dir, 2)
	r.cmd.WaitDelay = 50 * time.Millisecond // its output stays open
	r.cmd.Process.Kill()
	r.cmd.Wait()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, limit/2, func() string {
		for rank := range 2 {
			if _, err := os.Stat(fmt.Sprintf("%s/done.%d", dir, rank)); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	r.nothingLeft()
}
