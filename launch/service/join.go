package service

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How the processes of a job that another launcher has started find each other on a host, and what
// they tell those of other hosts.

// An Offer is what the agent of rank 0's host tells the agents of all hosts, by the launcher's key
// space: who knows it belongs to the job.
type Offer struct {
	ID  [16]byte         // of the job
	Key [32]byte         // of the job
	At  []netip.AddrPort // where that agent listens for the others
}

// String is the form in which an Offer travels: one word.
func (o *Offer) String() string {
	words := []string{hex.EncodeToString(o.ID[:]), hex.EncodeToString(o.Key[:])}
	for _, at := range o.At {
		words = append(words, at.String())
	}
	return strings.Join(words, ",")
}

// ParseOffer reads what String has made.
func ParseOffer(text string) (*Offer, error) {
	o := &Offer{}
	words := strings.Split(text, ",")
	if len(words) < 2 || hex.DecodedLen(len(words[0])) != len(o.ID) ||
		hex.DecodedLen(len(words[1])) != len(o.Key) {
		return nil, errOffer
	}
	if _, err := hex.Decode(o.ID[:], []byte(words[0])); err != nil {
		return nil, errOffer
	}
	if _, err := hex.Decode(o.Key[:], []byte(words[1])); err != nil {
		return nil, errOffer
	}
	for _, w := range words[2:] {
		at, err := netip.ParseAddrPort(w)
		if err != nil {
			return nil, errOffer
		}
		o.At = append(o.At, at)
	}
	return o, nil
}

var errOffer = errors.New(
	"what rank 0 has left in the launcher's key space is not of this version of libspx: all " +
		"processes must use the same")

// Limits on the meeting of a host's processes.
const (
	meetNames = 16 // tried one after the other, if other users hold them
	meetLimit = 10 * time.Second
)

// Meet connects with the agent that gathers this host's processes of a job, called so by its
// launcher. If there is none yet it makes the socket for it: a new agent is to be started with that
// as its descriptor 3 (JoinWord), and then Meet to be called again. Sockets of other users are
// passed over.
func Meet(job string) (conn *Conn, listener int, err error) {
	limit := time.Now().Add(meetLimit)
	for k := 0; k < meetNames; {
		conn, listener, err = meetAt(&unix.SockaddrUnix{Name: meetName(job, k)})
		switch {
		case err == errForeign:
			k++
		case err == errEarly && time.Now().Before(limit): // between its maker's bind and listen
			time.Sleep(time.Millisecond)
		default:
			return conn, listener, err
		}
	}
	return nil, -1, fmt.Errorf(
		"other users hold the %d sockets on which processes of this job could meet (%s and so on)",
		meetNames, meetName(job, 0))
}

var errForeign, errEarly = errors.New("another user's socket"),
	errors.New("the socket on which the processes of this host meet is not listened to")

// meetName is different for each job, user, and group of processes that see each other's ids.
func meetName(job string, k int) string {
	var st unix.Stat_t
	unix.Stat("/proc/self/ns/pid", &st) //nolint:errcheck // then all are taken to be in the same
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%d", job, os.Getuid(), st.Ino, k))
	return "@spx-meet-" + hex.EncodeToString(sum[:16])
}

func meetAt(name *unix.SockaddrUnix) (conn *Conn, listener int, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("socket: %w", err)
	}
	for {
		if err = unix.Connect(fd, name); err != unix.EINTR {
			break
		}
	}
	if err == nil {
		if ofThisUser(fd) {
			return NewConn(fd), -1, nil
		}
		unix.Close(fd)
		return nil, -1, errForeign
	}
	unix.Close(fd)
	if err != unix.ECONNREFUSED {
		return nil, -1, fmt.Errorf("socket %s: %w", name.Name, err)
	}
	if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, -1, fmt.Errorf("socket: %w", err)
	}
	if err = unix.Bind(fd, name); err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err == nil {
		return nil, fd, nil
	}
	unix.Close(fd)
	if err == unix.EADDRINUSE {
		return nil, -1, errEarly
	}
	return nil, -1, fmt.Errorf("socket %s: %w", name.Name, err)
}

// Peer is the process at the other end, and its user, by the kernel's word: who has connected, or
// who has made the socket that was connected to.
func (c *Conn) Peer() (pid, uid int, err error) {
	who, err := unix.GetsockoptUcred(c.fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, -1, err
	}
	return int(who.Pid), int(who.Uid), nil
}

// DieWithPeer has the kernel kill this process when the agent at the other side ends, or closes the
// connection. The connection must stay open.
//
// A pipe tells, into which nothing is ever written: the agent holds its other end. On the
// connection itself the kernel may still be about to report an answer that was read long ago, when
// its sender was not run for a while between the two steps of sending it.
func (c *Conn) DieWithPeer() error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	err := c.Send(&Message{Kind: Hold, FD: ends[1]})
	unix.Close(ends[1])
	for _, set := range [][2]int{{unix.F_SETOWN, os.Getpid()}, {unix.F_SETSIG, int(unix.SIGKILL)},
		{unix.F_SETFL, unix.O_ASYNC}} {
		if err == nil {
			_, err = unix.FcntlInt(uintptr(ends[0]), set[0], set[1])
		}
	}
	if c.Gone() || err == nil && hungUp(ends[0]) { // before
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	if err != nil {
		unix.Close(ends[0])
		return err
	}
	return nil // ends[0] stays open for as long as this process lives
}

func hungUp(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}

// Held is the descriptor that has come over a connection of the agent's with Hold, and one more: 0
// when there is none.
type Held int

// Take keeps the descriptor of a message, if that is what it is for. A connection has one; others
// are closed.
func (h *Held) Take(m *Message) bool {
	if m.Kind != Hold {
		return false
	}
	switch {
	case m.FD < 0:
	case *h == 0:
		*h = Held(m.FD + 1)
	default:
		unix.Close(m.FD)
	}
	return true
}

// Close lets go of it, which ends the process that has asked for that.
func (h Held) Close() {
	if h > 0 {
		unix.Close(int(h) - 1)
	}
}
