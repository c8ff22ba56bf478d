package tcp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

const sealedWays = "SPX_CONNECTIONS=demand SPX_TLS=1"

func sealedIdentity(p Process, key byte) *Identity {
	id := identity(p, key)
	id.TLS, id.Ways = true, sealedWays
	return id
}

// sealedServer is a server of bob's with TLS, whose connections arrive in a channel.
func sealedServer(t *testing.T) (s *Server, address string, adopted chan net.Conn, stop func()) {
	s, address, _, stop = serve(t)
	s.Identity = *sealedIdentity(bob, 1)
	adopted = make(chan net.Conn, 16)
	s.Adopt = func(c net.Conn, _ Process) { adopted <- c }
	return s, address, adopted, stop
}

// relay forwards, with changes, the bytes between its caller and another address. change gets the
// bytes that were read.
type relay struct {
	address string
	mu      sync.Mutex
	seen    []byte // of both directions
}

func newRelay(t *testing.T, to string, change func(seen int, b []byte)) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{address: l.Addr().String()}
	pass := func(from, to net.Conn) {
		defer to.Close()
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			r.mu.Lock()
			if change != nil {
				change(len(r.seen), b[:n])
			}
			r.seen = append(r.seen, b[:n]...)
			r.mu.Unlock()
			if _, failed := to.Write(b[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			go pass(c, d)
			go pass(d, c)
		}
	}()
	return r
}

func (r *relay) saw(b []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.seen, b)
}

// sealedPair is a connection of alice with bob at address.
func sealedPair(t *testing.T, address string, adopted chan net.Conn) (caller, called net.Conn) {
	t.Helper()
	caller, v, err := Dial(address, sealedIdentity(alice, 1), bob)
	if err != nil || v != Taken {
		t.Fatalf("not connected: %v, %v", v, err)
	}
	t.Cleanup(func() { caller.Close() })
	select {
	case called = <-adopted:
	case <-time.After(patience):
		t.Fatal("not adopted")
	}
	t.Cleanup(func() { called.Close() })
	for _, c := range []net.Conn{caller, called} {
		c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it is a TCP connection
	}
	return caller, called
}

// Data arrives, both ways, and an eavesdropper finds none of it; without TLS it does.
func TestWhoListensReadsNothing(t *testing.T) {
	word := []byte("a word that nobody else is to read, and that is long enough to be found")
	for _, sealed := range []bool{true, false} {
		s, address, adopted, _ := sealedServer(t)
		id := sealedIdentity(alice, 1)
		s.Identity.TLS, id.TLS = sealed, sealed
		r := newRelay(t, address, nil)
		caller, v, err := Dial(r.address, id, bob)
		if err != nil || v != Taken {
			t.Fatalf("sealed %v: not connected through a relay that changes nothing: %v, %v",
				sealed, v, err)
		}
		defer caller.Close()
		called := <-adopted
		defer called.Close()
		if c, ok := caller.(*tls.Conn); ok != sealed || ok &&
			c.ConnectionState().Version != tls.VersionTLS13 {
			t.Errorf("sealed %v: the connection is a %T", sealed, caller)
		}
		for _, way := range [][2]net.Conn{{caller, called}, {called, caller}} {
			got := make([]byte, len(word))
			// it is a TCP connection
			way[1].SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck
			if _, err := way[0].Write(word); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, word) {
				t.Fatalf("sealed %v: %q has come: %v", sealed, got, err)
			}
		}
		if r.saw(word) == sealed {
			t.Errorf("sealed %v: who listens has found the word: %v", sealed, !sealed)
		}
	}
}

// A byte that is changed on its way is noticed by the reader, and is not taken for an end or a
// loss.
func TestAChangedByte(t *testing.T) {
	_, address, adopted, _ := sealedServer(t)
	var mu sync.Mutex
	spoil := false
	r := newRelay(t, address, func(_ int, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if spoil && len(b) > 100 {
			b[len(b)-1] ^= 1
		}
	})
	caller, called := sealedPair(t, r.address, adopted)
	b := make([]byte, 1000)
	caller.Write(b) //nolint:errcheck // the other end tells
	if _, err := io.ReadFull(called, b); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	spoil = true
	mu.Unlock()
	caller.Write(b) //nolint:errcheck // see above
	if n, err := io.ReadFull(called, b); !IsChanged(err) {
		t.Errorf("%d bytes have come, of a record that was changed: %v", n, err)
	}
}

