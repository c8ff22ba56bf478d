package coll

import (
	"fmt"
	"strings"
)

// A condition is a requirement of a line of the table, or of an algorithm, on a call. The chooser
// evaluates holds, and a Decision contains the words: a new condition has both here, side by side.
type condition struct {
	says  string // completes "where ..."
	holds func(*Args) bool
	here  func(*Args) string // the values of a call that it tests; nil: says has them
}

// conditions hold together; nil: always.
type conditions []condition

var always conditions

func where(says string, holds func(*Args) bool, here func(*Args) string) conditions {
	return conditions{{says, holds, here}}
}

func both(p, q conditions) conditions { return append(append(conditions{}, p...), q...) }

// fails is the first condition that does not hold; nil: all do.
func (c conditions) fails(a *Args) *condition {
	for i := range c {
		if !c[i].holds(a) {
			return &c[i]
		}
	}
	return nil
}

func (c conditions) hold(a *Args) bool { return c.fails(a) == nil }

func (c conditions) words() (list []string) {
	for i := range c {
		list = append(list, c[i].says)
	}
	return list
}

// of is the condition with the values of a call.
func (c *condition) of(a *Args) string {
	if c.here == nil {
		return c.says
	}
	return c.says + " (" + c.here(a) + ")"
}

func (a *Args) ranksHere() string { return plural(int64(a.Size), "rank") }
func (a *Args) bytesHere() string { return plural(a.Data(), "byte") }

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ---- what algorithms need ----

var (
	commutes   = where("the operation commutes", func(a *Args) bool { return a.Commute }, nil)
	powerOfTwo = where("the number of ranks is a power of two",
		func(a *Args) bool { return a.Size&(a.Size-1) == 0 }, (*Args).ranksHere)
	several = where("there are several ranks", func(a *Args) bool { return a.Size > 1 },
		(*Args).ranksHere)
	halves = both(commutes, both(several, where("each rank can have an element",
		func(a *Args) bool { return a.RCount >= int64(a.Size) },
		func(a *Args) string { return plural(a.RCount, "element") + ", " + a.ranksHere() })))
	packable = both(several, where("all blocks are less than 1 GiB",
		func(a *Args) bool { return a.Data()*int64(a.Size) < 1<<30 },
		func(a *Args) string { return plural(int64(a.Size), "block") + " of " + a.bytesHere() }))
	bytesDivide = both(several, where("there is a byte for each rank",
		func(a *Args) bool { return a.Data() >= int64(a.Size) },
		func(a *Args) string { return a.bytesHere() + ", " + a.ranksHere() }))
	outOfPlace = where("MPI_IN_PLACE is not given", func(a *Args) bool { return !a.InPlace }, nil)
	foldable   = where("elements are contiguous, of 1 to 64 bytes",
		func(a *Args) bool { return a.RType.Contig && a.RType.Size > 0 && a.RType.Size <= 64 },
		func(a *Args) string { return plural(a.RType.Size, "byte") })
)

func halvable(a *Args) bool { return halves.hold(a) }

// Shared memory: at most so many pieces or ticks, so that plans stay short.
const mostPieces = 256

var shared = both(where("the communicator has shared memory",
	func(a *Args) bool { return a.Shared > 0 }, (*Args).whyNotShared),
	both(several, where("each rank's share of it has 64 bytes",
		func(a *Args) bool { return a.slotBytes() >= 64 },
		(*Args).ranksHere)))

// whyNotShared is why a communicator has no shared memory, as far as it is known.
func (a *Args) whyNotShared() string {
	switch {
	case a.Shared > 0:
		return fmt.Sprintf("parts of %d bytes", a.Shared)
	case a.Wired:
		return "ranks of a host talk over the network"
	case a.Several:
		return "ranks on several hosts, or of several jobs"
	case a.Persistent:
		return "none for persistent calls"
	}
	return "it has none"
}

func piecewise(per func(*Args) int64) conditions {
	return both(shared, where(fmt.Sprintf("%d pieces in it are enough", mostPieces),
		func(a *Args) bool { return per(a) > 0 && a.Data() <= per(a)*mostPieces },
		func(a *Args) string { return fmt.Sprintf("%s, pieces of %d", a.bytesHere(), per(a)) }))
}

// bcastPiece is how much of long data is put into a part at once where each rank has a processor.
func bcastPiece(a *Args) int64 { return min(a.Shared, 32<<10) }
func blockPiece(a *Args) int64 { return a.slotBytes() / int64(a.Size) &^ 7 }
func foldPiece(a *Args) int64 {
	return a.slotBytes() / int64(a.Size) / max(a.RType.Size, 1) * a.RType.Size
}

