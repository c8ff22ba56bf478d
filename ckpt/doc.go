// Package ckpt is the machine of application-level checkpoints (docs/checkpoint.md;
// MPIX_Checkpoint_* in mpi-ext.h). An Object is the state of one process: the regions it saves, the
// parts of versions it has, and the processes it works with. Its methods are the protocol: how
// processes come together (meet.go), save and commit (save.go), and go back (restore.go, move.go).
// They wait for other processes by the interfaces of shell.go alone, so that they run in the
// library (capi/checkpoint*.go) and in a simulator (sim/checkpoint.go).
//
// Decisions are functions of data that all processes have exchanged, so that each computes the same
// answer: which processes keep copies of whose parts (place.go), which versions are complete, the
// sources of the parts and the copies to be made again (choose.go). piece.go and name.go have what
// a part looks like in memory and in a file; spread.go has collectives.
package ckpt
