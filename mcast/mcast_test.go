package mcast

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

func randomMembers(rng *rand.Rand, procs uint32) []Member {
	var out []Member
	number, stride := 1+rng.Uint32N(5), 1+rng.Uint32N(4)
	for p := rng.Uint32N(procs); p < procs; p += stride {
		switch rng.IntN(12) {
		case 0:
			number = 1 + rng.Uint32N(5)
		case 1:
			stride = 1 + rng.Uint32N(procs)
		}
		out = append(out, Member{p, number})
	}
	return out
}

func TestWireComesBack(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		procs := 1 + rng.Uint32N(300_000)
		if seed%2 == 0 {
			procs = 1 + rng.Uint32N(100)
		}
		members := randomMembers(rng, procs)
		back, err := Decode(Encode(nil, members), procs)
		if err != nil || !slices.Equal(back, members) {
			t.Fatalf("seed %d: %v came back as %v, %v", seed, members, back, err)
		}
	}
}

// S2.1, and the design's requirement: few of very many take bytes, not kilobytes.
func TestWireIsShort(t *testing.T) {
	var strided, alone []Member
	for i := range uint32(8) {
		strided = append(strided, Member{i * 12_500, 7})
		alone = append(alone, Member{i * i * 1_500, 7})
	}
	for what, c := range map[string]struct {
		members []Member
		most    int
	}{"8 of 100,000, evenly": {strided, ItemBytes}, "8 of 100,000": {alone, 8 * ItemBytes}} {
		if n := len(Encode(nil, c.members)); n > c.most {
			t.Errorf("%s take %d bytes", what, n)
		}
	}
}

func TestMalformed(t *testing.T) {
	good := Encode(nil, []Member{{3, 1}, {5, 1}, {9, 2}})
	for at, v := range map[int]byte{0: 50, 4: 0, 8: 0, 10: 0, 12: 4, 20: 2, 22: 1} {
		b := bytes.Clone(good)
		b[at] = v
		if m, err := Decode(b, 20); err == nil {
			t.Errorf("byte %d changed to %d: taken for %v", at, v, m)
		}
	}
	if _, err := Decode(good[1:], 20); err == nil {
		t.Error("a cut form was taken")
	}
	if _, err := Decode(good, 9); err == nil {
		t.Error("a process that does not exist was taken")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(nil, []Member{{3, 1}, {5, 1}, {9, 2}}), uint32(10))
	f.Fuzz(func(t *testing.T, src []byte, procs uint32) {
		procs %= 1 << 20
		members, err := Decode(src, procs)
		if err != nil {
			return
		}
		for i, m := range members {
			if m.Proc >= procs || i > 0 && members[i-1].Proc >= m.Proc || m.Number == 0 {
				t.Fatalf("%x was taken for %v", src, members)
			}
		}
		if back, err := Decode(Encode(nil, members), procs); err != nil ||
			!slices.Equal(back, members) {
			t.Fatalf("%v does not survive the wire: %v, %v", members, back, err)
		}
	})
}

// spread hands a message on along Children from a process on host home, and returns how often each
// member got it and the depth.
func spread(rest []Member, home uint32, host, sw func(uint32) uint32, width int,
	got map[Member]int) int {
	depth := 0
	for i, b := range Children(rest, home, host, sw, width) {
		got[b.Lead()]++
		depth = max(depth, i+1+spread(b[1:], host(b.Lead().Proc), host, sw, width, got))
	}
	return depth
}

// switches distributes hosts over n switches; 0: unknown.
func switches(n uint32) func(uint32) uint32 {
	if n == 0 {
		return nil
	}
	return func(host uint32) uint32 { return host % n }
}

// S2.8: a message crosses to each switch once, and to each host once, also when the hosts of a
// switch have no consecutive numbers.
func TestTreeCrossesToASwitchOnce(t *testing.T) {
	host, sw := func(p uint32) uint32 { return p / 3 }, switches(4)
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		members := randomMembers(rng, 200)
		toSwitch, toHost := map[uint32]int{}, map[uint32]int{}
		var follow func(rest []Member, home uint32)
		follow = func(rest []Member, home uint32) {
			for _, b := range Children(rest, home, host, sw, 0) {
				to := host(b.Lead().Proc)
				if !slices.IsSortedFunc(b,
					func(x, y Member) int { return int(x.Proc) - int(y.Proc) }) {
					t.Fatalf("seed %d: %v is not in order", seed, b)
				}
				if to != home {
					toHost[to]++
				}
				if sw(to) != sw(home) {
					toSwitch[sw(to)]++
				}
				follow(b[1:], to)
			}
		}
		follow(members, 1)
		for s, n := range toSwitch {
			if n > 1 || s == sw(1) {
				t.Fatalf("seed %d: %d messages cross to switch %d", seed, n, s)
			}
		}
		for h, n := range toHost {
			if n > 1 {
				t.Fatalf("seed %d: %d messages to host %d", seed, n, h)
			}
		}
	}
}

