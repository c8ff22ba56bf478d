//go:build !amd64

package inspect

import "golang.org/x/sys/unix"

// registersFrom is not there for other processors: what is known of their frames is not read
// either.
func registersFrom(*unix.PtraceRegs) *registers { return &registers{} }