var (
	inPart = both(shared, where("all fits into a part of it",
		func(a *Args) bool { return a.Data() <= a.Shared },
		(*Args).bytesHere))
	inSlot = both(shared, where("all fits into a rank's share of it",
		func(a *Args) bool { return a.Data() <= a.slotBytes() },
		func(a *Args) string {
			return fmt.Sprintf("%s, a share of %d", a.bytesHere(),
				a.slotBytes())
		}))
	lengthsToo = both(shared, where("a block and its length fit",
		func(a *Args) bool { return blockPiece(a) > lengthBytes }, (*Args).ranksHere))
)

// ---- what lines of the table ask ----

var (
	crowded = where("ranks outnumber processors", (*Args).crowded, func(a *Args) string {
		if a.Several {
			return "several hosts: not counted"
		}
		return a.ranksHere() + ", " + plural(int64(a.CPUs), "processor")
	})
	many = where("there are more than 2 ranks", func(a *Args) bool { return a.Size > 2 },
		(*Args).ranksHere)

	// inCell: a rank's data are beside its word, so that a root can run many operations ahead of
	// the other ranks.
	inCell = where(fmt.Sprintf("all fits into a cell of %d bytes", CellBytes),
		func(a *Args) bool { return a.cellBytes() <= CellBytes },
		func(a *Args) string { return plural(a.cellBytes(), "byte") })

	// isLong: so long that to copy it once less outweighs that only a few pieces can be under way.
	isLong = where(fmt.Sprintf("there are more than %d bytes", longBytes),
		func(a *Args) bool { return a.Data() > longBytes },
		(*Args).bytesHere)
	smallOnHost = both(crowded, where(fmt.Sprintf("there are at most %d bytes", longBytes),
		func(a *Args) bool { return a.Data() <= longBytes }, (*Args).bytesHere))
	wired = where("ranks of a host talk over the network", func(a *Args) bool { return a.Wired },
		func(a *Args) string {
			if a.Wired {
				return "SPX_TRANSPORTS"
			}
			return "they share memory"
		})

	// shortOfMany: blocks of so many ranks on several hosts that a message from each to each takes
	// longer than all blocks along the way of one: up a tree, and one message back for each.
	shortOfMany = both(severalHosts,
		both(where("there are more than 64 ranks", func(a *Args) bool { return a.Size > 64 },
			(*Args).ranksHere), where("all blocks have at most 64 KiB",
			func(a *Args) bool { return a.allBytes() <= 64<<10 },
			func(a *Args) string { return plural(a.allBytes(), "byte") })))
	severalHosts = where("ranks are on several hosts", func(a *Args) bool { return a.Several }, nil)

	leveled = where("ranks are near each other in groups", hasLevels, (*Args).levelsHere)
	// inRuns: each group's blocks are contiguous in the receive buffer.
	inRuns = both(leveled, inRunsAlone)
	// byHosts: ranks on several hosts save messages if those of one host send their blocks for
	// another in one message.
	byHosts = both(severalHosts, both(leveled, where("to go by hosts saves messages",
		func(a *Args) bool { return gathers(innermost(a), a.Size) },
		func(a *Args) string { return a.groupsHere(innermost(a)) })))
	inRunsAlone = where("each group is a run of ranks", runs, nil)
	inAnyOrder  = both(leveled, commutes)
	inOrder     = both(leveled, where("the operation commutes, or each group is a run of ranks",
		func(a *Args) bool { return a.Commute || runs(a) }, nil))

	// relayed: there are several switches, with so many ranks behind them that to go by them saves
	// messages.
	relayed = both(where("messages between switches are relayed",
		func(a *Args) bool { return a.Near != nil }, nil),
		where("to go by switches saves messages",
			func(a *Args) bool { return gathers(a.Near, a.Size) },
			func(a *Args) string { return a.groupsHere(a.Near) }))
)

const longBytes = 8192

// cellBytes is what the cell of one rank would have to hold.
func (a *Args) cellBytes() int64 {
	n := a.Data()
	if a.Kind == Scatter {
		n *= int64(a.Size)
	}
	return n
}

// allBytes is all blocks of a reduce-scatter.
func (a *Args) allBytes() int64 {
	n := a.Data()
	if a.Kind == ReduceScatterBlock {
		n *= int64(a.Size)
	}
	return n
}

func (a *Args) groupsHere(near []int32) string {
	groups, _ := bySwitch(near)
	return fmt.Sprintf("%s in %s", a.ranksHere(), plural(int64(len(groups)), "group"))
}

func (a *Args) levelsHere() string {
	var out []string
	for i, level := range a.Levels {
		groups, _ := bySwitch(level)
		what := "host"
		switch {
		case a.Switched && i == 0:
			what = "switch"
		case !a.Several && i == len(a.Levels)-1:
			what = "cache or memory"
		case !a.Several:
			what = "memory"
		}
		if what == "cache or memory" {
			out = append(out, fmt.Sprintf("%d groups by %s", len(groups), what))
		} else {
			out = append(out, plural(int64(len(groups)), what))
		}
	}
	if len(out) == 0 {
		return "no groups are known"
	}
	return strings.Join(out, ", ")
}
