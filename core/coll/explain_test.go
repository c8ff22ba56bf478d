package coll

import (
	"fmt"
	"strings"
	"testing"
)

// callOf is one of so many bytes at ranks of a host with so many processors, which have shared
// memory; hosts > 1: on so many hosts, in equal parts.
func callOf(k Kind, n int64, ranks, cpus, hosts int) Args {
	a := Args{Kind: k, Size: ranks, CPUs: cpus, Commute: true, RType: byteOne.Type,
		SType: byteOne.Type}
	w := &Around{CPUs: cpus}
	for r := range ranks {
		w.Places = append(w.Places, Place{Host: uint32(r * hosts / ranks)})
	}
	near := w.Near()
	a.Place(w, &near)
	a.Share(hosts == 1)
	return a.WithBytes(n)
}

// At, below and above each limit the algorithm and the words of the reason are those of the line of
// the table that the limit is in.
func TestReasonsAtLimits(t *testing.T) {
	for _, c := range []struct {
		kind               Kind
		ranks, cpus, hosts int
		bytes              int64
		algorithm, because string
	}{
		{Barrier, 8, 16, 1, 0, "shared", "up to 8 ranks (here 8 ranks)"},
		{Barrier, 9, 16, 1, 0, "shared", "up to 64 ranks (here 9 ranks)"},
		{Barrier, 64, 2, 1, 0, "shared",
			"up to 1024 ranks, where ranks outnumber processors (here 64 ranks, 2 processors)"},
		{Barrier, 1025, 2, 1, 0, "fan",
			"where ranks outnumber processors (here 1025 ranks, 2 processors)"},
		{Barrier, 65, 65, 1, 0, "dissemination", "in all other cases"},
		{Barrier, 8, 2, 2, 0, "levels", "where ranks are near each other in groups (here 2 hosts)"},

		{Bcast, 8, 16, 1, 0, "nothing", "no rank has anything to send"},
		{Bcast, 8, 16, 1, 47, "shared",
			"up to 8 ranks, up to 48 bytes, where all fits into a cell of 48 bytes (here 8 " +
				"ranks, 47 bytes)"},
		{Bcast, 8, 16, 1, 48, "shared", "up to 8 ranks, up to 48 bytes"},
		{Bcast, 8, 16, 1, 49, "shared",
			"up to 64 ranks, where there are more than 2 ranks (here 8 ranks)"},
		{Bcast, 2, 16, 1, 49, "binomial", "up to 65536 bytes (here 49 bytes)"},
		{Bcast, 2, 16, 1, 65536, "binomial", "up to 65536 bytes (here 65536 bytes)"},
		{Bcast, 2, 16, 1, 65537, "binomial", "up to 4 ranks (here 2 ranks)"},
		{Bcast, 16, 2, 1, 8192, "shared",
			"up to 64 ranks, where there are more than 2 ranks (here 16 ranks)"},
		{Bcast, 16, 2, 1, 8193, "shared",
			"up to 64 ranks, where ranks outnumber processors and there are more than 8192 " +
				"bytes (here 16 ranks, 2 processors, 8193 bytes)"},
		{Bcast, 16, 16, 1, 32768 * 256, "shared",
			"up to 64 ranks, where there are more than 2 ranks"},
		{Bcast, 16, 16, 1, 32768*256 + 1, "scatter_allgather", "in all other cases"},
		{Bcast, 65, 65, 1, 65536, "binomial", "up to 65536 bytes (here 65536 bytes)"},
		{Bcast, 65, 65, 1, 65537, "scatter_allgather", "in all other cases"},
		{Bcast, 65, 65, 1, 64, "binomial", "up to 65536 bytes (here 64 bytes)"},
		{Bcast, 16, 2, 4, 1 << 20, "levels",
			"where ranks are near each other in groups (here 4 hosts)"},

		{Gather, 65, 65, 1, 2048, "binomial", "up to 2048 bytes (here 2048 bytes)"},
		{Gather, 65, 65, 1, 2049, "linear", "in all other cases"},
		{Gather, 16, 16, 1, 65536, "shared",
			"up to 64 ranks, up to 65536 bytes, where there are more than 2 ranks (here 16 " +
				"ranks, 65536 bytes)"},
		{Gather, 16, 16, 1, 65537, "linear", "up to 64 ranks (here 16 ranks)"},
		{Gatherv, 16, 16, 1, 100, "linear", "in all other cases"},
		{Scatter, 4, 16, 1, 12, "shared",
			"up to 8 ranks, up to 48 bytes, where all fits into a cell of 48 bytes (here 4 " +
				"ranks, 12 bytes, 48 bytes)"},
		{Scatter, 4, 16, 1, 13, "shared",
			"up to 64 ranks, up to 8192 bytes, where there are more than 2 ranks (here 4 ranks, " +
				"13 bytes)"},
		{Scatter, 4, 16, 1, 8193, "linear", "up to 64 ranks (here 4 ranks)"},

		{Allgather, 8, 16, 1, 4096, "shared",
			"up to 8 ranks, up to 4096 bytes (here 8 ranks, 4096 bytes)"},
		{Allgather, 8, 16, 1, 4097, "shared",
			"up to 64 ranks, up to 65536 bytes, where there are more than 2 ranks"},
		{Allgather, 8, 16, 1, 65537, "ring", "in all other cases"},
		{Allgather, 128, 128, 1, 8192, "recursive_doubling",
			"up to 8192 bytes, where the number of ranks is a power of two (here 8192 bytes, " +
				"128 ranks)"},
		{Allgather, 128, 128, 1, 8193, "ring", "in all other cases"},
		{Allgather, 100, 100, 1, 1024, "bruck", "up to 1024 bytes (here 1024 bytes)"},
		{Allgather, 100, 100, 1, 1025, "ring", "in all other cases"},
		{Allgatherv, 65, 65, 1, 65536, "gather_bcast", "up to 65536 bytes (here 65536 bytes)"},
		{Allgatherv, 65, 65, 1, 65537, "ring", "in all other cases"},

		{Alltoall, 8, 16, 1, 4096, "shared", "up to 8 ranks, up to 4096 bytes"},
		{Alltoall, 8, 16, 1, 4097, "linear", "in all other cases"},
		{Alltoall, 4, 16, 1, 4097, "linear", "up to 4 ranks (here 4 ranks)"},
		{Alltoall, 65, 65, 1, 256, "bruck", "up to 256 bytes (here 256 bytes)"},
		{Alltoall, 65, 65, 1, 257, "linear", "in all other cases"},
		{Alltoall, 100, 2, 10, 2048, "by_host",
			"up to 2048 bytes, where ranks are on several hosts and ranks are near each other " +
				"in groups and to go by hosts saves messages (here 2048 bytes, 10 hosts, 100 " +
				"ranks in 10 groups)"},
		{Alltoall, 100, 2, 10, 2049, "linear", "in all other cases"},
		{Alltoallv, 8, 2, 1, 0, "shared", "up to 64 ranks, where ranks outnumber processors"},
		{Alltoallv, 8, 16, 1, 0, "linear", "in all other cases"},

		{Reduce, 65, 65, 1, 65536, "binomial", "up to 65536 bytes (here 65536 bytes)"},
		{Reduce, 65, 65, 1, 65537, "rabenseifner", "in all other cases"},
		{Allreduce, 2, 16, 1, 4096, "shared",
			"up to 8 ranks, up to 4096 bytes (here 2 ranks, 4096 bytes)"},
		{Allreduce, 2, 16, 1, 4097, "recursive_doubling",
			"up to 2 ranks, up to 32768 bytes (here 2 ranks, 4097 bytes)"},
		{Allreduce, 2, 16, 1, 32769, "rabenseifner", "in all other cases"},
		{Allreduce, 16, 2, 1, 8192, "shared", "up to 64 ranks, where ranks outnumber processors"},
		{Allreduce, 65, 2, 1, 8192, "fan",
			"up to 8192 bytes, where ranks outnumber processors (here 8192 bytes, 65 ranks, 2 " +
				"processors)"},
		{Allreduce, 65, 2, 1, 8193, "rabenseifner",
			"where ranks outnumber processors (here 65 ranks, 2 processors)"},
		{ReduceScatterBlock, 100, 2, 10, 655, "reduce_scatter",
			"where ranks are on several hosts and there are more than 64 ranks and all blocks " +
				"have at most 64 KiB (here 100 ranks, 65500 bytes)"},
		{ReduceScatterBlock, 100, 2, 10, 656, "pairwise", "in all other cases"},
		{ReduceScatter, 65, 2, 1, 8192, "fan",
			"where ranks outnumber processors and there are at most 8192 bytes"},
		{ReduceScatter, 65, 2, 1, 8193, "pairwise", "in all other cases"},
		{Scan, 16, 16, 1, 8, "shared", "up to 16 ranks, up to 8 bytes (here 16 ranks, 8 bytes)"},
		{Scan, 17, 16, 1, 8, "shared",
			"up to 64 ranks, up to 65536 bytes, where there are more than 2 ranks"},
		{Exscan, 65, 65, 1, 8, "recursive_doubling", "in all other cases"},
		{NeighborAlltoallw, 4, 4, 1, 0, "direct", "in all other cases"},
	} {
		e, err := Explain(callOf(c.kind, c.bytes, c.ranks, c.cpus, c.hosts))
		if err != nil {
			t.Fatal(err)
		}
		if e.Algorithm != c.algorithm || !strings.HasPrefix(e.Why, c.because) {
			t.Errorf(
				"%v of %d bytes, %d ranks on %d hosts, %d processors: %s, because %s\nwant %s, "+
					"because %s", c.kind, c.bytes, c.ranks, c.hosts, c.cpus,
				e.Algorithm, e.Why, c.algorithm, c.because)
		}
	}
}

