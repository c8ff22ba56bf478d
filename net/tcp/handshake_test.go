package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

var (
	alice = Process{Number: 3, Life: 1}
	bob   = Process{Number: 7, Life: 2}
)

func identity(p Process, key byte) *Identity {
	id := &Identity{Self: p}
	id.Job[0], id.Key[31] = 9, key
	return id
}

type answer struct {
	from Process
	v    Verdict
	err  error
}

// meet runs both ends over a pipe.
func meet(t *testing.T, caller, called *Identity, to Process, decide func(Process) Verdict) (
	Verdict, error, answer) {
	t.Helper()
	a, b := net.Pipe()
	ch := make(chan answer, 1)
	go func() {
		from, v, err := Answer(b, called, decide)
		if err != nil {
			b.Close()
		}
		ch <- answer{from, v, err}
	}()
	v, err := Call(a, caller, to)
	a.Close()
	return v, err, <-ch
}

func always(v Verdict) func(Process) Verdict { return func(Process) Verdict { return v } }

func TestBothEndsAgree(t *testing.T) {
	for _, want := range []Verdict{Taken, Elsewhere, Gone} {
		v, err, a := meet(t, identity(alice, 1), identity(bob, 1), bob, always(want))
		if v != want || err != nil || a != (answer{alice, want, nil}) {
			t.Errorf("caller: %v %v; called: %v, want %v on both ends", v, err, a, want)
		}
	}
}

// Ends whose messages take other ways find out, once they have proved their identity; the caller is
// sent the ways of the other end.
func TestWaysDiffer(t *testing.T) {
	for _, theirs := range []string{"SPX_CONNECTIONS=topology:4", strings.Repeat("0,", 2*mostWays),
		""} {
		caller, called := identity(alice, 1), identity(bob, 1)
		caller.Ways, called.Ways = "SPX_CONNECTIONS=demand", theirs
		v, err, a := meet(t, caller, called, bob,
			func(Process) Verdict { t.Error("asked to decide"); return Taken })
		var differ *WaysError
		if !errors.As(err, &differ) || v != Differs || a != (answer{alice, Differs, nil}) {
			t.Fatalf("caller: %v %v; called: %v, want %v on both ends", v, err, a, Differs)
		}
		if want := theirs[:min(len(theirs), mostWays)]; differ.Theirs != want {
			t.Errorf("the caller was told %q, want %q", differ.Theirs, want)
		}
	}
	caller, called := identity(alice, 2), identity(bob, 1)
	called.Ways = "secret"
	if _, err, a := meet(t, caller, called, bob, always(Taken)); err != ErrKey || a.err == nil {
		t.Errorf("who has not proved itself is told of ways: %v, %v", err, a)
	}
}

// The end that was called has the connection only when the caller, which may have hung up
// meanwhile, confirms it.
func TestACallerThatGivesUp(t *testing.T) {
	a, b := net.Pipe()
	ch := make(chan error, 1)
	go func() {
		_, _, err := Answer(b, identity(bob, 1), always(Taken))
		ch <- err
	}()
	deaf := errors.New("hears no verdict")
	_, err := Call(struct {
		io.Reader
		io.Writer
	}{io.MultiReader(io.LimitReader(a, nonceBytes+macBytes), failing{deaf}), a}, identity(alice, 1),
		bob)
	if !errors.Is(err, deaf) {
		t.Errorf("the caller has %v", err)
	}
	if _, err := io.ReadFull(a, make([]byte, 1)); err != nil { // what it does not receive
		t.Fatal(err)
	}
	a.Close()
	if err := <-ch; err == nil {
		t.Error("the end that was called has a connection that its caller has given up")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWhoIsRefused(t *testing.T) {
	never := func(Process) Verdict {
		t.Error(
			"asked to decide about who has proved nothing")
		return Taken
	}
	otherJob := identity(alice, 1)
	otherJob.Job[0]++
	for _, c := range []struct {
		name   string
		caller *Identity
		to     Process
		want   error // of the end that was called
	}{
		{"another job", otherJob, bob, ErrStranger},
		{"another process is meant", identity(alice, 1), Process{6, 2}, ErrStranger},
		{"an earlier process of the number", identity(alice, 1), Process{7, 1}, ErrOld},
		{"itself", identity(Process{7, 9}, 1), bob, ErrStranger},
	} {
		if _, err, a := meet(t, c.caller, identity(bob, 1), c.to, never); err == nil ||
			!errors.Is(a.err, c.want) {
			t.Errorf("%s: caller %v, called %v, want %v", c.name, err, a.err, c.want)
		}
	}
	// Without the key the caller sees that the other end's proof is none: both notice.
	if _, err, a := meet(t, identity(alice, 2), identity(bob, 1), bob, never); !errors.Is(err,
		ErrKey) || a.err == nil {
		t.Errorf("without the key: caller %v, called %v", err, a.err)
	}
}

// A caller without the key that does not care about the other end's proof has none of its own.
func TestAForgedProof(t *testing.T) {
	a, b := net.Pipe()
	ch := make(chan error, 1)
	go func() {
		_, _, err := Answer(b, identity(bob, 1), always(Taken))
		ch <- err
	}()
	h := hello{job: identity(alice, 1).Job, from: alice, to: bob}
	a.Write(h.encode())
	var challenge [nonceBytes + macBytes]byte
	io.ReadFull(a, challenge[:])
	a.Write(make([]byte, macBytes))
	if err := <-ch; !errors.Is(err, ErrKey) {
		t.Errorf("answered %v, want %v", err, ErrKey)
	}
}

// A caller's messages cannot be replayed: the other end's nonce differs.
func TestAReplay(t *testing.T) {
	a, b := net.Pipe()
	var said bytes.Buffer
	go Answer(b, identity(bob, 1), always(Taken)) //nolint:errcheck // the caller tells
	if v, err := Call(struct {
		io.Reader
		io.Writer
	}{a, io.MultiWriter(a, &said)}, identity(alice, 1), bob); v != Taken || err != nil {
		t.Fatal(v, err)
	}
	c, d := net.Pipe()
	ch := make(chan error, 1)
	go func() {
		_, _, err := Answer(d, identity(bob, 1), always(Taken))
		ch <- err
	}()
	c.Write(said.Next(helloBytes))
	io.CopyN(io.Discard, c, nonceBytes+macBytes) //nolint:errcheck // the answer counts
	c.Write(said.Next(macBytes))
	if err := <-ch; !errors.Is(err, ErrKey) {
		t.Errorf("a replay was answered %v, want %v", err, ErrKey)
	}
}

func FuzzAnswer(f *testing.F) {
	h := hello{job: identity(alice, 1).Job, from: alice, to: bob}
	f.Add(h.encode())
	f.Add(append(h.encode(), make([]byte, macBytes)...))
	f.Fuzz(func(t *testing.T, said []byte) {
		_, _, err := Answer(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(said), io.Discard}, identity(bob, 1),
			func(Process) Verdict { t.Error("believed"); return Taken })
		if err == nil {
			t.Error("no error for who does not hold the key")
		}
	})
}

// A called end without the key is not believed either, whatever it sends.
func FuzzCall(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, nonceBytes+macBytes+1))
	f.Add(append(make([]byte, nonceBytes+macBytes), byte(Taken)))
	f.Fuzz(func(t *testing.T, said []byte) {
		v, err := Call(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(said), io.Discard}, identity(alice, 1), bob)
		if v != 0 || err == nil {
			t.Errorf("%x is believed: %v, %v", said, v, err)
		}
	})
}
