package coll

import "math"

// algorithm is one way to do an operation. needs lists its requirements; a forced algorithm whose
// needs are not met is replaced by the table's choice, at all ranks alike. about describes the flow
// of data in a few words.
type algorithm struct {
	name  string
	build func(*builder)
	needs conditions
	about string
}

// algorithms by operation. The first is the one that always works.
var algorithms = [Kinds][]algorithm{
	Barrier: {
		{"tree", barrierTree, always, "up a binomial tree and down again"},
		{"fan", fan(flat, barrierTree), always, "up a flat tree and down again"},
		{"dissemination", barrierDissemination, always,
			"in rounds, each rank to the one twice as far on"},
		{"shared", barrierShared, shared, "a word of each rank in shared memory"},
		{"levels", barrierLevels, leveled,
			"in each group to its leader, among the leaders by dissemination, and back"},
	},
	Bcast: {
		{"binomial", bcastBinomial, always, "down a binomial tree"},
		{"fan", fan(flat, bcastBinomial), always, "down a flat tree"},
		{"scatter_allgather", bcastScatterAllgather, bytesDivide,
			"a piece for each rank down a binomial tree, then around a ring"},
		{"chain", bcastChain, several, "from rank to rank, in segments"},
		{"shared", bcastShared, piecewise(bcastPiece), "through slots of shared memory"},
		{"levels", bcastLevels, leveled, "from group to group, and down a tree in each"},
	},
	Gather: {
		{"linear", gatherLinear, always, "from each rank to the root"},
		{"binomial", gatherBinomial, packable, "up a binomial tree, packed"},
		{"shared", gatherShared, piecewise((*Args).slotBytes), "through slots of shared memory"},
		{"by_host", gatherByHost, both(byHosts, packable), "the blocks of a host together"},
	},
	Gatherv: {{"linear", gathervLinear, always, "from each rank to the root"}},
	Scatter: {
		{"linear", scatterLinear, always, "from the root to each rank"},
		{"binomial", scatterBinomial, packable, "down a binomial tree, packed"},
		{"shared", scatterShared, piecewise((*Args).slotBytes), "through slots of shared memory"},
		{"by_host", scatterByHost, both(byHosts, packable), "the blocks of a host together"},
	},
	Scatterv: {{"linear", scattervLinear, always, "from the root to each rank"}},
	Allgather: {
		{"ring", allgatherRing, always, "around a ring"},
		{"linear", allgatherLinear, always, "from each rank to each"},
		{"recursive_doubling", allgatherDoubling, powerOfTwo,
			"partners twice as far apart in each round exchange all that they have"},
		{"bruck", allgatherBruck, packable, "in rounds, packed, for any number of ranks (Bruck)"},
		{"gather_bcast", allgatherGatherBcast, always, "up a binomial tree and down again"},
		{"fan", fan(flat, allgatherGatherBcast), always, "up a flat tree and down again"},
		{"shared", allgatherShared, piecewise((*Args).slotBytes), "through slots of shared memory"},
		{"levels", allgatherLevels, inRuns,
			"in each group to its leader, among the leaders, and down again"},
	},
	Allgatherv: {
		{"ring", allgathervRing, always, "around a ring"},
		{"linear", allgathervLinear, always, "from each rank to each"},
		{"gather_bcast", allgathervGatherBcast, always, "up a binomial tree and down again"},
		{"fan", fan(flat, allgathervGatherBcast), always, "up a flat tree and down again"},
		{"shared", allgathervShared, inPart, "through slots of shared memory"},
	},
	Alltoall: {
		{"linear", alltoallLinear, always, "from each rank to each, some at a time"},
		{"pairwise", alltoallPairwise, always, "one exchange at a time"},
		{"bruck", alltoallBruck, packable, "in rounds, by way of other ranks, packed (Bruck)"},
		{"shared", alltoallShared, piecewise(blockPiece), "through slots of shared memory"},
		{"by_switch", alltoallBySwitch, both(relayed, outOfPlace),
			"the blocks for a switch together"},
		{"by_host", alltoallByHost, both(byHosts, outOfPlace), "the blocks for a host together"},
	},
	Alltoallv: {
		{"linear", alltoallvLinear, always, "from each rank to each, some at a time"},
		{"shared", alltoallvShared, both(lengthsToo, outOfPlace),
			"short blocks through slots of shared memory, long ones as messages"},
		{"by_switch", alltoallvBySwitch, both(relayed, outOfPlace),
			"short blocks for a switch together, long ones as messages"},
	},
	Alltoallw: {
		{"linear", alltoallvLinear, always, "from each rank to each, some at a time"},
		{"by_switch", alltoallvBySwitch, both(relayed, outOfPlace),
			"short blocks for a switch together, long ones as messages"},
	},
	Reduce: {
		{"binomial", reduceBinomial, always, "up a binomial tree"},
		{"fan", fan(flat, reduceBinomial), always, "up a flat tree"},
		{"rabenseifner", reduceRabenseifner, halves,
			"a piece for each rank by recursive halving, then gathered (Rabenseifner)"},
		{"shared", reduceShared, both(foldable, piecewise((*Args).slotBytes)),
			"operands in slots of shared memory"},
		{"levels", reduceLevels, inAnyOrder, "in each group to its leader, and among the leaders"},
	},
	Allreduce: {
		{"reduce_bcast", allreduceReduceBcast, always, "up a binomial tree and down again"},
		{"fan", fan(flat, allreduceReduceBcast), always, "up a flat tree and down again"},
		{"recursive_doubling", allreduceDoubling, always,
			"partners twice as far apart in each round exchange, and both reduce"},
		{"rabenseifner", allreduceRabenseifner, halves,
			"a piece for each rank by recursive halving, then recursive doubling (Rabenseifner)"},
		{"shared", reduceShared, both(foldable, piecewise((*Args).slotBytes)),
			"operands in slots of shared memory"},
		{"levels", allreduceLevels, inOrder,
			"in each group to its leader, among the leaders, and down again"},
	},
	ReduceScatterBlock: {
		{"reduce_scatter", reduceThenScatter, always,
			"up a binomial tree to rank 0, and a block to each rank"},
		{"fan", fan(flat, reduceThenScatter), always,
			"up a flat tree to rank 0, and a block to each rank"},
		{"pairwise", reduceScatterPairwise, commutes,
			"one exchange at a time, reduced as they come"},
		{"shared", reduceScatterShared, both(foldable, piecewise(foldPiece)),
			"operands in slots of shared memory"},
	},
	ReduceScatter: {
		{"reduce_scatter", reduceThenScatter, always,
			"up a binomial tree to rank 0, and a block to each rank"},
		{"fan", fan(flat, reduceThenScatter), always,
			"up a flat tree to rank 0, and a block to each rank"},
		{"pairwise", reduceScatterPairwise, commutes,
			"one exchange at a time, reduced as they come"},
		{"shared", reduceScatterShared, both(foldable, inSlot),
			"operands in slots of shared memory"},
	},
	Scan: {
		{"linear", scanLinear, always, "the sum goes from rank to rank"},
		{"fan", scanFan, always, "all operands to rank 0, and a result to each"},
		{"recursive_doubling", scanDoubling, always,
			"in rounds, each rank to the one twice as far on"},
		{"shared", scanShared, both(foldable, inSlot), "operands in slots of shared memory"},
		{"by_host", scanByHost, both(byHosts, inRunsAlone), "the sums of hosts together"},
	},
	Exscan: {
		{"linear", scanLinear, always, "the sum goes from rank to rank"},
		{"fan", scanFan, always, "all operands to rank 0, and a result to each"},
		{"recursive_doubling", scanDoubling, always,
			"in rounds, each rank to the one twice as far on"},
		{"shared", scanShared, both(foldable, inSlot), "operands in slots of shared memory"},
		{"by_host", scanByHost, both(byHosts, inRunsAlone), "the sums of hosts together"},
	},
	NeighborAllgather: {{"direct", neighborAllgather, always,
		"to and from all neighbours at once"}},
	NeighborAllgatherv: {{"direct", neighborAllgatherv, always,
		"to and from all neighbours at once"}},
	NeighborAlltoall: {{"direct", neighborAlltoall, always,
		"to and from all neighbours at once"}},
	NeighborAlltoallv: {{"direct", neighborAlltoallv, always,
		"to and from all neighbours at once"}},
	NeighborAlltoallw: {{"direct", neighborAlltoallv, always,
		"to and from all neighbours at once"}},
}

