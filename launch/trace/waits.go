package trace

import (
	"math"
	"strings"
)

// What processes wait for, by the times of the two sides: as in Scalasca (Wolf and Mohr,
// Automatic performance analysis of hybrid MPI/OpenMP applications, 2003).

// findWaits adds up the waits of every rank.
func (m *merged) findWaits() {
	index := map[*file]int{}
	for i, f := range m.files {
		index[f] = i
	}
	add := func(f *file, kind string, s float64) {
		if !(s > 0) {
			return
		}
		r := &m.job.Ranks[index[f]]
		if r.Waits == nil {
			r.Waits = map[string]float64{}
		}
		r.Waits[kind] += s
	}
	m.pairs(func(s, g *passage) {
		late := g.begin
		add(g.file, LateSender, min(s.begin, g.end)-g.begin)
		if blocksUntilReceived[strings.TrimSuffix(callName(uint32(s.fn)), "_c")] &&
			s.begin < late && s.end > late {
			add(s.file, LateReceiver, late-s.begin)
		}
	})
	type meeting struct {
		ctx    uint64
		number uint32
		fn     uint16
	}
	type part struct {
		file       *file
		begin, end float64
	}
	parts := map[meeting][]part{}
	for _, f := range m.files {
		m.walk(f, func(r *record, begin, end float64) {
			if r.kind == kindCall && r.flags&cTraceCollective != 0 &&
				allNeedAll(callName(uint32(r.fn))) {
				k := meeting{r.ctx, r.number, r.fn}
				parts[k] = append(parts[k], part{f, begin, end})
			}
		})
	}
	for k, list := range parts {
		last := math.Inf(-1)
		for _, p := range list {
			last = max(last, p.begin)
		}
		kind := AtCollective
		if callName(uint32(k.fn)) == "MPI_Barrier" {
			kind = AtBarrier
		}
		for _, p := range list {
			add(p.file, kind, min(last, p.end)-p.begin)
		}
	}
}

// pairs calls fn for every message of which both sides are known, and were in a call.
func (m *merged) pairs(fn func(s, g *passage)) {
	by := make(map[int]*passage, m.job.Messages)
	for _, list := range m.sends {
		for i := range list {
			if list[i].id != 0 {
				by[list[i].id] = &list[i]
			}
		}
	}
	for i := range m.gots {
		g := &m.gots[i]
		if s := by[g.id]; g.id != 0 && s != nil && !math.IsNaN(s.begin) && !math.IsNaN(g.begin) {
			fn(s, g)
		}
	}
}

var blocksUntilReceived = map[string]bool{"MPI_Send": true, "MPI_Ssend": true, "MPI_Rsend": true,
	"MPI_Sendrecv": true, "MPI_Sendrecv_replace": true}

// allNeedAll: no rank can leave the collective before all have entered it.
func allNeedAll(call string) bool {
	name := strings.TrimPrefix(call, "MPI_")
	return name == "Barrier" || strings.HasPrefix(name, "All") ||
		strings.HasPrefix(name, "Reduce_scatter")
}
