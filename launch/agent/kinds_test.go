package agent

import (
	"slices"
	"testing"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/job"
)

// Parts that a system began with are known by their places, those that were added by what they say:
// in both directions.
func TestKinds(t *testing.T) {
	l := &layout.Layout{Growths: 2, Clusters: []layout.Cluster{{Name: "a"}, {Name: "b"},
		{Name: "n", Since: 1}, {Name: "m", Since: 2}},
		IOPs: []layout.IOP{{Proc: 1}, {Proc: 2}, {Proc: 3, Since: 1}, {Proc: 4, Since: 2}}}
	parts := []job.Part{{}, {}, {Serves: true}, {Serves: true}, {Added: 3},
		{Serves: true, Added: 3}, {Added: 4}, {Serves: true, Added: 4}}
	a := newAgent(&control.Job{Parts: parts}, nil)
	for part, want := range map[int][2]int{1: {0, -1}, 2: {1, -1}, 3: {-1, 0}, 4: {-1, 1},
		5: {2, -1}, 6: {-1, 2}, 7: {3, -1}, 8: {-1, 3}, 0: {-1, -1}, 9: {-1, -1}} {
		cluster, iop := a.placeIn(l, part)
		if cluster != want[0] || iop != want[1] {
			t.Errorf("part %d is cluster %d, I/O process %d", part, cluster, iop)
		}
		if cluster >= 0 && (a.partOfCluster(l, cluster) != part || a.clusterOf(part) != cluster) ||
			iop >= 0 && a.partOfIOP(l, iop) != part {
			t.Errorf("part %d is not found again", part)
		}
	}
	if got := a.inOrder(); !slices.Equal(got, []int{0, 1, 4, 6, 2, 3, 5, 7}) {
		t.Errorf("in the order of the table: %v", got)
	}
	before := &layout.Layout{Clusters: l.Clusters[:2], IOPs: l.IOPs[:2]}
	for _, part := range []int{5, 6, 7, 8} {
		if cluster, iop := a.placeIn(before, part); cluster >= 0 || iop >= 0 {
			t.Errorf("part %d is in a table from before: %d, %d", part, cluster, iop)
		}
	}
}
