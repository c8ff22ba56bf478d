package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/agent"
	"libspx/launch/service"
	"libspx/net/tcp"
	"libspx/net/topo"
)

// Bounds of what a host does.
const (
	dialLimit = 3 * time.Second // for a connection and its handshake
	echoLimit = time.Second
	flowLimit = 20 * time.Second // a flow ends by itself then, whatever messages arrive
	// connections that have not yet proved that they belong here, at once
	strangers = 64
	echoBytes = 16
	// between two bursts of echoes: a turn of another process, on most systems
	spaceMost = 4 * time.Millisecond
	// echoes without a pause: the first after one finds caches cold
	burst     = 8
	flowChunk = 64 << 10
	// slices of a window, of which the median counts: a moment in which a host does not run does
	// not
	watchParts = 16
	watchRTTs  = 8 // round trips that a window has at least
	settleRTTs = 4 // round trips in which a flow should bring as much as in those before
	settleMost = 8 // times that long it is waited for that
	settledBy  = 1.2
)

// host is the program on a host.
type host struct {
	conn  *conn
	id    tcp.Identity
	peers []netip.AddrPort

	mu    sync.Mutex
	flows map[int]func() // guarded by mu: ends a flow that this host sends
	sinks map[int]*sink  // guarded by mu: flows that this host gets
	came  sync.Cond      // a sink
}

// sink is a flow as it comes.
type sink struct {
	fd    int
	bytes atomic.Int64
}

// Main is the program on a host; it ends when its standard input does. The result is the exit
// status.
func Main() int {
	h := &host{conn: newConn(struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}), flows: map[int]func(){}, sinks: map[int]*sink{}}
	h.came.L = &h.mu
	m, err := h.conn.receive()
	if err != nil || m.Begin == nil {
		fmt.Fprintf(os.Stderr,
			"%s: this program is started by spxctl topology and spxrun --probe (%v)\n", HostWord,
			err)
		return 1
	}
	r := h.settle(m.Begin)
	if err := h.conn.send(&message{Ready: r}); err != nil || r.Text != "" {
		return 1
	}
	for {
		m, err := h.conn.receive()
		switch {
		case err != nil:
			return 0
		case m.Peers != nil:
			h.peers = m.Peers
		case m.Ping != nil:
			go h.ping(*m.Ping)
		case m.Flow != nil:
			go h.flow(*m.Flow)
		case m.Watch != nil:
			go h.watch(*m.Watch)
		case m.Stop != 0:
			h.stop(m.Stop)
		}
	}
}

// settle opens the socket by which other hosts reach this one.
func (h *host) settle(b *begin) *ready {
	if b.Version != version || b.Job.Self < 0 || b.Job.Self >= len(b.Job.Hosts) {
		return &ready{Text: fmt.Sprintf("it has another version of libspx (messages %d, not %d)",
			version, b.Version)}
	}
	l, err := agent.Listen(&b.Job, []string{service.EnvPorts + "=" + b.Ports})
	if err != nil {
		return &ready{Text: err.Error()}
	}
	h.id = tcp.Identity{Job: b.Job.ID, Key: b.Job.Key,
		Self: tcp.Process{Number: uint32(b.Job.Self)}}
	go h.serve(l)
	return &ready{At: l.Addr().(*net.TCPAddr).AddrPort(), Switch: os.Getenv("SLURM_TOPOLOGY_ADDR"),
		Pattern: os.Getenv("SLURM_TOPOLOGY_ADDR_PATTERN")}
}

func (h *host) fail(id int, err error) {
	// the other side has ended
	h.conn.send(&message{Fails: &fails{id, err.Error()}}) //nolint:errcheck
}

// ---- callers

// What a connection is for: its first byte after the handshake.
const (
	forEchoes = 'e'
	forFlow   = 'f' // then the number of the flow
)

// acceptPause is waited when a connection cannot be taken.
const acceptPause = 10 * time.Millisecond

func (h *host) serve(l net.Listener) {
	places := make(chan struct{}, strangers)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor, or the caller has gone
			time.Sleep(acceptPause)
			continue
		}
		places <- struct{}{}
		go func() {
			what, err := h.greet(c)
			<-places
			fd, err2 := rawOf(c)
			if err != nil || err2 != nil {
				return
			}
			defer unix.Close(fd)
			if what == forEchoes {
				echo(fd)
			} else {
				h.drain(fd)
			}
		}()
	}
}

// greet authenticates a caller, and returns the purpose of its call.
func (h *host) greet(c net.Conn) (what byte, err error) {
	c.SetDeadline(time.Now().Add(dialLimit)) //nolint:errcheck // of a socket
	if _, _, err = tcp.Answer(c, &h.id,
		func(tcp.Process) tcp.Verdict { return tcp.Taken }); err != nil {
		return 0, err
	}
	var b [1]byte
	_, err = io.ReadFull(c, b[:])
	return b[0], err
}

// rawOf takes the descriptor of a connection, which waits from then on without Go's poller.
func rawOf(c net.Conn) (int, error) {
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3) // Fd has made it blocking
	return fd, err
}

func echo(fd int) {
	var b [echoBytes]byte
	for readFull(fd, b[:]) == nil {
		if _, err := unix.Write(fd, b[:]); err != nil {
			return
		}
	}
}

var errClosed = errors.New("the connection was closed")

func readFull(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return errClosed
		default:
			b = b[n:]
		}
	}
	return nil
}

