package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// counts are those of a server, in the order of Refusals.
func counts(r *Refusals) [5]uint64 {
	return [5]uint64{r.Strangers.Load(), r.Version.Load(), r.Old.Load(), r.Key.Load(),
		r.Slow.Load()}
}

// say writes to a server, and waits until it hangs up. half: this end closes its direction first.
func say(t *testing.T, address string, half bool, words ...[]byte) {
	t.Helper()
	c := dial(t, address)
	defer c.Close()
	c.SetDeadline(time.Now().Add(4 * patience)) //nolint:errcheck // it is a TCP connection
	// what the server makes of it counts
	c.Write(bytes.Join(words, nil)) //nolint:errcheck
	if half {
		c.(*net.TCPConn).CloseWrite() //nolint:errcheck // see above
	}
	io.Copy(io.Discard, c) //nolint:errcheck // until the server hangs up
}

// Each call that is refused is counted once, as what it is. The callers that have the job's key are
// of another time all the same.
func TestWhatIsCounted(t *testing.T) {
	right := (&hello{job: identity(alice, 1).Job, from: alice, to: bob}).encode()
	other := func(change func(h []byte)) []byte {
		h := bytes.Clone(right)
		change(h)
		return h
	}
	call := func(caller *Identity, to Process) func(t *testing.T, address string) {
		return func(_ *testing.T, address string) {
			Dial(address, caller, to) //nolint:errcheck // the server's count is compared
		}
	}
	words := func(half bool, words ...[]byte) func(t *testing.T, address string) {
		return func(t *testing.T, address string) { say(t, address, half, words...) }
	}
	gone := func(from Process) Verdict {
		if from.Life != alice.Life {
			return Gone
		}
		return Taken
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, address string)
		want [5]uint64
	}{
		{"another magic", words(false, other(func(h []byte) { h[0] ^= 1 })), [5]uint64{1}},
		{"another job", words(false, other(func(h []byte) { h[8] ^= 1 })), [5]uint64{1}},
		{"another process is meant", words(false, other(func(h []byte) { h[32] ^= 1 })),
			[5]uint64{1}},
		{"another version", words(false, other(
			func(h []byte) { binary.LittleEndian.PutUint16(h[4:], version-1) })), [5]uint64{0, 1}},
		{"another version, whose hello is shorter",
			words(false, other(func(h []byte) { h[4]++ })[:frontBytes+20]), [5]uint64{0, 1}},
		{"for an earlier life, with the key",
			call(identity(alice, 1), Process{bob.Number, bob.Life - 1}), [5]uint64{0, 0, 1}},
		{"for a later life, with the key", call(identity(alice, 1),
			Process{bob.Number, bob.Life + 1}), [5]uint64{0, 0, 1}},
		{"of an earlier life, with the key",
			call(identity(Process{alice.Number, alice.Life - 1}, 1), bob), [5]uint64{0, 0, 1}},
		{"of a later life, with the key", call(identity(Process{alice.Number, alice.Life + 1}, 1),
			bob), [5]uint64{0, 0, 1}},
		{"the key of another job", call(identity(alice, 2), bob), [5]uint64{0, 0, 0, 1}},
		{"a proof that is none", words(false, right, make([]byte, macBytes)),
			[5]uint64{0, 0, 0, 1}},
		{"half a proof", words(true, right, make([]byte, macBytes/2)), [5]uint64{0, 0, 0, 1}},
		{"broken off within the hello", words(true, right[:30]), [5]uint64{0, 0, 0, 0, 1}},
		{"broken off before", words(true), [5]uint64{0, 0, 0, 0, 1}},
		{"nothing said for too long", words(false, right[:30]), [5]uint64{0, 0, 0, 0, 1}},
		{"no proof for too long", words(false, right), [5]uint64{0, 0, 0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, address, adopted, stop := serve(t, gone)
			c.do(t, address)
			reach(t, address, adopted)
			stop()
			if got := counts(s.Refused); got != c.want {
				t.Errorf("counted (strangers, version, old, key, slow) %v, want %v", got, c.want)
			}
		})
	}
}

// The messages of a called end, with all that followed, cannot be replayed: the caller's nonce
// differs.
func TestAFalseListener(t *testing.T) {
	a, b := net.Pipe()
	var answered bytes.Buffer
	go Answer(struct { //nolint:errcheck // the caller tells
		io.Reader
		io.Writer
	}{b, io.MultiWriter(b, &answered)}, identity(bob, 1), always(Taken))
	if v, err := Call(a, identity(alice, 1), bob); v != Taken || err != nil {
		t.Fatal(v, err)
	}
	if n := answered.Len(); n != nonceBytes+macBytes+1 {
		t.Fatalf("%d bytes of an answer are recorded, want %d", n, nonceBytes+macBytes+1)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(4 * patience)) //nolint:errcheck // it is a TCP connection
		// what the caller makes of it counts
		c.Write(answered.Bytes()) //nolint:errcheck
		said, _ := io.ReadAll(c)
		heard <- len(said)
	}()
	if c, v, err := Dial(l.Addr().String(), identity(alice, 1), bob); !errors.Is(err, ErrKey) {
		if c != nil {
			c.Close()
		}
		t.Errorf("a false listener is believed: %v, %v", v, err)
	}
	if n := <-heard; n != helloBytes {
		t.Errorf(
			"a false listener has heard %d bytes, want the hello alone, %d: nothing is proved "+
				"to it", n, helloBytes)
	}
}
