package service

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The report of a change that an agent sends is what String has made, or an error.
func FuzzChange(f *testing.F) {
	f.Add("2 4 0.250000 ")
	f.Add(Change{3, 1, 1e-3, "no room for 2 processes"}.String())
	f.Add("1 2 NaN x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChange(text)
		if err != nil {
			return
		}
		back, err := ParseChange(c.String())
		if err != nil || back.From != c.From || back.To != c.To ||
			strings.TrimSpace(back.Error) != strings.TrimSpace(c.Error) {
			t.Errorf("%q is %+v, and comes back as %+v, %v", text, c, back, err)
		}
	})
}

// Whatever bytes come over the socket of an agent are messages or an end, and a message that is cut
// short takes no memory for what does not come.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{4, 0, 0, 0, 1, 2, 3, 4})
	f.Add([]byte{0xff, 0xff, 0, 0, 1})
	f.Add((&Message{Kind: Settle, FD: -1, Slots: []uint32{1}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 60<<10 { // fits the socket
			return
		}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[1])
		if _, err := unix.Write(fds[0], b); err != nil && len(b) > 0 {
			t.Fatal(err)
		}
		unix.Close(fds[0])
		c := NewConn(fds[1])
		for range len(b)/5 + 1 {
			if _, err := c.Receive(); err != nil {
				return
			}
		}
		t.Error("more messages than there are bytes for")
	})
}
