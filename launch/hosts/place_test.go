package hosts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlace(t *testing.T) {
	self := Names{Host: "front"}
	for _, c := range []struct {
		list  string
		procs int
		block int
		hosts []string
		slots []int
		where []int
	}{
		{"front:2", 4, 0, nil, nil, nil},
		{"a:2\nb:1", 5, 0, []string{"front", "a", "b"}, []int{0, 2, 1}, []int{1, 1, 2, 1, 1}},
		{"a\nb\na", 4, 0, []string{"front", "a", "b"}, []int{0, 2, 1}, []int{1, 1, 2, 1}},
		{"a:8\nlocalhost:8\nfront", 4, 1, []string{"front", "a"}, []int{9, 8}, []int{1, 0, 1, 0}},
		{"front\nlocalhost:1\na", 3, 0, []string{"front", "a"}, []int{2, 1}, []int{0, 0, 1}},
		{"a:4\nb:4", 6, 2, []string{"front", "a", "b"}, []int{0, 4, 4}, []int{1, 1, 2, 2, 1, 1}},
	} {
		list, err := Parse(c.list, "file")
		if err != nil {
			t.Fatal(err)
		}
		got := Place(Merge(list, self), self, c.procs, c.block)
		if got == nil {
			got = &Layout{}
		}
		if diff := cmp.Diff(&Layout{c.hosts, c.slots, c.where}, got); diff != "" {
			t.Errorf("%d ranks on %q:\n%s", c.procs, c.list, diff)
		}
	}
}
