package attack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Bytes of the handshake (package net/tcp).
const (
	helloBytes     = 88
	challengeBytes = 64
	proofBytes     = 32
	taken          = 1
	recorded       = 64 << 10 // of a conversation, at most
)

// conversation is what a caller has said, and what it was answered.
type conversation struct {
	from, to       uint32
	said, answered []byte
}

// complete: the handshake has ended well, and data have followed.
func (c *conversation) complete() bool {
	return len(c.answered) > challengeBytes && c.answered[challengeBytes] == taken && len(c.said) > helloBytes+proofBytes+1+64
}

// wiretap sits between all ranks: each calls the others through it.
type wiretap struct {
	list []target

	mu       sync.Mutex
	calls    map[[2]uint32]int    // by caller and called: how often
	answers  map[[2]uint32][]byte // a challenge that the one who was called has given
	heard    []*conversation
	counts   map[string]int
	mistakes []error
}

// tap first plays the one who was called, with what that one has answered to another call, and then lets all pass and writes it down. On a word it says again what it has
// written down: to whom it was said, and to the others.
func tap(list []target, knows []string) error {
	w := &wiretap{list: list, calls: map[[2]uint32]int{}, answers: map[[2]uint32][]byte{}, counts: map[string]int{}}
	var at []string
	for i := range list {
		l, err := net.Listen("tcp", net.JoinHostPort(knows[0], "0"))
		if err != nil {
			return err
		}
		at = append(at, l.Addr().String())
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go w.listen(c, list[i])
			}
		}()
	}
	fmt.Println(strings.Join(at, " "))
	bufio.NewReader(os.Stdin).ReadString('\n') //nolint:errcheck // the end is a word as well
	n, err := w.replay()
	w.mu.Lock()
	err = errors.Join(append(w.mistakes, err)...)
	text := words(w.counts)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	fmt.Println("done", text, "conversations", n)
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until the job is over: its connections pass here
	return nil
}

func (w *wiretap) count(kind string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts[kind]++; err != nil {
		w.mistakes = append(w.mistakes, err)
	}
}

// listen is called by a rank that means another one.
func (w *wiretap) listen(c net.Conn, of target) {
	defer c.Close()
	hello := make([]byte, helloBytes)
	if _, err := io.ReadFull(c, hello); err != nil {
		return
	}
	pair := [2]uint32{uint32(hello[24]) | uint32(hello[25])<<8, of.number}
	w.mu.Lock()
	w.calls[pair]++
	n, answer := w.calls[pair], w.answers[pair]
	w.mu.Unlock()
	switch {
	case n == 1:
		w.ask(pair, hello, of)
	case answer != nil:
		w.mu.Lock()
		delete(w.answers, pair)
		w.mu.Unlock()
		c.Write(append(answer, taken))                      //nolint:errcheck // what the caller makes of it counts
		c.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it is a TCP connection
		if n, err := c.Read(hello); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			w.count("keyless", fmt.Errorf("rank %d says %d bytes to who is not rank %d (%v)", pair[0], n, pair[1], err))
			return
		}
		w.count("keyless", nil) // by the caller
	default:
		w.pass(c, hello, pair, of)
	}
}

// ask gets a challenge for a hello, and hangs up.
func (w *wiretap) ask(pair [2]uint32, hello []byte, of target) {
	far, err := net.Dial("tcp", of.at)
	if err != nil {
		return
	}
	defer far.Close()
	far.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it is a TCP connection
	far.Write(hello)                                  //nolint:errcheck // the answer counts
	challenge := make([]byte, challengeBytes)
	_, err = io.ReadFull(far, challenge)
	w.count("keyless", err)
	w.mu.Lock()
	w.answers[pair] = challenge
	w.mu.Unlock()
}

