package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

// cpuSet is the kernel's set of processors.
type cpuSet [1024 / 64]uint64

// allowed are the processors that this process may use.
func allowed() (cpus []int, err error) {
	var s cpuSet
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(s), uintptr(unsafe.Pointer(&s))); e != 0 {
		return nil, fmt.Errorf("sched_getaffinity: %w", e)
	}
	for c := range len(s) * 64 {
		if s[c/64]>>(c%64)&1 != 0 {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// startOn starts a program that uses these processors alone: those of the thread that starts it.
func startOn(cmd *exec.Cmd, cpus []int) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks it: the thread ends with this function
		var s cpuSet
		for _, c := range cpus {
			s[c/64] |= 1 << (c % 64)
		}
		if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(s), uintptr(unsafe.Pointer(&s))); e != 0 {
			started <- fmt.Errorf("sched_setaffinity: %w", e)
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}