// rule is a line of the table: the algorithm for an operation when the number of ranks and the
// bytes (see Args.Data) are at most these and the condition holds.
type rule struct {
	kind  Kind
	ranks int
	bytes int64
	when  conditions
	use   string
}

const (
	anyRanks = math.MaxInt
	anyBytes = math.MaxInt64
)

// table: the first line that fits and whose algorithm can do the call is taken. When ranks
// outnumber the processors, the cost is the number of scheduling turns per rank (16 ranks on 2
// processors: a barrier takes 16 switches over a flat tree, 66 over a binomial one); else it is the
// number of rounds. For long data it is the number of bytes that pass through one rank. Where each
// rank has a processor, shared memory costs a fraction of the rounds; its limits are those of
// measurements with 2 to 16 ranks on 16 cores (docs/bench/cores-16.md).
var table = []rule{
	{Barrier, 8, anyBytes, always, "shared"},
	{Barrier, 1024, anyBytes, crowded, "shared"},
	{Barrier, anyRanks, anyBytes, leveled, "levels"},
	{Barrier, 64, anyBytes, always, "shared"},
	{Barrier, anyRanks, anyBytes, crowded, "fan"},
	{Barrier, anyRanks, anyBytes, always, "dissemination"},

	{Bcast, 8, CellBytes, inCell, "shared"},
	{Bcast, 64, CellBytes, both(crowded, inCell), "shared"},
	{Bcast, 64, anyBytes, both(crowded, isLong), "shared"},
	{Bcast, anyRanks, anyBytes, leveled, "levels"},
	{Bcast, 64, anyBytes, many, "shared"},
	// each message costs its sender most: the root should not be all of them
	{Bcast, anyRanks, 64 << 10, wired, "binomial"},
	{Bcast, 4, anyBytes, wired, "binomial"},
	{Bcast, 64, anyBytes, crowded, "fan"},
	{Bcast, 1024, anyBytes, crowded, "shared"},
	{Bcast, anyRanks, anyBytes, crowded, "fan"},
	{Bcast, anyRanks, 64 << 10, always, "binomial"},
	{Bcast, 4, anyBytes, always, "binomial"},
	{Bcast, anyRanks, anyBytes, always, "scatter_allgather"},
	{Bcast, anyRanks, anyBytes, always, "binomial"},

	{Gather, 8, CellBytes, inCell, "shared"},
	{Gather, 64, CellBytes, both(crowded, inCell), "shared"},
	{Gather, 64, anyBytes, both(crowded, isLong), "shared"},
	{Gather, anyRanks, hostBlock, byHosts, "by_host"},
	{Gather, 64, 64 << 10, many, "shared"},
	{Gather, 64, anyBytes, always, "linear"},
	{Gather, anyRanks, 2048, always, "binomial"},
	{Gather, anyRanks, anyBytes, always, "linear"},
	{Gatherv, anyRanks, anyBytes, always, "linear"},
	{Scatter, 8, CellBytes, inCell, "shared"},
	{Scatter, 64, CellBytes, both(crowded, inCell), "shared"},
	{Scatter, 64, anyBytes, both(crowded, isLong), "shared"},
	{Scatter, anyRanks, hostBlock, byHosts, "by_host"},
	{Scatter, 64, 8192, many, "shared"},
	{Scatter, 64, anyBytes, always, "linear"},
	{Scatter, anyRanks, 2048, always, "binomial"},
	{Scatter, anyRanks, anyBytes, always, "linear"},
	{Scatterv, anyRanks, anyBytes, always, "linear"},

	{Allgather, 8, 4096, always, "shared"},
	{Allgather, 64, anyBytes, crowded, "shared"},
	{Allgather, anyRanks, anyBytes, leveled, "levels"},
	{Allgather, 64, 64 << 10, many, "shared"},
	{Allgather, anyRanks, anyBytes, crowded, "fan"},
	{Allgather, anyRanks, 8192, powerOfTwo, "recursive_doubling"},
	{Allgather, anyRanks, 1024, always, "bruck"},
	{Allgather, anyRanks, anyBytes, always, "ring"},
	{Allgatherv, 8, 4096, always, "shared"},
	{Allgatherv, 64, anyBytes, crowded, "shared"},
	{Allgatherv, 64, 1 << 20, many, "shared"},
	{Allgatherv, anyRanks, 256 << 10, crowded, "fan"},
	{Allgatherv, 64, anyBytes, crowded, "linear"},
	{Allgatherv, anyRanks, 64 << 10, always, "gather_bcast"},
	{Allgatherv, anyRanks, anyBytes, always, "ring"},

	{Alltoall, 8, 4096, always, "shared"},
	{Alltoall, 64, 32 << 10, crowded, "shared"},
	{Alltoall, 64, 4096, many, "shared"},
	{Alltoall, 4, anyBytes, always, "linear"},
	{Alltoall, 64, anyBytes, crowded, "linear"},
	{Alltoall, anyRanks, switchBlock, relayed, "by_switch"},
	{Alltoall, anyRanks, hostBlock, byHosts, "by_host"},
	{Alltoall, anyRanks, 256, always, "bruck"},
	{Alltoall, anyRanks, anyBytes, always, "linear"},
	{Alltoallv, 64, anyBytes, crowded, "shared"},
	{Alltoallv, anyRanks, anyBytes, relayed, "by_switch"},
	{Alltoallv, anyRanks, anyBytes, always, "linear"},
	{Alltoallw, anyRanks, anyBytes, relayed, "by_switch"},
	{Alltoallw, anyRanks, anyBytes, always, "linear"},

	{Reduce, 8, CellBytes, inCell, "shared"},
	{Reduce, 64, CellBytes, both(crowded, inCell), "shared"},
	{Reduce, 64, anyBytes, both(crowded, isLong), "shared"},
	{Reduce, anyRanks, anyBytes, leveled, "levels"},
	{Reduce, 64, 64 << 10, many, "shared"},
	{Reduce, anyRanks, 64 << 10, crowded, "fan"},
	{Reduce, anyRanks, 1 << 20, crowded, "binomial"},
	{Reduce, anyRanks, 64 << 10, always, "binomial"},
	{Reduce, anyRanks, anyBytes, always, "rabenseifner"},
	{Reduce, anyRanks, anyBytes, always, "binomial"},
	{Allreduce, 8, 4096, always, "shared"},
	{Allreduce, 64, anyBytes, crowded, "shared"},
	{Allreduce, anyRanks, anyBytes, leveled, "levels"},
	{Allreduce, 64, 1 << 20, many, "shared"},
	{Allreduce, 2, 32 << 10, always, "recursive_doubling"},
	{Allreduce, 2, 2 << 20, wired, "recursive_doubling"}, // rounds are what costs
	{Allreduce, 4, 128 << 10, both(wired, isLong), "recursive_doubling"},
	{Allreduce, anyRanks, 8 << 10, crowded, "fan"},
	{Allreduce, anyRanks, anyBytes, crowded, "rabenseifner"},
	{Allreduce, anyRanks, 32 << 10, always, "recursive_doubling"},
	{Allreduce, anyRanks, anyBytes, always, "rabenseifner"},
	{Allreduce, anyRanks, anyBytes, always, "recursive_doubling"},

	{ReduceScatterBlock, 8, 4096, always, "shared"},
	{ReduceScatterBlock, 64, anyBytes, crowded, "shared"},
	{ReduceScatterBlock, 64, 4096, many, "shared"},
	{ReduceScatterBlock, anyRanks, anyBytes, smallOnHost, "fan"},
	{ReduceScatterBlock, anyRanks, anyBytes, shortOfMany, "reduce_scatter"},
	{ReduceScatterBlock, anyRanks, anyBytes, always, "pairwise"},
	{ReduceScatterBlock, anyRanks, anyBytes, always, "reduce_scatter"},
	{ReduceScatter, 8, 4096, always, "shared"},
	{ReduceScatter, 64, anyBytes, crowded, "shared"},
	{ReduceScatter, 64, 32 << 10, many, "shared"},
	{ReduceScatter, anyRanks, anyBytes, smallOnHost, "fan"},
	{ReduceScatter, anyRanks, anyBytes, shortOfMany, "reduce_scatter"},
	{ReduceScatter, anyRanks, anyBytes, always, "pairwise"},
	{ReduceScatter, anyRanks, anyBytes, always, "reduce_scatter"},

	{Scan, 8, CellBytes, always, "shared"},
	{Scan, 16, SmallSlotBytes, always, "shared"},
	{Scan, anyRanks, anyBytes, both(byHosts, inRunsAlone), "by_host"},
	{Scan, 64, 64 << 10, many, "shared"},
	{Scan, 2, anyBytes, always, "shared"},
	{Scan, 2, anyBytes, always, "linear"},
	{Scan, anyRanks, 8192, crowded, "linear"},
	{Scan, 64, anyBytes, crowded, "shared"},
	{Scan, anyRanks, anyBytes, crowded, "linear"},
	{Scan, anyRanks, anyBytes, always, "recursive_doubling"},
	{Exscan, 8, CellBytes, always, "shared"},
	{Exscan, 16, SmallSlotBytes, always, "shared"},
	{Exscan, anyRanks, anyBytes, both(byHosts, inRunsAlone), "by_host"},
	{Exscan, 64, 64 << 10, many, "shared"},
	{Exscan, 2, anyBytes, always, "shared"},
	{Exscan, 2, anyBytes, always, "linear"},
	{Exscan, anyRanks, 8192, crowded, "linear"},
	{Exscan, 64, anyBytes, crowded, "shared"},
	{Exscan, anyRanks, anyBytes, crowded, "linear"},
	{Exscan, anyRanks, anyBytes, always, "recursive_doubling"},

	{NeighborAllgather, anyRanks, anyBytes, always, "direct"},
	{NeighborAllgatherv, anyRanks, anyBytes, always, "direct"},
	{NeighborAlltoall, anyRanks, anyBytes, always, "direct"},
	{NeighborAlltoallv, anyRanks, anyBytes, always, "direct"},
	{NeighborAlltoallw, anyRanks, anyBytes, always, "direct"},
}
