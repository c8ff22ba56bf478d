// Command sigpatch edits a library that was just linked with the Go runtime in it: the runtime's
// table of signals says which signals the runtime's own threads unblock even though they were
// started with all blocked. Some of those belong to the application (SIGCHLD, SIGPROF, SIGSTKFLT,
// and 34, which is SIGRTMIN): on a Go thread its handler would run on a goroutine's stack. The flag
// is data that nothing else reads, so it is cleared in the file. Anything unexpected is an error,
// and the build ends.
//
// It also removes what package syscall does when it is initialised: it raises the limit of open
// files of the whole process, which is the application's (limit.go).
//
//	go run ./capi/sigpatch build/lib/libspx.so
package main

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
)

const (
	symbol     = "runtime.sigtable"
	entryBytes = 24     // struct { flags int32; name string }
	unblock    = 1 << 7 // _SigUnblock of runtime2.go; edit checks it against entries
)

// What the table of Go's runtime holds for these signals: all with the flag. The first group keeps
// it (faults of the thread itself, and the two that belong to the C library's threads), the second
// loses it.
var (
	keep  = []int{4, 5, 7, 8, 11, 32, 33}
	clear = []int{16, 17, 27, 34}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sigpatch LIBRARY")
		os.Exit(2)
	}
	if err := patch(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "sigpatch: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func patch(path string) error {
	offset, size, order, err := find(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	table := make([]byte, size)
	if _, err := f.ReadAt(table, offset); err != nil {
		return err
	}
	if err := edit(table, order); err != nil {
		return err
	}
	if err := keepLimit(f); err != nil {
		return err
	}
	if _, err := f.WriteAt(table, offset); err != nil {
		return err
	}
	return f.Close()
}

// edit clears the flag where it has to go, after checking that the table is the one that this
// program knows.
func edit(table []byte, order binary.ByteOrder) error {
	flags := func(sig int) uint32 { return order.Uint32(table[sig*entryBytes:]) }
	for _, sig := range append(append([]int(nil), keep...), clear...) {
		if flags(sig)&unblock == 0 {
			return fmt.Errorf(
				"signal %d has flags %#x in %s, without %#x: another version of Go? see "+
					"runtime/sigtab_linux_generic.go", sig, flags(sig), symbol, unblock)
		}
	}
	for _, sig := range []int{1, 2, 10, 13, 14, 15, 23, 35, 64} {
		if flags(sig)&unblock != 0 {
			return fmt.Errorf("signal %d has flags %#x in %s: %#x is not the flag that unblocks",
				sig, flags(sig), symbol, unblock)
		}
	}
	for _, sig := range clear {
		order.PutUint32(table[sig*entryBytes:], flags(sig)&^unblock)
	}
	return nil
}

// find returns where in the file the table is.
func find(path string) (offset int64, size int, order binary.ByteOrder, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, 0, nil, err
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		return 0, 0, nil, err
	}
	for _, s := range syms {
		if s.Name != symbol {
			continue
		}
		if s.Size != 65*entryBytes {
			return 0, 0, nil, fmt.Errorf("%s has %d bytes, not %d", symbol, s.Size, 65*entryBytes)
		}
		sec := f.Sections[s.Section]
		return int64(sec.Offset + s.Value - sec.Addr), int(s.Size), f.ByteOrder, nil
	}
	return 0, 0, nil, fmt.Errorf("no symbol %s: was the library stripped?", symbol)
}
