package coll

import (
	"fmt"
	"math"
	"strings"
)

// algorithm is one way to do an operation. needs says what it cannot do without; a forced algorithm
// whose needs are not met gives way to the table's choice, at all ranks alike.
type algorithm struct {
	name  string
	build func(*builder)
	needs func(*Args) bool
}

func commutes(a *Args) bool    { return a.Commute }
func powerOfTwo(a *Args) bool  { return a.Size&(a.Size-1) == 0 }
func always(*Args) bool        { return true }
func onePerRank(a *Args) bool  { return a.RCount >= int64(a.Size) }
func halvable(a *Args) bool    { return a.Commute && onePerRank(a) && a.Size > 1 }
func several(a *Args) bool     { return a.Size > 1 }
func packable(a *Args) bool    { return a.Size > 1 && a.data()*int64(a.Size) < 1<<30 }
func bytesDivide(a *Args) bool { return a.Size > 1 && a.data() >= int64(a.Size) }
func smallOnHost(a *Args) bool { return a.crowded() && a.data() <= 8192 }

// Shared memory: at most so many pieces or ticks, so that plans stay short.
func shared(a *Args) bool { return a.Shared > 0 && a.Size > 1 && a.slotBytes() >= 64 }
func piecewise(per func(*Args) int64) func(*Args) bool {
	const most = 256
	return func(a *Args) bool { return shared(a) && per(a) > 0 && a.data() <= per(a)*most }
}
func inPart(a *Args) bool      { return shared(a) && a.data() <= a.Shared }
func inSlot(a *Args) bool      { return shared(a) && a.data() <= a.slotBytes() }
func blockPiece(a *Args) int64 { return a.slotBytes() / int64(a.Size) &^ 7 }
func lengthsToo(a *Args) bool  { return shared(a) && blockPiece(a) > lengthBytes }
func foldPiece(a *Args) int64 {
	return a.slotBytes() / int64(
		a.Size) / a.RType.Size * a.RType.Size
}

// inCell: what a rank posts lies beside the word, so that a root that runs ahead of the others does
// so by many operations.
func inCell(a *Args) bool {
	n := a.data()
	if a.Kind == Scatter {
		n *= int64(a.Size)
	}
	return n <= CellBytes
}

// isLong: so long that to copy it once less outweighs that only a few pieces can be under way.
func isLong(a *Args) bool     { return a.data() > 8192 }
func outOfPlace(a *Args) bool { return !a.InPlace }
func foldable(a *Args) bool   { return a.RType.Contig && a.RType.Size > 0 && a.RType.Size <= 64 }
func wired(a *Args) bool      { return a.Wired }
func many(a *Args) bool       { return a.Size > 2 }

// shortOfMany: blocks of so many ranks on several hosts that a message from each to each takes
// longer than all blocks along the way of one: up a tree, and one message back for each.
func shortOfMany(a *Args) bool {
	all := a.data()
	if a.Kind == ReduceScatterBlock {
		all *= int64(a.Size)
	}
	return a.Several && a.Size > 64 && all <= 64<<10
}

func both(p, q func(*Args) bool) func(*Args) bool {
	return func(a *Args) bool { return p(a) && q(a) }
}

