package storm

import "slices"

// Which ways messages take.

// A Rank is one of a cluster.
type Rank struct{ Cluster, Rank int }

// next are the ranks to which a link brings messages of a rank.
func (p *Plan) next(l *Link, from Rank) (out []Rank) {
	for _, c := range l.To {
		n := p.Clusters[c].Ranks
		if l.Route != Same {
			for r := range n {
				out = append(out, Rank{c, r})
			}
		} else {
			out = append(out, Rank{c, from.Rank % n})
		}
	}
	return out
}

// reach lists the ranks that messages of a rank come to while all on their way are there.
func (m *Model) reach(from Rank) (out []Rank) {
	for i := range m.plan.Links {
		l := &m.plan.Links[i]
		if m.Links[i].Gone || !slices.Contains(l.From, from.Cluster) {
			continue
		}
		for _, to := range m.plan.next(l, from) {
			if k := &m.Clusters[to.Cluster]; !k.Gone && !slices.Contains(k.Dead, to.Rank) {
				out = append(append(out, to), m.reach(to)...)
			}
		}
	}
	return out
}

// clear: no rank that is dead, and not replaced, is on the way of what leaves a cluster: who sends to one may be told so, and stops.
func (m *Model) clear(c int) bool {
	for i := range m.plan.Links {
		l := &m.plan.Links[i]
		if !slices.Contains(l.From, c) {
			continue
		}
		if m.Links[i].Gone {
			return false
		}
		for _, to := range l.To {
			if len(m.Clusters[to].Dead) > 0 || m.Clusters[to].Gone || !m.clear(to) {
				return false
			}
		}
	}
	return true
}

// Origins are the ranks that send and are there.
func (m *Model) Origins() (out []Rank) {
	for c, p := range m.plan.Clusters {
		for r := range p.Ranks {
			if p.Role == Send && !m.Clusters[c].Gone && !slices.Contains(m.Clusters[c].Dead, r) {
				out = append(out, Rank{c, r})
			}
		}
	}
	return out
}

// Arriving are the ranks to which messages must come: to each of these lists, to some rank of it.
func (m *Model) Arriving() (out [][]Rank) {
	for _, o := range m.Origins() {
		if !m.Free(o.Cluster) {
			continue
		}
		to := sorted(m.reach(o))
		if len(to) > 0 && m.plan.deals(o.Cluster) {
			out = append(out, to)
			continue
		}
		for len(to) > 0 {
			n := 1
			for n < len(to) && to[n].Cluster == to[0].Cluster && m.plan.demands(o.Cluster, to[0].Cluster) {
				n++
			}
			out, to = append(out, to[:n]), to[n:]
		}
	}
	slices.SortFunc(out, func(a, b []Rank) int { return slices.CompareFunc(a, b, compare) })
	return slices.CompactFunc(out, func(a, b []Rank) bool { return slices.Equal(a, b) })
}

func compare(a, b Rank) int { return 100*(a.Cluster-b.Cluster) + a.Rank - b.Rank }

// sorted are these, each once.
func sorted(list []Rank) []Rank {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// deals: what leaves a cluster goes to one of several, each message to another one.
func (p *Plan) deals(c int) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool { return l.One && slices.Contains(l.From, c) })
}

// demands: on the way from one cluster to another one a link gives messages to whichever rank it likes.
func (p *Plan) demands(from, to int) bool {
	_, links := p.Before(to)
	return slices.ContainsFunc(links, func(l int) bool {
		way := &p.Links[l]
		if way.Route != Demand {
			return false
		}
		for _, c := range way.From {
			if before, _ := p.Before(c); slices.Contains(before, from) {
				return true
			}
		}
		return false
	})
}

// Targets are the clusters to which, of what a cluster sends, all comes together.
func (p *Plan) targets(o int) (out [][]int) {
	var dealt []int
	for _, l := range p.Links {
		if l.One && slices.Contains(l.From, o) {
			dealt = l.To
			out = append(out, dealt)
		}
	}
	for c := range p.Clusters {
		if !slices.Contains(dealt, c) {
			out = append(out, []int{c})
		}
	}
	return out
}

// spread: what leaves a cluster goes to several, of which none has a dead rank: it goes on to those that are there when another one is gone.
func (m *Model) spread(c int) bool {
	return slices.ContainsFunc(m.plan.Links, func(l Link) bool {
		return slices.Contains(l.From, c) && len(l.To) > 1 && slices.ContainsFunc(l.To, func(to int) bool { return !m.Clusters[to].Gone }) &&
			!slices.ContainsFunc(l.To, func(to int) bool { return len(m.Clusters[to].Dead) > 0 })
	}) && !slices.ContainsFunc(m.Links, func(l LinkState) bool { return l.Gone })
}

// Before are the clusters whose messages a cluster hands on or takes, with the links on the way, and itself.
func (p *Plan) Before(c int) (clusters, links []int) {
	clusters = []int{c}
	for i, l := range p.Links {
		if !slices.Contains(l.To, c) {
			continue
		}
		links = append(links, i)
		for _, from := range l.From {
			more, ways := p.Before(from)
			clusters, links = append(clusters, more...), append(links, ways...)
		}
	}
	return clusters, links
}
