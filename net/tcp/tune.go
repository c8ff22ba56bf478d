package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// Tune sets what the socket fd needs for messages, whose ends are local and remote: no delay to
// coalesce data; and within a host, where no packet is lost, the plainest congestion control: other
// algorithms pace the sender, or probe for their rate after each pause. Between hosts the system's
// choice stays.
func Tune(fd int, local, remote net.Addr) error {
	if sameHost(local, remote) {
		// without, it is slower
		unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") //nolint:errcheck
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}

// sameHost: both ends have the same address, or one that never leaves a host.
func sameHost(a, b net.Addr) bool {
	x, ok := a.(*net.TCPAddr)
	y, too := b.(*net.TCPAddr)
	return ok && too && (x.IP.Equal(y.IP) || y.IP.IsLoopback())
}
