package mcast

import "math/bits"

// A Send is one step of a plan: bytes lo to hi of the message go from one process to another. A
// process performs its sends in the order of the plan, each as soon as it has the bytes.
type Send struct {
	From, To int
	Lo, Hi   int
}

// A Plan lists sends such that every member gets every byte of a message once. master is not a
// member; it sends to the first member only, unless the plan specifies otherwise, and is then free.
type Plan func(master int, members []int, bytes int) []Send

// Binomial sends whole messages along a binomial tree of the members: log2(n) steps, for short
// messages.
func Binomial(master int, members []int, bytes int) []Send {
	if len(members) == 0 {
		return nil
	}
	out := []Send{{master, members[0], 0, bytes}}
	return binomial(out, members, bytes)
}

func binomial(out []Send, members []int, bytes int) []Send {
	var subtrees [][]int
	rest := members[1:]
	for len(rest) > 0 {
		half := rest[len(rest)/2:]
		out = append(out, Send{members[0], half[0], 0, bytes})
		subtrees = append(subtrees, half)
		rest = rest[:len(rest)/2]
	}
	for _, s := range subtrees {
		out = binomial(out, s, bytes)
	}
	return out
}

// blocks cuts a message into one block a member: block i is bytes cut(i) to cut(i+1).
type blocks struct{ n, bytes int }

func (b blocks) cut(i int) int { return i*(b.bytes/b.n) + min(i, b.bytes%b.n) }

// A scattered message: member i holds blocks i to until[i]-1.
type scattered struct {
	blocks
	members []int
	until   []int
	out     []Send
}

// scatter gives the message to the first member and then, halving, a part to each.
func scatter(master int, members []int, bytes int) *scattered {
	n := len(members)
	s := &scattered{blocks: blocks{n, bytes}, members: members, until: make([]int, n)}
	s.out = append(s.out, Send{master, members[0], 0, bytes})
	s.until[0] = n
	for step := 1 << bits.Len(uint(n-1)) / 2; step > 0; step /= 2 {
		for i := 0; i+step < n; i += 2 * step {
			to := i + step
			s.until[to] = min(to+step, n)
			s.send(i, to, to, s.until[to])
		}
	}
	return s
}

// send adds the step that moves blocks lo to hi-1, if there is anything in them.
func (s *scattered) send(from, to, lo, hi int) {
	if a, b := s.cut(lo), s.cut(max(lo, hi)); a < b {
		s.out = append(s.out, Send{s.members[from], s.members[to], a, b})
	}
}

// give moves blocks lo to hi-1 but for those that the scatter has given to the receiver.
func (s *scattered) give(from, to, lo, hi int) {
	s.send(from, to, lo, min(hi, to))
	s.send(from, to, max(lo, s.until[to]), hi)
}

// ScatterRing scatters a message and passes the blocks on in a ring: every member sends about as
// much as it receives, in n-1 steps. For long messages.
func ScatterRing(master int, members []int, bytes int) []Send {
	n := len(members)
	if n < 2 || bytes == 0 { // there is nothing to scatter
		return Binomial(master, members, bytes)
	}
	s := scatter(master, members, bytes)
	for step := range n - 1 {
		for i := range n {
			b := (i - step + n) % n
			s.give(i, (i+1)%n, b, b+1)
		}
	}
	return s.out
}

// ScatterDoubling scatters a message, then every member passes on all that it has, twice as much
// each time: log2(n) steps, for any number of members. In step k member i has the blocks from i on,
// 2^k of them (cyclically), and sends them 2^k members back. For messages of middle size.
func ScatterDoubling(master int, members []int, bytes int) []Send {
	n := len(members)
	if n < 2 || bytes == 0 { // there is nothing to scatter
		return Binomial(master, members, bytes)
	}
	s := scatter(master, members, bytes)
	for have := 1; have < n; have *= 2 {
		count := min(have, n-have)
		for i := range n {
			to := (i - have + n) % n
			s.give(i, to, i, min(i+count, n))
			s.give(i, to, 0, i+count-n)
		}
	}
	return s.out
}

// Chain passes a message on from member to member in segments of so many bytes, all at once on
// their way: for very long messages and few members.
func Chain(segment int) Plan {
	return func(master int, members []int, bytes int) []Send {
		var out []Send
		for lo := 0; lo < max(bytes, 1); lo += segment {
			from := master
			for _, to := range members {
				out = append(out, Send{from, to, lo, min(lo+segment, bytes)})
				from = to
			}
		}
		return out
	}
}

// Fork passes a message on in segments, as Chain does, but each member to two others, each of which
// serves half of the rest: every byte leaves a process twice, and n members have a segment after
// log2(n) steps.
func Fork(segment int) Plan {
	return func(master int, members []int, bytes int) []Send {
		var out []Send
		for lo := 0; lo < max(bytes, 1); lo += segment {
			out = fork(out, master, members, lo, min(lo+segment, bytes))
		}
		return out
	}
}

func fork(out []Send, from int, members []int, lo, hi int) []Send {
	if len(members) == 0 {
		return out
	}
	rest := members[1:]
	near := rest[:(len(rest)+1)/2]
	out = append(out, Send{from, members[0], lo, hi})
	out = fork(out, members[0], near, lo, hi)
	return fork(out, members[0], rest[len(near):], lo, hi)
}

// TwoLevel applies across to the first members of each host, and inside to the members of every
// host, whose first member is then the master of the other members.
func TwoLevel(host func(proc int) int, across, inside Plan) Plan {
	return func(master int, members []int, bytes int) []Send {
		var leads, order []int
		of := map[int][]int{}
		for _, m := range members {
			h := host(m)
			if of[h] == nil {
				leads = append(leads, m)
				order = append(order, h)
			}
			of[h] = append(of[h], m)
		}
		out := across(master, leads, bytes)
		for _, h := range order {
			out = append(out, inside(of[h][0], of[h][1:], bytes)...)
		}
		return out
	}
}
