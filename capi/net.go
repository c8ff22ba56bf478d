package main

/*
#include "dp.h"
#include "net_conn.h"
#include "runtime.h"
#include "settings.h"
static uint32_t net_word(uint32_t i, int what)
{
  spx_proc *p = spx_proc_of(i);
  return __atomic_load_n(what == 0 ? &p->incarnation : &p->agent_state, __ATOMIC_ACQUIRE);
}
*/
import "C"

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/launch/service"
	"libspx/net/tcp"
	"libspx/shm"
)

// Connections with the processes that are reached over the network: made here, by goroutines that
// do not wait for MPI calls, and handed to the data plane (dataplane/transport/tcp/net.c), which
// writes the peers that it wants to reach to a pipe. A pair has one connection. When both ends call
// at the same time, the call of the end with the lower number counts (between jobs, where each has
// its own: of the lower identity).

// A pairState says how far the connection of a pair is. Never do both ends think that a connection
// is theirs and mean different ones: who answers Taken has the connection when the caller confirms;
// a caller with the lower number answers no call between its own and its end; and who waits for a
// confirmation does not call.
type pairState struct {
	made      bool          // handed over: nothing is called or answered any more
	wanted    bool          // a goroutine calls until there is a connection
	waits     chan struct{} // that goroutine waits for a slot; closed when there is a connection
	calling   bool          // a call of its is under way
	answering bool          // a call was answered Taken, and is not confirmed yet
}

var netState netEngine

type netEngine struct {
	id       tcp.Identity
	server   tcp.Server
	listener net.Listener
	want     [2]*os.File
	stop     chan struct{}

	policy policy

	slots slots

	mu     sync.Mutex
	pairs  map[tcp.Process]*pairState
	kept   []bool                       // by process, where messages are relayed: a neighbour
	abroad map[tcp.Process]acquaintance // of processes of other jobs
}

func init() {
	onStart(startNet)
	onStopped(stopNet)
}

func startNet(info *startInfo) (err error) {
	if !C.spx_beyond_host() {
		return nil
	}
	s := &netState
	s.id = tcp.Identity{Job: info.JobID, Self: tcp.Process{Number: info.Proc,
		Life: lifeOf(info.Proc)}}
	copy(s.id.Key[:], unsafe.Slice((*byte)(unsafe.Pointer(&C.spx_segment.key)), len(s.id.Key)))
	s.pairs, s.stop = map[tcp.Process]*pairState{}, make(chan struct{})
	if err := readPolicy(); err != nil {
		return err
	}
	s.id.Ways = s.policy.String()
	if s.id.TLS = C.spx_setting_begin(C.SPX_SET_TLS, 0, 1) != 0; s.id.TLS {
		s.id.Ways += " SPX_TLS=1"
		C.spx_net_sealed = true
	}
	if err := startFabric(); err != nil {
		return err
	}
	s.server = tcp.Server{Identity: s.id, Decide: decide, Adopt: confirmed, Failed: givenUp,
		Short: noDescriptors, Refused: (*tcp.Refusals)(unsafe.Pointer(&C.spx_refused)),
		DecideFurther: decideFurther, AdoptFurther: furtherConfirmed, Other: identityAbroad}
	if s.listener, err = inheritedListener(); err != nil {
		return fail(C.MPI_ERR_OTHER, "%v", err)
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return fail(C.MPI_ERR_OTHER, "a pipe for connections: %v", err)
	}
	spare.take()
	// os.File would only block a thread of its own
	unix.SetNonblock(ends[0], true) //nolint:errcheck
	for i, fd := range ends {
		s.want[i] = os.NewFile(uintptr(fd), "connections")
	}
	startPolicy()
	C.spx_net_start(C.int(ends[1]))
	go s.server.Serve(s.listener) //nolint:errcheck // it ends when the listener is closed
	go heed(s.want[0])
	return nil
}

func stopNet() {
	s := &netState
	if s.listener == nil {
		return
	}
	C.spx_net_start(-1)
	close(s.stop)
	s.listener.Close()
	for spare.give() {
	}
	s.want[0].Close()
	s.want[1].Close()
	s.listener = nil
}

// inheritedListener is the socket that the agent made for this process before it was started: its
// address was known to all from the first moment.
func inheritedListener() (net.Listener, error) {
	if launched.listener != nil {
		return launched.listener, nil
	}
	text := getenv(service.EnvListen)
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf(
			"this process is reached over the network, but has no socket to listen on (%s=%q)",
			service.EnvListen, text)
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf(
			"descriptor %d, on which this process should listen (%s), is no listening socket "+
				"(%v); a wrapper may have closed it", fd, service.EnvListen, err)
	}
	return l, nil
}