// algorithms by operation. The first is the one that always works.
var algorithms = [Kinds][]algorithm{
	Barrier: {
		{"tree", barrierTree, always},
		{"fan", fan(flat, barrierTree), always},
		{"dissemination", barrierDissemination, always},
		{"shared", barrierShared, shared},
		{"levels", barrierLevels, leveled},
	},
	Bcast: {
		{"binomial", bcastBinomial, always},
		{"fan", fan(flat, bcastBinomial), always},
		{"scatter_allgather", bcastScatterAllgather, bytesDivide},
		{"chain", bcastChain, several},
		{"shared", bcastShared, piecewise(func(a *Args) int64 { return min(a.Shared, 32<<10) })},
		{"levels", bcastLevels, leveled},
	},
	Gather: {
		{"linear", gatherLinear, always},
		{"binomial", gatherBinomial, packable},
		{"shared", gatherShared, piecewise((*Args).slotBytes)},
		{"by_host", gatherByHost, both(byHosts, packable)},
	},
	Gatherv: {{"linear", gathervLinear, always}},
	Scatter: {
		{"linear", scatterLinear, always},
		{"binomial", scatterBinomial, packable},
		{"shared", scatterShared, piecewise((*Args).slotBytes)},
		{"by_host", scatterByHost, both(byHosts, packable)},
	},
	Scatterv: {{"linear", scattervLinear, always}},
	Allgather: {
		{"ring", allgatherRing, always},
		{"linear", allgatherLinear, always},
		{"recursive_doubling", allgatherDoubling, powerOfTwo},
		{"bruck", allgatherBruck, packable},
		{"gather_bcast", allgatherGatherBcast, always},
		{"fan", fan(flat, allgatherGatherBcast), always},
		{"shared", allgatherShared, piecewise((*Args).slotBytes)},
		{"levels", allgatherLevels, inRuns},
	},
	Allgatherv: {
		{"ring", allgathervRing, always},
		{"linear", allgathervLinear, always},
		{"gather_bcast", allgathervGatherBcast, always},
		{"fan", fan(flat, allgathervGatherBcast), always},
		{"shared", allgathervShared, inPart},
	},
	Alltoall: {
		{"linear", alltoallLinear, always},
		{"pairwise", alltoallPairwise, always},
		{"bruck", alltoallBruck, packable},
		{"shared", alltoallShared, piecewise(blockPiece)},
		{"by_switch", alltoallBySwitch, both(relayed, outOfPlace)},
		{"by_host", alltoallByHost, both(byHosts, outOfPlace)},
	},
	Alltoallv: {
		{"linear", alltoallvLinear, always},
		{"shared", alltoallvShared, both(lengthsToo, outOfPlace)},
		{"by_switch", alltoallvBySwitch, both(relayed, outOfPlace)},
	},
	Alltoallw: {
		{"linear", alltoallvLinear, always},
		{"by_switch", alltoallvBySwitch, both(relayed, outOfPlace)},
	},
	Reduce: {
		{"binomial", reduceBinomial, always},
		{"fan", fan(flat, reduceBinomial), always},
		{"rabenseifner", reduceRabenseifner, halvable},
		{"shared", reduceShared, both(foldable, piecewise((*Args).slotBytes))},
		{"levels", reduceLevels, inAnyOrder},
	},
	Allreduce: {
		{"reduce_bcast", allreduceReduceBcast, always},
		{"fan", fan(flat, allreduceReduceBcast), always},
		{"recursive_doubling", allreduceDoubling, always},
		{"rabenseifner", allreduceRabenseifner, halvable},
		{"shared", reduceShared, both(foldable, piecewise((*Args).slotBytes))},
		{"levels", allreduceLevels, inOrder},
	},
	ReduceScatterBlock: {
		{"reduce_scatter", reduceThenScatter, always},
		{"fan", fan(flat, reduceThenScatter), always},
		{"pairwise", reduceScatterPairwise, commutes},
		{"shared", reduceScatterShared, both(foldable, piecewise(foldPiece))},
	},
	ReduceScatter: {
		{"reduce_scatter", reduceThenScatter, always},
		{"fan", fan(flat, reduceThenScatter), always},
		{"pairwise", reduceScatterPairwise, commutes},
		{"shared", reduceScatterShared, both(foldable, inSlot)},
	},
	Scan: {
		{"linear", scanLinear, always},
		{"fan", scanFan, always},
		{"recursive_doubling", scanDoubling, always},
		{"shared", scanShared, both(foldable, inSlot)},
		{"by_host", scanByHost, both(byHosts, runs)},
	},
	Exscan: {
		{"linear", scanLinear, always},
		{"fan", scanFan, always},
		{"recursive_doubling", scanDoubling, always},
		{"shared", scanShared, both(foldable, inSlot)},
		{"by_host", scanByHost, both(byHosts, runs)},
	},
	NeighborAllgather:  {{"direct", neighborAllgather, always}},
	NeighborAllgatherv: {{"direct", neighborAllgatherv, always}},
	NeighborAlltoall:   {{"direct", neighborAlltoall, always}},
	NeighborAlltoallv:  {{"direct", neighborAlltoallv, always}},
	NeighborAlltoallw:  {{"direct", neighborAlltoallv, always}},
}

