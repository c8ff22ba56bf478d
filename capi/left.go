package main

/*
#include <stdlib.h>
#include "check_coll.h"
#include "trace.h"

static const char *spx_left_fn(uint32_t fn) { return spx_fn_name[fn]; }
static uint32_t spx_left_now(void) { return spx_fn; }
static int spx_left_made_by(uint32_t fn, spx_kind k) { return spx_fn_makes[fn] >> k & 1; }
static int spx_left_held(const spx_errh *e) { return e->held; }
*/
import "C"

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"libspx/core/check"
)

// SPX_CHECK=1: what a program leaves when MPI ends. C notes where objects are made
// (bodies/check_left.c). Keyvals, which are no objects, are noted here.

// left is what was left of one kind, from one place.
type left struct {
	kind leftKind
	fn   C.uint32_t // the function that made it
	site uintptr    // where the program has called that; 0: not known
	n    uint64
}

// leftKind is an SPX_K_*, or one of these.
type leftKind int

const (
	leftPersistent leftKind = C.SPX_K_COUNT + iota
	leftKeyval
)

var keyvalsLeft struct {
	mu   sync.Mutex
	made map[int]left
}

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
	k.made[num] = left{leftKeyval, C.spx_left_now(), uintptr(C.spx_call_place()), 1}
}

func freedKeyval(num int) {
	keyvalsLeft.mu.Lock()
	defer keyvalsLeft.mu.Unlock()
	delete(keyvalsLeft.made, num)
}

// sayLeft reports what is left: messages, and objects by their kinds.
func sayLeft() {
	here().progress()
	rank := int(procOf(uint32(C.spx_me)).world_rank)
	var src, tag C.int32_t
	var bytes C.uint64_t
	if n := uint64(C.spx_check_unreceived(&src, &tag, &bytes)); n > 0 {
		say(check.Unreceived(rank, n, int(src), int(tag), uint64(bytes)))
	}
	places := byPlace(append(leftObjects(), leftKeyvals()...))
	for _, kind := range slices.Sorted(maps.Keys(places)) {
		say(check.Left(rank, leftKinds[kind], places[kind]))
	}
}

func say(t check.Text) { sayOnce(t.Cause, t.Shortly, t.Text) }

func leftKeyvals() []left {
	k := &keyvalsLeft
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Collect(maps.Values(k.made))
	clear(k.made)
	return all
}

// leftObjects are those that the program has made and not freed.
func leftObjects() (all []left) {
	for k := C.spx_kind(1); k < C.SPX_K_COUNT; k++ {
		for i := range uintptr(C.spx_slab_mask[k]) + 1 {
			o := (*C.spx_obj)(unsafe.Add(unsafe.Pointer(C.spx_slab[k]),
				i*uintptr(C.spx_slab_stride[k])))
			if o.handle == 0 {
				continue
			}
			from, n := C.spx_check_origin(k, o), heldBy(k, o)
			if from != nil && n > 0 && C.spx_left_made_by(from.fn, k) != 0 {
				all = append(all, left{leftKindOf(k, o), from.fn, uintptr(from.site), n})
			}
		}
	}
	return all
}

func leftKindOf(k C.spx_kind, o *C.spx_obj) leftKind {
	if k == C.SPX_K_REQ && (*C.spx_request)(unsafe.Pointer(o)).flags&C.SPX_RF_PERSISTENT != 0 {
		return leftPersistent
	}
	return leftKind(k)
}

// heldBy is how often the program has the object: 0 for those that it has not got, or need not
// free.
func heldBy(k C.spx_kind, o *C.spx_obj) uint64 {
	has := true
	switch k {
	case C.SPX_K_COMM:
		has = (*C.spx_comm)(unsafe.Pointer(o)).flags&(C.SPX_C_WORLD|C.SPX_C_SELF) == 0
	case C.SPX_K_TYPE:
		has = (*C.spx_type)(unsafe.Pointer(o)).flags&C.SPX_T_PREDEFINED == 0
	case C.SPX_K_REQ:
		has = (*C.spx_request)(unsafe.Pointer(o)).flags&(C.SPX_RF_INTERNAL|C.SPX_RF_FREED) == 0
	case C.SPX_K_ERRH:
		return uint64(C.spx_left_held((*C.spx_errh)(unsafe.Pointer(o))))
	}
	if has {
		return 1
	}
	return 0
}

// leftKinds are the texts for each kind: its name, and the remedy.
var leftKinds = map[leftKind]check.Kind{
	C.SPX_K_COMM:  {Several: "communicators", Remedy: "MPI_Comm_free each"},
	C.SPX_K_GROUP: {Several: "groups", Remedy: "MPI_Group_free each"},
	C.SPX_K_TYPE:  {Several: "datatypes", Remedy: "MPI_Type_free each"},
	C.SPX_K_OP:    {Several: "operations", Remedy: "MPI_Op_free each"},
	C.SPX_K_ERRH: {Several: "error handlers",
		Remedy: "MPI_Errhandler_free each, also what MPI_Comm_get_errhandler and its like have " +
			"given"},
	C.SPX_K_REQ: {Several: "requests",
		Remedy: "complete each by MPI_Wait or MPI_Test, or free it"},
	leftPersistent:     {Several: "persistent requests", Remedy: "MPI_Request_free each"},
	C.SPX_K_MSG:        {Several: "matched messages", Remedy: "receive each by MPI_Mrecv"},
	C.SPX_K_INFO:       {Several: "info objects", Remedy: "MPI_Info_free each"},
	C.SPX_K_WIN:        {Several: "windows", Remedy: "MPI_Win_free each"},
	C.SPX_K_FILE:       {Several: "files", Remedy: "MPI_File_close each"},
	C.SPX_K_SESSION:    {Several: "sessions", Remedy: "MPI_Session_finalize each"},
	C.SPX_K_RANKSET:    {Several: "sets of ranks", Remedy: "MPIX_Rankset_free each"},
	C.SPX_K_CHECKPOINT: {Several: "checkpoint objects", Remedy: "MPIX_Checkpoint_free each"},
	leftKeyval:         {Several: "keyvals", Remedy: "free each, as by MPI_Comm_free_keyval"},
}

// byPlace counts the objects left: by kind, then by the call and place that made them.
func byPlace(all []left) map[leftKind]map[string]uint64 {
	kinds := map[leftKind]map[string]uint64{}
	for _, l := range all {
		if kinds[l.kind] == nil {
			kinds[l.kind] = map[string]uint64{}
		}
		kinds[l.kind][functionName(l.fn)+placeText(l.site)] += l.n
	}
	return kinds
}

// functionName is the name of an SPX_FN_*.
func functionName(fn C.uint32_t) string { return C.GoString(C.spx_left_fn(fn)) }

// placeText describes where a call returns to: "" when that is unknown.
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