// Ends and losses of a connection are no changes of what it carries.
func TestAnEndIsNoChange(t *testing.T) {
	for _, end := range []func(net.Conn){
		func(c net.Conn) { c.Close() },
		func(c net.Conn) { c.(*tls.Conn).NetConn().Close() },
		func(c net.Conn) {
			plain := c.(*tls.Conn).NetConn().(*net.TCPConn)
			plain.SetLinger(0) //nolint:errcheck // the end is another one then
			plain.Close()
		},
	} {
		_, address, adopted, _ := sealedServer(t)
		caller, called := sealedPair(t, address, adopted)
		end(caller)
		if _, err := called.Read(make([]byte, 1)); err == nil || IsChanged(err) {
			t.Errorf("read: %v", err)
		}
	}
}

// A man in the middle that lets the proofs pass and then offers TLS of its own to both ends is
// refused by both, and counted.
func TestWhoSitsBetween(t *testing.T) {
	server, address, _, stop := sealedServer(t)
	server.Decide = func(Process) Verdict {
		t.Error(
			"asked to decide about who sits between")
		return Elsewhere
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var key [32]byte // another one
	own, _, err := certificate(&key, sealTo, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	middle := make(chan [2]error, 1)
	go func() {
		a, err := l.Accept()
		if err != nil {
			return
		}
		defer a.Close()
		b, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer b.Close()
		// what is missing is missed by the ends
		io.CopyN(b, a, helloBytes)          //nolint:errcheck
		io.CopyN(a, b, nonceBytes+macBytes) //nolint:errcheck // see above
		io.CopyN(b, a, macBytes)            //nolint:errcheck // see above
		config := &tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true,
			ClientAuth: tls.RequireAnyClientCert}
		to := tls.Client(b, config)
		errs := [2]error{tls.Server(a, config).Handshake(), to.Handshake()}
		if errs[1] == nil { // a client is done before the server has checked its certificate
			_, errs[1] = to.Read(make([]byte, 1))
		}
		middle <- errs
	}()
	if _, v, err := Dial(l.Addr().String(), sealedIdentity(alice, 1), bob); !errors.Is(err,
		ErrKey) {
		t.Errorf("the caller: %v, %v, want %v", v, err, ErrKey)
	}
	for i, err := range <-middle {
		if err == nil {
			t.Errorf("end %d talks TLS with who sits between", i)
		}
	}
	stop()
	if n := server.Refused.Key.Load(); n != 1 {
		t.Errorf("%d without the key are counted, want 1", n)
	}
}

// A conversation cannot be passed on to another process of the job: each certificate is of one
// pair.
func TestCertificatesAreOfOneConversation(t *testing.T) {
	key := sealedIdentity(alice, 1).Key
	said := func(to Process, nonce byte) []byte {
		h := hello{from: alice, to: to}
		h.nonce[0] = nonce
		return h.encode()
	}
	var all []string
	for _, role := range []string{sealFrom, sealTo} {
		for _, to := range []Process{bob, {Number: 8, Life: 2}, {Number: 7, Life: 3}} {
			for _, nonce := range []byte{1, 2} {
				_, public, err := certificate(&key, role, said(to, nonce), make([]byte, nonceBytes))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(public))
			}
		}
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d conversations have %d keys", len(all), n)
	}
}

// One end has TLS and the other has not: both find out before a byte of it, and an attacker without
// the key cannot make a caller believe so.
func TestTLSDiffers(t *testing.T) {
	for _, callerHas := range []bool{true, false} {
		server, address, _, _ := sealedServer(t)
		id := sealedIdentity(alice, 1)
		plain := &server.Identity
		if !callerHas {
			plain = id
		}
		plain.TLS, plain.Ways = false, "SPX_CONNECTIONS=demand"
		_, v, err := Dial(address, id, bob)
		var differ *WaysError
		if !errors.As(err, &differ) || v != Differs || differ.Theirs != server.Identity.Ways {
			t.Errorf("the caller has TLS: %v: %v, %v", callerHas, v, err)
		}
	}
	_, address, _, _ := sealedServer(t)
	at := newRelay(t, address, func(seen int, b []byte) {
		if seen >= helloBytes+nonceBytes+macBytes+macBytes { // TLS would begin
			for i := range b {
				b[i] = byte(Differs)
			}
		}
	})
	if _, v, err := Dial(at.address, sealedIdentity(alice, 1), bob); v == Differs || err == nil {
		t.Errorf("%v is believed: %v", v, err)
	}
}
