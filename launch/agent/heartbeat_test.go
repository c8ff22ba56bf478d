package agent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/ft/detect"
	"libspx/launch/control"
)

func TestBeatsOf(t *testing.T) {
	for text, want := range map[string]control.Beats{
		"": {Period: 100 * time.Millisecond, Limit: time.Second},
		"SPX_HEARTBEAT=50 SPX_HEARTBEAT_LIMIT=300": {Period: 50 * time.Millisecond, Limit: 300 * time.Millisecond},
		"SPX_HEARTBEAT_LIMIT=200":                  {Period: 40 * time.Millisecond, Limit: 200 * time.Millisecond},
		"SPX_HEARTBEAT=0 SPX_PARTITION=launcher":   {Limit: time.Second, Alone: true},
	} {
		if got, err := beatsOf(strings.Fields(text)); err != nil || got.Period != want.Period || got.Limit != want.Limit || got.Alone != want.Alone {
			t.Errorf("%q: %+v, error %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"SPX_HEARTBEAT=often":   "SPX_HEARTBEAT=often: a number of milliseconds",
		"SPX_HEARTBEAT_LIMIT=0": "SPX_HEARTBEAT_LIMIT=0: a number of milliseconds",
		"SPX_PARTITION=both":    "SPX_PARTITION=both: there are majority, launcher",
	} {
		if _, err := beatsOf([]string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}

// beats makes the heartbeats of n hosts, on this one.
func beats(t *testing.T, n int) (list []*heartbeat, found []chan any) {
	for self := range n {
		fd, port, err := portRange{}.listen(netip.AddrFrom4([4]byte{127, 0, 0, 1}), datagrams)
		if err != nil {
			t.Fatal(err)
		}
		bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		c := make(chan any, 10)
		found = append(found, c)
		list = append(list, &heartbeat{fd: fd, bell: bell, at: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), self: self, began: time.Now(), tell: func(e any) { c <- e }})
	}
	return list, found
}

// Only what a host of the job has said to this one is heard.
func TestSeal(t *testing.T) {
	list, _ := beats(t, 3)
	for _, h := range list {
		h.key[0], h.peers = 7, make([]netip.AddrPort, 3)
	}
	b := list[1].seal(2, []byte("word"))
	if from, text, ok := list[2].unseal(b); !ok || from != 1 || string(text) != "word" {
		t.Errorf("from %d: %q, %v", from, text, ok)
	}
	if _, _, ok := list[0].unseal(b); ok {
		t.Error("what was said to another host is heard")
	}
	for i := range b {
		b[i] ^= 1
		if _, _, ok := list[2].unseal(b); ok {
			t.Errorf("byte %d is another, and nobody notices", i)
		}
		b[i] ^= 1
	}
	for n := range b {
		if _, _, ok := list[2].unseal(b[:n]); ok {
			t.Errorf("%d bytes of %d are enough", n, len(b))
		}
	}
}

// Three hosts hear of each other. One's connection ends, and it learns that the others go on without it; then there is no word from another one.
func TestHeartbeat(t *testing.T) {
	list, found := beats(t, 3)
	b := &control.Beats{Period: 20 * time.Millisecond, Limit: 500 * time.Millisecond}
	for _, h := range list {
		b.At = append(b.At, h.at)
	}
	for _, h := range list {
		h.start(b)
	}
	await := func(c chan any, what string) any {
		t.Helper()
		select {
		case e := <-c:
			return e
		case <-time.After(20 * time.Second):
			t.Fatalf("no %s", what)
			return nil
		}
	}
	list[0].hasGone(1)
	// It says something when it has heard of nobody for long enough, and is told then.
	if e, ok := await(found[1], "end of host 1").(fenced); !ok || e.why != detect.DeclaredOut {
		t.Errorf("host 1: %+v", e)
	}
	list[0].hasGone(2)
	if e, ok := await(found[2], "end of host 2").(fenced); !ok || e.why != detect.DeclaredOut {
		t.Errorf("host 2: %+v", e)
	}
	select {
	case e := <-found[0]:
		t.Errorf("host 0: %+v", e)
	default:
	}
}
