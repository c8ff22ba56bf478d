package names

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"libspx/net/tcp"
)

// Numbers of the two ends in the handshake, and what it says of the protocol.
const (
	serverNumber = 0
	callerNumber = 1
	ways         = "names, sealed"
)

// all is the job of the handshake: whoever calls a server by another one's file is to learn that,
// and not that it is none.
var all = [16]byte([]byte("libspx names \x00\x00\x00"))

// identity is that of an end.
func identity(key [32]byte, number uint32) *tcp.Identity {
	return &tcp.Identity{Job: all, Key: key, Self: tcp.Process{Number: number}, Ways: ways,
		TLS: true}
}

// callLimit is for a caller to say what it wants, and for it to be answered, beside Settle.
const callLimit = 10 * time.Second

// mostCalls are answered at a time; further ones wait.
const mostCalls = 256

// A Server answers jobs.
type Server struct {
	key    [32]byte
	began  time.Time
	settle time.Duration
	places chan struct{}
	tcp    tcp.Server

	mu      sync.Mutex
	table   *Table        // guarded by mu, as below
	changed chan struct{} // closed when a name comes
}

// NewServer makes one. again: jobs may have published names at one that had this key before.
func NewServer(key [32]byte, again bool) *Server {
	s := &Server{key: key, began: time.Now(), places: make(chan struct{}, mostCalls),
		table: NewTable(), changed: make(chan struct{})}
	if again {
		s.settle = Settle
	}
	return s
}

// Serve answers calls until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	s.tcp.Identity = *identity(s.key, serverNumber)
	s.tcp.Decide = func(tcp.Process) tcp.Verdict { return tcp.Taken }
	s.tcp.Adopt = func(c net.Conn, _ tcp.Process) { s.answer(c) }
	s.tcp.Failed = func(tcp.Process, uint16) {}
	return s.tcp.Serve(l)
}

// answer answers one request.
func (s *Server) answer(c net.Conn) {
	s.places <- struct{}{}
	defer func() { <-s.places }()
	defer hangUp(c)
	// without, it ends with its caller
	c.SetDeadline(time.Now().Add(callLimit + Settle)) //nolint:errcheck
	q, err := ReadRequest(c)
	if err != nil {
		return
	}
	Write(c, s.do(q)) //nolint:errcheck // it may be gone
}

// do answers, as soon as it can be known what is to be said.
func (s *Server) do(q *Request) *Answer {
	settled := time.NewTimer(time.Until(s.began.Add(s.settle)))
	defer settled.Stop()
	for waits := s.settle > 0; ; {
		s.mu.Lock()
		now, changed := time.Since(s.began), s.changed
		if !waits || s.table.Knows(q, now) {
			defer s.mu.Unlock()
			if q.Kind == Publish || q.Kind == Hold {
				close(s.changed)
				s.changed = make(chan struct{})
			}
			return s.table.Do(q, now)
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-settled.C:
			waits = false
		}
	}
}

// hangUp closes a connection, without waiting for its other end as TLS does.
func hangUp(c net.Conn) {
	if sealed, ok := c.(*tls.Conn); ok {
		c = sealed.NetConn()
	}
	c.Close()
}
