package topo

import (
	"cmp"
	"math"
	"slices"
)

// This file decides whether a result may be reported at all. Other work on the hosts and on the
// network only adds time, and only takes throughput, but it may do so for long: hosts that are far
// by their times may be hosts that were slow. A short time is certain; a long one must be
// confirmed. So groups of hosts inferred to be on different switches are measured again, at other
// times, by other members, together with pairs of the same hosts within the groups. The latter show
// how often hosts of one switch come out nearer than the two groups ever did; when that is so often
// that the groups would have come out as near, too, if they shared a switch, they do not. A result
// that is not confirmed within some rounds is not sure.

const (
	rounds     = 16 // of measuring again, at most
	checkPairs = 3  // pairs of hosts in a round, for two groups
	// up to so many groups each is checked with each; of more, with those that are nearest
	allGroups  = 16
	nearGroups = 4 // so many
	// that two groups share a switch though they were separated, if measurements are late
	// independently of each other; of a network of 8 switches some dozen wrong groups are possible
	chance = 1e-6
	// of the time of one switch, what single echoes differ by may be this part, if a switch is to
	// show
	sharpness = 100
	// groups so many times as far from each other as hosts within them are apart, however noisy
	// these are
	clearFactor = 4
)

// verify checks the groups that a search has found.
type verify struct {
	round int
	same  int64 // the cut by which they were found
}

// next returns the measurements to be repeated, or else why the groups are not sure; anew: later
// measurements show another cut, by which the hosts are to be regrouped.
func (v *verify) next(s *search) (wants []want, doubt Doubt, anew bool) {
	if v.same == 0 {
		v.same = s.levels.same
	}
	if v.round > 0 {
		if wants = s.doubtful(); len(wants) > 0 {
			s.waiting = len(wants)
			return wants, Doubt{}, false
		}
		if d := s.levels.same - v.same; max(d, -d) > v.same/20 {
			if v.same = 0; v.round <= rounds {
				v.round++
				return nil, Doubt{}, true
			}
			return nil, Doubt{Groups: "what was measured again shows other distances each time"},
				false
		}
	}
	e := s.evidence()
	again := make([]bool, len(s.places)) // those that are to be measured within, too
	for _, pq := range s.rivals() {
		p, q := pq[0], pq[1]
		if v.round > 0 && e.apart(s, p, q) {
			continue
		}
		doubt = Doubt{Groups: "whether hosts share a switch is not certain",
			Hosts: [2]int{s.places[p].members[0], s.places[q].members[0]}}
		wants = append(wants, v.across(s, p, q)...)
		again[p], again[q] = true, true
	}
	for p := range again {
		if again[p] {
			wants = append(wants, v.within(s, p)...)
		}
	}
	if list, far := e.blurred(); len(list) > 0 {
		if far || !e.clear() {
			doubt = Doubt{Groups: "the times between hosts that seem to share a switch are too " +
				"noisy to show a switch between them", Hosts: list[0]}
		}
		for _, ab := range list {
			if doubt.Groups != "" {
				wants = s.repeat(wants, ab[0], ab[1])
			}
		}
	}
	if v.round++; v.round > rounds {
		wants = nil
	}
	s.waiting = len(wants)
	return wants, doubt, false
}

// rivals are the pairs of groups to be separated: all, or if there are many the nearest and those
// of a single host.
func (s *search) rivals() (list [][2]int) {
	var there []int
	for p, x := range s.places {
		if len(x.members) > 0 {
			there = append(there, p)
		}
	}
	near := make([][]int, len(s.places))
	if len(there) > allGroups {
		for _, p := range there {
			near[p] = s.nearestTo(p)
		}
	}
	alone := func(p int) bool { return len(s.places[p].members) == 1 }
	for i, p := range there {
		for _, q := range there[i+1:] {
			if (len(there) <= allGroups || alone(p) || alone(q) || slices.Contains(near[p], q) ||
				slices.Contains(near[q], p)) && !s.knownApart(p, q) {
				list = append(list, [2]int{p, q})
			}
		}
	}
	return list
}

// nearestTo are the groups nearest to one among many.
func (s *search) nearestTo(p int) (list []int) {
	for q, x := range s.places {
		if q != p && len(x.members) > 0 && s.places[p].at[q] >= 0 {
			list = append(list, q)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(s.places[p].at[a],
			s.places[p].at[b])
	})
	return list[:min(len(list), nearGroups)]
}

// knownApart reports whether these are different switches according to Config.Known.
func (s *search) knownApart(p, q int) bool {
	of := func(p int) int {
		for _, h := range s.places[p].members {
			if h < len(s.apartAs) && s.apartAs[h] >= 0 {
				return s.apartAs[h]
			}
		}
		return -1
	}
	a, b := of(p), of(q)
	return a >= 0 && b >= 0 && a != b
}

