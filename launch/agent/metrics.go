package agent

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"libspx/launch/job"
)

// Metrics (spxrun --metrics, docs/live.md) are served by a process of its own, `spxctl export`, on
// a socket that this agent makes: so the agent stays small, and what comes from outside does not
// reach it. That process asks the agent what it needs to know as any other spxctl does.

// exporter is that process.
type exporter struct {
	listener *os.File // until it has been started
	cmd      *exec.Cmd
	ended    chan struct{}
	stopping bool
}

// exporterEnded: it has ended by itself.
type exporterEnded struct{ err error }

// listenForMetrics makes the socket, before anything is started: an address that cannot be had is
// an error of the command line.
func (a *agent) listenForMetrics() error {
	if a.spec.Metrics == "" || a.up != nil {
		return nil
	}
	l, err := net.Listen("tcp", a.spec.Metrics)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	a.exporter.listener = f
	a.say(fmt.Sprintf("metrics are at http://%s/metrics", l.Addr()))
	return nil
}

// startExporter starts the process that serves them.
func (a *agent) startExporter() error {
	e := &a.exporter
	if e.listener == nil {
		return nil
	}
	defer e.listener.Close()
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(self), "spxctl"), "export",
		fmt.Sprintf("%016x", a.jobNumber()))
	cmd.ExtraFiles = []*os.File{e.listener}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	e.cmd, e.ended = cmd, make(chan struct{})
	go func() {
		err := cmd.Wait()
		close(e.ended)
		a.inbox.put(exporterEnded{err})
	}()
	return nil
}

// lostExporter says that there are no metrics any more; the job goes on.
func (a *agent) lostExporter(e exporterEnded) {
	if !a.exporter.stopping {
		a.say(fmt.Sprintf(
			"the process that serves the metrics has ended (%v); the job goes on without", e.err))
	}
}

// isExporter keeps it from being taken for something that a rank has left behind.
func (a *agent) isExporter(pid int) bool {
	return a.exporter.cmd != nil && a.exporter.cmd.Process.Pid == pid
}

// stopExporter ends it, with the job.
func (a *agent) stopExporter() {
	e := &a.exporter
	if e.cmd == nil {
		return
	}
	e.stopping = true
	e.cmd.Process.Kill() //nolint:errcheck // it has ended by itself
	<-e.ended
}

var _ job.Event = exporterEnded{}
