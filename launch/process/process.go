// Package process makes, watches and ends the processes of a job on this host.
//
// It owns all kernel interfaces for processes: looking programs up, starting them,
// pidfds, wait statuses, and finding and ending leftover processes. It has no ranks and no policy.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses for programs that cannot be run, as shells use them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// A LookError is the reason why a program cannot be run.
type LookError struct {
	Text   string
	Status int
}

func (e *LookError) Error() string { return e.Text }

// Look finds a program: name as it is when it has a slash (below dir, if that is not empty and name
// is relative), else in the directories of path and then of environ's PATH, or, when none of these
// has one of that name, in dir itself, the working directory: then near is true, which is reported
// to the user. The error is a *LookError.
func Look(name, dir, path string, environ []string) (file string, near bool, err error) {
	file, err = look(name, dir, path, environ)
	if e := (*LookError)(nil); errors.As(err, &e) && e.Status == StatusNotFound &&
		!strings.Contains(name, "/") && executable(within(dir, name)) == nil {
		file, near, err = within(dir, "./"+name), true, nil
		if dir == "" { // Join has taken the dot away
			file = "./" + name
		}
	}
	if err == nil && dir != "" && !filepath.IsAbs(file) { // the process changes to dir first
		file, err = filepath.Abs(file)
	}
	return file, near, err
}

func look(name, dir, path string, environ []string) (string, error) {
	if dir != "" {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return "", &LookError{fmt.Sprintf(
				"working directory %s: not a directory that exists; check -wdir", dir),
				StatusNotExecutable}
		}
	}
	if strings.Contains(name, "/") {
		if err := executable(within(dir, name)); err != nil {
			return "", lookError(name, err)
		}
		return within(dir, name), nil
	}
	dirs := append(filepath.SplitList(path), filepath.SplitList(variable(environ, "PATH"))...)
	var found error
	for _, d := range dirs {
		if d == "" {
			d = "."
		}
		file := filepath.Join(within(dir, d), name)
		err := executable(file)
		if err == nil {
			if !filepath.IsAbs(file) {
				file = "./" + file
			}
			return file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && found == nil {
			found = err
		}
	}
	if found != nil {
		return "", lookError(name, found)
	}
	where := "in PATH"
	if path != "" {
		where = "in -path " + path + " or PATH"
	}
	return "", &LookError{fmt.Sprintf("program %s: not found %s, nor in the working directory",
		name, where), StatusNotFound}
}

func within(dir, name string) string {
	if dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

func variable(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

var errDirectory = errors.New("it is a directory")

func executable(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return errDirectory
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

func lookError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &LookError{fmt.Sprintf("program %s: no such file", name), StatusNotFound}
	case errors.Is(err, fs.ErrPermission):
		return &LookError{fmt.Sprintf(
			"program %s: not executable; chmod +x it, or name its interpreter first", name),
			StatusNotExecutable}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &LookError{fmt.Sprintf("program %s: cannot be run: %v", name, err), StatusNotExecutable}
}

// Spec is a process to be made.
type Spec struct {
	File   string // from Look
	Argv   []string
	Env    []string
	Dir    string
	Stdio  [3]int // descriptors of this process that become its 0, 1 and 2
	Share  []int  // descriptors of this process that it inherits under the same numbers
	CPUs   []int  // processors that it may use; nil: as this process
	Number int    // for messages

	Ignored Signals // signals that it ignores from its beginning
}

// Start makes the process, in a process group of its own, to be killed when the calling thread
// ends: call it with that thread locked, from one that lasts as long as the job. pidfd becomes
// readable when the process has ended.
func Start(s *Spec) (pid, pidfd int, err error) {
	files := []uintptr{uintptr(s.Stdio[0]), uintptr(s.Stdio[1]), uintptr(s.Stdio[2])}
	for _, fd := range s.Share {
		for len(files) <= fd {
			files = append(files, ^uintptr(0))
		}
		files[fd] = uintptr(fd)
	}
	pidfd = -1
	attr := &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files,
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, PidFD: &pidfd}}
	restore, err := bind(s.CPUs)
	if err != nil {
		return 0, -1, err
	}
	file, argv := s.File, s.Argv
	if !s.Ignored.inherited() {
		file, argv = s.through()
	}
	pid, _, err = syscall.StartProcess(file, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without #!: shells run it, and so does execvp
		pid, _, err = syscall.StartProcess(shell, shellArgs(s.File, s.Argv), attr)
	}
	restore()
	if err != nil {
		return 0, -1, err
	}
	expose(pid)
	if pidfd < 0 {
		pidfd, err = unix.PidfdOpen(pid, 0)
	}
	return pid, pidfd, err
}

const shell = "/bin/sh"

// shellArgs has the shell run a script.
func shellArgs(file string, argv []string) []string {
	return append([]string{"sh", file}, argv[1:]...)
}

// bind restricts the calling thread to processors that its next child inherits; restore undoes it.
func bind(cpus []int) (restore func(), err error) {
	if cpus == nil {
		return func() {}, nil
	}
	var old, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("binding to processors %v: %w", cpus, err)
	}
	// it was allowed a moment ago
	return func() { unix.SchedSetaffinity(0, &old) }, nil //nolint:errcheck
}

// AwaitEnd waits until a process has ended, or the limit is over; it reports whether it has ended.
func AwaitEnd(pidfd int, limit time.Duration) bool {
	for until := time.Now().Add(limit); ; {
		left := max(0, time.Until(until))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}},
			int((left+time.Millisecond-1)/time.Millisecond))
		if n > 0 || err != unix.EINTR && (err != nil || left == 0) {
			return n > 0
		}
	}
}

// Peek reports whether the process of a pidfd has ended, and how. It is not reaped yet: its pid is
// not reused.
func Peek(pidfd int) (status syscall.WaitStatus, ended bool, err error) {
	pid, status, err := waitid(unix.P_PIDFD, pidfd, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT)
	return status, pid != 0, err
}

// Reap removes an ended process and closes its pidfd.
func Reap(pid, pidfd int) {
	unix.Wait4(pid, nil, unix.WNOHANG, nil) //nolint:errcheck // it has ended: Peek has said so
	unix.Close(pidfd)
}

// ReapStrays removes orphans that this process, as a subreaper, has inherited and that have ended.
// ours reports its own children, which are left to Peek and Reap: while one of them waits for that,
// so do the orphans.
func ReapStrays(ours func(pid int) bool) {
	for {
		pid, _, err := waitid(unix.P_ALL, 0, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT)
		if err != nil || pid == 0 || ours(pid) {
			return
		}
		unix.Wait4(pid, nil, unix.WNOHANG, nil) //nolint:errcheck // it has ended
	}
}

// Subreaper makes this process inherit the orphans among its descendants.
func Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", err)
	}
	return nil
}
