// Package ckpt decides for application-level checkpoints (docs/checkpoint.md; MPIX_Checkpoint_* in mpi-ext.h): which processes keep
// copies of whose data (place.go), which version the processes that are left restore, who serves which part of it and which copies
// have to be made anew (choose.go), and what a part looks like in a file (piece.go, name.go).
//
// Everything here is a function of what the processes have told one another, so that all of them come to the same answer alone. It
// must not communicate, nor touch files: capi/bodies/ckpt*.c and capi/checkpoint.go do.
package ckpt
