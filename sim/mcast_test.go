package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"libspx/mcast"
)

func mcastCase(seed uint64) Mcast {
	r := rand.New(rand.NewPCG(seed, 8))
	n := 2 + r.IntN(15)
	return Mcast{Procs: n, PerHost: 1 + r.IntN(6), Width: r.IntN(5), Masters: 1 + r.IntN(min(n, 4)), Messages: 1 + r.IntN(120), Deaths: max(0, r.IntN(5)-1), Leave: r.IntN(2) == 0, Switches: r.IntN(4), Acked: r.IntN(4) > 0}
}

// TestMulticasts compares random cases with the naive model. Their number is that of -schedules, as far as -limit allows.
func TestMulticasts(t *testing.T) {
	var total McastStats
	start, n := time.Now(), 0
	for ; n < *schedules && (*limit == 0 || time.Since(start) < *limit); n++ {
		seed := *firstSeed + uint64(n)
		got, err := RunMcast(mcastCase(seed), seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%+v\nrerun: go test ./sim -run TestMulticasts -seed %d -schedules 1", seed, err, mcastCase(seed), seed)
		}
		total.Add(got)
	}
	t.Logf("%d cases, seeds %d to %d: %+v", n, *firstSeed, *firstSeed+uint64(n)-1, total)
	if n > 1000 && (total.Deaths < n/2 || total.Again == 0 || total.Ordered < n || total.Fetched < n || total.Failed == 0 || total.Left < n || total.Split < n/100 || total.Sent < 20*n || total.Acked < 8*n) {
		t.Error("too tame")
	}
}

// Each rule is needed.
func TestMulticastDefects(t *testing.T) {
	for name, defect := range map[string]mcast.Defect{
		"what comes early is delivered": mcast.NoHoldingBack, "nothing is sent again": mcast.NoSendingAgain,
		"what comes twice is delivered": mcast.NoDroppingTwice, "ordered ones go along the tree": mcast.NoOrder,
		"members leave without a word": mcast.NoBye, "masters leave without a word": mcast.NoLastWord,
		"acknowledgements do not wait for each other": mcast.NoAggregation, "lost acknowledgements are not asked for": mcast.NoNewWay,
		"nor those of who has left": mcast.NoLost,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20000) {
				c := mcastCase(seed)
				c.Defect = defect
				if defect == mcast.NoBye || defect == mcast.NoLastWord { // what was sent last is lost
					c.Leave, c.Acked, c.Deaths, c.Messages = true, false, 0, 1+c.Messages/8
				}
				if _, err := RunMcast(c, seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no case shows it")
		})
	}
}

// What plans cost on a network, where it can be worked out by hand: a step takes 3 us, and 1 us more for each 10 bytes.
func TestMulticastTimes(t *testing.T) {
	w := Wire{Overhead: 1, Latency: 2, PerByte: 0.1}
	members := []int{1, 2, 3, 4, 5, 6, 7, 8}
	for name, c := range map[string]struct {
		plan []mcast.Send
		want McastTimes
	}{
		// 11 us keep a port, 13 are a step: to the first, and to half of those that are left three times.
		"binomial": {mcast.Binomial(0, members, 100), McastTimes{Last: 4 * 13, Free: 11, Sent: 8}},
		// Two segments of 50 bytes: 6 us each, 8 for a step; the second follows 6 us behind the first.
		"chain": {mcast.Chain(50)(0, members, 100), McastTimes{Last: 8*8 + 6, Free: 12, Sent: 16}},
		// One after another from one port.
		"flat": {[]mcast.Send{{From: 0, To: 1, Lo: 0, Hi: 100}, {From: 0, To: 2, Lo: 0, Hi: 100}, {From: 0, To: 3, Lo: 0, Hi: 100}}, McastTimes{Last: 35, Free: 33, Sent: 3}},
		// Three that send to one have to take turns.
		"to one": {[]mcast.Send{{From: 0, To: 1, Lo: 0, Hi: 10}, {From: 0, To: 2, Lo: 10, Hi: 20}, {From: 0, To: 3, Lo: 0, Hi: 10}, {From: 1, To: 3, Lo: 0, Hi: 10}, {From: 2, To: 3, Lo: 10, Hi: 20}},
			McastTimes{Last: 12, Free: 6, Sent: 5}},
	} {
		if got := w.Time(c.plan, 0, 100); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
