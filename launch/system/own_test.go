package system

import (
	"slices"
	"testing"
)

func TestOwnHosts(t *testing.T) {
	hosts, slots := []string{"here", "n1", "n2", "n3", "n4"}, []int{0, 2, 2, 1, 8}
	where := []int{1, 1, 2, 3, 4, 4, 0}
	for name, c := range map[string]struct {
		own   []int
		hosts []string
		slots []int
		at    []int
	}{
		"none of its processes here": {[]int{2, 3}, []string{"here", "n2", "n3"}, []int{0, 2, 1},
			[]int{0, 0, 1, 2, 0, 0, 0}},
		"on one host": {[]int{4, 5}, []string{"here", "n4"}, []int{0, 8},
			[]int{0, 0, 0, 0, 1, 1, 0}},
		"here alone": {[]int{6}, []string{"here"}, []int{0},
			[]int{0, 0, 0, 0, 0, 0, 0}},
		"here and elsewhere": {[]int{6, 0, 1}, []string{"here", "n1"}, []int{0, 2},
			[]int{1, 1, 0, 0, 0, 0, 0}},
	} {
		h, s, at := ownHosts(hosts, slots, where,
			func(proc int) bool { return slices.Contains(c.own, proc) })
		if !slices.Equal(h, c.hosts) || !slices.Equal(s, c.slots) || !slices.Equal(at, c.at) {
			t.Errorf("%s: %v with %v slots, processes on %v; not %v, %v, %v", name, h, s, at,
				c.hosts, c.slots, c.at)
		}
	}
}
