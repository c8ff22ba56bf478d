package agent

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"libspx/ft/detect"
	"libspx/launch/control"
)

// Heartbeats of hosts that the one which decides does not reach, but the agent of another host
// (external_hosts.go): that one beats for them, and tells of their silence (detect.Tree), so that
// one message passes each way over each hop in a period, however many hosts are behind it. What is
// said beside that, as to a host that is out, or by one that looks for others above, agents in
// between hand on: the datagram as it is, when it proves to be of the job.

// beatTree says who beats for whom. meets: two hosts reach each other; by is the host through which
// another one's agent is reached, 0: it is reached from the one that decides. What was said before
// of hosts holds.
func beatTree(before detect.Tree, hosts int, meets func(x, y int) bool,
	by func(h int) int) detect.Tree {
	tree := detect.Tree{Up: slices.Clone(before.Up), By: slices.Clone(before.By)}
	for h := len(tree.Up); h < hosts; h++ {
		up, through := -1, -1
		if b := by(h); h > 0 && b > 0 && b < h && !meets(0, h) && meets(b, h) {
			through, up = b, b
			var behind []int // the same one, so far
			for o := range tree.By {
				if tree.By[o] == b {
					behind = append(behind, o)
				}
			}
			// as by numbers elsewhere, of those behind it
			if k := len(behind) / detect.Arity; k > 0 && meets(behind[k-1], h) {
				up = behind[k-1]
			}
		}
		tree.Up, tree.By = append(tree.Up, up), append(tree.By, through)
	}
	return tree
}

// relayed tells whether hosts are reached through others.
func relayed(tree detect.Tree) bool {
	return slices.ContainsFunc(tree.By, func(b int) bool { return b > 0 })
}

// growTree says who beats for whom among all of which it is known where their heartbeats are taken.
// comes is one of them that is about to be one of the job's; nil: there is none.
func (a *agent) growTree(b *control.Beats, comes *remoteHost) {
	meets := func(x, y int) bool { return a.seen(x, y, b.At[y]).IsValid() }
	by := func(h int) int {
		e := a.hostNumbered(h)
		if comes != nil && h == comes.number {
			e = comes
		}
		if e == nil || e.by() == nil {
			return 0
		}
		return e.by().number
	}
	b.Tree = beatTree(b.Tree, len(b.At), meets, by)
}

// nextHop is the host to which one hands what is for another one: that itself, or the nearest
// through which it is reached, or else the one through which this one is reached. -1: there is no
// way. root decides.
func nextHop(self, to, root int, by []int, direct func(h int) bool) int {
	above := func(h int) int {
		if h < len(by) && by[h] > 0 && by[h] < h {
			return by[h]
		}
		return root
	}
	for h := to; ; h = above(h) {
		if h == self {
			return -1
		}
		if direct(h) {
			return h
		}
		if h == root {
			break
		}
	}
	if up := above(self); up != self && direct(up) {
		return up
	}
	return -1
}

// way is where what is for a host is sent; not valid: nowhere.
func (h *heartbeat) way(to int) netip.AddrPort {
	if h.peers[to].IsValid() || !h.between {
		return h.peers[to]
	}
	out := h.machine.OutSet()
	hop := nextHop(h.self, to, h.root, h.tree.By, func(n int) bool {
		return n < len(h.peers) && h.peers[n].IsValid() && (n == to || !out.Has(h.place(n)))
	})
	if hop < 0 {
		return netip.AddrPort{}
	}
	return h.peers[hop]
}

// handOn hands on what is for another host, if it is of the job; false: it is not.
func (h *heartbeat) handOn(b []byte) bool {
	if !h.between || len(b) < beatHead+beatProof {
		return false
	}
	to := int(binary.LittleEndian.Uint32(b[20:]))
	if to == h.self || to >= len(h.peers) || !h.proves(b) {
		return false
	}
	if at := h.way(to); at.IsValid() {
		// what is lost is said again
		unix.Sendto(h.fd, b, unix.MSG_DONTWAIT, sockaddr(at)) //nolint:errcheck
	}
	return true
}
