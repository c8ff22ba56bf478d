package agent

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"

	"libspx/launch/control"
)

// between passes what comes on to an address, and changes a word of it that it can read, or else
// the last byte of the first piece after the handshake in one direction.
func between(t *testing.T, to netip.AddrPort, word, with, direction string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(to, from net.Conn, change bool) {
		defer to.Close()
		b := make([]byte, 1<<16)
		for total := 0; ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if i := bytes.Index(b[:n], []byte(word)); change && i >= 0 {
				copy(b[i:], with)
			} else if total += n; change && total > 4000 { // long after certificates
				b[n-1] ^= 1
			}
			if _, err := to.Write(b[:n]); err != nil {
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
			far, err := net.Dial("tcp", to.String())
			if err != nil {
				c.Close()
				return
			}
			go pass(far, c, direction == "up")
			go pass(c, far, direction == "down")
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Agents of a job that another launcher has started meet through a relay that changes their
// messages: a changed message is never accepted.
func TestMeetingThroughARelay(t *testing.T) {
	long := strings.Repeat("x", 8000)
	for _, direction := range []string{"", "up", "down"} {
		lead := &gathering{size: 2, host: "first", members: map[int]*member{},
			events: make(chan any, 10), over: make(chan struct{})}
		zero := &member{}
		if err := lead.makeOffer(zero); err != nil {
			t.Fatal(err)
		}
		defer lead.arrived.Close()
		offer := *lead.offer
		for _, at := range lead.offer.At {
			if at.Addr().Is4() {
				offer.At = []netip.AddrPort{between(t, at, "REAL", "FAKE", direction)}
			}
		}
		other := &gathering{size: 2, host: "REAL" + long, members: map[int]*member{1: {rank: 1}},
			offer: &offer, events: make(chan any, 10), over: make(chan struct{})}
		go func() {
			if e, ok := (<-lead.events).(came); ok {
				if e.hello.Host != other.host {
					t.Errorf("%q: the agent says it is on %.10q, and another host was heard: %.10q",
						direction, other.host, e.hello.Host)
				}
				// what comes of it counts
				e.conn.Send(&control.Message{Job: &control.Job{Version: control.Version, Hosts: []string{"first", "REAL" + long}, Self: 1, StdinRank: -1, //nolint:errcheck
					Programs: []control.Program{{Procs: 2, Argv: []string{"REAL" + long}}}}})
			}
		}()
		answer, failure, _ := other.call()
		if direction == "" {
			if failure != "" || answer.job.Programs[0].Argv[0] != "REAL"+long {
				t.Errorf("without changes: %s", failure)
			}
			continue
		}
		if !strings.Contains(failure, "bytes were changed on the way between the two hosts") {
			t.Errorf("%s: %q, and %+v", direction, failure, answer)
		}
	}
}