func TestTreeReachesEverybodyOnce(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		per := 1 + rng.Uint32N(20)
		host := func(p uint32) uint32 { return p / per }
		members := randomMembers(rng, 1+rng.Uint32N(200))
		got := map[Member]int{}
		spread(members, rng.Uint32N(5), host, switches(rng.Uint32N(4)), rng.IntN(7), got)
		for _, m := range members {
			if got[m] != 1 {
				t.Fatalf("seed %d: %v got it %d times", seed, m, got[m])
			}
		}
		if len(got) != len(members) {
			t.Fatalf("seed %d: %d got it, of %d", seed, len(got), len(members))
		}
	}
}

// In a tree whose members send to one after another, n members have the message after log2(n)
// steps; a host gets it once.
func TestTreeIsFlatAndCrossesOnce(t *testing.T) {
	for n, steps := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4, 255: 8, 256: 9} {
		var members []Member
		for i := range n {
			members = append(members, Member{uint32(i), 1})
		}
		if depth := spread(members, 0, func(uint32) uint32 { return 0 }, nil, 0,
			map[Member]int{}); depth != steps {
			t.Errorf("%d members have it after %d steps, want %d", n, depth, steps)
		}
	}
	crossed := map[uint32]int{}
	host := func(p uint32) uint32 { return p / 8 }
	var follow func(rest []Member, home uint32)
	follow = func(rest []Member, home uint32) {
		for _, b := range Children(rest, home, host, nil, 0) {
			if h := host(b.Lead().Proc); h != home {
				crossed[h]++
			}
			follow(b[1:], host(b.Lead().Proc))
		}
	}
	var members []Member
	for i := range uint32(64) {
		members = append(members, Member{i, 1})
	}
	follow(members, 3)
	for h := range uint32(8) {
		if want := min(1, int(h^3)); crossed[h] != want {
			t.Errorf("host %d got the message %d times from another one, want %d", h, crossed[h],
				want)
		}
	}
}

// carryOut runs a plan as processes would: each does its sends in order, as soon as it has the
// bytes. It returns what each process has got how often, or an error when nothing can go on.
func carryOut(plan []Send, master, bytes int) (map[int][]int, error) {
	got := map[int][]int{}
	has := func(s Send) bool {
		if s.From == master {
			return true
		}
		for b := s.Lo; b < s.Hi; b++ {
			if got[s.From] == nil || got[s.From][b] == 0 {
				return false
			}
		}
		return s.Lo < s.Hi || got[s.From] != nil
	}
	queues := map[int][]Send{}
	for _, s := range plan {
		queues[s.From] = append(queues[s.From], s)
	}
	for left := len(plan); left > 0; {
		before := left
		for from, q := range queues {
			for len(q) > 0 && has(q[0]) {
				if got[q[0].To] == nil {
					got[q[0].To] = make([]int, bytes)
				}
				for b := q[0].Lo; b < q[0].Hi; b++ {
					got[q[0].To][b]++
				}
				q = q[1:]
				left--
			}
			queues[from] = q
		}
		if left == before {
			return got, fmt.Errorf("nothing goes on with %d sends left", left)
		}
	}
	return got, nil
}

func TestPlansDeliverEveryByteOnce(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		per := 1 + rng.IntN(6)
		host := func(p int) int { return p / per }
		segment := 1 + rng.IntN(9)
		plans := map[string]Plan{
			"binomial": Binomial, "scatter and ring": ScatterRing,
			"scatter and doubling": ScatterDoubling, "chain": Chain(segment),
			"fork":              Fork(segment),
			"two levels":        TwoLevel(host, ScatterDoubling, Binomial),
			"two levels, chain": TwoLevel(host, Chain(segment), ScatterRing),
		}
		ranks := rng.Perm(40)
		master, members := ranks[0], ranks[1:1+rng.IntN(36)]
		slices.Sort(members)
		size := rng.IntN(60)
		for name, plan := range plans {
			sends := plan(master, members, size)
			got, err := carryOut(sends, master, size)
			if err != nil {
				t.Fatalf("seed %d: %s to %v, %d bytes: %v", seed, name, members, size, err)
			}
			for _, m := range members {
				if got[m] == nil {
					t.Fatalf("seed %d: %s to %v, %d bytes: %d got nothing", seed, name, members,
						size, m)
				}
				for b, n := range got[m] {
					if n != 1 {
						t.Fatalf("seed %d: %s to %v, %d bytes: %d got byte %d %d times", seed, name,
							members, size, m, b, n)
					}
				}
			}
			if len(got) > len(members) {
				t.Fatalf("seed %d: %s to %v: somebody else got something: %v", seed, name, members,
					got)
			}
		}
	}
}

