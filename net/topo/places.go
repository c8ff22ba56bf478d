package topo

import (
	"cmp"
	"slices"
)

// Switches as they are found: founders that are near each other make one, and their distances are
// the least times known between members.

// place is a switch while hosts are being looked for.
type place struct {
	members []int
	at      []int64 // to every other place, -1 if not measured
}

// cluster makes places of the founders. It reports true if the least distance known was a wrong
// one.
func (s *search) cluster() (rebased bool) {
	if s.rebased() {
		return true
	}
	near := slices.DeleteFunc(slices.Clone(s.founders), func(h int) bool { return h < 0 })
	for _, h := range s.founders {
		if h < 0 || s.of[h] != -1 {
			continue
		}
		p := len(s.places)
		s.places = append(s.places, &place{})
		s.join(h, p)
		for i := 0; i < len(s.places[p].members); i++ { // all that are near one that is in
			for _, other := range near {
				if t, ok := s.rtts[pair(s.places[p].members[i], other)]; s.of[other] == -1 && ok &&
					t.least <= s.levels.same {
					s.join(other, p)
				}
			}
		}
	}
	s.distances()
	return false
}

func (s *search) join(h, p int) {
	for _, m := range append([]int{h}, s.with[h]...) {
		if s.of[m] != gone {
			s.of[m] = p
			s.places[p].members = append(s.places[p].members, m)
		}
	}
}

// doubts returns measurements that decide whether a host that is alone is so only because an echo
// came late.
func (s *search) doubts() []want {
	var wants []want
	for p, x := range s.places {
		if len(x.members) != 1 {
			continue
		}
		order := make([]int, 0, len(s.places))
		for q := range s.places {
			if q != p && x.at[q] >= 0 && len(s.places[q].members) > 0 {
				order = append(order, q)
			}
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x.at[a], x.at[b]) })
		for _, q := range order[:min(2, len(order))] {
			wants = s.ask(wants, x.members[0], s.places[q].members[0], moreEchoes)
		}
	}
	s.waiting = len(wants)
	return wants
}

// unite makes one place of those that are no farther from each other than hosts of one switch.
func (s *search) unite() {
	s.distances()
	for p := range s.places {
		for q := p + 1; q < len(s.places); q++ {
			if d := s.places[p].at[q]; d >= 0 && d <= s.levels.same &&
				len(s.places[p].members) > 0 {
				for _, h := range s.places[q].members {
					s.of[h] = p
				}
				s.places[p].members = append(s.places[p].members, s.places[q].members...)
				s.places[q].members = nil
			}
		}
		slices.Sort(s.places[p].members)
	}
	s.distances()
}

// distances fills in the distances between the new places and all others: the least time known of
// any two members.
func (s *search) distances() {
	for _, p := range s.places {
		for len(p.at) < len(s.places) {
			p.at = append(p.at, -1)
		}
	}
	for ab, t := range s.rtts {
		p, q := s.of[ab[0]], s.of[ab[1]]
		if p >= 0 && q >= 0 && p != q && (s.places[p].at[q] < 0 || t.least < s.places[p].at[q]) {
			s.places[p].at[q], s.places[q].at[p] = t.least, t.least
		}
	}
}