func lifeOf(i uint32) uint32 { return uint32(C.net_word(C.uint32_t(i), 0)) }

// isGone: process p has ended, or its number is another's.
func isGone(p tcp.Process) bool {
	return lifeOf(p.Number) != p.Life || hasEnded(p.Number)
}

// hasEnded: the process that has this number now has died, or left.
func hasEnded(number uint32) bool {
	state := uint32(C.net_word(C.uint32_t(number), 1))
	return state == shm.AgentDead || state == shm.AgentExited
}

func pairWith(p tcp.Process) *pairState {
	if netState.pairs[p] == nil {
		netState.pairs[p] = &pairState{}
	}
	return netState.pairs[p]
}

// decide answers a call of from.
func decide(from tcp.Process) tcp.Verdict {
	s := &netState
	s.mu.Lock()
	defer s.mu.Unlock()
	if from.Number >= uint32(C.spx_map.nprocs) || isGone(from) {
		return tcp.Gone
	}
	p := pairWith(from)
	if p.made || p.answering || p.calling && !yields(from) {
		return tcp.Elsewhere
	}
	p.answering = true
	s.mu.Unlock()
	got := s.slots.answer(from)
	s.mu.Lock()
	if got && !p.made { // no call of this process's was taken meanwhile
		C.spx_net_coming(C.uint32_t(from.Number), 1)
		return tcp.Taken
	}
	p.answering = false
	if got {
		s.slots.give()
		return tcp.Elsewhere
	}
	return tcp.Full
}

// confirmed: from uses the connection that it was told is taken.
func confirmed(c net.Conn, from tcp.Process) {
	netState.mu.Lock()
	p := pairWith(from)
	p.made, p.answering = true, false
	if p.waits != nil {
		close(p.waits)
		p.waits = nil
	}
	netState.mu.Unlock()
	handOver(c, from)
	comes(from)
}

// comes: the connection with p that spx_net_coming was told of is with the data plane, or is none.
func comes(p tcp.Process) { C.spx_net_coming(C.uint32_t(p.Number), -1) }

// givenUp: it does not, and the socket is closed.
func givenUp(from tcp.Process, stream uint16) {
	if stream == 0 {
		netState.mu.Lock()
		pairWith(from).answering = false
		netState.mu.Unlock()
		comes(from)
	}
	netState.slots.give()
}

// decideFurther answers a call of from for a further stream of the pair: there is a connection, or
// was one.
func decideFurther(from tcp.Process, _ uint16) tcp.Verdict {
	switch {
	case from.Number >= uint32(C.spx_map.nprocs) || isGone(from):
		return tcp.Gone
	case !bool(C.spx_net_takes_further()) || !netState.slots.try():
		return tcp.Elsewhere
	}
	return tcp.Taken
}

// furtherConfirmed: from writes to the stream that it was told is taken.
func furtherConfirmed(c net.Conn, from tcp.Process, _ uint16) { handFurther(c, from, false) }

// handFurther gives a further stream to the data plane; out: this process has made it.
func handFurther(c net.Conn, p tcp.Process, out bool) {
	fd, err := socketOf(c, p)
	if err != nil {
		netState.slots.give()
		fd = -1
	}
	C.spx_net_adopt_further(C.int(fd), C.uint32_t(p.Number), C.uint32_t(p.Life), C.bool(out))
}

// callFurther makes one more stream to a process that the data plane has a connection with. When it
// cannot be made, all goes over those that there are: the data plane asks again after a while.
func callFurther(p tcp.Process) {
	if id, to, err := identityFor(p, 1); err == nil && netState.slots.try() {
		c, verdict, err := tcp.Dial(addressOf(p.Number).String(), id, to)
		if err == nil && verdict == tcp.Taken {
			handFurther(c, p, true)
			return
		}
		netState.slots.give()
	}
	C.spx_net_adopt_further(-1, C.uint32_t(p.Number), C.uint32_t(p.Life), true)
}

// forgetPair: the connection of a pair has ended, or could not be used.
func forgetPair(p tcp.Process) {
	netState.mu.Lock()
	defer netState.mu.Unlock()
	pairWith(p).made = false
}

// handOver gives a connection to the data plane. False: there was no descriptor for it, and it is
// closed.
func handOver(c net.Conn, p tcp.Process) bool {
	fd, err := socketOf(c, p)
	if err != nil {
		forgetPair(p)
		netState.slots.give()
		complain(fmt.Sprintf("connections: %v", err),
			fmt.Sprintf("the connection with %v: %v", describe(p), err))
		return false
	}
	C.spx_net_adopt(C.int(fd), C.uint32_t(p.Number), C.uint32_t(p.Life))
	return true
}