// Every explanation is that of the plan: of the algorithm that Compile has taken, at all ranks; and
// the alternative it names is taken when the first is not available.
func TestExplanationIsOfThePlan(t *testing.T) {
	n := 0
	for k := range Kinds {
		for _, shape := range [][3]int{{2, 4, 1}, {4, 2, 1}, {16, 2, 1}, {16, 32, 1}, {80, 2, 1},
			{12, 2, 3}, {100, 8, 10}} {
			for _, bytes := range []int64{0, 1, 8, 48, 100, 5000, 70000, 3 << 20} {
				a := callOf(k, bytes, shape[0], shape[1], shape[2])
				e, err := Explain(a)
				if err != nil {
					t.Fatal(err)
				}
				for _, rank := range []int{0, 1, a.Size - 1} {
					a.Rank = rank
					p, err := Compile(a)
					if err != nil {
						t.Fatal(err)
					}
					if p.Algorithm != e.Algorithm || p.Choice != e.Choice ||
						p.Choice.AlgorithmName(k) != p.Algorithm {
						t.Errorf("%v, %d bytes, %v: rank %d takes %s (%v), it is said %s (%v)", k,
							bytes, shape, rank, p.Algorithm, p.Choice, e.Algorithm, e.Choice)
					}
				}
				if e.Why == "" || e.Reason == "" || e.Choice.Algorithm >= firstAlgorithm &&
					e.About == "" {
					t.Errorf("%v, %d bytes, %v: no reason: %+v", k, bytes, shape, e)
				}
				for _, p := range e.Passed {
					if p.Why == "" {
						t.Errorf("%v, %d bytes, %v: %s, %s was passed over for no reason", k, bytes,
							shape, p.Algorithm, p.Rule)
					}
				}
				if e.Otherwise == "" {
					continue
				}
				n++
				all := algorithms[k]
				var others []algorithm
				for _, alg := range all {
					if alg.name == e.Algorithm {
						alg.needs = where("it is there", func(*Args) bool { return false }, nil)
					}
					others = append(others, alg)
				}
				algorithms[k] = others
				p, err := Compile(callOf(k, bytes, shape[0], shape[1], shape[2]))
				algorithms[k] = all
				if err != nil || p.Algorithm != e.Otherwise {
					t.Errorf("%v, %d bytes, %v: without %s it is %s, it was said %s (%v)", k, bytes,
						shape, e.Algorithm, p.Algorithm, e.Otherwise, err)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d have another algorithm", n)
	}
}

// Ranges are those that asking for every size finds.
func TestRanges(t *testing.T) {
	for k := range Kinds {
		for _, shape := range [][3]int{{2, 4, 1}, {3, 2, 1}, {7, 16, 1}, {16, 2, 1}, {64, 64, 1},
			{80, 2, 1}, {12, 2, 3}, {40, 8, 5}} {
			a := callOf(k, 0, shape[0], shape[1], shape[2])
			ranges, err := a.Ranges()
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for n := int64(0); n < 70000 && len(ranges) > 0; n++ {
				if n > 5000 && n%4096 > 2 { // limits lie at round numbers
					n += int64(shape[0])
				}
				for ranges[at].To >= 0 && n > ranges[at].To {
					at++
				}
				b := a.WithBytes(n)
				_, c, err := decide(&b)
				if err != nil {
					t.Fatal(err)
				}
				if c.AlgorithmName(k) != ranges[at].Algorithm {
					t.Fatalf("%v, %v: %s for %d bytes; the ranges are %+v", k, shape,
						c.AlgorithmName(k), n, ranges)
				}
			}
			for i, r := range ranges {
				if (r.To < 0) != (i == len(ranges)-1) || i > 0 && r.From != ranges[i-1].To+1 ||
					i > 0 && r.Algorithm == ranges[i-1].Algorithm {
					t.Errorf("%v, %v: ranges %+v", k, shape, ranges)
				}
			}
		}
	}
}

// A setting is the reason where it is followed; where it cannot be, the table's line is, and the
// explanation contains why.
func TestForcedReason(t *testing.T) {
	a := callOf(Allgather, 64, 6, 16, 1)
	a.Force = "recursive_doubling"
	e, err := Explain(a)
	if err != nil || e.Algorithm != "shared" || e.Choice.Reason < FirstRule ||
		e.Refused != "SPX_COLL_ALLGATHER=recursive_doubling cannot be followed: it needs that "+
			"the number of ranks is a power of two (6 ranks)" {
		t.Errorf("%+v, %v", e, err)
	}
	a = callOf(Allgather, 64, 8, 16, 1)
	a.Force, a.ForcedBy, a.ForceFrom = "recursive_doubling", ByTuning, "/etc/libspx/tuning"
	e, err = Explain(a)
	if err != nil || e.Algorithm != "recursive_doubling" || e.Choice.Reason != ByTuning ||
		e.Otherwise != "shared" ||
		e.Why != "SPX_COLL_ALLGATHER=recursive_doubling in the machine's table "+
			"/etc/libspx/tuning (spxctl tune)" {
		t.Errorf("%+v, %v", e, err)
	}
}

// All numbers of choices and reasons have names, each its own, and fit into a byte.
func TestNamesOfChoices(t *testing.T) {
	for k := range Kinds {
		for _, list := range [][]string{Choices(k), Reasons(k)} {
			seen := map[string]bool{}
			for i, name := range list {
				if name == "" || seen[name] || i > 255 {
					t.Errorf("%v: number %d is %q", k, i, name)
				}
				seen[name] = true
			}
		}
	}
	for call, want := range map[string]string{"MPI_Ibcast_c": "bcast",
		"MPI_Ireduce_scatter_block":     "reduce_scatter_block",
		"MPI_Neighbor_alltoallw_init_c": "neighbor_alltoallw",
		"MPI_Ineighbor_allgather":       "neighbor_allgather", "MPI_Barrier_init": "barrier",
		"MPI_Iexscan": "exscan", "MPI_Send": "", "MPI_Init": "", "MPI_Reduce_local": ""} {
		k, ok := KindOfCall(call)
		if ok != (want != "") || ok && k.String() != want {
			t.Errorf("%s: %v, %v", call, k, ok)
		}
	}
}

// The words of a parameter are what the plan does: pieces of a broadcast in shared memory are
// ticks.
func TestParametersAreOfThePlan(t *testing.T) {
	for _, n := range []int64{49, 40000, 1 << 20} {
		p, err := Compile(callOf(Bcast, n, 8, 16, 1))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint([]Parameter{{"piece", min(n, 32<<10), "bytes"},
			{"pieces", int64(p.Ticks), ""}})
		if p.Algorithm != "shared" || fmt.Sprint(p.Parameters) != want {
			t.Errorf("%d bytes: %s, %v in %d ticks", n, p.Algorithm, p.Parameters, p.Ticks)
		}
	}
}
