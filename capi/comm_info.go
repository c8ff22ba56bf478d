package main

/*
#include "comm.h"
*/
import "C"

import (
	"libspx/cluster/view"
	"libspx/core/info"
)

// Hints of communicators (MPI-5.0, section 7.4.4): the assertions of the standard are understood
// and kept; others are ignored, as the standard requires, and not given back.
var assertions = []string{"mpi_assert_no_any_tag", "mpi_assert_no_any_source",
	"mpi_assert_exact_length", "mpi_assert_allow_overtaking"}

// setHints adopts the assertions in in.
func (o *commObject) setHints(in *info.Info) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range assertions {
		if v, ok := in.Get(key); ok && (v == "true" || v == "false") {
			o.hints.Merge(info.New(key, v))
		}
	}
	keepKinds(o.hints, in)
	if o.hints.Len() > 0 {
		o.c.flags |= C.SPX_C_HINTS
	}
}

// hintsNow returns all hints, those that were never set with their defaults.
func (o *commObject) hintsNow() *info.Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := info.New()
	for _, key := range assertions {
		v, ok := o.hints.Get(key)
		if !ok {
			v = "false"
		}
		in.Merge(info.New(key, v))
	}
	for _, key := range []string{view.KeyCluster, view.KeyIndex, view.KeyDirection,
		view.KeyHeals, view.KeyDead, view.KeyTo} {
		if v, ok := o.hints.Get(key); ok {
			in.Merge(info.New(key, v))
		}
	}
	mergeKinds(in, o.c.session, o.hints)
	return in
}

//spx:body MPI_Comm_set_info
func commSetInfo(c *call) error {
	if in := c.info(1); in != nil {
		c.comm(0).setHints(in)
	}
	return nil
}

//spx:body MPI_Comm_get_info
func commGetInfo(c *call) error { return c.onComm(0, c.setInfo(1, c.comm(0).hintsNow())) }