// across requests pairs of two groups, different from the earlier ones if possible: a slow host
// spoils only its own.
func (v *verify) across(s *search, p, q int) (wants []want) {
	a, b := s.places[p].members, s.places[q].members
	for i := range checkPairs {
		k := v.round*checkPairs + i
		wants = append(wants, want{a[k%len(a)], b[(k+k/len(a))%len(b)], echoesOf(v.round), true})
	}
	return wants
}

// within requests a pair of a group.
func (v *verify) within(s *search, p int) []want {
	m := s.places[p].members
	if len(m) < 2 {
		return nil
	}
	k := v.round % len(m)
	return []want{{m[k], m[(k+1+v.round/len(m)%(len(m)-1))%len(m)], echoesOf(v.round), true}}
}

// evidence is the combined result of all measurements of the groups.
type evidence struct {
	across      map[[2]int][]sample // by pair of groups
	acrossPairs map[[2]int]int      // of how many pairs of hosts these are
	within      [][]int64           // times of measurements within each group
	pairs       [][2]int            // measured within groups, the farthest first
	rtts        rtts
	least       int64 // of the pairs within groups
	// the same without the tenth that is largest, which other measurements may find shorter
	most    int64
	between int64 // the least time between groups; 0: there is none
}

func (s *search) evidence() *evidence {
	e := &evidence{across: map[[2]int][]sample{}, acrossPairs: map[[2]int]int{},
		within: make([][]int64, len(s.places)), rtts: s.rtts}
	for ab, list := range s.batches {
		p, q := s.of[ab[0]], s.of[ab[1]]
		switch {
		case p < 0 || q < 0:
		case p != q:
			e.across[pair(p, q)] = append(e.across[pair(p, q)], list...)
			e.acrossPairs[pair(p, q)]++
			if t := s.rtts[ab].least; e.between == 0 || t < e.between {
				e.between = t
			}
		default:
			e.pairs = append(e.pairs, ab)
			for _, t := range list {
				e.within[p] = append(e.within[p], t.least)
			}
		}
	}
	slices.SortFunc(e.pairs, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(s.rtts[b].least, s.rtts[a].least), slices.Compare(a[:], b[:]))
	})
	if n := len(e.pairs); n > 0 {
		e.least, e.most = s.rtts[e.pairs[n-1]].least, s.rtts[e.pairs[n/10]].least
	}
	return e
}

// apart reports whether these two groups are certainly on different switches.
func (e *evidence) apart(s *search, p, q int) bool {
	list := e.across[pair(p, q)]
	// where no two hosts share a switch, as far as known, the time of one switch cannot be
	// determined
	if e.pairs == nil || len(list) < checkPairs {
		return false
	}
	slices.SortFunc(list, func(a, b sample) int { return cmp.Compare(a.least, b.least) })
	low := list[0]
	gap := low.least - e.most
	switch {
	case gap < max(e.least/20, (e.most-e.least)/2):
		return false
	// nothing else confirms it
	case low.jitter > gap/4 || list[1].least-low.least > max(gap/4, low.least/10):
		return false
	}
	// it may also be a slow host, but one whose echoes agree, always, is not slowed down by other
	// work
	if min(len(s.places[p].members), len(s.places[q].members)) == 1 {
		agree, all := 0, 0
		for _, t := range list {
			if t.count >= moreEchoes {
				if all++; t.least-low.least <= gap/8 {
					agree++
				}
			}
		}
		return low.jitter <= gap/20 && agree > checkPairs &&
			(low.least >= 2*e.most || 4*agree >= 3*all && e.luck(slices.Concat(e.within...),
				slices.Concat(e.within...), p, q, low.least) <= chance)
	}
	return e.luck(e.within[p], e.within[q], p, q, low.least) <= chance
}

// luck is how likely it is that no measurement between two groups came out nearer than this, if
// both shared a switch: then they would as often as those within the groups (a and b). Further
// measurements of the same two hosts count a third, as the cause that slows them down may last.
func (e *evidence) luck(a, b []int64, p, q int, least int64) float64 {
	often := math.Sqrt(often(a, least) * often(b, least))
	pairs := float64(e.acrossPairs[pair(p, q)])
	return math.Pow(1-often, pairs+(float64(len(e.across[pair(p, q)]))-pairs)/3)
}

// often is the part of times below one, at the lowest estimate.
func often(times []int64, below int64) float64 {
	n := 0
	for _, t := range times {
		if t < below {
			n++
		}
	}
	return float64(n) / float64(len(times)+1)
}

// blurred are the pairs within groups whose times could hide a switch; far: some are nearly as far
// as pairs on different switches, or much farther than the rest.
func (e *evidence) blurred() (list [][2]int, far bool) {
	for _, ab := range e.pairs {
		t := e.rtts[ab]
		if e.between > 0 && t.least-e.least > (e.between-e.least)/4 || e.between == 0 &&
			t.least-e.least > e.least/8 {
			far = true
			list = append(list, ab)
		} else if t.jitter > e.least/sharpness || t.least > e.least+e.least/10 &&
			t.count < firmEchoes {
			list = append(list, ab)
		}
	}
	return list, far
}

