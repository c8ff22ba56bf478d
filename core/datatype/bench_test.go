package datatype

import "testing"

// Irregular blocks, as of a sparse matrix: what making and compiling a type costs.
func BenchmarkIndexedMillion(b *testing.B) {
	const n = 1000000
	lengths, displs := make([]int64, n), make([]int64, n)
	for i, at := 0, int64(0); i < n; i++ {
		lengths[i], displs[i] = int64(1+i%5), at
		at += lengths[i] + 1 + int64(i%2)
	}
	old := NewBasic(tDouble)
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			must(Indexed(lengths, displs, old, false))
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			t := must(Indexed(lengths, displs, old, false))
			b.StartTimer()
			t.Image(false)
		}
	})
}

func BenchmarkVector(b *testing.B) {
	old := NewBasic(tInt)
	b.ReportAllocs()
	for b.Loop() {
		must(Vector(10, 2, 3, old, false)).Image(false)
	}
}
