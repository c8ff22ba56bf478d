package mcast

// A message in parts: each of n hosts gets one of them from the master, and the rest from other
// hosts, as they arrive. So every host receives each byte once, none sends more than it receives,
// and the master sends each byte once. capi/dataplane/mcast/mcast_relay.c implements it: each host
// requests its parts, and the current or future holders of a part are known identically at all.

// line is what parts are cut at.
const line = 64

// Cut returns the offset at which part i of n of a message of bytes bytes begins; i == n: its end.
func Cut(bytes, n, i int) int {
	if i >= n {
		return bytes
	}
	return bytes / line * i / n * line
}

// RingFrom returns the one of n hosts from which host me gets part i: from the one before it, if it
// is not its own one.
func RingFrom(me, i, n int) int {
	if me == i {
		return me
	}
	return (me + n - 1) % n
}

// DoublingFrom returns the same for doubling: in step k a host gets the parts that the host 2^k
// behind it has by then, 2^k of them, or fewer in the last one. So a part is everywhere after
// log2(n) steps, rounded down.
func DoublingFrom(me, i, n int) int {
	ahead, step := (i-me+n)%n, 1
	if ahead == 0 {
		return me
	}
	for step <= ahead/2 {
		step *= 2
	}
	return (me + step) % n
}
