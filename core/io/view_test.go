package io

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/core/datatype"
)

var intType = datatype.NewBasic(&datatype.Basic{ID: 1, Name: "int", Size: 4, Extent: 4, Align: 4,
	Ext32: 4})

func must(t *testing.T, made *datatype.Type, err error) *datatype.Type {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// randomFiletype makes a filetype of ints with displacements that go up.
func randomFiletype(t *testing.T, r *rand.Rand) *datatype.Type {
	var lengths, displs []int64
	at := int64(r.Intn(3))
	for range 1 + r.Intn(5) {
		n := int64(1 + r.Intn(4))
		lengths, displs = append(lengths, n), append(displs, at)
		at += n + int64(r.Intn(3))
	}
	made, err := datatype.Indexed(lengths, displs, intType, false)
	ft := must(t, made, err)
	if r.Intn(2) == 0 {
		made, err = datatype.Vector(int64(1+r.Intn(3)), 1, 1+int64(r.Intn(2)), ft, false)
		ft = must(t, made, err)
	}
	made, err = datatype.Resized(ft, 0, ft.TrueLB()+ft.TrueExtent()+int64(r.Intn(4))*4, true)
	return must(t, made, err)
}

// byteMap is the definition of a view: the offset of each of its first n positions.
func byteMap(disp int64, ft *datatype.Type, n int) []int64 {
	var tile, out []int64
	ft.Runs(0, ft.Size(), func(off, k int64) bool {
		for i := range k {
			tile = append(tile, off+i)
		}
		return true
	})
	for p := range n {
		out = append(out, disp+int64(p/len(tile))*ft.Extent()+tile[p%len(tile)])
	}
	return out
}

func TestViewAgainstByteMap(t *testing.T) {
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		ft, disp := randomFiletype(t, r), int64(r.Intn(50))
		v, err := NewView(disp, intType, ft)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		const n = 300
		want := byteMap(disp, ft, n)
		from, to := r.Intn(n), r.Intn(n)
		if from > to {
			from, to = to, from
		}
		var got []int64
		end := int64(-1)
		v.Runs(int64(from), int64(to), func(off, k int64) bool {
			if off == end {
				t.Errorf("seed %d: ranges that touch at %d were not joined", seed, off)
			}
			for i := range k {
				got = append(got, off+i)
			}
			end = off + k
			return true
		})
		if diff := cmp.Diff(append([]int64(nil), want[from:to]...), got); diff != "" {
			t.Fatalf("seed %d: positions %d to %d (-want +got):\n%s", seed, from, to, diff)
		}
		size, end2 := int64(r.Intn(int(want[n-1]))), int64(0)
		for _, off := range want {
			if off < size {
				end2++
			}
		}
		if got := v.End(size); got != end2 {
			t.Fatalf("seed %d: End(%d) is %d, not %d", seed, size, got, end2)
		}
	}
}

func TestViewRefusesWrongFiletypes(t *testing.T) {
	for name, make := range map[string]func() (*datatype.Type, error){
		"down": func() (*datatype.Type, error) {
			return datatype.Indexed([]int64{1, 1},
				[]int64{3, 0}, intType, false)
		},
		"negative": func() (*datatype.Type, error) {
			return datatype.Indexed([]int64{1},
				[]int64{-1}, intType, false)
		},
	} {
		made, err := make()
		if _, err := NewView(0, intType, must(t, made, err)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	half := datatype.NewBasic(&datatype.Basic{ID: 2, Name: "short", Size: 2, Extent: 2, Align: 2})
	if _, err := NewView(0, intType, half); err == nil {
		t.Error("a filetype of half an etype: no error")
	}
	if _, err := NewView(-1, intType, intType); err == nil {
		t.Error("a negative displacement: no error")
	}
	made, err := datatype.Indexed([]int64{2, 1}, []int64{0, 1}, intType, false)
	if v, err := NewView(0, intType, must(t, made, err)); err != nil || !v.Overlaps {
		t.Errorf("an overlapping filetype: %v, %v", v, err)
	}
}
