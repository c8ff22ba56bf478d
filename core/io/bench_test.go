package io

import (
	"testing"

	"libspx/core/datatype"
)

// Every process writes and reads every fourth int: many short ranges.
func BenchmarkInterleavedInts(b *testing.B) {
	made, err := datatype.Resized(intType, 0, 16, true)
	if err != nil {
		b.Fatal(err)
	}
	const n = 1 << 20
	f := &memFile{room: 1 << 30, data: make([]byte, 4*n)}
	b.SetBytes(8 * n)
	for b.Loop() {
		for _, write := range []bool{true, false} {
			together(4, func(p Peers) {
				v, err := NewView(4*int64(p.Rank()), intType, made)
				if err == nil {
					_, err = AccessAll(p, Hints{Aggregators: 2, Window: 4 << 20}, f, v,
						make(Bytes, n), 0, write, false, nil)
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
	}
}
