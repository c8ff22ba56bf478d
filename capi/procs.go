package main

import (
	"runtime"
	"sync/atomic"
)

// The library's share of the machine. Go runs short bodies in the threads of the application and a few helpers; a rank is one
// of many on its host, so the runtime gets as little as lets it work: one processor more than there are threads in MPI, so that a
// thread that spins in C code below Go never keeps the collector or a timer from running.
var mpiThreads atomic.Int32

func adjustProcs() {
	if n := int(mpiThreads.Add(1)) + 1; n > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(n)
	}
}
