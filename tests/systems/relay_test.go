package systems

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

// rewriter sits between two agents. It looks for a text in all that passes, replaces it by another one
// of the same length, and on demand changes one byte of what passes next in one direction.
type rewriter struct {
	to         string // address of the agent that is called
	text, with []byte
	secret     []byte // which must not be seen

	mu    sync.Mutex
	seen  []string // guarded by mu: what could be read
	flip  string   // guarded by mu: the direction in which a byte is to be changed
	count int      // guarded by mu: bytes that have passed
}

// newRewriter listens, and passes everything on to an address.
func newRewriter(t *testing.T, to, text, with, secret string) (w *rewriter, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w = &rewriter{to: to, text: []byte(text), with: []byte(with), secret: []byte(secret)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(c)
		}
	}()
	return w, l.Addr().String()
}

func (w *rewriter) pass(c net.Conn) {
	defer c.Close()
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { w.copy(far.(*net.TCPConn), c, "up") })
	both.Go(func() { w.copy(c.(*net.TCPConn), far, "down") })
	both.Wait()
}

func (w *rewriter) copy(to *net.TCPConn, from net.Conn, direction string) {
	defer to.CloseWrite() //nolint:errcheck // it may be gone
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			w.change(b[:n], direction)
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *rewriter) change(b []byte, direction string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count += len(b)
	for _, word := range [][]byte{w.text, w.secret} {
		if bytes.Contains(b, word) {
			w.seen = append(w.seen, string(word))
		}
	}
	copy(b, bytes.ReplaceAll(b, w.text, w.with))
	if w.flip == direction {
		b[len(b)-1] ^= 1
		w.flip = ""
	}
}

// Agents of clusters that are started one by one give each other orders. Whoever sits between them reads none of them, can change none, and
// when one byte has been changed the connection ends, with a message on both sides, and nothing is carried out.
func TestOrdersThroughARelay(t *testing.T) {
	self, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for direction, c := range map[string]struct{ spawner, host string }{"down": {"a", "b@" + self}, "up": {"b", self}} {
		t.Run(direction, func(t *testing.T) {
			t.Setenv("SECRET_OF_A_USER", "never in the clear")
			s := newApart(t, "")
			script := filepath.Join(s.dir, "script")
			if err := os.WriteFile(script, []byte("#!/bin/sh\n: >\"$1\"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, cluster := range []string{"a", "b"} {
				text += fmt.Sprintf("[[cluster]]\nname = %q\nprogram = %q\nargs = [%q, %q, %q, %q]\nranks = 1\n", cluster, program(t, "spawner"), c.spawner, c.host, script, s.dir)
			}
			address := freeAddress(t)
			s.file = s.write("near.toml", address, text)
			w, between := newRewriter(t, address, "MARK-1", "MARK-9", "never in the clear")
			far := s.write("far.toml", between, text)

			a := s.start("a")
			awaitListener(t, address)
			b := s.startFile(far, "b")
			s.await("ready-a")
			s.await("ready-b")
			s.write("go1", "", "")
			s.awaitAny("MARK-1", "MARK-9")
			if s.has("MARK-9") {
				t.Error("an order was carried out as it was changed on the way")
			}
			w.mu.Lock()
			if w.count == 0 || len(w.seen) > 0 {
				t.Errorf("%d bytes have passed; read in them: %q", w.count, w.seen)
			}
			w.flip = direction
			w.mu.Unlock()
			s.write("go2", "", "")
			const changed = "bytes were changed on the way between the two hosts"
			for _, r := range []*running{a, b} {
				select {
				case <-r.ended:
				case <-harness.After(apartLimit):
					t.Fatalf("cluster %s goes on although a byte of what its agents say was changed", r.name)
				}
				// The one that finds it excludes the other, which may learn of that first, with the reason.
				if r.cmd.ProcessState.ExitCode() == 0 || !strings.Contains(r.text(), changed) {
					t.Errorf("cluster %s ends with status %d", r.name, r.cmd.ProcessState.ExitCode())
				}
			}
			if s.has("MARK-2") {
				t.Error("an order was carried out that was changed on the way")
			}
		})
	}
}

// awaitListener waits until an address can be called.
func awaitListener(t *testing.T, address string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		if time.Since(began) > harness.Patience(apartLimit) {
			t.Fatal(err)
		}
	}
}

func (s *apart) has(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

// awaitAny waits until one of the files is there.
func (s *apart) awaitAny(names ...string) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		for _, name := range names {
			if s.has(name) {
				return
			}
		}
		if time.Since(began) > harness.Patience(apartLimit) {
			s.t.Fatalf("none of %v is there within %v", names, apartLimit)
		}
	}
}
