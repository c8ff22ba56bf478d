package systems

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// slowWay passes a call on to an address. What comes back is held after a number of bytes, until it is let go.
type slowWay struct {
	at   string
	full chan struct{} // closed when something is held
	open chan struct{} // to be closed when it may go
}

func newSlowWay(t *testing.T, to string, limit int) *slowWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &slowWay{at: l.Addr().String(), full: make(chan struct{}), open: make(chan struct{})}
	pass := func(to, from net.Conn, held bool) {
		defer to.Close()
		b := make([]byte, 1<<16)
		for total := 0; ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if total += n; held && total > limit {
				close(w.full)
				held = false
				<-w.open
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			near.Close()
			return
		}
		go pass(far, near, false)
		pass(near, far, true)
	}()
	return w
}

// The cluster that leads ends while another one is being attached. It stays until that one has ended, too, or until it is known that it does not come.
func TestApartComing(t *testing.T) {
	const job = 50000 // what tells a caller of the job is longer, since the job's programs have such arguments, and a handshake is shorter
	for name, killed := range map[string]bool{"it comes": false, "it is killed": true} {
		t.Run(name, func(t *testing.T) {
			s := newApart(t, beside+fmt.Sprintf("[[cluster]]\nname = \"b\"\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"while [ ! -e go ]; do sleep 0.01; done\", %q]\nranks = 1\n", strings.Repeat("x", job)))
			b := s.start("b", "--verbose")
			b.says("rank b.0 is pid")
			way := newSlowWay(t, s.addressOf(), job)
			a := s.start("a", "--verbose", "--join", way.at)
			select {
			case <-way.full:
			case <-a.ended:
				t.Fatal("a has ended before it was told of the job")
			case <-harness.After(apartLimit):
				t.Fatalf("a was not told of the job within %v", apartLimit)
			}
			s.write("go", "", "")
			pid := b.pid("b.0")
			for began := time.Now(); exists(pid); time.Sleep(5 * time.Millisecond) {
				if time.Since(began) > harness.Patience(apartLimit) {
					t.Fatalf("the process of b is there after %v", apartLimit)
				}
			}
			if killed {
				a.cmd.Process.Kill() //nolint:errcheck // it is there
				<-a.ended
			} else {
				close(way.open)
				a.says("rank 0 of cluster a is pid")
				s.write("stop", "", "")
				a.ends(0)
			}
			b.ends(0)
		})
	}
}

// exists: there is a process with this number, also one that has ended and was not taken note of.
func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}