// pass lets a conversation pass.
func (w *wiretap) pass(c net.Conn, hello []byte, pair [2]uint32, of target) {
	far, err := net.Dial("tcp", of.at)
	if err != nil {
		return
	}
	defer far.Close()
	talk := &conversation{from: pair[0], to: pair[1]}
	w.mu.Lock()
	w.heard = append(w.heard, talk)
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		io.Copy(far, io.TeeReader(io.MultiReader(strings.NewReader(string(hello)), c), note{w, &talk.said})) //nolint:errcheck // either end may go
		far.(*net.TCPConn).CloseWrite()                                                                      //nolint:errcheck // see above
	})
	both.Go(func() {
		io.Copy(c, io.TeeReader(far, note{w, &talk.answered})) //nolint:errcheck // see above
		c.(*net.TCPConn).CloseWrite()                          //nolint:errcheck // see above
	})
	both.Wait()
}

// note writes down what passes.
type note struct {
	w  *wiretap
	to *[]byte
}

func (n note) Write(b []byte) (int, error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	*n.to = append(*n.to, b[:min(len(b), recorded-len(*n.to))]...)
	return len(b), nil
}

// replay says again all that was said, at one go and, as callers do, with a pause for the answer.
func (w *wiretap) replay() (conversations int, err error) {
	w.mu.Lock()
	var whole []conversation
	for _, c := range w.heard {
		if c.complete() {
			whole = append(whole, *c)
		}
	}
	w.mu.Unlock()
	for _, c := range whole {
		for _, to := range w.list {
			for _, waits := range []bool{false, true} {
				kind := "strangers" // it was said to somebody else
				if to.number == c.to {
					kind = "keyless" // it was no answer to what is asked now
				}
				w.count(kind, c.again(to, waits))
			}
		}
	}
	return len(whole), nil
}

// again says what was said to a process, which must hang up, and have said no more than its challenge.
func (c *conversation) again(to target, waits bool) error {
	far, err := net.Dial("tcp", to.at)
	if err != nil {
		return err
	}
	defer far.Close()
	far.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it is a TCP connection
	var heard []byte
	at := 0
	if waits {
		at = helloBytes
		challenge := make([]byte, challengeBytes)
		far.Write(c.said[:at]) //nolint:errcheck // the answer counts
		n, err := io.ReadFull(far, challenge)
		if heard = challenge[:n]; to.number == c.to && err != nil {
			return fmt.Errorf("rank %d asks for no proof: %v", to.number, err)
		}
	}
	far.Write(c.said[at:]) //nolint:errcheck // see above
	rest, err := io.ReadAll(far)
	heard = append(heard, rest...)
	if errors.Is(err, os.ErrDeadlineExceeded) || len(heard) > challengeBytes {
		return fmt.Errorf("rank %d answers what %d has said to %d once with %d bytes (%v)", to.number, c.from, c.to, len(heard), err)
	}
	return nil
}

// All connections of a running job are made through somebody who sits between. It first answers each rank with what the one that was called has answered before, then lets all pass, the handshakes and the data behind
// them, and then says all of it again, to the same ranks and to others. Nobody believes any of it, all is counted, and the job computes what it should.
func TestReplay(t *testing.T) {
	scenes(t, func(t *testing.T, s scene) {
		p, list, counters := s.begin(t)
		enemy := s.attack(t, "tap", list, s.at)
		at := strings.Fields(enemy.line())
		if len(at) != ranks {
			t.Fatalf("the enemy says %q", at)
		}
		for _, file := range segments(t, list) {
			for i, text := range at {
				file.SetAddress(int(list[i].number), netip.MustParseAddrPort(text))
			}
		}
		p.exchange()
		fmt.Fprintln(enemy.in, "again")
		line := enemy.line()
		want, conversations := report{refused: map[string]int{}}, 0
		want.add(line)
		if i := strings.Index(line, "conversations"); i >= 0 {
			fmt.Sscanf(line[i:], "conversations %d", &conversations) //nolint:errcheck // seen by what is read
		}
		if conversations < ranks*(ranks-1)/2 { // each pair has one at least: of whoever's call was taken
			t.Fatalf("the enemy says %q", line)
		}
		p.await(want.refused)
		if end := p.finish(counters); words(end.refused) != words(want.refused) {
			t.Errorf("SPX_COUNTERS has %v, want %v", end.refused, want.refused)
		}
		t.Logf("%d conversations were recorded, and said again to each of %d ranks, twice; counted: %v", conversations, ranks, want.refused)
		enemy.in.Close()
		if err := enemy.cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}
