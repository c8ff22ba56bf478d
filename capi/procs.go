package main

import (
	"runtime"
	"sync"
)

// The library's share of the machine. Go runs short bodies in the threads of the application and in
// a few helpers; a rank is one of many on its host, so the runtime gets as little as lets it work:
// one processor more than there are threads in MPI, so that threads that stay in C code below Go
// for long never keep the collector or a timer from running.
var procsMu sync.Mutex

// adjustProcs gets the number of threads of the application that have entered Go and live.
func adjustProcs(threads int) {
	procsMu.Lock()
	defer procsMu.Unlock()
	if threads+1 > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(threads + 1)
	}
}
