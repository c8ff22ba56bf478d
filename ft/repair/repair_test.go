package repair

import (
	"reflect"
	"slices"
	"testing"
)

func TestAssign(t *testing.T) {
	for _, c := range []struct {
		name                 string
		places, living, next []int
	}{
		{"all live", []int{0, 1, 2}, []int{0, 1, 2, 3}, []int{0, 1, 2}},
		{"a spare gets the place", []int{0, 1, 2}, []int{0, 2, 3, 4}, []int{0, 3, 2}},
		{"two spares, in order", []int{0, 1, 2}, []int{2, 3, 4}, []int{3, 4, 2}},
		{"too few spares", []int{0, 1, 2, 3}, []int{2, 3, 5}, []int{5, 2, 3}},
		{"no spares", []int{0, 1, 2}, []int{1}, []int{1}},
		{"spares alone", []int{0}, []int{2, 3}, []int{2}},
		{"a spare that works already is none", []int{3, 1}, []int{2, 3}, []int{3, 2}},
	} {
		places := slices.Clone(c.places)
		if next := Assign(places, c.living); !slices.Equal(next, c.next) ||
			!slices.Equal(places, c.places) {
			t.Errorf("%s: Assign(%v, %v) is %v, not %v", c.name, c.places, c.living, next, c.next)
		}
	}
}

func TestInvitation(t *testing.T) {
	v := Invitation{Members: []int{1, 3, 4}, Places: []int{3, 1}, Fresh: []int{4, 3}, Joined: 2}
	w := v.Encode()
	if got, ok := DecodeInvitation(w, 5); !ok || !reflect.DeepEqual(got, v) {
		t.Errorf("%v became %v, %v", v, got, ok)
	}
	for name, bad := range map[string][]uint64{
		"nothing":           nil,
		"a head alone":      w[:3],
		"a word less":       w[:len(w)-1],
		"a word more":       append(slices.Clone(w), 0),
		"no fresh member":   {1, 1, 1, 0, 0, 0},
		"a length too long": {1, 1 << 63, 1 << 63, 1, 0, 0},
		"no such member":    {1, 1, 1, 1, 5, 0, 0},
	} {
		if got, ok := DecodeInvitation(bad, 5); ok {
			t.Errorf("%s: taken for %v", name, got)
		}
	}
}
