// Package mpir is what a debugger looks for in a process that has started MPI processes (The MPIR
// Process Acquisition Interface, version 1.0): variables and a function under the names that it
// gives them, with the debugging information of this program. It owns these names alone; who fills
// the table is package front.
//
// The names are bound by go:linkname, so that no C is needed: the linker writes them into the
// symbol table as they stand, and the debugging information has them too.
package mpir

import _ "unsafe" // for go:linkname

// States of MPIR_debug_state.
const (
	stateSpawned  = 1
	stateAborting = 2
)

// procDesc is the interface's MPIR_PROCDESC: two texts of C and an int.
type procDesc struct {
	host_name       *byte //nolint:revive // the interface's names
	executable_name *byte //nolint:revive
	pid             int32
}

// The debugger sets it when it has started or attached to this program.
//
//go:linkname beingDebugged MPIR_being_debugged
var beingDebugged int32

//go:linkname proctable MPIR_proctable
var proctable *procDesc

//go:linkname proctableSize MPIR_proctable_size
var proctableSize int32

//go:linkname debugState MPIR_debug_state
var debugState int32

//go:linkname abortString MPIR_debug_abort_string
var abortString *byte

// That it is there says that this program is not an MPI process itself.
//
//go:linkname iAmStarter MPIR_i_am_starter
var iAmStarter int32

// That it is there says that the debugger need not attach to all processes, nor let them go: this
// program does when the breakpoint is passed.
//
//go:linkname partialAttachOK MPIR_partial_attach_ok
var partialAttachOK int32

// breakpoint is where the debugger stops this program to look at the variables.
//
//go:linkname breakpoint MPIR_Breakpoint
//go:noinline
//go:nosplit
func breakpoint() {}
