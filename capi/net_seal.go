package main

/*
#include "dp.h"
#include "net_conn.h"
#include "runtime.h"
*/
import "C"

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/net/tcp"
)

// SPX_TLS=1: the bytes that the data plane writes to a socket are encrypted on their way. It has
// one end of a pair of local sockets, and two goroutines copy between the other end and the TLS
// stream. To the data plane that is a connection like any other, but for the end of MPI: its bytes
// may be held by a goroutine, so unsettled is called as well.

func init() {
	internals[C.SPX_IN_UNSETTLED] = func(c *call) error {
		*(*int64)(unsafe.Pointer(&c.f.a[0])) = int64(unsettled())
		return nil
	}
}

// sealedBytes is how much is carried at a time: some records of TLS, of 16 KiB each.
const sealedBytes = 64 << 10

// descriptorsOfSealed has a connection: the socket, and two ends of a pair.
const descriptorsOfSealed = 3

// sealedConn is one connection.
type sealedConn struct {
	tls    *tls.Conn
	socket *net.TCPConn // under it
	local  *os.File     // our end of the pair
	to     tcp.Process

	inHand atomic.Bool // something was read from local, and is not in the socket yet
	lost   atomic.Bool // nothing can be written any more
}

var sealedConns struct {
	mu  sync.Mutex
	all map[*sealedConn]bool // guarded by mu
}

// sealedSocket is the data plane's end of a connection.
func sealedSocket(c *tls.Conn, to tcp.Process) (fd int, err error) {
	socket := c.NetConn().(*net.TCPConn)
	if err := tuneSocket(socket); err != nil {
		c.Close()
		return -1, err
	}
	var ends [2]int
	err = withDescriptors(func() (err error) {
		ends, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|
			unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		c.Close()
		return -1, err
	}
	s := &sealedConn{tls: c, socket: socket, local: os.NewFile(uintptr(ends[1]), "sealed"), to: to}
	sealedConns.mu.Lock()
	if sealedConns.all == nil {
		sealedConns.all = map[*sealedConn]bool{}
	}
	sealedConns.all[s] = true
	sealedConns.mu.Unlock()
	go s.carry()
	return ends[0], nil
}

// tuneSocket is tcp.Tune of a socket that Go keeps.
func tuneSocket(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = tcp.Tune(int(fd), c.LocalAddr(),
			c.RemoteAddr())
	})
	if err == nil {
		err = failed
	}
	return err
}

// carry does both directions, until both are over.
func (s *sealedConn) carry() {
	var both sync.WaitGroup
	both.Go(s.outwards)
	both.Go(s.inwards)
	both.Wait()
	s.tls.Close()
	s.local.Close()
	netState.slots.give()
	sealedConns.mu.Lock()
	delete(sealedConns.all, s)
	sealedConns.mu.Unlock()
	spare.take()
}

// outwards carries what the data plane writes, until it has closed its end.
func (s *sealedConn) outwards() {
	defer s.inHand.Store(false)
	buffer := make([]byte, sealedBytes)
	for {
		n := s.take(buffer)
		if n <= 0 {
			s.tls.CloseWrite() //nolint:errcheck // the other end may be gone
			return
		}
		if _, err := s.tls.Write(buffer[:n]); err != nil {
			s.lost.Store(true)
			s.local.Close() // the data plane sees it as the end of a connection
			return
		}
		s.inHand.Store(false)
	}
}

// take reads the bytes that the data plane has written. Before they leave the kernel they are in
// hand: so a reader that checks the kernel's queue first, and inHand then, always sees them.
func (s *sealedConn) take(buffer []byte) (n int) {
	raw, err := s.local.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Read(func(fd uintptr) bool {
		s.inHand.Store(true)
		for {
			if n, err = unix.Read(int(fd), buffer); err != unix.EINTR {
				break
			}
		}
		if err == unix.EAGAIN {
			s.inHand.Store(false)
		}
		return err != unix.EAGAIN
	})
	if err != nil {
		return 0
	}
	return n
}

// inwards carries what comes, until the other end writes no more or the data plane has closed its
// end.
func (s *sealedConn) inwards() {
	buffer := make([]byte, sealedBytes)
	for {
		n, err := s.tls.Read(buffer)
		if n > 0 {
			if _, err := s.local.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err == nil {
			continue
		}
		if tcp.IsChanged(err) {
			endChanged(s.to, err)
		}
		s.shutdown()
		return
	}
}

// shutdown: the data plane has read the last byte.
func (s *sealedConn) shutdown() {
	if raw, err := s.local.SyscallConn(); err == nil {
		// closed: seen as well
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) }) //nolint:errcheck
	}
}

// endChanged ends the job: the received bytes are not those that the other end has sent.
func endChanged(p tcp.Process, err error) {
	text := C.CString(fmt.Sprintf(
		"what comes from %v was changed on its way: somebody on the network between %v and %v "+
			"changes it, or a device there is broken (%v)",
		describe(p), addressOf(p.Number), hostName(), err))
	C.spx_end_job(C.MPI_ERR_OTHER, text)
}

// unsettled is how many connections have bytes that the data plane has written and the other end's
// kernel does not have, those with processes that are gone left aside.
func unsettled() (n int) {
	sealedConns.mu.Lock()
	defer sealedConns.mu.Unlock()
	for s := range sealedConns.all {
		if !s.lost.Load() && !isGone(s.to) && (s.inHand.Load() || s.queued() > 0) {
			n++
		}
	}
	return n
}

// queued is how many bytes the socket has that the other end's kernel has not acknowledged.
func (s *sealedConn) queued() (n int) {
	if raw, err := s.socket.SyscallConn(); err == nil {
		// closed: none
		raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) }) //nolint:errcheck
	}
	return n
}
