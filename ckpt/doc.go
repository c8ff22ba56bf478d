// Package ckpt is the machine of application-level checkpoints (docs/checkpoint.md;
// MPIX_Checkpoint_* in mpi-ext.h). An Object is what one process knows: what it saves, which parts
// of which versions it has, and the processes it does that with. Its methods are the protocol: how
// processes come together (meet.go), save and commit (save.go), and go back (restore.go, move.go).
// They wait for other processes by the interfaces of shell.go alone, so that they run in the
// library (capi/checkpoint*.go) and in a simulator (sim/checkpoint.go).
//
// What is decided from what all have sent to all is a function of that, so that all come to the
// same answer alone: which processes keep copies of whose parts (place.go), which versions are
// complete, who serves which part and which copies have to be made anew (choose.go). piece.go and
// name.go have what a part looks like in memory and in a file; spread.go has collectives.
package ckpt