// drain takes a flow.
func (h *host) drain(fd int) {
	var number [8]byte
	if readFull(fd, number[:]) != nil {
		return
	}
	id, s := int(binary.LittleEndian.Uint64(number[:])), &sink{fd: fd}
	h.mu.Lock()
	h.sinks[id] = s
	h.mu.Unlock()
	h.came.Broadcast()
	b := make([]byte, 4*flowChunk)
	for {
		n, err := unix.Read(fd, b)
		if n <= 0 && err != unix.EINTR {
			break
		}
		s.bytes.Add(int64(max(n, 0)))
	}
	h.mu.Lock()
	delete(h.sinks, id)
	h.mu.Unlock()
	// the other side has ended
	h.conn.send(&message{Ended: &ended{id, s.bytes.Load()}}) //nolint:errcheck
}

// ---- what is measured

// call connects with another host.
func (h *host) call(to int, what byte) (fd int, err error) {
	if to < 0 || to >= len(h.peers) {
		return -1, fmt.Errorf("there is no host %d", to)
	}
	c, err := net.DialTimeout("tcp", h.peers[to].String(), dialLimit)
	if err != nil {
		return -1, err
	}
	c.SetDeadline(time.Now().Add(dialLimit)) //nolint:errcheck // of a socket
	if _, err = tcp.Call(c, &h.id, tcp.Process{Number: uint32(to)}); err == nil {
		_, err = c.Write([]byte{what})
	}
	if err != nil {
		c.Close()
		return -1, fmt.Errorf("%v: %w", h.peers[to], err)
	}
	return rawOf(c)
}

// ping measures the time of some echoes, of which the first does not count.
func (h *host) ping(p ping) {
	fd, err := h.call(p.To, forEchoes)
	if err != nil {
		h.fail(p.ID, err)
		return
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(int64(echoLimit))
	// of a socket
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit) //nolint:errcheck
	// of a TCP socket
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) //nolint:errcheck
	var b [echoBytes]byte
	var took []int64
	for i := range p.Echoes + 1 {
		if p.Spaced && i%burst == 1 {
			time.Sleep(rand.N(spaceMost))
		}
		began := time.Now()
		if _, err = unix.Write(fd, b[:]); err == nil {
			err = readFull(fd, b[:])
		}
		if err != nil {
			h.fail(p.ID, fmt.Errorf("an echo of %v: %w", h.peers[p.To], err))
			return
		}
		took = append(took, time.Since(began).Nanoseconds())
	}
	took = took[1:]
	slices.Sort(took)
	// the other side has ended
	h.conn.send(&message{Times: &times{p.ID, took[:min(len(took), topo.Shortest)]}}) //nolint:errcheck
}

// flow sends to another host until it gets Stop.
func (h *host) flow(f flow) {
	fd, err := h.call(f.To, forFlow)
	if err != nil {
		h.fail(f.ID, err)
		return
	}
	// what is in the socket when it is closed is not sent any more
	abrupt := unix.Linger{Onoff: 1}
	// of a socket
	unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &abrupt) //nolint:errcheck
	defer unix.Close(fd)
	end := time.AfterFunc(flowLimit, func() { h.stop(f.ID) })
	defer end.Stop()
	h.mu.Lock()
	// it may have ended
	h.flows[f.ID] = func() { unix.Shutdown(fd, unix.SHUT_RDWR) } //nolint:errcheck
	h.mu.Unlock()
	defer h.stop(f.ID)
	b := make([]byte, flowChunk)
	if _, err := unix.Write(fd, binary.LittleEndian.AppendUint64(nil, uint64(f.ID))); err != nil {
		h.fail(f.ID, err)
		return
	}
	h.conn.send(&message{Flows: f.ID}) //nolint:errcheck // the other side has ended
	for err = nil; err == nil || err == unix.EINTR; {
		_, err = unix.Write(fd, b)
	}
}

// stop ends a flow that this host sends.
func (h *host) stop(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if end := h.flows[id]; end != nil {
		end()
		delete(h.flows, id)
	}
}

// watch waits until a flow has found its rate, and measures that.
func (h *host) watch(w watch) {
	late := false
	limit := time.AfterFunc(dialLimit, func() {
		h.mu.Lock()
		late = true
		h.mu.Unlock()
		h.came.Broadcast()
	})
	h.mu.Lock()
	for h.sinks[w.ID] == nil && !late {
		h.came.Wait()
	}
	s := h.sinks[w.ID]
	h.mu.Unlock()
	limit.Stop()
	if s == nil {
		h.fail(w.ID, errors.New("the flow has not come"))
		return
	}
	s.settle(w.Window)
	window := min(max(w.Window, watchRTTs*s.trip()), time.Second/2)
	var rates []float64
	for range watchParts {
		rates = append(rates, s.over(window/watchParts))
	}
	slices.Sort(rates)
	sum := 0.0
	for _, r := range rates[watchParts/4 : watchParts*3/4] {
		sum += r
	}
	// the other side has ended
	h.conn.send(&message{Rate: &rate{w.ID, sum / (watchParts / 2)}}) //nolint:errcheck
}

// trip is the round trip time of a flow as it is now, with what waits in queues.
func (s *sink) trip() time.Duration {
	info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return time.Duration(info.Rcv_rtt) * time.Microsecond
}

// over is how much comes in a time.
func (s *sink) over(d time.Duration) float64 {
	before, at := s.bytes.Load(), time.Now()
	time.Sleep(d)
	return float64(s.bytes.Load()-before) / time.Since(at).Seconds()
}

// settle waits until a flow has found its rate: it begins too fast, and loses much.
func (s *sink) settle(window time.Duration) {
	last := 0.0
	for range settleMost {
		r := s.over(min(max(window/4, settleRTTs*s.trip()), time.Second/4))
		if last > 0 && max(r/last, last/r) < settledBy {
			return
		}
		last = r
	}
}
