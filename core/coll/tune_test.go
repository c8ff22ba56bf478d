package coll

import (
	"math"
	"strings"
	"testing"
)

// TestTableNamesExist: every line of the table names an algorithm, and every operation has a line
// that always holds.
func TestTableNamesExist(t *testing.T) {
	closed := map[Kind]bool{}
	for i, r := range table {
		if find(r.kind, r.use) == nil {
			t.Errorf("line %d: %v has no algorithm %q", i, r.kind, r.use)
		}
		if r.ranks == anyRanks && r.bytes == anyBytes {
			closed[r.kind] = true
		}
	}
	for k := range Kinds {
		if !closed[k] {
			t.Errorf("the table ends without a line for any %v", k)
		}
		if got, ok := Lookup(k.String()); !ok || got != k {
			t.Errorf("Lookup(%q) = %v, %v", k.String(), got, ok)
		}
	}
}

// TestSharedWithAProcessorEach: where each rank has a processor, short data goes through the memory
// of the host, also with more than a few ranks; blocks of an alltoall that are long do not, nor
// what is for several hosts.
func TestSharedWithAProcessorEach(t *testing.T) {
	for _, size := range []int{3, 9, 16, 64} {
		for _, c := range []struct {
			kind   Kind
			count  int64 // of elements of 4 bytes
			shared bool
		}{
			{Barrier, 0, true}, {Bcast, 1024, true}, {Bcast, 1 << 20, true}, {Gather, 8, true},
			{Scatter, 8, true}, {Reduce, 1024, true}, {Allreduce, 8, true},
			{Allreduce, 64 << 10, true},
			{Allgather, 1024, true}, {Alltoall, 1024, true}, {Alltoall, 16 << 10, false},
			{ReduceScatterBlock, 1024, true}, {Scan, 1024, true}, {Exscan, 1024, true},
		} {
			for _, hosts := range []int{1, 2} {
				a := Args{Kind: c.kind, Size: size, CPUs: 64, Commute: true, SCount: c.count,
					RCount: c.count, SType: plain.Type, RType: plain.Type}
				if hosts == 1 {
					a.Shared = 1 << 20
				}
				p, err := Compile(a)
				if err != nil {
					t.Fatal(err)
				}
				if got := p.Algorithm == "shared"; got != (c.shared && hosts == 1) {
					t.Errorf("%v, %d elements, %d ranks, memory of %d bytes: %s", c.kind, c.count,
						size, a.Shared, p.Algorithm)
				}
			}
		}
	}
}

func TestForceUnknown(t *testing.T) {
	_, err := Compile(Args{Kind: Bcast, Size: 2, RCount: 1, RType: plain.Type, Force: "osmosis"})
	if err == nil || !strings.Contains(err.Error(), "SPX_COLL_BCAST=osmosis") ||
		!strings.Contains(err.Error(), "binomial") {
		t.Fatalf("error %v", err)
	}
}

// TestSameChoiceEverywhere: all ranks take the same algorithm although they describe the data
// differently.
func TestSameChoiceEverywhere(t *testing.T) {
	for k := range Kinds {
		for _, count := range []int64{1, 100, 3000, 200000, 1 << 22} {
			for _, size := range []int{2, 4, 7, 16, 100} {
				var first string
				for r := range size {
					a := Args{Kind: k, Rank: r, Size: size, CPUs: 2, Root: 1, Commute: true,
						SizeClass: 12,
						SCount:    count, RCount: count, SType: plain.Type, RType: plain.Type}
					if r%2 == 1 { // half as many elements of twice the size
						a.SCount, a.SType = count/2, double.Type
						if count%2 != 0 {
							a.SCount, a.SType = count, gappy.Type
						}
					}
					p, err := Compile(a)
					if err != nil {
						t.Fatal(err)
					}
					if r == 0 {
						first = p.Algorithm
					} else if p.Algorithm != first {
						t.Fatalf("%v, %d elements, %d ranks: rank 0 takes %s, rank %d %s", k, count,
							size, first, r, p.Algorithm)
					}
				}
			}
		}
	}
}

// TestCrowdedMessages: with more ranks than processors, a barrier and a small allreduce take no
// more than 2(n-1) messages.
func TestCrowdedMessages(t *testing.T) {
	for _, k := range []Kind{Barrier, Allreduce, Allgather} {
		sends := 0
		for r := range 16 {
			p, err := Compile(Args{Kind: k, Rank: r, Size: 16, CPUs: 2, SCount: 1, RCount: 1,
				SType: plain.Type, RType: plain.Type, Commute: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Steps {
				if s.Op == OpSend {
					sends++
				}
			}
		}
		if sends > 30 {
			t.Errorf("%v: %d messages", k, sends)
		}
	}
}

// TestLargeCounts: offsets beyond 2^31 and totals near 2^62 come out right and do not overflow.
func TestLargeCounts(t *testing.T) {
	const n = int64(math.MaxInt32) * 4
	p, err := Compile(Args{Kind: Alltoall, Rank: 1, Size: 4, CPUs: 8, SCount: n, RCount: n,
		SType: plain.Type, RType: plain.Type})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.Op == OpRecv && s.X.Off != int64(s.Peer)*n*4 {
			t.Errorf("block of rank %d at %d", s.Peer, s.X.Off)
		}
	}
}
