package front

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"libspx/launch/command"
	"libspx/launch/control"
	"libspx/launch/service"
)

// Jobs that go on when spxrun has returned (--detach). spxrun starts itself once more, in a session
// of its own and with a file for the output: that one, the keeper, runs the job as spxrun does
// otherwise. Until spxrun has printed the job's name and left, its end ends the job; from then on
// no event at the keeper does.

// keeperFD is the descriptor of the keeper's socket to spxrun.
const keeperFD = 3

// detach starts the keeper, and waits until the job runs.
func detach(spec *control.Job, j *command.Job) (status int, err error) {
	if len(j.Gdb) > 0 {
		return statusUsage, errors.New("--gdb needs a terminal, which a job with --detach has not")
	}
	if j.Trace != "" || j.Profile || j.ProfileJSON != "" {
		return statusUsage, errors.New(
			"--trace and --profile are put together by spxrun when the job has ended; with " +
				"--detach it has left by then")
	}
	if _, err := rand.Read(spec.ID[:]); err != nil {
		return statusFailed, err
	}
	spec.Detached = true
	number := binary.LittleEndian.Uint64(spec.ID[:8])
	out, err := outputFile(spec.OutputDir, service.OutputName(number))
	if err != nil {
		return statusFailed, fmt.Errorf("--detach: the file for the output: %w", err)
	}
	defer out.Close()
	keeper, err := startKeeper(out)
	if err != nil {
		return statusFailed, err
	}
	defer keeper.Close()
	if err := keeper.Send(&control.Message{Job: spec}); err != nil {
		return statusFailed, fmt.Errorf("the process that keeps the job: %w", err)
	}
	for {
		m, err := keeper.Receive()
		switch {
		case err != nil:
			showFailure(out)
			return statusFailed, errors.New(
				"the process that keeps the job has ended before the job ran")
		case m.Done != nil:
			showFailure(out)
			return m.Done.Status, nil
		case m.Running:
			fmt.Printf("%016x %s\n", number, out.Name())
			// if it is gone, so is the job, and its file has the reason
			keeper.Send(&control.Message{Leave: true}) //nolint:errcheck
			return 0, nil
		}
	}
}

// outputFile makes the file that spxrun and, if they have no other, the job's processes write to.
func outputFile(dir, name string) (*os.File, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o666)
}

// showFailure prints what has been written to the file of a job that has not come to run, and
// removes it.
func showFailure(out *os.File) {
	if text, err := os.ReadFile(out.Name()); err == nil {
		os.Stderr.Write(text) //nolint:errcheck // there is no other output
		os.Remove(out.Name()) //nolint:errcheck // it does no harm
	}
}

func startKeeper(out *os.File) (*control.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[1])
	in := os.Stdin
	// a terminal belongs to its user
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		if in, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{in.Fd(), out.Fd(), out.Fd(),
		uintptr(pair[1])}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if _, _, err := syscall.StartProcess("/proc/self/exe", []string{os.Args[0], control.KeeperWord},
		attr); err != nil {
		return nil, fmt.Errorf("cannot start the process that keeps the job (/proc/self/exe): %w",
			err)
	}
	return control.NewConn(os.NewFile(uintptr(pair[0]), "keeper")), nil
}

// Keep runs the keeper.
func Keep() int {
	unix.CloseOnExec(keeperFD)
	k := &keeper{conn: control.NewConn(os.NewFile(keeperFD, "spxrun"))}
	m, err := k.conn.Receive()
	if err == nil && m.Job == nil {
		err = errors.New("that sends no job")
	}
	if err != nil {
		return complain(statusFailed, fmt.Errorf("this program is started by spxrun --detach: %w",
			err))
	}
	status, err := run(m.Job, nil, k)
	if err != nil {
		status = complain(statusFailed, err)
	}
	// as a rule spxrun has left
	k.conn.Send(&control.Message{Done: &control.Done{Status: status}}) //nolint:errcheck
	// spxrun is notified of the job, or of its end, and then leaves or ends
	if k.gone != nil && !k.alone {
		k.left = <-k.gone
	}
	if k.left {
		number := binary.LittleEndian.Uint64(m.Job.ID[:8])
		if k.elsewhere {
			fmt.Fprintf(os.Stderr,
				"spxrun: job %016x is over on this host, and goes on at others if these can\n",
				number)
		} else {
			fmt.Fprint(os.Stderr, service.EndLine(number, status))
		}
	}
	return status
}

// keeper is the way from the keeper to spxrun. nil: this is spxrun.
type keeper struct {
	conn  *control.Conn
	gone  chan bool // reports once that spxrun is gone, and whether it has left
	alone bool      // it is
	left  bool      // spxrun has printed the job's name, and left

	elsewhere bool // other hosts may go on with the job
}

// listen waits until spxrun leaves, or is gone.
func (k *keeper) listen() {
	if k == nil {
		return
	}
	k.gone = make(chan bool, 1)
	go func() {
		m, err := k.conn.Receive()
		k.gone <- err == nil && m.Leave
	}()
}

// leaving reports when spxrun is gone: whether it has left.
func (k *keeper) leaving() <-chan bool {
	if k == nil {
		return nil
	}
	return k.gone
}

// running notifies spxrun that the job runs.
func (k *keeper) running() {
	if k != nil {
		k.conn.Send(&control.Message{Running: true}) //nolint:errcheck // its end is seen by listen
	}
}

// isElsewhere records that other hosts may continue the job, whose end here is not its end.
func (k *keeper) isElsewhere(so bool) {
	if k != nil {
		k.elsewhere = so
	}
}