// clear reports whether groups are so much farther from each other than hosts within them that no
// switch like those between them is hidden in the noise of these.
func (e *evidence) clear() bool { return e.between >= clearFactor*e.most }

// How sure an answer about two paths is.
type verdict int

const (
	open verdict = iota // measure once more
	sure
	unsure
)

const (
	mostBoth  = 8    // measurements of both paths at once
	keepsMost = 0.85 // of two paths that leave each other alone, each keeps so much
	losesMost = 0.65 // of two that do not, one keeps no more
	together  = 1.3  // and both no more than this, of what they had alone
	farMore   = 1.6  // of what one carries alone: both carry it over two links
	fills     = 0.75 // and no less, when nothing else holds them up
	byLuck    = 1e-3 // that two paths are judged to share a link though they do not
	// measurements of single paths that estimate the share of other work at present
	lately = 12
)

// solo is the throughput of a path alone, as often as it was measured: other work only takes from
// it.
type solo struct {
	rates []float64
	// also together with another path, since a path carries no more beside another one than alone
	most float64
}

// agreed reports whether the maximum is the path's capacity, not what other work left: two
// measurements gave about that, or no path carries much more.
func (s *solo) agreed(fastest float64) bool {
	n := 0
	if s.most >= keepsMost*fastest {
		return true
	}
	for _, r := range s.rates {
		if r >= keepsMost*s.most {
			n++
		}
	}
	return n >= 2
}

// judgePaths decides whether two paths do not disturb each other, from their throughput at once,
// and each alone. That both carry nearly all that each carries alone is only possible if they do
// not share a link. That they do not is a matter of chance, if other work takes from them: the
// frequency with which a single path reaches its capacity (often) gives the probability each time;
// fastest is the throughput of the best path. It is four times less likely that what is left is
// together just about what one of them carries. foreseen is the prediction from the times between
// the switches, if there is one: one measurement that agrees is enough.
func judgePaths(both [][2]float64, each [2]*solo, fastest, often float64, foreseen *bool) (
	apart bool, v verdict) {
	keep, lose, more, luck := 0, 0, 0, 1.0
	for _, r := range both {
		x, y := r[0]/each[0].most, r[1]/each[1].most
		switch {
		case min(x, y) >= keepsMost || r[0]+r[1] >= farMore*max(each[0].most, each[1].most):
			keep++
		case x+y > together:
			more++
		case min(x, y) <= losesMost:
			lose++
			luck *= 1 - often*often
			if x+y >= fills {
				luck /= 4
			}
		}
	}
	if foreseen != nil {
		switch {
		case *foreseen && 2*keep+more >= 2:
			return true, sure
		case !*foreseen && keep+more == 0 && luck <= 1./4:
			return false, sure
		}
	}
	switch {
	case keep >= 2 && keep > lose && each[0].agreed(fastest) && each[1].agreed(fastest):
		return true, sure
	// what disagrees with the times is not sure
	case lose >= 2 && keep+more == 0 && luck <= byLuck && (foreseen == nil || !*foreseen):
		return false, sure
	case len(both) < mostBoth:
		return false, open
	}
	return keep > lose, unsure
}

// shared is how much of the way from switch a to c, in the times of the echoes, is common to that
// from b to d, if these are known well enough: the more so, the longer the ways across are than
// those on either side. short is the least distance between two switches.
func (e *evidence) shared(a, c, b, d int) (common, short int64, ok bool) {
	short = e.between - e.least
	distance := func(p, q int) int64 {
		if p == q {
			return 0
		}
		list := e.across[pair(p, q)]
		if len(list) < checkPairs {
			ok = false
			return 0
		}
		x, y := list[0].least, list[1].least
		for _, t := range list[2:] {
			if t.least < x {
				x, y = t.least, x
			} else {
				y = min(y, t.least)
			}
		}
		if x > y {
			x, y = y, x
		}
		ok = ok && y-x <= short/4
		return x - e.least
	}
	ok = short > 0 && e.most-e.least <= short/4
	common = (distance(a, c) + distance(b, d) - distance(a, b) - distance(c, d)) / 2
	return common, short, ok
}

// foresee predicts from times alone whether two paths share a link, if the times are clear about
// it.
func (e *evidence) foresee(p Paths) *bool {
	if e == nil || e.pairs == nil {
		return nil
	}
	common, short, ok := e.shared(p[0][0], p[0][1], p[1][0], p[1][1])
	if !ok || common > short/4 && common < short*3/4 {
		return nil
	}
	apart := common <= short/4
	return &apart
}
