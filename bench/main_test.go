package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The other build is an implementation once, wherever it is named.
func TestWithBase(t *testing.T) {
	for _, c := range []struct {
		impls, want []string
		base, bad   bool
	}{
		{impls: []string{"spx", "mpich"}, want: []string{"spx", "mpich"}},
		{impls: []string{"spx", "mpich"}, base: true, want: []string{"spx", "base", "mpich"}},
		{impls: []string{"spx", "base"}, base: true, want: []string{"spx", "base"}},
		{impls: []string{"base"}, base: true, want: []string{"base"}},
		{base: true, want: []string{"base"}},
		{impls: []string{"spx", "base"}, bad: true},
	} {
		got, err := withBase(c.impls, c.base)
		if (err != nil) != c.bad || !cmp.Equal(got, c.want) {
			t.Errorf("%v, %v: %v, %v", c.impls, c.base, got, err)
		}
	}
}