// socketOf takes the socket out of Go's hands; with TLS, it is one before it.
func socketOf(c net.Conn, p tcp.Process) (fd int, err error) {
	if sealed, ok := c.(*tls.Conn); ok {
		return sealedSocket(sealed, p)
	}
	defer spare.take() // when the close has given one back
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(of uintptr) {
		failed = withDescriptors(func() (err error) {
			fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3)
			return err
		})
		if failed == nil {
			failed = tcp.Tune(fd, c.LocalAddr(), c.RemoteAddr())
		}
	})
	if err == nil {
		err = failed
	}
	return fd, err
}

// descriptorPatience is for how long a connection that both ends use already waits for a
// descriptor, and pressEvery how often one is asked for.
const descriptorPatience, pressEvery = 20 * time.Second, 100 * time.Millisecond

// withDescriptors opens something for a connection that the other end counts on: closed, it would
// be one that has broken. So while there are no descriptors, it waits for those of connections that
// were not used for long.
func withDescriptors(open func() error) error {
	began := time.Now()
	var pressed time.Time
	for {
		err := open()
		if !isShort(err) || time.Since(began) > descriptorPatience {
			return err
		}
		if spare.give() {
			continue
		}
		if time.Since(pressed) > pressEvery {
			pressed = time.Now()
			C.spx_net_press()
		}
		time.Sleep(time.Millisecond)
	}
}

// spare are descriptors that are kept for when the program has all others: a connection has two for
// a moment, and those that are to make room for it may take their time to end.
var spare reserve

const mostSpare = 4

type reserve struct {
	mu   sync.Mutex
	kept []int // guarded by mu
}

// give makes one free for the next file that is opened.
func (r *reserve) give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.kept) - 1
	if n < 0 {
		return false
	}
	unix.Close(r.kept[n])
	r.kept = r.kept[:n]
	return true
}

// take gets what is missing, as far as there is any.
func (r *reserve) take() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.kept) < mostSpare {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		r.kept = append(r.kept, fd)
	}
}

// collectAfter is how many connections end before what making them has left is collected: the
// engine's heap would else grow to 4 MB first, in every process of a job whose connections come and
// go.
const collectAfter = 256

// heed does what the data plane writes to the pipe: a number with a word, and the life of the
// process, or the news that processes have come or gone.
func heed(want *os.File) {
	var b [8]byte
	for ended := 0; ; {
		if n, err := want.Read(b[:]); err != nil || n != len(b) {
			return
		}
		word := binary.LittleEndian.Uint32(b[:])
		const numbers = C.SPX_NET_CLOSED - 1
		p := tcp.Process{Number: word & numbers, Life: binary.LittleEndian.Uint32(b[4:])}
		if word >= C.SPX_NET_STREAM {
			go callFurther(p)
			continue
		}
		if word == C.SPX_NET_HANDED {
			go carryHanded()
			continue
		}
		if word >= C.SPX_NET_SHUT {
			if !netState.id.TLS { // else the socket is not the data plane's, and open still
				netState.slots.give()
			}
			continue
		}
		if word >= C.SPX_NET_MOST {
			netState.slots.limit(p.Number)
			continue
		}
		if word >= C.SPX_NET_BYWAY {
			go fabricDeclined(p)
			continue
		}
		if word >= C.SPX_NET_LOST {
			go lostWith(p, syscall.Errno((word-C.SPX_NET_LOST)/C.SPX_NET_CLOSED))
			continue
		}
		switch word &^ numbers {
		case C.SPX_NET_NEWS:
			C.spx_net_heard()
			reroute()
		case C.SPX_NET_CLOSED:
			forgetPair(p)
			spare.take()
			if ended++; ended%collectAfter == 0 {
				runtime.GC()
			}
		default:
			go callUntil(p)
		}
	}
}

// carryFirst is for how long what a program has left in a connection's buffer is left to its own
// calls, and carryMost how often a socket that takes nothing is tried at least.
const carryFirst, carryMost = 10 * time.Millisecond, 50 * time.Millisecond

// carryHanded writes what the program has left behind while it makes no calls of MPI
// (dataplane/transport/tcp/net_hand_over.c).
func carryHanded() {
	for pause := carryFirst; ; {
		select {
		case <-netState.stop:
			return
		case <-time.After(pause):
		}
		switch C.spx_net_carry() {
		case C.SPX_CARRY_ALL:
			return
		case C.SPX_CARRY_SOME:
			pause = time.Millisecond
		default:
			pause = min(2*pause, carryMost)
		}
	}
}

// addressOf is where a process listens.
func addressOf(number uint32) netip.AddrPort {
	p := procOf(number)
	addr := netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&p.addr)))
	return netip.AddrPortFrom(addr.Unmap(), uint16(p.port))
}
