package service

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Conn carries one question and its answer, and perhaps the wish not to wait for it any longer.
// Its calls block in the kernel; Hang makes a call that blocks return. The agent's end (Take) is an
// exception: Send does not block there.
type Conn struct {
	fd  int
	out *outgoing // of the agent's end
}

// Dial connects to the agent of a job. A socket of another user that has its name is passed over,
// before anything is sent.
func Dial(job uint64) (*Conn, error) {
	// of its own agent: the name may be that of another one of the job, on the same host
	if fd, ok := throughDoor(job); ok {
		return &Conn{fd: fd}, nil
	}
	fd, err := connect(&unix.SockaddrUnix{Name: Address(job)})
	if err == nil {
		return &Conn{fd: fd}, nil
	}
	switch err {
	case unix.ECONNREFUSED: // there is no socket of that name
		return nil, fmt.Errorf("job %016x has ended, or is none of this host: %w", job, err)
	case errForeign:
		return nil, fmt.Errorf("job %016x has ended, or is none of this user: %s is %w", job,
			Address(job), err)
	}
	return nil, fmt.Errorf("the agent of job %016x does not answer: %w", job, err)
}

// connect connects to a socket of this user; errForeign: it is another user's.
func connect(to *unix.SockaddrUnix) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for {
		if err = unix.Connect(fd, to); err != unix.EINTR {
			break
		}
	}
	if err == nil && !ofThisUser(fd) {
		err = errForeign
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ofThisUser reports whether the process at the other end is one of this user's, as the kernel
// knows it: of a socket that was connected to, the process that listens there.
func ofThisUser(fd int) bool {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	return err == nil && int(who.Uid) == os.Getuid()
}

// NewConn makes a Conn of a connected socket.
func NewConn(fd int) *Conn { return &Conn{fd: fd} }

// Listen makes the socket of a job's agent. It goes with the process.
func Listen(job uint64) (fd int, err error) {
	if fd, err = listen(&unix.SockaddrUnix{Name: Address(job)}); err != nil {
		return -1, fmt.Errorf("the agent's socket %s: %w", Address(job), err)
	}
	return fd, nil
}

func listen(at *unix.SockaddrUnix) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, at); err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Pauses while this process, or the host, has no descriptor or memory for another connection.
const (
	shortPause = time.Millisecond
	longPause  = 100 * time.Millisecond
)

// Await waits until a process connects, and leaves it to Take to accept that. An error is one of
// the listener itself.
func Await(listener int) error {
	for {
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		switch n, err := unix.Poll(fds, -1); {
		case err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0:
			return nil
		case err == nil && n > 0:
			return unix.EBADF
		case err != nil && err != unix.EINTR && err != unix.EAGAIN && err != unix.ENOMEM:
			return err
		}
	}
}

// Take accepts the next connection of a process of this user, and waits for it if need be; others
// are turned away: nil. What passes (no descriptor, no memory) is waited for: the error is one of
// the listener itself.
func Take(listener int) (*Conn, error) {
	for pause := shortPause; ; {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EBADF, unix.EINVAL, unix.ENOTSOCK, unix.EOPNOTSUPP, unix.EFAULT:
			return nil, err
		case unix.EINTR:
			continue
		case unix.ECONNABORTED:
			return nil, nil
		default:
			time.Sleep(pause) // the kernel reports no event when descriptors are free again
			pause = min(2*pause, longPause)
			continue
		}
		if ofThisUser(fd) {
			return &Conn{fd: fd, out: &outgoing{fd: fd}}, nil
		}
		unix.Close(fd)
		return nil, nil
	}
}

// Send sends a message, with its descriptor.
func (c *Conn) Send(m *Message) error {
	if c.out != nil {
		return c.out.send(m)
	}
	b := m.Encode()
	var rights []byte
	if m.FD >= 0 {
		rights = unix.UnixRights(m.FD)
	}
	for len(b) > 0 {
		n, err := unix.SendmsgN(c.fd, b, rights, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		b, rights = b[n:], nil
	}
	return nil
}

// Receive waits for a message. The caller closes its descriptor.
func (c *Conn) Receive() (*Message, error) {
	var head [4]byte
	passed, err := c.read(head[:], -1)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxMessage {
		return nil, fmt.Errorf("agent: a message of %d bytes", n)
	}
	var b []byte
	// memory is taken as bytes come: their number is the sender's word
	for len(b) < int(n) && err == nil {
		part := min(int(n)-len(b), max(len(b), firstPart))
		b = slices.Grow(b, part)
		passed, err = c.read(b[len(b):len(b)+part], passed)
		b = b[:len(b)+part]
	}
	m := &Message{FD: -1}
	if err == nil {
		m, err = Decode(b)
	}
	if err != nil {
		if passed >= 0 {
			unix.Close(passed)
		}
		return nil, err
	}
	m.FD = passed
	return m, nil
}

// firstPart of a message is read at once, in bytes.
const firstPart = 64 << 10

// read fills b, and takes a descriptor that comes along. Further ones are closed.
func (c *Conn) read(b []byte, passed int) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	for len(b) > 0 {
		n, k, _, _, err := unix.Recvmsg(c.fd, b, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = unix.ECONNRESET
		}
		if err != nil {
			return passed, fmt.Errorf("agent: %w", err)
		}
		if list, err := unix.ParseSocketControlMessage(rights[:k]); err == nil && len(list) > 0 {
			// without descriptors, if it holds something else
			fds, _ := unix.ParseUnixRights(&list[0])
			for _, fd := range fds {
				if passed < 0 {
					passed = fd
				} else {
					unix.Close(fd)
				}
			}
		}
		b = b[n:]
	}
	return passed, nil
}

// Hang shuts the connection down: a call that blocks on it returns.
func (c *Conn) Hang() { unix.Shutdown(c.fd, unix.SHUT_RDWR) } //nolint:errcheck // it may be gone

// Gone tells whether the other side has closed its end, or hung up.
func (c *Conn) Gone() bool {
	poll := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// FD is the connection's socket.
func (c *Conn) FD() int { return c.fd }

// Close closes the connection. At the agent's end, what was sent before still leaves.
func (c *Conn) Close() {
	if c.out != nil {
		c.out.close()
		return
	}
	unix.Close(c.fd)
}

// Ask puts a question to the agent of a job and waits for the answer.
func Ask(job uint64, m *Message) (*Message, error) {
	c, err := Dial(job)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Send(m); err != nil {
		return nil, err
	}
	return c.Receive()
}

// Jobs lists the jobs that have an agent on this host.
func Jobs() []uint64 {
	data, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	var out []uint64
	seen := map[uint64]bool{}
	for line := range bytes.Lines(data) {
		_, hex, ok := strings.Cut(string(bytes.TrimSpace(line)), "@"+prefix)
		if job, err := strconv.ParseUint(hex, 16, 64); ok && err == nil && !seen[job] {
			seen[job] = true
			out = append(out, job)
		}
	}
	return out
}
