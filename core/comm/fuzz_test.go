package comm

import (
	"errors"
	"testing"

	"libspx/core/mpierr"
)

// The message of a DupTree, and the table of MPI_Comm_split, from any bytes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(EncodeContext(77, nil))
	f.Add(EncodeContext(0, errors.New("no class")))
	f.Add(EncodeContext(5, mpierr.New(mpierr.NoMem, "no memory")))
	f.Add(make([]byte, 5*choiceWire))
	f.Fuzz(func(t *testing.T, b []byte) {
		if ctx, err := DecodeContext(b); err == nil && string(EncodeContext(ctx, nil)) != string(append(make([]byte, 8), b[8:]...)) {
			t.Errorf("%x becomes the context %d", b, ctx)
		}
		table := decodeChoices(b)
		if len(table) != len(b)/choiceWire {
			t.Errorf("%d choices in %d bytes", len(table), len(b))
		}
		if n := len(colors(table)); n > len(table) {
			t.Errorf("%d colors of %d processes", n, len(table))
		}
	})
}
