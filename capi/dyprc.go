package main

/*
#include "comm.h"
#include "dyprc.h"
*/
import "C"

import "libspx/ft/agree"

// What ulfm_dyprc (shim/dyprc*.c) needs of the engine.

func init() { internals[C.SPX_IN_DYPRC_DECIDE] = dyprcDecide }

// dyprcDecide is an agreement on flags and, if not all living members are calm, a shrink in the same round.
func dyprcDecide(c *call) error {
	o, flags, next := c.comm(0), c.addr(1), c.addr(2)
	*at[uintptr](next) = C.SPX_HANDLE_COMM_NULL
	said := agree.Contribution{Flags: *at[uint32](flags), Context: o.takeContext()}
	return c.startAgreement(-1, said, func(f *ftComm, d agree.Decision) error {
		*at[uint32](flags) = d.Flags
		if d.Flags&C.SPX_DECIDE_CALM != 0 {
			return nil
		}
		return shrunk(o, next)(f, d)
	})
}
