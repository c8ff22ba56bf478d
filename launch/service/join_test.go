package service

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestOffer(t *testing.T) {
	for _, o := range []*Offer{
		{},
		{ID: [16]byte{1, 15: 255}, Key: [32]byte{31: 7},
			At: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:5"),
				netip.MustParseAddrPort("[fd00::1]:65535")}},
	} {
		got, err := ParseOffer(o.String())
		if d := cmp.Diff(o, got, cmp.Comparer(
			func(a, b netip.AddrPort) bool { return a == b })); err != nil || d != "" {
			t.Errorf("%s: %v %s", o, err, d)
		}
	}
	for _, text := range []string{"", ",", "00,00", "x" + (&Offer{}).String()[1:],
		(&Offer{}).String() + ",", (&Offer{}).String() + ",h:1"} {
		if o, err := ParseOffer(text); err == nil {
			t.Errorf("%q is taken for %v", text, o)
		}
	}
}

func FuzzOffer(f *testing.F) {
	f.Add((&Offer{At: []netip.AddrPort{netip.MustParseAddrPort("[fe80::1%eth0]:5")}}).String())
	f.Add("00,11")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseOffer(text)
		if err != nil {
			return
		}
		if again, err := ParseOffer(o.String()); err != nil || again.String() != o.String() {
			t.Errorf("%q: %v, %v", o, again, err)
		}
	})
}

// The first makes the socket, the others connect with it; another job has another.
func TestMeet(t *testing.T) {
	job := fmt.Sprintf("test %d", os.Getpid())
	_, listener, err := Meet(job)
	if err != nil || listener < 0 {
		t.Fatal(listener, err)
	}
	defer unix.Close(listener)
	conn, second, err := Meet(job)
	if err != nil || second >= 0 {
		t.Fatal(second, err)
	}
	defer conn.Close()
	if pid, uid, err := conn.Peer(); pid != os.Getpid() || uid != os.Getuid() || err != nil {
		t.Errorf("at the other end is process %d of user %d, %v", pid, uid, err)
	}
	_, other, err := Meet(job + "'")
	if err != nil || other < 0 {
		t.Fatal(other, err)
	}
	unix.Close(other)
}
