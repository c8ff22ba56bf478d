package datatype

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Runs gives the bytes of the typemap, from anywhere to anywhere, and Retype with the same basic
// types changes nothing.
func TestRunsAndRetypeAgainstTypemaps(t *testing.T) {
	for seed := range int64(4000) {
		r := rand.New(rand.NewSource(seed))
		s := random(r, 1+r.Intn(4))
		want := s.m.bytes(1)
		from, to := int64(r.Intn(len(want)+1)), int64(r.Intn(len(want)+1))
		if from > to {
			from, to = to, from
		}
		same, err := s.t.Retype(func(b *Basic) *Basic { return b })
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, s.what, err)
		}
		for _, made := range []*Type{s.t, same} {
			got := []int64{}
			made.Runs(from, to, func(off, n int64) bool {
				for i := range n {
					got = append(got, off+i)
				}
				return true
			})
			if d := cmp.Diff(append([]int64{}, want[from:to]...), got); d != "" {
				t.Fatalf("seed %d: %s: packed bytes %d to %d (-want +got)\n%s", seed, s.what, from,
					to, d)
			}
		}
		if d := cmp.Diff([]int64{s.t.Size(), s.t.LB(), s.t.Extent()},
			[]int64{same.Size(), same.LB(), same.Extent()}); d != "" {
			t.Fatalf("seed %d: %s: size, lb, extent of the type made anew (-want +got)\n%s", seed,
				s.what, d)
		}
	}
}

// Displacements in elements follow the basic type's size, those in bytes do not.
func TestRetypeScalesElementsAlone(t *testing.T) {
	double := func(b *Basic) *Basic {
		return &Basic{ID: b.ID, Size: 2 * b.Size,
			Extent: 2 * b.Extent, Align: 1}
	}
	ints := NewBasic(tInt)
	for _, test := range []struct {
		made   *Type
		extent int64
	}{
		{must(Vector(2, 1, 3, ints, false)), 32},
		{must(Hvector(2, 1, 12, ints, true)), 20},
		{must(Indexed([]int64{1, 1}, []int64{0, 2}, ints, true)), 24},
		{must(Subarray([]int64{4, 4}, []int64{1, 2}, []int64{1, 1}, OrderC, ints, false)), 128},
	} {
		got, err := test.made.Retype(double)
		if err != nil || got.Extent() != test.extent {
			t.Errorf("combiner %d: extent %d, not %d: %v", test.made.Combiner(), got.Extent(),
				test.extent, err)
		}
	}
}
