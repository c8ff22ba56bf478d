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
)

// accounts names the variable with the file where the time of processors that each package's tests took is written. With it, go test -exec has this program run them.
const accounts = "TESTSUM_ACCOUNTS"

// account runs a package's tests, in the package's folder, and writes a line about them: the time of processors of the process and of those that it has waited for. It returns their exit
// status.
func account(file string, words []string) int {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8) // go test ends a package that is late by a signal to this process
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		return 1
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s) //nolint:errcheck // it may have ended
		}
	}()
	cmd.Wait() //nolint:errcheck // its status says it
	if f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0); err == nil {
		where, _ := os.Getwd()
		fmt.Fprintf(f, "%s %.2f\n", where, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		f.Close()
	}
	if status := cmd.ProcessState.ExitCode(); status >= 0 {
		return status
	}
	return 1
}

// readAccounts reads what account has written.
func readAccounts(file string) (list []timed) {
	top, _ := os.Getwd()
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		var t timed
		if _, err := fmt.Sscan(line, &t.what, &t.seconds); err != nil {
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
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
