package datatype

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzTypes compares a random type of up to depth constructors with its typemap: bounds, and the
// bytes of both layouts.
func FuzzTypes(f *testing.F) {
	f.Add(int64(1), uint8(3))
	f.Add(int64(122), uint8(5))
	f.Fuzz(func(t *testing.T, seed int64, depth uint8) {
		s := random(rand.New(rand.NewSource(seed)), int(depth%6))
		lb, ub := s.m.bounds()
		if s.t.LB() != lb || s.t.Extent() != ub-lb {
			t.Errorf("%s: lb %d, extent %d; want %d, %d", s.what, s.t.LB(), s.t.Extent(), lb, ub-lb)
		}
		for _, typed := range []bool{false, true} {
			if d := cmp.Diff(s.m.bytes(1), imageBytes(s.t.Image(typed), nil)); d != "" {
				t.Errorf("%s: bytes of the layout, typed %v (-want +got)\n%s", s.what, typed, d)
			}
		}
	})
}
