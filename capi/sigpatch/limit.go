package main

import (
	"debug/elf"
	"fmt"
	"os"
	"strings"
)

// The one init function of package syscall (rlimit.go) raises the soft limit of open files to the
// hard one. A library must not: programs that use select() have room for 1024 descriptors, and
// others close all numbers up to the limit. The function becomes a return.
const raises = "syscall.init.0"

// returns are the machine's instruction for that: a function that was just called has no frame yet.
var returns = map[elf.Machine][]byte{
	elf.EM_X86_64:  {0xc3},
	elf.EM_AARCH64: {0xc0, 0x03, 0x5f, 0xd6},
}

func keepLimit(file *os.File) error {
	f, err := elf.NewFile(file)
	if err != nil {
		return err
	}
	syms, err := f.Symbols()
	if err != nil {
		return err
	}
	var at *elf.Symbol
	stores := false
	for i, s := range syms {
		switch {
		case s.Name == raises:
			at = &syms[i]
		case strings.HasPrefix(s.Name, "syscall.init.1"):
			return fmt.Errorf(
				"package syscall has more than one init function: another version of Go? see " +
					"syscall/rlimit.go")
		case s.Name == "syscall.origRlimitNofile":
			stores = true
		}
	}
	ret := returns[f.Machine]
	switch {
	case at == nil || !stores:
		return fmt.Errorf("no symbol %s: another version of Go? see syscall/rlimit.go", raises)
	case ret == nil:
		return fmt.Errorf("which instruction returns on %v?", f.Machine)
	case at.Size < uint64(len(ret)):
		return fmt.Errorf("%s has %d bytes", raises, at.Size)
	}
	section := f.Sections[at.Section]
	_, err = file.WriteAt(ret, int64(section.Offset+at.Value-section.Addr))
	return err
}
