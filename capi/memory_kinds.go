package main

/*
#include "comm.h"
#include "settings.h"
static spx_plain *session_of(uint32_t handle) { return (spx_plain *)spx_get(SPX_K_SESSION, (const void *)(uintptr_t)handle); }
*/
import "C"

import "libspx/core/info"

// Memory allocation kinds (MPI-5.0, section 12.4.3): those requested by spxrun or the environment,
// and by each session.

// sessionKinds holds the kinds of the sessions that requested some; spx_plain.o.go is the index.
var sessionKinds table[string]

func init() { onFree[C.SPX_K_SESSION] = sessionKinds.remove }

func worldKinds() string {
	return info.Kinds(C.GoString(C.spx_setting_text(C.SPX_SET_MEMORY_ALLOC_KINDS)))
}

// kindsOf returns the kinds of what was made from a session, or (0) in the World Model.
func kindsOf(session C.uint32_t) string {
	if s := C.session_of(session); session != 0 && s != nil {
		if k := sessionKinds.get(uint32(s.o._go)); k != nil {
			return *k
		}
	}
	return worldKinds()
}

// mergeKinds adds to in the memory allocation kinds that MPI reports for an object with these
// hints.
func mergeKinds(in *info.Info, session C.uint32_t, hints *info.Info) {
	in.Merge(info.New(info.KeyKinds, kindsOf(session)))
	if v, ok := hints.Get(info.KeyAssertKinds); ok {
		in.Merge(info.New(info.KeyAssertKinds, v))
	}
}

// keepKinds adopts an assertion about memory allocation kinds; one that names unsupported kinds is
// ignored.
func keepKinds(hints, in *info.Info) {
	if v, ok := in.Get(info.KeyAssertKinds); ok && info.KindsSupported(v) {
		hints.Merge(info.New(info.KeyAssertKinds, v))
	}
}
