package tcp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A connection within the host has the congestion control of its own, and sends at once.
func TestTune(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l.Addr().String())
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	check := func(fd uintptr) {
		if err := Tune(int(fd), c.LocalAddr(), c.RemoteAddr()); err != nil {
			t.Error(err)
		}
		if name, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP,
			unix.TCP_CONGESTION); err != nil || name != "reno" {
			t.Errorf("within a host, the congestion control is %q (%v)", name, err)
		}
		if on, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil ||
			on == 0 {
			t.Errorf("TCP_NODELAY is %d (%v)", on, err)
		}
	}
	if err := raw.Control(check); err != nil {
		t.Fatal(err)
	}
}

func TestSameHost(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip)} }
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1", "127.0.0.1", true}, {"10.0.0.1", "10.0.0.1", true}, {"::1", "::1", true},
		{"10.0.0.1", "127.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false}, {"fd00::1", "fd00::2", false},
		{"::ffff:10.0.0.1", "10.0.0.1", true},
	} {
		if got := sameHost(at(c.a), at(c.b)); got != c.want {
			t.Errorf("%s and %s are of one host: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
