package main

/*
#include "runtime.h"

static const char *spx_name_of(uint32_t fn) { return spx_fn_name[fn]; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	_ "github.com/ianlancetaylor/cgosymbolizer" // names and lines of C frames
)

// A Go panic is always an error of libspx. spxGoEnter recovers it, so that the C part below can add
// its own stack; then the job ends, with one report: job, rank, MPI call and both stacks, by the
// first process to get here (boundary/abort.c).

var panicText atomic.Pointer[string]

// panicIn is the name of an MPI function in which the engine shall panic:
// SPX_PANIC_IN=MPI_Comm_split shows and tests the report.
var panicIn = getenv("SPX_PANIC_IN")

func panicIfAsked(f *C.spx_frame) {
	if f.fn < C.SPX_IN_FIRST && C.GoString(C.spx_name_of(f.fn)) == panicIn {
		panic("asked for by SPX_PANIC_IN=" + panicIn)
	}
}

// panicked formats a panic and the Go stack, without the frames of the recovery on top of it.
func panicked(why any, stack []byte) string {
	text := string(stack)
	if i := strings.Index(text, "\npanic("); i >= 0 {
		lines := strings.SplitN(text[i+1:], "\n", 3)
		text = lines[len(lines)-1]
	}
	return fmt.Sprintf("Go panic: %v\nGo stack, innermost first:\n%s", why, text)
}

// spxGoCrash ends the job after spxGoEnter has recovered a panic. pcs are the return addresses of
// the C stack.
//
//export spxGoCrash
func spxGoCrash(f *C.spx_frame, pcs *C.uintptr_t, n C.int) {
	text := *panicText.Load() + "C stack, innermost first:\n" +
		cFrames(unsafe.Slice((*uintptr)(unsafe.Pointer(pcs)), int(n)))
	C.spx_crash(C.uint32_t(f.fn), (*C.char)(unsafe.Pointer(unsafe.StringData(text))),
		C.size_t(len(text)))
}

func cFrames(pcs []uintptr) string {
	var b strings.Builder
	for i := range pcs {
		pcs[i]-- // into the call, not behind it
	}
	frames := runtime.CallersFrames(pcs)
	for more := len(pcs) > 0; more; {
		var fr runtime.Frame
		fr, more = frames.Next()
		name := fr.Function
		if name == "" {
			name = "?"
		}
		fmt.Fprintf(&b, "%s\n\t%s:%d pc=%#x\n", name, fr.File, fr.Line, fr.PC)
	}
	return b.String()
}
