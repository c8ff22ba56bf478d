package datatype

import (
	"runtime"
	"testing"
)

// What a struct of a million blocks of one type leaves and takes on the way: its arguments and some
// words for each block, no objects.
func TestStructOfManyBlocks(t *testing.T) {
	const n = 1 << 20
	old := NewBasic(tInt)
	for _, c := range []struct {
		what   string
		length func(i int64) int64
		place  func(i int64) int64
	}{
		{"all alike, apart", func(int64) int64 { return 1 }, func(i int64) int64 { return 8 * i }},
		{"all alike, side by side", func(int64) int64 { return 2 },
			func(i int64) int64 { return 8 * i }},
		{"of many lengths", func(i int64) int64 { return 1 + i%5 },
			func(i int64) int64 { return 24 * i }},
		{"pairs side by side", func(int64) int64 { return 1 },
			func(i int64) int64 { return 4*i + i/2*8 }},
	} {
		t.Run(c.what, func(t *testing.T) {
			lengths, displs, types := make([]int64, n), make([]int64, n), make([]*Type, n)
			size := int64(0)
			for i := range types {
				lengths[i], displs[i], types[i] = c.length(int64(i)), c.place(int64(i)), old
				size += 4 * lengths[i]
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := must(Struct(lengths, displs, types, false))
			s.Image(false)
			runtime.ReadMemStats(&after)
			if s.Size() != size {
				t.Errorf("size %d, want %d", s.Size(), size)
			}
			if got := after.Mallocs - before.Mallocs; got > n {
				t.Errorf("%d objects for %d blocks", got, n)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) / n; got > 256 {
				t.Errorf("%d bytes for each block", got)
			}
		})
	}
}
