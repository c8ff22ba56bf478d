package agent

import (
	"slices"

	"libspx/cluster/layout"
	"libspx/launch/job"
)

// Parts of a system and its table: the parts are the clusters that the system began with, and then
// its I/O processes; those that have been added since say for themselves which they are
// (job.Part.Added).

// placeIn is which cluster of a table a part is, or which I/O process; -1: it is none.
func (a *agent) placeIn(l *layout.Layout, part int) (cluster, iop int) {
	if part < 1 || part <= len(a.spec.Parts) && a.spec.Parts[part-1].Added > 0 {
		return a.placeOfAdded(l, part)
	}
	first := l.First()
	switch k := part - 1; {
	case k < first:
		return k, -1
	case k-first < len(l.IOPs) && l.IOPs[k-first].Since == 0:
		return -1, k - first
	}
	return -1, -1
}

func (a *agent) placeOfAdded(l *layout.Layout, part int) (cluster, iop int) {
	if part < 1 {
		return -1, -1
	}
	p := &a.spec.Parts[part-1]
	switch k := p.Added - 1; {
	case !p.Serves && k < len(l.Clusters):
		return k, -1
	case p.Serves && k < len(l.IOPs):
		return -1, k
	}
	return -1, -1 // the table is from before
}

// partOfCluster is the part that cluster k of a table is, from 1; 0: none.
func (a *agent) partOfCluster(l *layout.Layout, k int) int {
	if k < l.First() {
		return k + 1
	}
	return a.partAdded(false, k)
}

// partOfIOP is the same for an I/O process.
func (a *agent) partOfIOP(l *layout.Layout, k int) int {
	if l.IOPs[k].Since == 0 {
		return l.First() + k + 1
	}
	return a.partAdded(true, k)
}

func (a *agent) partAdded(serves bool, k int) int {
	return 1 + slices.IndexFunc(a.spec.Parts, func(p job.Part) bool {
		return p.Serves == serves &&
			p.Added == k+1
	})
}

// healsIn is what a table says of whether who dies in a part is replaced; nil: it has no such part.
func (a *agent) healsIn(l *layout.Layout, part int) *bool {
	switch cluster, iop := a.placeIn(l, part); {
	case cluster >= 0:
		return &l.Clusters[cluster].Heals
	case iop >= 0:
		return &l.IOPs[iop].Heals
	}
	return nil
}

// leavingIn is the same of whether it leaves, or has left, and is awaited.
func (a *agent) leavingIn(l *layout.Layout, part int) *bool {
	if cluster, iop := a.placeIn(l, part); cluster >= 0 {
		return &l.Clusters[cluster].Leaving
	} else {
		return &l.IOPs[iop].Leaving
	}
}

// clusterParts are the parts, from 1, that are clusters, in the order of the table.
func (a *agent) clusterParts() (out []int) {
	for i := range a.spec.Parts {
		if !a.spec.Parts[i].Serves {
			out = append(out, i+1)
		}
	}
	return out
}

// clusterOf is which cluster a part is; -1: none.
func (a *agent) clusterOf(part int) int { return slices.Index(a.clusterParts(), part) }

// inOrder are the parts, from 0, as the table has them: the clusters, and then the I/O processes.
func (a *agent) inOrder() (out []int) {
	for _, serves := range []bool{false, true} {
		for i := range a.spec.Parts {
			if a.spec.Parts[i].Serves == serves {
				out = append(out, i)
			}
		}
	}
	return out
}
