package main

/*
#include <stdlib.h>
#include "check_coll.h"
#include "trace.h"

static const char *spx_left_fn(uint32_t fn) { return spx_fn_name[fn]; }
static uint32_t spx_left_now(void) { return spx_fn; }
*/
import "C"

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// SPX_CHECK=1: what a program leaves when MPI ends. The C side counts objects (shim/check_left.c); keyvals, which are no objects, are counted here.

// left is what was left of one kind, from one place.
type left struct {
	kind uint32
	fn   uint32 // that has made it
	site uint64 // where the program has called that; 0: not known
	n    uint64
}

var keyvalsLeft struct {
	mu   sync.Mutex
	made map[int]left
}

func init() { internals[C.SPX_IN_LEFT] = tellLeft }

// madeKeyval notes a keyval, in the call that makes it.
func madeKeyval(num int) {
	if C.spx_checking == 0 {
		return
	}
	k := &keyvalsLeft
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made == nil {
		k.made = map[int]left{}
	}
	k.made[num] = left{C.SPX_LEFT_KEYVAL, uint32(C.spx_left_now()), uint64(uintptr(C.spx_call_place())), 1}
}

func freedKeyval(num int) {
	keyvalsLeft.mu.Lock()
	defer keyvalsLeft.mu.Unlock()
	delete(keyvalsLeft.made, num)
}

// tellLeft writes one text for each kind. a[0] is an array of what is left, a[1] its length.
func tellLeft(c *call) error {
	var all []left
	for _, l := range unsafe.Slice(at[C.spx_left](c.addr(0)), c.int(1)) {
		all = append(all, left{uint32(l.kind), uint32(l.fn), uint64(l.site), uint64(l.n)})
	}
	keyvalsLeft.mu.Lock()
	for _, l := range keyvalsLeft.made {
		all = append(all, l)
	}
	clear(keyvalsLeft.made)
	keyvalsLeft.mu.Unlock()
	rank := procOf(uint32(C.spx_me)).world_rank
	places := byPlace(all)
	for _, kind := range slices.Sorted(maps.Keys(places)) {
		total, lines := leftText(places[kind])
		what := leftKinds[kind]
		shortly := "SPX_CHECK: " + what[0] + " are left at MPI_Finalize"
		h := fnv.New64a()
		h.Write([]byte(lines))
		sayOnce(fmt.Sprintf("%s %x", shortly, h.Sum64()), shortly,
			strings.TrimSuffix(fmt.Sprintf("SPX_CHECK: rank %d leaves %d %s at MPI_Finalize: %s\n%s", rank, total, counted(total, what[0]), what[1], lines), "\n"))
	}
	return nil
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

// leftKinds say what it is, and what to do.
var leftKinds = map[uint32][2]string{
	C.SPX_K_COMM: {"communicators", "MPI_Comm_free each"}, C.SPX_K_GROUP: {"groups", "MPI_Group_free each"}, C.SPX_K_TYPE: {"datatypes", "MPI_Type_free each"},
	C.SPX_K_OP: {"operations", "MPI_Op_free each"}, C.SPX_K_ERRH: {"error handlers", "MPI_Errhandler_free each, also what MPI_Comm_get_errhandler and its like have given"},
	C.SPX_K_REQ: {"requests", "complete each by MPI_Wait or MPI_Test, or free it"}, C.SPX_LEFT_PERSISTENT: {"persistent requests", "MPI_Request_free each"},
	C.SPX_K_MSG: {"matched messages", "receive each by MPI_Mrecv"}, C.SPX_K_INFO: {"info objects", "MPI_Info_free each"}, C.SPX_K_WIN: {"windows", "MPI_Win_free each"},
	C.SPX_K_FILE: {"files", "MPI_File_close each"}, C.SPX_K_SESSION: {"sessions", "MPI_Session_finalize each"}, C.SPX_K_RANKSET: {"sets of ranks", "MPIX_Rankset_free each"},
	C.SPX_K_CHECKPOINT: {"checkpoint objects", "MPIX_Checkpoint_free each"}, C.SPX_LEFT_KEYVAL: {"keyvals", "free each, as by MPI_Comm_free_keyval"},
}

// leftPlaces are the places that are told of one kind.
const leftPlaces = 10

// byPlace counts what is left: by kind, then by what has made it where.
func byPlace(all []left) map[uint32]map[string]uint64 {
	kinds := map[uint32]map[string]uint64{}
	for _, l := range all {
		if kinds[l.kind] == nil {
			kinds[l.kind] = map[string]uint64{}
		}
		kinds[l.kind][C.GoString(C.spx_left_fn(C.uint32_t(l.fn)))+placeText(uintptr(l.site))] += l.n
	}
	return kinds
}

// leftText has a line for each place, those with most first.
func leftText(places map[string]uint64) (total uint64, lines string) {
	var b strings.Builder
	order := slices.SortedFunc(maps.Keys(places), func(x, y string) int { return cmp.Or(-cmp.Compare(places[x], places[y]), cmp.Compare(x, y)) })
	for i, place := range order {
		if total += places[place]; i < leftPlaces {
			fmt.Fprintf(&b, "libspx: SPX_CHECK:   %d made by %s\n", places[place], place)
		}
	}
	if len(order) > leftPlaces {
		fmt.Fprintf(&b, "libspx: SPX_CHECK:   and in %d more places\n", len(order)-leftPlaces)
	}
	return total, b.String()
}

// placeText says where a call returns to: "" when nothing is known.
func placeText(site uintptr) string {
	if site == 0 {
		return ""
	}
	f, _ := runtime.CallersFrames([]uintptr{site - 1}).Next() // into the call, not behind it
	text := ""
	if f.Function != "" {
		text = " in " + f.Function
	}
	if f.File != "" {
		text += fmt.Sprintf(" at %s:%d", f.File, f.Line)
	}
	if text == "" {
		text = fmt.Sprintf(" at %#x", site)
	}
	return text
}