// rounds is after how many steps all is done, when a process sends to one other process at a time
// and receives from one.
func rounds(plan []Send, master int) int {
	type block struct{ who, lo, hi int }
	at := map[block]int{} // when bytes arrived
	busy := map[int]int{}
	last := 0
	for _, s := range plan {
		start := busy[s.From]
		for b, when := range at {
			if b.who == s.From && b.lo < s.Hi && s.Lo < b.hi {
				start = max(start, when)
			}
		}
		busy[s.From] = start + 1
		at[block{s.To, s.Lo, s.Hi}] = start + 1
		last = max(last, start+1)
	}
	return last
}

// S2.7: the doubling needs log2(n) steps after the scatter where the ring needs n-1, also when n is
// no power of two.
func TestStepsOfPlans(t *testing.T) {
	for _, n := range []int{8, 13, 31, 32, 100} {
		members := make([]int, n)
		for i := range members {
			members[i] = i + 1
		}
		log := 0
		for 1<<log < n {
			log++
		}
		if r := rounds(Binomial(0, members, 1000), 0); r > 1+log {
			t.Errorf("binomial tree of %d: %d steps", n, r)
		}
		// a step may be two ranges
		if r := rounds(ScatterDoubling(0, members, 1000), 0); r > 1+log+2*log+2 {
			t.Errorf("scatter and doubling of %d: %d steps", n, r)
		}
		if r := rounds(ScatterRing(0, members, 1000), 0); r > 1+log+n+log {
			t.Errorf("scatter and ring of %d: %d steps", n, r)
		}
	}
}

var update = flag.Bool("update", false, "write the table of cases for C anew")

// Where processes outnumber processors, each forwarding process costs a scheduling turn: with 16
// branches, 256 members of a host are reached by way of 15 others at most, and in two levels.
func TestWideTreeIsFlat(t *testing.T) {
	host := func(uint32) uint32 { return 0 }
	var levels func(rest []Member) int
	levels = func(rest []Member) int {
		deep := 0
		for _, b := range Children(rest, 0, host, nil, 16) {
			deep = max(deep, 1+levels(b[1:]))
		}
		return deep
	}
	for n, want := range map[int]int{1: 1, 16: 1, 17: 2, 256: 2, 272: 2, 273: 3} {
		if deep := levels(make([]Member, n)); deep != want {
			t.Errorf("%d members are reached in %d levels, want %d", n, deep, want)
		}
	}
}

// The wire form and the members that the tree reaches: capi/dataplane/mcast/test/mcast_wire.c
// compares its own with it.
func TestCasesForC(t *testing.T) {
	const path = "../capi/dataplane/mcast/test/zz_mcast_cases.h"
	var b strings.Builder
	b.WriteString(
		"/* Generated by go test ./mcast -update. Do not edit. */\nstatic const wire_case " +
			"cases[] = {\n")
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 4))
		procs := 1 + rng.Uint32N(40)
		if seed%4 == 3 {
			procs = 1 + rng.Uint32N(1_000_000)
		}
		members, per := randomMembers(rng, procs), 1+rng.Uint32N(12)
		if len(members) > 40 {
			members = members[:40]
		}
		home, width := rng.Uint32N(4), int(seed%3)*rng.IntN(6)
		on := uint32(seed) % 5
		fmt.Fprintf(&b, "    {%d, %d, %d, %d, %d, %d, {", procs, per, home, on, width, len(members))
		for _, m := range members {
			fmt.Fprintf(&b, "{%d, %d}, ", m.Proc, m.Number)
		}
		fmt.Fprintf(&b, "{0, 0}}, \"%x\", {", Encode(nil, members))
		for _, c := range Children(members, home, func(p uint32) uint32 { return p / per },
			switches(on), width) {
			fmt.Fprintf(&b, "{%d, %d}, ", c.Lead().Proc, len(c))
		}
		b.WriteString("{0, 0}}},\n")
	}
	b.WriteString("};\nstatic const part_case parts[] = {\n")
	for n := 1; n <= 13; n++ {
		for me := range n {
			fmt.Fprintf(&b, "    {%d, %d, {", n, me)
			for i := range n {
				fmt.Fprintf(&b, "{%d, %d, %d}, ", RingFrom(me, i, n), DoublingFrom(me, i, n),
					Cut(81921+n, n, i))
			}
			fmt.Fprintf(&b, "{0, 0, %d}}},\n", Cut(81921+n, n, n))
		}
	}
	b.WriteString("};\n")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the code makes (%v): go test ./mcast -update", path, err)
	}
}
