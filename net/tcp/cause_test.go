package tcp

import (
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every failure has a likely cause and something to do, as net.Dial wraps it; where another network
// could help, it is named; where it could not, it is not.
func TestCause(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: %w", err)}
	}
	// A real time-out of Dial: no process accepts connections from this queue.
	full, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	_, late := net.DialTimeout("tcp", full.Addr().String(), time.Nanosecond)
	for _, c := range []struct {
		err    error
		says   string
		others bool
	}{
		{dial(syscall.ECONNREFUSED), "nobody listens there, or a firewall rejects it", true},
		{dial(syscall.EACCES), "a rule of this host forbids it", true},
		{dial(syscall.EPERM), "a rule of this host forbids it", true},
		{dial(syscall.EINVAL), "blackhole", true},
		{dial(syscall.ENETUNREACH), "this host has no route there", true},
		{dial(syscall.EHOSTUNREACH), "no route leads there", true},
		{dial(syscall.ETIMEDOUT), "drops the packets", true},
		{late, "drops the packets", true},
		{dial(syscall.EMFILE), "ulimit -n", false},
		{dial(syscall.ENFILE), "fs.file-max", false},
		{dial(syscall.EADDRNOTAVAIL), "ip_local_port_range", false},
		{fmt.Errorf("hello: %w", ErrKey), "another program listens there", false},
		{ErrTongue, "another program listens there", false},
		{io.EOF, "hangs up", false},
		{dial(syscall.ECONNRESET), "hangs up", false},
	} {
		got := Cause(c.err,
			Circumstances{Networks: "10.78.0.0/24 (data0, 10 Gbit/s), fd77::/64 (eth0)"})
		if !strings.HasPrefix(got, "; ") || !strings.Contains(got, c.says) {
			t.Errorf("%v: %q lacks %q", c.err, got, c.says)
		}
		if strings.Contains(got,
			"also in 10.78.0.0/24 (data0, 10 Gbit/s), fd77::/64 (eth0), which --iface "+
				"10.78.0.0/24 would take") != c.others {
			t.Errorf("%v: %q; other networks are to be named: %v", c.err, got, c.others)
		}
		if got := Cause(c.err, Circumstances{}); strings.Contains(got, "all hosts of the job") {
			t.Errorf("%v: %q, though no other network is known", c.err, got)
		}
	}
	if got := Cause(fmt.Errorf("something else"),
		Circumstances{Networks: "10.78.0.0/24 (data0)"}); got != "" {
		t.Errorf("%q", got)
	}
}
