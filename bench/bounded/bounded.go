// Package bounded keeps what a program prints, up to a limit. A launcher whose processes have been
// killed may print the same line for ever.
package bounded

import (
	"bytes"
	"fmt"
)

// Limit is more than any program prints that is measured, in bytes.
const Limit = 16 << 20

// Buffer is for exec.Cmd's Stdout and Stderr. Beyond Limit a write fails, which closes the
// program's pipe; Run then returns the error.
type Buffer struct{ kept bytes.Buffer } // not embedded: io.Copy would read into it past Write

func (b *Buffer) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > Limit {
		return 0, fmt.Errorf("it has printed more than %d bytes", Limit)
	}
	return b.kept.Write(p)
}

// String is what was printed.
func (b *Buffer) String() string { return b.kept.String() }

// Len is how many bytes were printed.
func (b *Buffer) Len() int { return b.kept.Len() }
