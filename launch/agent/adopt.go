package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/process"
	"libspx/launch/service"
	"libspx/shm"
)

// adopt is Main for an agent that a process without a launcher has started (service.AdoptWord).
func adopt() int {
	conn := service.NewConn(ControlFD)
	m, err := conn.Receive()
	if err == nil && m.Kind != service.Adopt {
		err = fmt.Errorf("question %d", m.Kind)
	}
	if err == nil && len(m.Programs) != 1 {
		err = fmt.Errorf("%d programs", len(m.Programs))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: this program is started by libspx (%v)\n", Name, err)
		return job.StatusFailed
	}
	var a *agent
	answer := &service.Message{Kind: service.Adopt, FD: -1}
	spec, err := adoptedJob(&m.Programs[0])
	if err == nil {
		a = newAgent(spec, nil)
		err = a.takeOver(m)
	}
	if err != nil {
		answer = refuse(1, "%v", err)
	}
	conn.Send(answer) //nolint:errcheck // if it is gone, its pidfd says so
	conn.Close()
	if err != nil {
		return job.StatusFailed
	}
	a.loop()
	return a.finish()
}

// adoptedJob is the job that a process without a launcher is: as if spxrun had been given its
// command line.
func adoptedJob(p *service.Program) (*control.Job, error) {
	server, err := nameServerOf(p.Env)
	return &control.Job{Version: control.Version, OnDeath: "auto", StdinRank: -1,
		NameServer: server,
		Programs:   []control.Program{{Procs: 1, Argv: p.Argv, Dir: p.Dir, Env: p.Env}}}, err
}

// takeOver makes the one process that there is the job's rank 0.
func (a *agent) takeOver(m *service.Message) (err error) {
	if err = process.Subreaper(); err != nil {
		return err
	}
	if a.segment, err = shm.Open(os.NewFile(uintptr(m.FD), "memory")); err != nil {
		return err
	}
	if err = unix.Dup3(m.FD, control.MemoryFD, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("dup3: %w", err)
	}
	pidfd, err := unix.PidfdOpen(int(m.Peer.Pid), 0)
	if err != nil {
		return fmt.Errorf("pidfd_open(%d): %w", m.Peer.Pid, err)
	}
	a.ranks = []rank{{adopted: true, alive: true, pid: int(m.Peer.Pid), pidfd: pidfd}}
	a.serial = 1
	if err = a.prepare(); err != nil {
		return err
	}
	a.step(job.Started{Proc: 0, Pid: int(m.Peer.Pid)})
	a.step(job.AllStarted{})
	if err = a.watchProcess(0); err != nil {
		return err
	}
	return a.openService()
}
