package agent

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"libspx/ft/detect"
	"libspx/launch/control"
)

// inRow are networks of hosts: 0 to 2, 2 to 14, 4 and 15 to 16, so that hosts 3 to 14 are reached
// through host 2, and 15 and 16 through 4.
func inRow(x, y int) bool {
	nets := func(h int) (list []int) {
		if h <= 2 {
			list = append(list, 0)
		}
		if h >= 2 && h <= 14 {
			list = append(list, 1)
		}
		if h == 4 || h > 14 {
			list = append(list, 2)
		}
		return list
	}
	return slices.ContainsFunc(nets(x), func(n int) bool { return slices.Contains(nets(y), n) })
}

func rowBy(h int) int {
	switch {
	case h > 14:
		return 4
	case h > 2:
		return 2
	}
	return 0
}

// Who is not reached from the host that decides has beats from the one through which it is reached,
// or from one of those behind that when these are many; all others by their numbers. Hosts that
// come change nothing of it.
func TestBeatTree(t *testing.T) {
	tree := beatTree(detect.Tree{}, 17, inRow, rowBy)
	want := detect.Tree{Up: []int{-1, -1, -1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4},
		By: []int{-1, -1, -1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4}}
	if !slices.Equal(tree.Up, want.Up) || !slices.Equal(tree.By, want.By) {
		t.Errorf("%v, want %v", tree, want)
	}
	var grown detect.Tree
	for n := range 17 {
		grown = beatTree(grown, n+1, inRow, rowBy)
	}
	if !slices.Equal(grown.Up, want.Up) || !slices.Equal(grown.By, want.By) {
		t.Errorf("one after another: %v, want %v", grown, want)
	}
	if plain := beatTree(detect.Tree{}, 17, func(int, int) bool { return true }, rowBy); relayed(
		plain) {
		t.Errorf("all reach each other, and some are reached through others: %v", plain)
	}
}

// What one host says to another one comes there from any host, over hosts that reach each other,
// and over none twice, in whichever of them is decided.
func TestNextHop(t *testing.T) {
	by := beatTree(detect.Tree{}, 17, inRow, rowBy).By
	for _, root := range []int{0, 1} {
		for from := range 17 {
			for to := range 17 {
				path := []int{from}
				for at := from; at != to && len(path) < 17; {
					at = nextHop(at, to, root, by,
						func(h int) bool { return h != at && inRow(at, h) })
					if at < 0 || slices.Contains(path, at) {
						t.Fatalf("root %d: from %d to %d there is no way: %v, then %d", root, from,
							to, path, at)
					}
					path = append(path, at)
				}
				if len(path) > 5 {
					t.Errorf("root %d: from %d to %d by %v", root, from, to, path)
				}
			}
		}
	}
	if hop := nextHop(0, 15, 0, by, func(h int) bool { return h == 1 }); hop >= 0 {
		t.Errorf("there is no way, and host %d is one", hop)
	}
}

// Heartbeats of three hosts in a row: the last one is heard, by the one in between, and given up
// when it falls silent, though the first one has no address of it; and it is told that it is out.
func TestHeartbeatsInARow(t *testing.T) {
	list, found := beats(t, 3)
	b := control.Beats{Period: 20 * time.Millisecond, Limit: 400 * time.Millisecond,
		Most: 400 * time.Millisecond, Tree: detect.Tree{Up: []int{-1, -1, 1}, By: []int{-1, -1, 1}}}
	for self, h := range list {
		h.key[0] = 7
		own := b
		for other, o := range list {
			at := o.at
			if self+other == 2 && self != other { // 0 and 2
				at = netip.AddrPort{}
			}
			own.At = append(own.At, at)
		}
		h.sieve(false)
		h.start(&own)
	}
	deadline := time.After(20 * time.Second)
	// the last one has had a tick after another
	for list[0].worst.Load() == 0 && list[2].longest.Load() == 0 {
		select {
		case <-deadline:
			t.Fatal("the last host has heard nothing")
		case <-time.After(time.Millisecond):
		}
	}
	list[0].hasGone(2, detect.OutClosed) // it is to hear so, by the one in between
	select {
	case e := <-found[2]:
		if f, ok := e.(fenced); !ok || f.why != detect.OutClosed {
			t.Errorf("the last host: %+v", e)
		}
	case <-deadline:
		t.Error("the last host has not heard that it is out")
	}
	for i, h := range list[:2] {
		if n := h.strange.Load(); n > 0 {
			t.Errorf("host %d takes %d datagrams for those of strangers", i, n)
		}
	}
}
