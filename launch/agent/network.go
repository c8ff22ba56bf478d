package agent

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
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
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "shm":
			t.sharedMemory = true
		case "tcp", "fabric": // which of them, the processes decide
		default:
			return t, fmt.Errorf("SPX_TRANSPORTS=%s: there are shm, tcp and fabric, not %s", text,
				word)
		}
	}
	return t, nil
}

// openListeners makes the sockets on which the processes of this host will listen, if they are
// reached over the network. They are there before any process of the job runs: who connects early
// waits in their queues.
func (a *agent) openListeners() error {
	for i := range a.ranks {
		if a.ranks[i].host != a.self || a.ranks[i].away {
			continue
		}
		if err := a.openListener(i); err != nil {
			return err
		}
	}
	return nil
}

// openListener makes the socket of process i, if it is to have one, and publishes where it listens.
func (a *agent) openListener(i int) error {
	l, err := a.newListener()
	if err != nil {
		return fmt.Errorf("rank %d: %w", i, err)
	}
	a.assign(i, l)
	return nil
}

// A listener is the socket on which a process will listen.
type listener struct {
	fd int // + 1; 0: it needs none
	at netip.AddrPort
}

// newListener makes the socket of a process, if processes are to have one.
func (a *agent) newListener() (l listener, err error) {
	if !a.segment.TCP() && !a.several() {
		return l, nil
	}
	if !a.address.IsValid() {
		if a.address, err = a.chooseAddress(); err != nil {
			return l, err
		}
	}
	ports, err := portsOf(a.spec.Programs[0].Env)
	if err != nil {
		return l, err
	}
	fd, port, err := ports.listen(a.listenAt(a.address), len(a.ranks)+64)
	if err != nil {
		return l, fmt.Errorf("a process cannot listen on %v: %w", a.address, err)
	}
	return listener{fd + 1, netip.AddrPortFrom(a.address, port)}, nil
}

// assign gives process i its socket, and publishes where that is.
func (a *agent) assign(i int, l listener) {
	if l.fd != 0 {
		a.segment.SetAddress(i, l.at)
		a.ranks[i].listener = l.fd
	}
}

func (l listener) close() {
	if l.fd != 0 {
		unix.Close(l.fd - 1)
	}
}

// portRange are the ports on which processes may listen; 0, 0: any.
type portRange struct{ low, high uint16 }

// portsOf reads SPX_PORTS.
func portsOf(environ []string) (r portRange, err error) {
	text := variableOf(environ, service.EnvPorts)
	if text == "" {
		return r, nil
	}
	low, high, ok := strings.Cut(text, "-")
	from, err := strconv.ParseUint(low, 10, 16)
	to, err2 := strconv.ParseUint(high, 10, 16)
	if !ok || err != nil || err2 != nil || from == 0 || to < from {
		return r, fmt.Errorf(
			"%s=%s: two ports are to be named, as in 50000-50999, the lower one first",
			service.EnvPorts, text)
	}
	return portRange{uint16(from), uint16(to)}, nil
}

// listen makes a listening socket with a port of the range or, without one, of the kernel's choice.
func (r portRange) listen(at netip.Addr, queue int) (fd int, port uint16, err error) {
	if r.low == 0 {
		return listenOn(at, 0, queue)
	}
	n := int(r.high) - int(r.low) + 1
	// processes of several jobs do not all try the same first
	for i, begin := 0, rand.IntN(n); i < n; i++ {
		fd, port, err = listenOn(at, r.low+uint16((begin+i)%n), queue)
		if err != unix.EADDRINUSE {
			return fd, port, err
		}
	}
	return -1, 0, fmt.Errorf("none of the %d ports of %s=%d-%d is free", n, service.EnvPorts, r.low,
		r.high)
}

// datagrams, in place of a queue, asks for a socket for datagrams.
const datagrams = 0

// listenOn makes a listening socket; port 0: of the kernel's choice.
func listenOn(at netip.Addr, wanted uint16, queue int) (fd int, port uint16, err error) {
	kind := unix.SOCK_STREAM
	if queue == datagrams {
		kind = unix.SOCK_DGRAM
	}
	family, name := unix.AF_INET6,
		unix.Sockaddr(&unix.SockaddrInet6{Addr: at.As16(), Port: int(wanted)})
	if at.Is4() {
		family, name = unix.AF_INET, &unix.SockaddrInet4{Addr: at.As4(), Port: int(wanted)}
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, 0, err
	}
	if above, e := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, control.ListenFD+1); e == nil {
		unix.Close(fd)
		fd = above // those below are given to processes one after the other
	}
	// connections of a job that has ended stay for a while, and do no harm
	if wanted != 0 && queue != datagrams {
		// then another port is taken
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) //nolint:errcheck
	}
	if err = unix.Bind(fd, name); err == nil && queue != datagrams {
		err = unix.Listen(fd, queue)
	}
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	switch n := name.(type) {
	case *unix.SockaddrInet4:
		port = uint16(n.Port)
	case *unix.SockaddrInet6:
		port = uint16(n.Port)
	}
	return fd, port, nil
}

// segmentAddress is where process i of this host listens.
func (a *agent) segmentAddress(i int) (netip.AddrPort, bool) {
	if a.segment == nil || a.ranks[i].host != a.self {
		return netip.AddrPort{}, false
	}
	return a.segment.Address(i)
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
	s.Env = append(s.Env[:len(s.Env):len(s.Env)],
		fmt.Sprintf("%s=%d", service.EnvListen, control.ListenFD))
	return func() { vacate(control.ListenFD) }, nil
}
