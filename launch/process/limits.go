package process

// The Go runtime ends with a dump of its stacks, or by SIGSEGV, if a limit on memory leaves it no
// room. The program's entry point (entry_*.s) compares the limits with what spxrun and its agents
// need, and refuses to begin.

// Read by the entry point: bytes, and what it writes to standard error. Both numbers are VmPeak and
// VmData of spxrun with a margin of a tenth, most of it reserved and never used.
var (
	neededAddresses uint64 = 1400 << 20
	neededData      uint64 = 128 << 20
	neededThreads   uint64 = 32 // of spxrun and its agent; the user's other processes count, too

	tooFewAddresses = "spxrun: the limit on address space (ulimit -v) is too low: spxrun and " +
		"its agents need 1433600 KiB, " +
		"most of it reserved and never used; set it to that or more, or to unlimited\n"
	tooLittleData = "spxrun: the limit on data (ulimit -d) is too low: spxrun and its agents " +
		"need 131072 KiB, " +
		"most of it reserved and never used; set it to that or more, or to unlimited\n"
	tooFewThreads = "spxrun: the limit on processes (ulimit -u) is too low: spxrun and its " +
		"agent need 32 threads, and each rank about 10; " +
		"all that the user runs counts; raise it, or set it to unlimited\n"
)
