package main

/*
#include <stdlib.h>
#include "once.h"
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// sayOnce prints a text ("libspx: " before it), unless another process of the job has printed one
// for the same cause: spxrun then prints shortly for this one at the end of the job. For errors
// only: it waits for the agent, two seconds at most.
func sayOnce(cause, shortly, text string) {
	c, s := C.CString(cause), C.CString(shortly)
	defer C.free(unsafe.Pointer(c))
	defer C.free(unsafe.Pointer(s))
	var turn C.int
	if C.spx_may_say(c, s, &turn) {
		fmt.Fprintf(os.Stderr, "libspx: %s\n", text)
		C.spx_said(turn)
	}
}
