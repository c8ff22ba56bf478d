package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"libspx/ft/replica"
	"libspx/launch/control"
	"libspx/net/tcp"
)

// The agents of a job that keep a sequence of its events (sequence.go) reach each other directly:
// the deciding agent is not always there to forward their messages. Each listens at a port, and
// calls another one when it has a message for it; that one's messages come over its own call.
// Connections are sealed and proved as all between agents are (sealed.go). Messages may get lost:
// they are repeated.

// meshWays keeps these connections apart from others between agents: no call is of use at another
// kind of port.
const meshWays = sealedWays + ", of one sequence"

// Bounds of a way to another agent.
const (
	// messages that wait; the sequence does without those that are too many
	meshQueue  = 256
	meshBytes  = 32 << 20         // the same, in bytes
	meshWrite  = 10 * time.Second // for one of them to leave; then the agent is called again
	meshPauses = 200 * time.Millisecond
)

// mesh is this agent's part.
type mesh struct {
	at       netip.AddrPort // of this one
	identity tcp.Identity
	self     int
	listener net.Listener
	server   *tcp.Server
	refused  tcp.Refusals
	heard    func(replica.Message) // by any goroutine
	ctx      context.Context       // until it ends
	end      func()

	mu    sync.Mutex
	where []netip.AddrPort      // guarded by mu, as all below: by host
	to    map[int]*meshWay      // by host
	from  map[int]*control.Conn // likewise, the latest call of each
	wrong uint64                // messages that no agent of the job sends
	over  map[int]bool          // hosts that were there, and are none of the job's any more

	// by any goroutine: the agent of a host decides, and speaks over this; nil: none does so
	led func(from int, said control.Lead, conn *control.Conn)
	// likewise: the other agents have excluded this one
	expelled func()
}

// meshWay is the way to another agent.
type meshWay struct {
	m      *mesh
	number int
	more   chan struct{} // has room for one
	ctx    context.Context
	end    func()

	mu    sync.Mutex
	list  [][]byte // guarded by mu
	bytes int      // guarded by mu: of the list
}

// openMesh listens at a socket. The mesh takes it.
func openMesh(fd int, at netip.AddrPort, job [16]byte, key [32]byte, self int,
	heard func(replica.Message)) (*mesh, error) {
	file := os.NewFile(uintptr(fd), "for agents of other hosts")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	m := &mesh{at: at, identity: meshIdentity(job, key, self), self: self, listener: l,
		heard: heard, to: map[int]*meshWay{}, from: map[int]*control.Conn{}, over: map[int]bool{}}
	m.ctx, m.end = context.WithCancel(context.Background())
	m.server = &tcp.Server{
		Identity: m.identity,
		Decide:   m.decide,
		Adopt:    m.adopt,
		Failed:   func(tcp.Process, uint16) {},
		Refused:  &m.refused,
	}
	go m.server.Serve(l) //nolint:errcheck // it ends when the listener is closed
	return m, nil
}

// expect sets the handlers of a deciding agent's call, and of this agent's exclusion by the others.
func (m *mesh) expect(led func(int, control.Lead, *control.Conn), expelled func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.led, m.expelled = led, expelled
}

// expects are the handlers that expect has set.
func (m *mesh) expects() (led func(int, control.Lead, *control.Conn), expelled func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.led, m.expelled
}

// meshIdentity is an agent's identity in the handshake with another agent of its job.
func meshIdentity(job [16]byte, key [32]byte, number int) tcp.Identity {
	id := agentIdentity(job, key, uint32(number))
	id.Ways = meshWays
	return id
}

// meet sets the agents' addresses. Connections to agents without an address, or with another one,
// end.
func (m *mesh) meet(where []netip.AddrPort) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, w := range m.to {
		if n >= len(where) || !where[n].IsValid() || where[n] != m.where[n] {
			w.end()
			delete(m.to, n)
		}
	}
	for n, at := range m.where {
		if at.IsValid() && (n >= len(where) || !where[n].IsValid()) {
			m.over[n] = true // numbers are not given again
		}
	}
	m.where = where
	for n, c := range m.from {
		if !m.knows(n) {
			c.Close()
			delete(m.from, n)
		}
	}
}

// knows: there is such an agent beside this one. Called with mu held.
func (m *mesh) knows(n int) bool {
	return n >= 0 && n < len(m.where) && n != m.self && m.where[n].IsValid()
}

// send sends a message to another agent, or does not.
func (m *mesh) send(msg *replica.Message) {
	m.mu.Lock()
	w := m.to[msg.To]
	if w == nil && m.knows(msg.To) && m.ctx.Err() == nil {
		w = &meshWay{m: m, number: msg.To, more: make(chan struct{}, 1)}
		w.ctx, w.end = context.WithCancel(m.ctx)
		m.to[msg.To] = w
		go w.run(m.where[msg.To])
	}
	m.mu.Unlock()
	if w != nil {
		w.put(msg.Encode())
	}
}

