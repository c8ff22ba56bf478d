// Package coll makes the schedules of the collective operations (MPI-5.0 chapter 6).
//
// It owns the algorithms and the table that chooses among them (tune.go). A schedule is data: a
// Plan is the list of steps that one rank performs, sends and receives that start in order,
// waits that name what must be complete, local copies and reductions. The data plane
// (capi/dataplane/coll/plan.c) runs it for blocking, nonblocking and persistent calls alike, and
// the package's tests run the plans of all ranks on a simulated network.
//
// Contract:
//  1. Compile is a pure function: no clock, no randomness, no I/O, no memory between calls.
//  2. All inputs to the choice of an algorithm must be equal at all ranks of the communicator. Args
//     documents this for every field. Counts and datatypes need only agree in their product's type
//     signature, so that choices depend on bytes alone.
//  3. A step may use a buffer only when the steps that it depends on are named by an earlier Wait:
//     a receive fills its buffer, and a send reads its own, at any time until they are waited for.
//     The end of a plan waits for everything.
//  4. Plans name no address: buffers, datatypes and the arrays of v and w forms are bound when a
//     plan is run, so that a plan can be kept and run again.
//  5. A non-commutative operation is applied to operands in the order of ranks.
//
// It must not depend on communicators, handles, transports or C.
package coll
