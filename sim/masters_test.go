package sim

import "testing"

// The management tree of many clusters: it comes about, all learn of a death within a second, and nobody is asked for more than a master of few clusters.
func TestMasters(t *testing.T) {
	loads := map[int]Loads{}
	for _, iop := range []bool{false, true} {
		for _, clusters := range []int{2, 8, 32} {
			l, err := Masters{Clusters: clusters, Processes: 2000, PerHost: 16, IOP: iop, Changes: 50}.Run(2000, 1)
			if err != nil {
				t.Fatalf("%d clusters, beside I/O processes: %v: %v", clusters, iop, err)
			}
			t.Logf("%d clusters, beside I/O processes: %v: %+v", clusters, iop, l)
			if l.Delay > 1000 {
				t.Errorf("a death was known everywhere after %.0f ms", l.Delay)
			}
			loads[clusters] = l
		}
		if few, many := loads[2], loads[32]; many.System.Messages > 1.5*max(few.System.Messages, few.Cluster.Messages) {
			t.Errorf("the system's master of 32 clusters has %.0f messages in a second, that of 2 has %.0f", many.System.Messages, few.System.Messages)
		}
	}
}
