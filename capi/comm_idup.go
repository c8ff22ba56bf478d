package main

/*
#include "comm.h"
*/
import "C"

import (
	"unsafe"

	"libspx/core/comm"
	"libspx/core/info"
	"libspx/core/mpierr"
)

// MPI_Comm_idup: the new communicator is made and gets its attributes at the call, as the standard
// says. Only its context is agreed upon in the background (bodies/comm_idup.c).

//spx:body MPI_Comm_idup
func commIdup(c *call) error { return c.idup(1, 2, nil) }

//spx:body MPI_Comm_idup_with_info
func commIdupWithInfo(c *call) error { return c.idup(2, 3, c.info(1)) }

// idup stores the new communicator in argument out and the request in argument req.
func (c *call) idup(out, req int, hints *info.Info) error {
	old := c.comm(0)
	o, err := newComm(old.LiteDup(0), old)
	if err != nil {
		return c.onComm(0, err)
	}
	tree := old.NewDupTree()
	return c.duplicated(out, old, o, hints, func() error {
		r, err := startIdup(old, o, tree)
		if err != nil {
			return c.onComm(0, err)
		}
		c.setHandle(req, r)
		return nil
	})
}

// startIdup returns the handle of the request.
func startIdup(old, made *commObject, tree comm.DupTree) (uintptr, error) {
	var ctx uint64
	var parent *C.spx_edge
	edges := make([]C.spx_edge, 0, len(tree.Children)+1)
	for _, e := range tree.Children {
		edges = append(edges, old.edge(e))
	}
	children := unsafe.SliceData(edges)
	if tree.Parent != nil {
		edges = append(edges, old.edge(*tree.Parent))
		parent = &edges[len(edges)-1]
	} else {
		ctx = old.dealer().TakeLike(made.Comm)
	}
	var r *C.spx_request
	code := C.spx_idup_start(old.c, made.c, C.uint64_t(ctx), parent, children,
		C.int(len(tree.Children)), C.int(tree.Tag), &r)
	if code != 0 {
		return 0, mpierr.New(mpierr.Class(code), "%s", C.GoString(C.spx_detail_text()))
	}
	return uintptr(r.o.handle), nil
}

// takeContext takes what a communicator like o needs.
func (o *commObject) takeContext() uint64 { return world.contexts.Take(o.Contexts()) }

// edge translates a neighbour of the tree: the remote group is reached over the communicator
// itself, the local group over the inner one of an intercommunicator.
func (o *commObject) edge(e comm.Edge) C.spx_edge {
	via := o.c
	if o.Inter() && !e.Remote {
		via = o.c.inner
	}
	return C.spx_edge{comm: via, rank: C.int(e.Rank)}
}
