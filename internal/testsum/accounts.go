package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// accounts names the variable with the file where the time of processors that each package's tests took is written. With it, go test -exec has this program run them.
const accounts = "TESTSUM_ACCOUNTS"

// account runs a package's tests, in the package's folder, and writes a line about them: the time of processors of the process, and of all that ended while it ran, or that it left: those
// whose parents have ended come to this process (the hosts of scripts/hosts, agents). It returns their exit status.
func account(file string, words []string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "testsum: some of the processes will not be counted:", err)
	}
	signals := make(chan os.Signal, 8) // go test ends a package that is late by a signal to this process
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	path, err := exec.LookPath(words[0])
	if err != nil {
		path = words[0]
	}
	tests, err := os.StartProcess(path, words, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		return 1
	}
	go func() {
		for s := range signals {
			tests.Signal(s) //nolint:errcheck // it may have ended
		}
	}()
	status, own := reap(tests.Pid)
	if f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0); err == nil {
		where, _ := os.Getwd()
		all := usage()
		fmt.Fprintf(f, "%s %.2f %.2f\n", where, all.Seconds(), (all - own).Seconds())
		f.Close()
	}
	if status.Exited() {
		return status.ExitStatus()
	}
	return 1
}

// reap waits for children until a certain one has ended, and for those that have ended by then. It returns how that
// one has ended, and the time of processors that it took.
func reap(last int) (status syscall.WaitStatus, own time.Duration) {
	for flags, ended := 0, false; ; {
		var s syscall.WaitStatus
		var u syscall.Rusage
		switch pid, err := syscall.Wait4(-1, &s, flags, &u); {
		case err == syscall.EINTR:
		case err != nil || pid == 0:
			return status, own
		case pid == last && !ended:
			status, own, flags, ended = s, ofBoth(u), syscall.WNOHANG, true
		}
	}
}

func ofBoth(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }

// readAccounts reads what account has written.
func readAccounts(file string) (list []timed) {
	top, _ := os.Getwd()
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		var t timed
		if _, err := fmt.Sscan(line, &t.what, &t.seconds, &t.orphans); err != nil {
			continue
		}
		if name, err := filepath.Rel(top, t.what); err == nil {
			t.what = "./" + name
		}
		list = append(list, t)
	}
	return list
}

// usage is the time of processors of all processes that this one has waited for.
func usage() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return ofBoth(u)
}

// busiest names the packages that took most of the time of processors, and what building the tests took: the rest of it all.
func (s *summary) busiest(all time.Duration) string {
	slices.SortStableFunc(s.busy, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	line, rest := "the busiest:", all.Seconds()
	for i, t := range s.busy {
		rest -= t.seconds
		if i < 20 {
			line += fmt.Sprintf(" %s %.0f s,", t.what, t.seconds)
		}
	}
	return line + fmt.Sprintf(" building and go vet %.0f s", max(0, rest))
}

// orphans is the time of processors of what the tests' processes did not wait for.
func (s *summary) orphans() time.Duration {
	sum := 0.0
	for _, t := range s.busy {
		sum += t.orphans
	}
	return time.Duration(sum * float64(time.Second))
}
