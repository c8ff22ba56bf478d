package tcp

import (
	"crypto/rand"
	"io"
	"net"
	"testing"
	"time"
)

// serve starts a server of bob's on loopback, which takes who decide says, or all; stop ends it, and returns when all calls have been answered and counted.
func serve(t *testing.T, decide ...func(Process) Verdict) (s *Server, address string, adopted chan Process, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	adopted = make(chan Process, 16)
	decide = append(decide, always(Taken))
	s = &Server{Identity: *identity(bob, 1), Decide: decide[0], Failed: func(Process) {}, Refused: new(Refusals),
		Adopt: func(c net.Conn, from Process) { adopted <- from; c.Close() }}
	done := make(chan struct{})
	go func() { s.Serve(l); close(done) }() //nolint:errcheck // it ends when the listener is closed
	stop = func() { l.Close(); <-done }
	t.Cleanup(stop)
	return s, l.Addr().String(), adopted, stop
}

// reach fails the test unless alice is connected at once. The best of some tries counts: other work may have the processors for long, but a connection that waits for another to be given up waits
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

// Connections that say nothing cost at most maxUnproved places: the oldest give way, and those of the job come through.
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
		t.Errorf("%d connections that have proved nothing are kept, at most %d should be", n, maxUnproved)
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
	for end := time.Now().Add(10 * time.Second); s.Refused.Total() < 50 && time.Now().Before(end); { // these callers hang up by themselves, and see nothing of it
		time.Sleep(time.Millisecond)
	}
	stop()
	if n := s.Refused.Key.Load(); n != 50 {
		t.Errorf("%d callers without the key counted, want 50, of %d refused", n, s.Refused.Total())
	}
}