func (w *meshWay) put(text []byte) {
	w.mu.Lock()
	if len(w.list) < meshQueue && w.bytes+len(text) <= meshBytes {
		w.list, w.bytes = append(w.list, text), w.bytes+len(text)
	}
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *meshWay) take() (list [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, w.list, w.bytes = w.list, nil, 0
	return list
}

// run calls the agent as often as it has to, and sends what there is.
func (w *meshWay) run(at netip.AddrPort) {
	for w.ctx.Err() == nil {
		select {
		case <-w.ctx.Done():
			return
		case <-w.more:
		}
		c, verdict, err := tcp.DialContext(w.ctx, at.String(), &w.m.identity,
			tcp.Process{Number: uint32(w.number)})
		if _, expelled := w.m.expects(); err == nil && verdict == tcp.Elsewhere && expelled != nil {
			expelled()
		}
		if err != nil || verdict != tcp.Taken {
			w.take() // it was for then
			select {
			case <-w.ctx.Done():
			case <-time.After(meshPauses):
			}
			continue
		}
		w.over(sealedConn(c))
	}
}

// over sends over a connection until it ends, or the way does.
func (w *meshWay) over(c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(w.ctx, func() { c.Close() })()
	gone := make(chan struct{})
	go func() { // nothing comes back but its end
		var b [1]byte
		c.Read(b[:]) //nolint:errcheck // see above
		close(gone)
	}()
	conn := control.NewConn(c)
	for {
		for _, text := range w.take() {
			// without, a connection that leads nowhere ends later
			c.SetWriteDeadline(time.Now().Add(meshWrite)) //nolint:errcheck
			if conn.Send(&control.Message{Sequence: text}) != nil {
				return
			}
		}
		select {
		case <-w.more:
		case <-gone:
			return
		case <-w.ctx.Done():
			return
		}
	}
}

// decide takes calls of those of the job's agents that are there.
func (m *mesh) decide(from tcp.Process) tcp.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch n := int(from.Number); {
	case m.over[n]:
		return tcp.Elsewhere
	case m.where != nil && (n >= len(m.where) || n == m.self):
		return tcp.Gone
	case m.ctx.Err() != nil || !m.knows(n):
		return tcp.Full // it may be known soon
	}
	return tcp.Taken
}

// adopt hears an agent. Its earlier call, if there is one, is over.
func (m *mesh) adopt(c net.Conn, from tcp.Process) {
	conn, n := control.NewConn(sealedConn(c)), int(from.Number)
	// without, it ends with its caller
	c.SetReadDeadline(time.Now().Add(inviteLimit)) //nolint:errcheck
	first, err := conn.Receive()
	if err != nil || c.SetReadDeadline(time.Time{}) != nil {
		conn.Close()
		return
	}
	if led, _ := m.expects(); first.Lead != nil && led != nil {
		led(n, *first.Lead, conn)
		return
	}
	m.mu.Lock()
	old, known := m.from[n], m.knows(n) && m.ctx.Err() == nil
	if known {
		m.from[n] = conn
	}
	m.mu.Unlock()
	if old != nil && known {
		old.Close()
	}
	if known {
		if !m.hear(conn, n, first) {
			m.mu.Lock()
			m.wrong++
			m.mu.Unlock()
		}
	}
	conn.Close()
	m.mu.Lock()
	if m.from[n] == conn {
		delete(m.from, n)
	}
	m.mu.Unlock()
}

// hear handles an agent's messages, until it has gone; false: or until it has sent an invalid one.
func (m *mesh) hear(conn *control.Conn, n int, said *control.Message) bool {
	for {
		msg, err := replica.Decode(said.Sequence)
		if err != nil || msg.From != n || msg.To != m.self {
			return false
		}
		m.heard(msg)
		if said, err = conn.Receive(); err != nil {
			return true
		}
	}
}

// lead calls another agent, to notify it that this one decides: the connection is for all their
// messages. It tries as long as the other one is there, within a time.
func (m *mesh) lead(host int, said control.Lead) (*control.Conn, error) {
	for limit := time.Now().Add(leadLimit); ; {
		m.mu.Lock()
		known, at := m.knows(host), netip.AddrPort{}
		if known {
			at = m.where[host]
		}
		m.mu.Unlock()
		if !known {
			return nil, errNotReached
		}
		c, verdict, err := tcp.DialContext(m.ctx, at.String(), &m.identity,
			tcp.Process{Number: uint32(host)})
		if err == nil && verdict == tcp.Taken {
			conn := control.NewConn(sealedConn(c))
			return conn, conn.Send(&control.Message{Lead: &said})
		}
		// it has listened there before: it has ended
		if time.Now().After(limit) || m.ctx.Err() != nil || errors.Is(err, unix.ECONNREFUSED) {
			return nil, errNotReached
		}
		select {
		case <-m.ctx.Done():
		case <-time.After(meshPauses / 4):
		}
	}
}

// leadLimit is how long an agent that has come to decide calls another one in vain.
const leadLimit = 3 * time.Second

var errNotReached = errors.New("its agent does not answer")

// refusals counts the calls that no agent of the job has made, and messages that none sends.
func (m *mesh) refusals() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused.Total() + m.wrong
}

// close ends it.
func (m *mesh) close() {
	m.end()
	m.listener.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.from {
		c.Close()
	}
}
