package ckpt

import (
	"cmp"
	"slices"
)

// Where a part is kept.
const (
	Memory = 0
	File   = 1
)

// An Item is a part that a process has: what one rank has saved of one version.
type Item struct {
	// grows whenever processes come together anew, or go back: the same version may be saved again
	// then
	Generation int64
	Version    int32
	Rank       int32 // that has saved it
	Ranks      int32 // how many have saved this version
	Holder     int32 // rank, now, that has it
	Kind       int32 // Memory or File
}

// A Version is one that every rank has saved, and of which every part is available.
type Version struct {
	Generation int64
	Version    int32
	Ranks      int32
}

func (i Item) version() Version { return Version{i.Generation, i.Version, i.Ranks} }

// Complete lists the versions of which all parts are there, the latest first: of several with the
// same number the one that was saved last.
func Complete(items []Item) []Version {
	parts := map[Version]map[int32]bool{}
	for _, i := range items {
		if i.Rank < 0 || i.Rank >= i.Ranks {
			continue
		}
		v := i.version()
		if parts[v] == nil {
			parts[v] = map[int32]bool{}
		}
		parts[v][i.Rank] = true
	}
	var out []Version
	for v, p := range parts {
		if len(p) == int(v.Ranks) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b Version) int {
		return -cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Ranks, b.Ranks))
	})
	numbers := map[int32]bool{}
	return slices.DeleteFunc(out, func(v Version) bool {
		again := numbers[v.Version]
		numbers[v.Version] = true
		return again
	})
}

// Sources returns, for every rank that has saved v, the process that serves its part: holders in
// memory come before holders of a file, then the process that has this rank now, then those that
// serve least.
func Sources(items []Item, v Version) []int {
	best := make([]Item, v.Ranks)
	for r := range best {
		best[r].Holder = -1
	}
	load := map[int32]int{}
	better := func(a, b Item) bool {
		own := func(i Item) int {
			if i.Holder == i.Rank {
				return 0
			}
			return 1
		}
		return b.Holder < 0 || cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(own(a), own(b)),
			cmp.Compare(load[a.Holder], load[b.Holder]), cmp.Compare(a.Holder, b.Holder)) < 0
	}
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Holder, b.Holder))
	})
	for first := 0; first < len(sorted); {
		last := first
		for ; last < len(sorted) && sorted[last].Rank == sorted[first].Rank; last++ {
			if i := sorted[last]; i.version() == v && i.Rank >= 0 && i.Rank < v.Ranks &&
				better(i, best[i.Rank]) {
				best[i.Rank] = i
			}
		}
		if r := sorted[first].Rank; r >= 0 && r < v.Ranks && best[r].Holder >= 0 {
			load[best[r].Holder]++
		}
		first = last
	}
	out := make([]int, v.Ranks)
	for r := range out {
		out[r] = int(best[r].Holder)
	}
	return out
}

// A Copy is one that has to be made: of a rank's part, from one process to another.
type Copy struct{ Rank, From, To int }

// Missing lists the copies that have to be made so that every part of v is in the memory of 1 +
// copies processes again (or of all), given the source of each part. hosts is as for Buddies.
// Sources count as having the part in memory.
func Missing(items []Item, v Version, sources, hosts []int, copies int) []Copy {
	var out []Copy
	holders := make([]map[int]bool, v.Ranks)
	for r := range holders {
		holders[r] = map[int]bool{sources[r]: true}
	}
	for _, i := range items {
		if i.version() == v && i.Kind == Memory && i.Rank >= 0 && i.Rank < v.Ranks {
			holders[i.Rank][int(i.Holder)] = true
		}
	}
	for r, from := range sources {
		for _, to := range Buddies(hosts, from, len(hosts)-1) {
			if len(holders[r]) > copies {
				break
			}
			if !holders[r][to] {
				holders[r][to] = true
				out = append(out, Copy{r, from, to})
			}
		}
	}
	return out
}
