package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
)

// FreePort is a TCP port where nobody listens now. It is none of those that the kernel gives to whoever asks for any port: those of tests that run beside this one take none of it before it is listened to.
func FreePort(t testing.TB) int {
	t.Helper()
	first, last := 10000, 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		fmt.Sscan(string(text), &last) //nolint:errcheck // then it is Linux's own
	}
	if last < first+1000 {
		first = 1024
	}
	for range 100 {
		port := first + rand.IntN(last-first)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("no port between %d and %d is free", first, last)
	return 0
}
