package group

import (
	"bytes"
	"testing"
)

// What a peer sends is decoded or refused, and what is decoded is encoded to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(Empty.Encode())
	f.Add(of(1, 2, 3).Encode())
	f.Add(of(9, 1, 4, 2, 0).Encode())
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, rest, err := Decode(b)
		if err != nil {
			return
		}
		if again := append(g.Encode(), rest...); !bytes.Equal(again, b) {
			t.Errorf("%x becomes %x", b, again)
		}
		if g.Size() > 0 {
			g.At(0)
			g.At(g.Size() - 1)
		}
	})
}
