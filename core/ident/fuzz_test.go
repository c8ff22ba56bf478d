package ident

import (
	"bytes"
	"testing"
)

// Any bytes are an identity if there are enough of them, and it is encoded to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(Append(nil, ProcID{Job: 1, World: 2, Rank: 3, Incarnation: 4}))
	f.Add(bytes.Repeat([]byte{255}, WireSize+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := Decode(b)
		if ok != (len(b) >= WireSize) {
			t.Fatalf("%d bytes: %v", len(b), ok)
		}
		if ok && !bytes.Equal(Append(nil, p), b[:WireSize]) {
			t.Errorf("%x becomes %v", b, p)
		}
	})
}
