package tcp

import (
	"crypto/rand"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server of bob's on loopback, which takes the callers that decide accepts, or all;
// stop ends it, and returns when all calls have been answered and counted.
func serve(t *testing.T, decide ...func(Process) Verdict) (s *Server, address string,
	adopted chan Process, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	adopted = make(chan Process, 16)
	decide = append(decide, always(Taken))
	s = &Server{Identity: *identity(bob, 1), Decide: decide[0], Failed: func(Process, uint16) {},
		Refused: new(Refusals),
		Adopt:   func(c net.Conn, from Process) { adopted <- from; c.Close() }}
	done := make(chan struct{})
	go func() { s.Serve(l); close(done) }() //nolint:errcheck // it ends when the listener is closed
	stop = func() { l.Close(); <-done }
	t.Cleanup(stop)
	return s, l.Addr().String(), adopted, stop
}

// reach fails the test unless alice is connected at once. The best of some tries counts: other work
// may have the processors for long, but a connection that waits for another to be dropped waits
// every time.
func reach(t *testing.T, address string, adopted chan Process) {
	t.Helper()
	best := patience
	for try := 0; try < 5 && best > patience/2; try++ {
		best = min(best, reachOnce(t, address, adopted))
	}
	if best > patience/2 {
		t.Errorf("a process of the job was connected after %v", best)
	}
}

// reachOnce is how long it takes to be connected.
func reachOnce(t *testing.T, address string, adopted chan Process) time.Duration {
	t.Helper()
	began := time.Now()
	c, v, err := Dial(address, identity(alice, 1), bob)
	if err != nil || v != Taken {
		t.Fatalf("a process of the job is not connected: %v %v", v, err)
	}
	defer c.Close()
	select {
	case from := <-adopted:
		if from != alice {
			t.Errorf("adopted %v, want %v", from, alice)
		}
	case <-time.After(patience):
		t.Fatal("the connection was not adopted")
	}
	return time.Since(began)
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Silent connections cost at most maxUnproved places: the oldest give way, and those of
// the job come through.
func TestHalfOpenConnections(t *testing.T) {
	s, address, adopted, _ := serve(t)
	for range 1000 {
		c := dial(t, address)
		defer c.Close()
	}
	reach(t, address, adopted)
	s.mu.Lock()
	n := len(s.unproved)
	s.mu.Unlock()
	if n > maxUnproved {
		t.Errorf("%d connections that have proved nothing are kept, at most %d should be", n,
			maxUnproved)
	}
}

// Of few places for calls, silent callers keep one for a second only while others wait;
// and no more sockets are made of them than there are places.
func TestFewAnswered(t *testing.T) {
	const places = 2
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedListener{Listener: l}
	adopted := make(chan Process, 16)
	s := &Server{Identity: *identity(bob, 1), Decide: always(Taken),
		Failed: func(Process, uint16) {}, Answering: places,
		Adopt: func(c net.Conn, from Process) { adopted <- from; c.Close() }}
	done := make(chan struct{})
	// it ends when the listener is closed
	go func() { s.Serve(counted); close(done) }() //nolint:errcheck
	defer func() { l.Close(); <-done }()
	for range 2 * places {
		c := dial(t, l.Addr().String())
		defer c.Close()
	}
	for !reached(l.Addr().String(), adopted) { // it may have waited for longer than a caller does
	}
	if n := counted.most.Load(); n > places {
		t.Errorf("%d sockets at a time of calls that are being answered, want %d at most", n,
			places)
	}
}

func reached(address string, adopted chan Process) bool {
	c, v, err := Dial(address, identity(alice, 1), bob)
	if err != nil || v != Taken {
		return false
	}
	defer c.Close()
	return <-adopted == alice
}

// countedListener counts its connections.
type countedListener struct {
	net.Listener
	open, most atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := l.open.Add(1)
	l.most.Store(max(l.most.Load(), n))
	return &countedConn{Conn: c, of: l}, nil
}

type countedConn struct {
	net.Conn
	of   *countedListener
	once sync.Once
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.of.open.Add(-1) })
	return err
}

// A call abandoned before it was answered does not count as one without the key.
func TestGivenUpBeforeTheAnswer(t *testing.T) {
	s, address, _, stop := serve(t)
	s.mu.Lock() // the call is accepted, and waits here before it is answered
	h := hello{job: identity(alice, 1).Job, from: alice, to: bob,
		ways: digest(identity(alice, 1).Ways)}
	c := dial(t, address)
	c.Write(h.encode()) //nolint:errcheck // it is seen below
	c.Close()
	s.mu.Unlock()
	for end := time.Now().Add(10 * time.Second); s.Refused.Total() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	stop()
	if slow, keyless := s.Refused.Slow.Load(), s.Refused.Key.Load(); slow != 1 || keyless != 0 {
		t.Errorf("%d slow and %d keyless callers counted, want one slow one", slow, keyless)
	}
}

func TestRandomBytes(t *testing.T) {
	s, address, adopted, stop := serve(t)
	const callers = 200
	b := make([]byte, 4096)
	for range callers {
		c := dial(t, address)
		rand.Read(b)
		c.Write(b)             //nolint:errcheck // the other end may have hung up
		io.Copy(io.Discard, c) //nolint:errcheck // until it does
		c.Close()
	}
	reach(t, address, adopted)
	stop()
	if n := s.Refused.Strangers.Load(); n != callers {
		t.Errorf("%d strangers counted, want %d", n, callers)
	}
}

func TestWithoutTheKey(t *testing.T) {
	s, address, adopted, stop := serve(t)
	for range 50 {
		if _, _, err := Dial(address, identity(alice, 2), bob); err == nil {
			t.Fatal("connected without the key")
		}
	}
	reach(t, address, adopted)
	// these callers hang up by themselves, and see nothing of it
	for end := time.Now().Add(10 * time.Second); s.Refused.Total() < 50 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	stop()
	if n := s.Refused.Key.Load(); n != 50 {
		t.Errorf("%d callers without the key counted, want 50, of %d refused", n, s.Refused.Total())
	}
}
