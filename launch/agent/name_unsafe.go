package agent

import "unsafe"

var name = [...]byte{'s', 'p', 'x', '-', 'a', 'g', 'e', 'n', 't', 0}

// namePointer is the name as the kernel takes it.
func namePointer() unsafe.Pointer { return unsafe.Pointer(&name[0]) }
