package main

/*
#include "runtime.h"
#include "settings.h"

static uint64_t entries(void)
{
	return atomic_load_explicit(&spx_go_entries, memory_order_relaxed);
}
static const char *name_of(spx_setting_id id) { return spx_setting_table[id].name; }
*/
import "C"

import (
	"fmt"
	"os"
)

// sayRenamed names the settings that are set by a name that they no longer have.
func sayRenamed() {
	for id := C.spx_setting_id(0); id < C.SPX_SETTINGS; id++ {
		if was := C.spx_setting_was(id); was != nil {
			old, now := C.GoString(was), C.GoString(C.name_of(id))
			cause := fmt.Sprintf("setting %s, which is now called %s", old, now)
			sayOnce(cause, cause, fmt.Sprintf("%s is now called %s", old, now))
		}
	}
}

// writeCounters is SPX_COUNTERS=FILE: one line a rank, for tests and the bench: entries into Go,
// what is left of them (goroutines, and call-outs that never came back), and refused calls over the
// network.
func writeCounters(goroutines, continuations int) {
	path := C.GoString(C.spx_setting_text(C.SPX_SET_COUNTERS))
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	r := &C.spx_refused
	_, err = fmt.Fprintf(f, "rank %d go_entries %d goroutines %d continuations %d strangers %d "+
		"version %d old %d keyless %d slow %d\n", procOf(uint32(C.spx_me)).world_rank, C.entries(),
		goroutines, continuations, r.strangers, r.version, r.old, r.keyless, r.slow)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
