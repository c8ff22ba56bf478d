package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// Signals that were ignored when spxrun was started (nohup, trap '' in a shell) are ignored in
// ranks, as they are in a program that is started without a launcher. The Go runtime installs
// handlers for nearly all signals before any Go code runs, and execve sets those to the default. So
// the program's entry point (entry_*.s, named to the linker by the Makefile) notes first what the
// kernel has.

// ignoredAtStart has bit s-1 for each signal s that was ignored when this process began; written by
// the entry point.
var ignoredAtStart uint64

// A Signals is a set of signals: bit s-1 for signal s.
type Signals uint64

func (s Signals) has(sig int) bool { return s>>(sig-1)&1 != 0 }

const lastSignal = 64

// IgnoredAtStart are the signals that this process has inherited as ignored. In a program without
// the entry point there are none.
func IgnoredAtStart() Signals { return Signals(ignoredAtStart) }

// needed are signals that a Go process needs itself, or that os/signal does not ignore.
var needed = map[syscall.Signal]bool{syscall.SIGCHLD: true, syscall.SIGURG: true,
	syscall.SIGILL: true, syscall.SIGTRAP: true, syscall.SIGBUS: true,
	syscall.SIGFPE: true, syscall.SIGSEGV: true, syscall.SIGSTKFLT: true, syscall.SIGSYS: true,
	syscall.SIGKILL: true, syscall.SIGSTOP: true}

// Ignore has this process ignore signals, and the processes that it starts inherit that. Those that
// it needs itself are left to Start.
func Ignore(set Signals) {
	for sig := 1; sig <= lastSignal; sig++ {
		if s := syscall.Signal(sig); set.has(sig) && !needed[s] {
			signal.Ignore(s)
		}
	}
}

// inherited: a child of this process has all signals of the set ignored.
func (s Signals) inherited() bool {
	for sig := 1; sig <= lastSignal; sig++ {
		if n := syscall.Signal(sig); s.has(sig) && (needed[n] || !signal.Ignored(n)) {
			return false
		}
	}
	return true
}

// IgnoreWord is the first argument of this program when it is to become another one with signals
// ignored: IgnoreMain.
const IgnoreWord = "spx-ignore"

// through has the process of s begin as this program, in IgnoreMain. That is given all signals: its
// Go runtime has handlers again for those that it has inherited as ignored.
func (s *Spec) through() (file string, argv []string) {
	return "/proc/self/exe", append([]string{s.Argv[0], IgnoreWord,
		strconv.FormatUint(uint64(s.Ignored), 16), s.File}, s.Argv...)
}

// IgnoreMain ignores the signals of args[0] and becomes the program args[1] with the arguments
// args[2:]. It returns the exit status of a process that cannot.
func IgnoreMain(args []string) int {
	var set uint64
	err := errors.New("arguments are missing")
	if len(args) >= 3 {
		set, err = strconv.ParseUint(args[0], 16, 64)
	}
	if err == nil {
		for sig := 1; sig <= lastSignal; sig++ {
			if Signals(set).has(sig) {
				err = errors.Join(err, ignoreRaw(sig))
			}
		}
	}
	if err == nil {
		err = syscall.Exec(args[1], args[2:], os.Environ())
		if errors.Is(err, syscall.ENOEXEC) {
			err = syscall.Exec(shell, shellArgs(args[1], args[2:]), os.Environ())
		}
	}
	fmt.Fprintf(os.Stderr, "spxrun: a process cannot be started with signals ignored: %v\n", err)
	return StatusNotExecutable
}
