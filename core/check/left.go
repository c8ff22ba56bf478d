package check

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// Kind is a kind of object that may be left.
type Kind struct{ Several, Remedy string } // "communicators", "MPI_Comm_free each"

// Text is one process's report. Processes with the same Cause report it once; Shortly stands for
// the omitted ones.
type Text struct{ Cause, Shortly, Text string }

// mostPlaces are the places that are named of one kind.
const mostPlaces = 10

// Left is the text about objects of one kind that the process with that rank leaves: how many were
// made where.
func Left(rank int, kind Kind, places map[string]uint64) Text {
	total, lines := placesText(places)
	shortly := "SPX_CHECK: " + kind.Several + " are left at MPI_Finalize"
	h := fnv.New64a()
	h.Write([]byte(lines))
	return Text{fmt.Sprintf("%s %x", shortly, h.Sum64()), shortly,
		strings.TrimSuffix(fmt.Sprintf("SPX_CHECK: rank %d leaves %d %s at MPI_Finalize: %s\n%s",
			rank, total, counted(total, kind.Several), kind.Remedy, lines), "\n")}
}

// Unreceived is the text about n messages that were never received; the first of them came from
// src, with this tag and size.
func Unreceived(rank int, n uint64, src, tag int, bytes uint64) Text {
	const shortly = "SPX_CHECK: messages are left that were never received"
	return Text{shortly, shortly, fmt.Sprintf(
		"SPX_CHECK: rank %d leaves %d %s that it has never received: the first from rank %d, "+
			"with tag %d, of %d bytes",
		rank, n, counted(n, "messages"), src, tag, bytes)}
}

// counted is the word for one or several of them.
func counted(n uint64, several string) string {
	if n != 1 {
		return several
	}
	what, of, _ := strings.Cut(several, " of ") // "sets of ranks"
	if what = strings.TrimSuffix(what, "s"); of != "" {
		return what + " of " + of
	}
	return what
}

// placesText has a line for each place, those with most first.
func placesText(places map[string]uint64) (total uint64, lines string) {
	var b strings.Builder
	order := slices.SortedFunc(maps.Keys(places), func(x,
		y string) int {
		return cmp.Or(-cmp.Compare(places[x], places[y]), cmp.Compare(x, y))
	})
	for i, place := range order {
		if total += places[place]; i < mostPlaces {
			fmt.Fprintf(&b, "libspx: SPX_CHECK:   %d made by %s\n", places[place], place)
		}
	}
	if len(order) > mostPlaces {
		fmt.Fprintf(&b, "libspx: SPX_CHECK:   and in %d more places\n", len(order)-mostPlaces)
	}
	return total, b.String()
}
