package front

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"libspx/launch/command"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/mpir"
)

// debugging is what spxrun does for debuggers: for one that has started spxrun and reads its table
// (package mpir), and for those that it starts itself for some ranks (--gdb).
type debugging struct {
	ranks    []int    // of --gdb
	rsh      []string // command that reaches other hosts
	terminal *os.File // spxrun's own standard input, when one debugger has it
	// command that opens a window, and runs the words that follow in it; nil: in the present
	// terminal
	window  []string
	running sync.WaitGroup
	windows sync.WaitGroup // of tmux, which outlive spxrun
	// directory of the pipes by which they report their end; empty: there is none
	signs string
	busy  atomic.Bool // the debugger in the terminal runs
}

// newDebugging prepares the requested debugging; nil: none is.
func newDebugging(j *command.Job, spec *control.Job) (*debugging, error) {
	if !mpir.BeingDebugged() && len(j.Gdb) == 0 {
		return nil, nil
	}
	spec.Hold = true
	d := &debugging{ranks: j.Gdb, rsh: spec.Rsh}
	if d.rsh == nil || slices.Equal(d.rsh, hosts.SSH) { // a debugger has a terminal
		d.rsh = []string{"ssh", "-t"}
	}
	if len(d.ranks) == 0 {
		return d, nil
	}
	total := 0
	for _, p := range spec.Programs {
		total += p.Procs
	}
	for _, r := range d.ranks {
		if r >= total {
			return nil, fmt.Errorf("--gdb: there is no rank %d; the job has %d", r, total)
		}
	}
	if _, err := exec.LookPath("gdb"); err != nil {
		return nil, fmt.Errorf("--gdb: gdb is not in PATH; install it")
	}
	if d.window = windowCommand(); d.window == nil || len(d.ranks) == 1 {
		if len(d.ranks) > 1 {
			return nil, fmt.Errorf(
				"--gdb: %d debuggers need windows: run spxrun in tmux, or with DISPLAY and "+
					"xterm; or name one rank, for this terminal", len(d.ranks))
		}
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, fmt.Errorf("--gdb: standard input: %w", err)
		}
		d.terminal, d.window = os.NewFile(uintptr(fd), "stdin"), nil
		spec.StdinAll, spec.StdinRank = false, -1 // the debugger reads it
	}
	return d, nil
}

// windowCommand is what opens windows here.
func windowCommand() []string {
	if os.Getenv("TMUX") != "" {
		if file, err := exec.LookPath("tmux"); err == nil {
			return []string{file, "new-window", "-d"}
		}
	}
	if os.Getenv("DISPLAY") != "" {
		if file, err := exec.LookPath("xterm"); err == nil {
			return []string{file, "-e"}
		}
	}
	return nil
}

// attach shows the processes to the debugger that has started spxrun, and starts those of --gdb;
// then the processes may continue: all of them as soon as those debuggers have attached, or ended.
func (f *front) attach(table []control.Process) {
	d := f.debugging
	if d == nil {
		return
	}
	var list []mpir.Process
	for _, p := range table {
		list = append(list, mpir.Process{Host: p.Host, File: p.File, Pid: p.Pid})
	}
	mpir.Spawned(list)
	var came []int
	for _, rank := range d.ranks {
		if rank < len(table) && f.startDebugger(rank, table[rank]) {
			came = append(came, rank)
		}
	}
	f.release(came)
	if len(came) > 0 {
		go func() {
			d.running.Wait()
			d.windows.Wait()
			f.release(nil) // one that has ended before it came must not keep the job waiting
		}()
	}
}

func (f *front) release(traced []int) {
	// the agent is ending then
	f.conn.Send(&control.Message{Release: &control.Release{Traced: traced}}) //nolint:errcheck
}

// startDebugger starts gdb for one rank.
func (f *front) startDebugger(rank int, p control.Process) bool {
	d := f.debugging
	words := []string{"gdb", "-q", "-p", strconv.Itoa(p.Pid)}
	if !p.Here {
		words = append(append(append([]string(nil), d.rsh...), p.Host), words...)
	}
	tmux := len(d.window) > 2
	if tmux {
		sign, err := d.sign(rank)
		if err != nil {
			fmt.Fprintf(os.Stderr, "spxrun: --gdb: no debugger for rank %d: %v\n", rank, err)
			return false
		}
		words = append([]string{"sh", "-c", `exec 3>"$0"; exec "$@"`, sign}, words...)
	}
	words = append(append([]string(nil), d.window...), words...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if d.terminal != nil {
		cmd.Stdin = d.terminal
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "spxrun: --gdb: no debugger for rank %d: %v\n", rank, err)
		return false
	}
	if tmux { // it comes back at once, its window stays
		cmd.Wait() //nolint:errcheck // a window that cannot be opened says so itself
		return cmd.ProcessState.Success()
	}
	d.busy.Store(d.terminal != nil)
	d.running.Go(func() {
		cmd.Wait() //nolint:errcheck // its status says nothing of the job
		d.busy.Store(false)
	})
	return true
}

// sign makes a pipe that the window's debugger holds open as long as it runs.
func (d *debugging) sign(rank int) (file string, err error) {
	if d.signs == "" {
		if d.signs, err = os.MkdirTemp("", "spxrun-gdb"); err != nil {
			return "", err
		}
	}
	file = filepath.Join(d.signs, strconv.Itoa(rank))
	if err := unix.Mkfifo(file, 0o600); err != nil {
		return "", err
	}
	d.windows.Go(func() {
		if f, err := os.Open(file); err == nil { // when the debugger has begun
			io.Copy(io.Discard, f) //nolint:errcheck // until it ends
			f.Close()
		}
	})
	return file, nil
}

// keeps reports whether a signal from the terminal is for the debugger, which gets it too, and not
// for the job.
func (d *debugging) keeps(s os.Signal) bool {
	return d != nil && d.busy.Load() && (s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGTSTP)
}

// ended notifies the debugger that has started spxrun if the job has failed, and waits for those
// that spxrun has started.
func (d *debugging) ended(status int) {
	if d == nil {
		return
	}
	if status != 0 {
		mpir.Aborting(fmt.Sprintf("the job has ended with status %d", status))
	}
	d.running.Wait()
	if d.signs != "" {
		os.RemoveAll(d.signs)
	}
}
