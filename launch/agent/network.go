package agent

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/process"
	"libspx/launch/service"
)

// transport says how the processes of a job may talk.
type transport struct {
	sharedMemory bool // those of one host, through the memory file
}

// transports reads SPX_TRANSPORTS in the environment of the job's programs.
func transports(programs []control.Program) (t transport, err error) {
	text := ""
	for _, p := range programs {
		for _, v := range p.Env {
			if value, ok := strings.CutPrefix(v, "SPX_TRANSPORTS="); ok {
				text = value
			}
		}
	}
	if text == "" {
		return transport{sharedMemory: true}, nil
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "shm":
			t.sharedMemory = true
		case "tcp":
		default:
			return t, fmt.Errorf("SPX_TRANSPORTS=%s: there are shm and tcp, not %s", text, word)
		}
	}
	return t, nil
}

// openListener makes the socket on which process i will listen, when it is reached over the network, and publishes where. It is there before any
// process of the job runs: who connects early waits in its queue.
func (a *agent) openListener(i int) error {
	if !a.segment.TCP() {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket for rank %d: %w", i, err)
	}
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	err = unix.Bind(fd, at)
	if err == nil {
		err = unix.Listen(fd, len(a.ranks)+64)
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("rank %d cannot listen on %v: %w", i, netip.AddrFrom4(at.Addr), err)
	}
	a.segment.SetAddress(i, netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(name.(*unix.SockaddrInet4).Port)))
	a.ranks[i].listener = fd + 1
	return nil
}

// giveListener has a process inherit its listening socket; done: it has been started, or could not.
func (a *agent) giveListener(i int, s *process.Spec) (done func(), err error) {
	r := &a.ranks[i]
	if r.listener == 0 {
		return func() {}, nil
	}
	err = unix.Dup3(r.listener-1, control.ListenFD, unix.O_CLOEXEC)
	unix.Close(r.listener - 1)
	r.listener = 0
	if err != nil {
		return nil, fmt.Errorf("dup3: %w", err)
	}
	s.Share = append(s.Share, control.ListenFD)
	s.Env = append(s.Env[:len(s.Env):len(s.Env)], fmt.Sprintf("%s=%d", service.EnvListen, control.ListenFD))
	return func() { unix.Close(control.ListenFD) }, nil
}