// rule is a line of the table: the algorithm for an operation when the number of ranks and the
// bytes (see Args.data) are at most these and the condition holds.
type rule struct {
	kind  Kind
	ranks int
	bytes int64
	when  func(*Args) bool
	use   string
}

const (
	anyRanks = math.MaxInt
	anyBytes = math.MaxInt64
)

// table: the first line that fits and whose algorithm can do the call is taken. When ranks
// outnumber the processors, what counts is how often each rank has to get its turn to run (16 ranks
// on 2 processors: a barrier takes 16 switches over a flat tree, 66 over a binomial one); else it
// is the number of rounds. For long data it is the number of bytes that pass through one rank.
// Where each rank has a processor, what lies in memory that all share costs a fraction of the
// rounds; its limits are those of measurements with 2 to 16 ranks on 16 cores
// (docs/bench/cores-16.md).
var table = []rule{
	{Barrier, 8, anyBytes, always, "shared"},
	{Barrier, 1024, anyBytes, (*Args).crowded, "shared"},
	{Barrier, anyRanks, anyBytes, leveled, "levels"},
	{Barrier, 64, anyBytes, always, "shared"},
	{Barrier, anyRanks, anyBytes, (*Args).crowded, "fan"},
	{Barrier, anyRanks, anyBytes, always, "dissemination"},

	{Bcast, 8, CellBytes, inCell, "shared"},
	{Bcast, 64, CellBytes, both((*Args).crowded, inCell), "shared"},
	{Bcast, 64, anyBytes, both((*Args).crowded, isLong), "shared"},
	{Bcast, anyRanks, anyBytes, leveled, "levels"},
	{Bcast, 64, anyBytes, many, "shared"},
	// each message costs its sender most: the root should not be all of them
	{Bcast, anyRanks, 64 << 10, wired, "binomial"},
	{Bcast, 4, anyBytes, wired, "binomial"},
	{Bcast, 64, anyBytes, (*Args).crowded, "fan"},
	{Bcast, 1024, anyBytes, (*Args).crowded, "shared"},
	{Bcast, anyRanks, anyBytes, (*Args).crowded, "fan"},
	{Bcast, anyRanks, 64 << 10, always, "binomial"},
	{Bcast, 4, anyBytes, always, "binomial"},
	{Bcast, anyRanks, anyBytes, always, "scatter_allgather"},
	{Bcast, anyRanks, anyBytes, always, "binomial"},

	{Gather, 8, CellBytes, inCell, "shared"},
	{Gather, 64, CellBytes, both((*Args).crowded, inCell), "shared"},
	{Gather, 64, anyBytes, both((*Args).crowded, isLong), "shared"},
	{Gather, anyRanks, hostBlock, byHosts, "by_host"},
	{Gather, 64, 64 << 10, many, "shared"},
	{Gather, 64, anyBytes, always, "linear"},
	{Gather, anyRanks, 2048, always, "binomial"},
	{Gather, anyRanks, anyBytes, always, "linear"},
	{Gatherv, anyRanks, anyBytes, always, "linear"},
	{Scatter, 8, CellBytes, inCell, "shared"},
	{Scatter, 64, CellBytes, both((*Args).crowded, inCell), "shared"},
	{Scatter, 64, anyBytes, both((*Args).crowded, isLong), "shared"},
	{Scatter, anyRanks, hostBlock, byHosts, "by_host"},
	{Scatter, 64, 8192, many, "shared"},
	{Scatter, 64, anyBytes, always, "linear"},
	{Scatter, anyRanks, 2048, always, "binomial"},
	{Scatter, anyRanks, anyBytes, always, "linear"},
	{Scatterv, anyRanks, anyBytes, always, "linear"},

	{Allgather, 8, 4096, always, "shared"},
	{Allgather, 64, anyBytes, (*Args).crowded, "shared"},
	{Allgather, anyRanks, anyBytes, leveled, "levels"},
	{Allgather, 64, 64 << 10, many, "shared"},
	{Allgather, anyRanks, anyBytes, (*Args).crowded, "fan"},
	{Allgather, anyRanks, 8192, powerOfTwo, "recursive_doubling"},
	{Allgather, anyRanks, 1024, always, "bruck"},
	{Allgather, anyRanks, anyBytes, always, "ring"},
	{Allgatherv, 8, 4096, always, "shared"},
	{Allgatherv, 64, anyBytes, (*Args).crowded, "shared"},
	{Allgatherv, 64, 1 << 20, many, "shared"},
	{Allgatherv, anyRanks, 256 << 10, (*Args).crowded, "fan"},
	{Allgatherv, 64, anyBytes, (*Args).crowded, "linear"},
	{Allgatherv, anyRanks, 64 << 10, always, "gather_bcast"},
	{Allgatherv, anyRanks, anyBytes, always, "ring"},

	{Alltoall, 8, 4096, always, "shared"},
	{Alltoall, 64, 32 << 10, (*Args).crowded, "shared"},
	{Alltoall, 64, 4096, many, "shared"},
	{Alltoall, 4, anyBytes, always, "linear"},
	{Alltoall, 64, anyBytes, (*Args).crowded, "linear"},
	{Alltoall, anyRanks, switchBlock, relayed, "by_switch"},
	{Alltoall, anyRanks, hostBlock, byHosts, "by_host"},
	{Alltoall, anyRanks, 256, always, "bruck"},
	{Alltoall, anyRanks, anyBytes, always, "linear"},
	{Alltoallv, 64, anyBytes, (*Args).crowded, "shared"},
	{Alltoallv, anyRanks, anyBytes, relayed, "by_switch"},
	{Alltoallv, anyRanks, anyBytes, always, "linear"},
	{Alltoallw, anyRanks, anyBytes, relayed, "by_switch"},
	{Alltoallw, anyRanks, anyBytes, always, "linear"},

	{Reduce, 8, CellBytes, inCell, "shared"},
	{Reduce, 64, CellBytes, both((*Args).crowded, inCell), "shared"},
	{Reduce, 64, anyBytes, both((*Args).crowded, isLong), "shared"},
	{Reduce, anyRanks, anyBytes, leveled, "levels"},
	{Reduce, 64, 64 << 10, many, "shared"},
	{Reduce, anyRanks, 64 << 10, (*Args).crowded, "fan"},
	{Reduce, anyRanks, 1 << 20, (*Args).crowded, "binomial"},
	{Reduce, anyRanks, 64 << 10, always, "binomial"},
	{Reduce, anyRanks, anyBytes, always, "rabenseifner"},
	{Reduce, anyRanks, anyBytes, always, "binomial"},
	{Allreduce, 8, 4096, always, "shared"},
	{Allreduce, 64, anyBytes, (*Args).crowded, "shared"},
	{Allreduce, anyRanks, anyBytes, leveled, "levels"},
	{Allreduce, 64, 1 << 20, many, "shared"},
	{Allreduce, 2, 32 << 10, always, "recursive_doubling"},
	{Allreduce, 2, 2 << 20, wired, "recursive_doubling"}, // rounds are what costs
	{Allreduce, 4, 128 << 10, both(wired, isLong), "recursive_doubling"},
	{Allreduce, anyRanks, 8 << 10, (*Args).crowded, "fan"},
	{Allreduce, anyRanks, anyBytes, (*Args).crowded, "rabenseifner"},
	{Allreduce, anyRanks, 32 << 10, always, "recursive_doubling"},
	{Allreduce, anyRanks, anyBytes, always, "rabenseifner"},
	{Allreduce, anyRanks, anyBytes, always, "recursive_doubling"},

	{ReduceScatterBlock, 8, 4096, always, "shared"},
	{ReduceScatterBlock, 64, anyBytes, (*Args).crowded, "shared"},
	{ReduceScatterBlock, 64, 4096, many, "shared"},
	{ReduceScatterBlock, anyRanks, anyBytes, smallOnHost, "fan"},
	{ReduceScatterBlock, anyRanks, anyBytes, shortOfMany, "reduce_scatter"},
	{ReduceScatterBlock, anyRanks, anyBytes, always, "pairwise"},
	{ReduceScatterBlock, anyRanks, anyBytes, always, "reduce_scatter"},
	{ReduceScatter, 8, 4096, always, "shared"},
	{ReduceScatter, 64, anyBytes, (*Args).crowded, "shared"},
	{ReduceScatter, 64, 32 << 10, many, "shared"},
	{ReduceScatter, anyRanks, anyBytes, smallOnHost, "fan"},
	{ReduceScatter, anyRanks, anyBytes, shortOfMany, "reduce_scatter"},
	{ReduceScatter, anyRanks, anyBytes, always, "pairwise"},
	{ReduceScatter, anyRanks, anyBytes, always, "reduce_scatter"},

	{Scan, 8, CellBytes, always, "shared"},
	{Scan, 16, SlipBytes, always, "shared"},
	{Scan, anyRanks, anyBytes, both(byHosts, runs), "by_host"},
	{Scan, 64, 64 << 10, many, "shared"},
	{Scan, 2, anyBytes, always, "shared"},
	{Scan, 2, anyBytes, always, "linear"},
	{Scan, anyRanks, 8192, (*Args).crowded, "linear"},
	{Scan, 64, anyBytes, (*Args).crowded, "shared"},
	{Scan, anyRanks, anyBytes, (*Args).crowded, "linear"},
	{Scan, anyRanks, anyBytes, always, "recursive_doubling"},
	{Exscan, 8, CellBytes, always, "shared"},
	{Exscan, 16, SlipBytes, always, "shared"},
	{Exscan, anyRanks, anyBytes, both(byHosts, runs), "by_host"},
	{Exscan, 64, 64 << 10, many, "shared"},
	{Exscan, 2, anyBytes, always, "shared"},
	{Exscan, 2, anyBytes, always, "linear"},
	{Exscan, anyRanks, 8192, (*Args).crowded, "linear"},
	{Exscan, 64, anyBytes, (*Args).crowded, "shared"},
	{Exscan, anyRanks, anyBytes, (*Args).crowded, "linear"},
	{Exscan, anyRanks, anyBytes, always, "recursive_doubling"},

	{NeighborAllgather, anyRanks, anyBytes, always, "direct"},
	{NeighborAllgatherv, anyRanks, anyBytes, always, "direct"},
	{NeighborAlltoall, anyRanks, anyBytes, always, "direct"},
	{NeighborAlltoallv, anyRanks, anyBytes, always, "direct"},
	{NeighborAlltoallw, anyRanks, anyBytes, always, "direct"},
}

func find(k Kind, name string) *algorithm {
	for i := range algorithms[k] {
		if algorithms[k][i].name == name {
			return &algorithms[k][i]
		}
	}
	return nil
}

func choose(a *Args) (*algorithm, error) {
	if a.Force != "" {
		alg := find(a.Kind, a.Force)
		if alg == nil {
			return nil, fmt.Errorf("%s=%s: no such algorithm; there are: %s", EnvName(a.Kind),
				a.Force,
				strings.Join(Algorithms(a.Kind), ", "))
		}
		if alg.needs(a) {
			return alg, nil
		}
	}
	for _, r := range table {
		if r.kind != a.Kind || a.Size > r.ranks || a.data() > r.bytes || !r.when(a) {
			continue
		}
		if alg := find(a.Kind, r.use); alg != nil && alg.needs(a) {
			return alg, nil
		}
	}
	return &algorithms[a.Kind][0], nil
}
