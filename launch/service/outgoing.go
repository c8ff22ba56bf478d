package service

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// outgoing is what an agent sends over a connection. The agent's main thread, which decides for the
// whole job, does not wait for a client that does not read: what does not fit into the socket is
// sent by a goroutine, and a client that leaves too much is dropped.
type outgoing struct {
	fd int

	mu     sync.Mutex
	queue  []parcel // guarded by mu, as all below: what has not left yet
	bytes  int      // of it
	busy   bool     // a goroutine sends
	closed bool     // by the agent
	broken error    // nothing leaves any more
}

// parcel is a message, or the rest of one, and a copy of the descriptor that goes with it.
type parcel struct {
	b  []byte
	fd int // -1: none
}

// mostQueued is how many bytes may wait for a client, beside the message that is being sent.
const mostQueued = 16 << 20

var (
	errUnread = errors.New("the client does not read its answers, and was dropped")
	errClosed = errors.New("the connection is closed")
)

func (o *outgoing) send(m *Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return errClosed
	case o.broken != nil:
		return o.broken
	}
	p := parcel{m.Encode(), m.FD}
	if !o.busy {
		switch err := o.now(&p); {
		case err != nil:
			o.broken = err
			return err
		case len(p.b) == 0:
			return nil
		}
	}
	if len(o.queue) > 0 && o.bytes+len(p.b) > mostQueued {
		o.fail(errUnread)
		unix.Shutdown(o.fd, unix.SHUT_RDWR) //nolint:errcheck // it may be gone
		return errUnread
	}
	if p.fd >= 0 { // the caller's may be closed before it has left
		fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			o.fail(fmt.Errorf("agent: %w", err))
			unix.Shutdown(o.fd, unix.SHUT_RDWR) //nolint:errcheck // see above
			return o.broken
		}
		p.fd = fd
	}
	o.queue = append(o.queue, p)
	o.bytes += len(p.b)
	if !o.busy {
		o.busy = true
		go o.run()
	}
	return nil
}

// now sends what fits into the socket.
func (o *outgoing) now(p *parcel) error {
	for len(p.b) > 0 {
		var rights []byte
		if p.fd >= 0 {
			rights = unix.UnixRights(p.fd)
		}
		n, err := unix.SendmsgN(o.fd, p.b, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch err {
		case nil:
			p.b, p.fd = p.b[n:], -1
		case unix.EINTR:
		case unix.EAGAIN:
			return nil
		default:
			return fmt.Errorf("agent: %w", err)
		}
	}
	return nil
}

// run sends what waits, until nothing does. It ends with the connection at the latest.
func (o *outgoing) run() {
	for {
		poll := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLOUT}}
		unix.Poll(poll, -1) //nolint:errcheck // tried again below
		if !o.more() {
			return
		}
	}
}

// more sends what fits of the queue, and reports whether there is something left.
func (o *outgoing) more() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		p := &o.queue[0]
		before, fd := len(p.b), p.fd
		err := o.now(p)
		o.bytes -= before - len(p.b)
		if fd >= 0 && p.fd < 0 {
			unix.Close(fd)
		}
		if err != nil {
			o.fail(err)
			break
		}
		if len(p.b) > 0 {
			return true
		}
		o.queue = o.queue[1:]
	}
	o.busy = false
	if o.closed {
		unix.Close(o.fd)
	}
	return false
}

// fail drops what waits. To be called with mu.
func (o *outgoing) fail(err error) {
	for _, p := range o.queue {
		if p.fd >= 0 {
			unix.Close(p.fd)
		}
	}
	o.queue, o.bytes, o.broken = nil, 0, err
}

func (o *outgoing) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.closed = true; !o.busy {
		unix.Close(o.fd)
	}
}
