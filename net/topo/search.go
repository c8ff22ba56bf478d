package topo

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// search finds the switch of every host. Hosts whose addresses follow one another are measured
// first, and those that share a switch then go together. A round takes some unplaced hosts as
// founders, measures those pairs of them that may share a switch, and makes switches of those that
// do; then every other unplaced host looks for its own among these: it measures the time to the
// first switch that it may be on, drops all switches that are not as far from that one as it is
// itself, and goes on with the next one. All ask in the same order: two hosts have either measured
// to a common switch and found it differently far, or know the same, so that few founders need be
// told apart anew.
type search struct {
	rtts   rtts
	levels levels
	places []*place
	of     []int // place of each host, -1: none yet, gone: not there
	left   []int // hosts that no place of the last rounds fits, in address order
	batch  int

	known   map[int][]probe // what unplaced hosts measured in earlier rounds
	with    map[int][]int   // hosts known to share a host's switch
	follows []bool          // those hosts
	given   [][]int         // of them: those that were known from the beginning
	row     []int           // hosts that were measured with the next one in the row; nil: not yet

	scattered bool // pairs from everywhere were measured, too

	batches map[[2]int][]sample // every measurement, by unordered pair of hosts
	tries   map[[2]int]int      // how often a pair was measured again for being in doubt
	// switches of hosts that are known to be on different ones, -1: not known
	apartAs []int

	waiting  int           // measurements under way or wanted in this stage
	then     func() []want // goes on when the cut is settled; nil: it is not being settled
	seekers  map[int]*seek // hosts that are looking
	founders []int
	inRow    bool // the row is being measured
	found    int  // first place of this round
}

const gone = -2

// seek is a host's search in one round.
type seek struct {
	candidates []int // places that may be the host's
	probed     []probe
	again      bool // the nearest has been measured once more
}

// probe is a measurement to a member of a place.
type probe struct{ place, member int }

const (
	echoes      = 8                     // in a first measurement
	moreEchoes  = 32                    // where the first left a doubt
	firmEchoes  = echoes + 2*moreEchoes // of what was measured twice more
	mostRepeats = 12                    // of a pair
	firstBatch  = 16                    // founders of the first round; each round has twice as many
	// hosts of which each is measured with each, if no distance is less than the others
	allPairs  = 128
	somePairs = 16 // of each of more hosts
)

// want is a measurement of the round-trip time between two hosts.
type want struct {
	a, b, echoes int
	spaced       bool // with pauses between the echoes
}

// newSearch starts with n hosts. Hosts of a group are known to share a switch: only the first one
// is measured.
func newSearch(n int, groups [][]int) *search {
	s := &search{rtts: rtts{}, batch: firstBatch, seekers: map[int]*seek{},
		known: map[int][]probe{}, given: groups,
		batches: map[[2]int][]sample{}, tries: map[[2]int]int{}}
	for range n {
		s.of = append(s.of, -1)
	}
	s.forget()
	return s
}

// forget forgets all places but no time.
func (s *search) forget() {
	s.places, s.left, s.founders, s.waiting = nil, nil, nil, 0
	s.with, s.follows = map[int][]int{}, make([]bool, len(s.of))
	clear(s.seekers)
	clear(s.known)
	for _, g := range s.given {
		s.follow(g[0], g[1:])
	}
	// from the end: those that follow the next one follow this one, too
	for i := len(s.row) - 2; i >= 0; i-- {
		if a, b := s.row[i], s.row[i+1]; s.together(a, b) {
			s.follow(a, append([]int{b}, s.with[b]...))
			delete(s.with, b)
		}
	}
	for h := range s.of {
		if s.of[h] == gone {
			continue
		}
		s.of[h] = -1
		if !s.follows[h] {
			s.left = append(s.left, h)
		}
	}
}

// follow: these hosts share the switch of h.
func (s *search) follow(h int, others []int) {
	s.with[h] = append(s.with[h], others...)
	for _, o := range others {
		s.follows[o] = true
	}
}

// together says whether two hosts of the row share a switch, as far as is known now.
func (s *search) together(a, b int) bool {
	t, ok := s.rtts[pair(a, b)]
	return ok && s.of[a] != gone && s.of[b] != gone && t.least <= s.levels.same
}

// add lets one more host look for its switch, and returns its first measurement.
func (s *search) add(h int) []want {
	for len(s.of) <= h {
		s.of, s.follows = append(s.of, gone), append(s.follows, false)
	}
	s.of[h] = -1
	s.left = append(s.left, h)
	s.found = 0
	if s.waiting > 0 { // the round under way will see it
		return nil
	}
	return s.seek()
}

// remove takes a host out; its switch stays, without hosts.
func (s *search) remove(h int) {
	if h < len(s.of) && s.of[h] >= 0 {
		p := s.places[s.of[h]]
		p.members = slices.DeleteFunc(p.members, func(m int) bool { return m == h })
	}
	placed := h >= len(s.of) || s.of[h] != -1
	if h < len(s.of) {
		s.of[h] = gone
	}
	delete(s.seekers, h)
	s.left = slices.DeleteFunc(s.left, func(x int) bool { return x == h })
	if i := slices.Index(s.founders, h); i >= 0 {
		s.founders[i] = -1
	}
	if others := slices.DeleteFunc(s.with[h], func(o int) bool { return s.of[o] == gone }); len(
		others) > 0 && !placed {
		s.follow(others[0], others[1:]) // those that would have gone with it go with one of them
		s.follows[others[0]] = false
		s.left = append(s.left, others[0])
	}
	delete(s.with, h)
}

// round starts the next round and returns its first measurements; none when every host has its
// switch.
func (s *search) round() []want {
	if s.row == nil {
		return s.measureRow()
	}
	s.left = slices.DeleteFunc(s.left, func(h int) bool { return s.of[h] != -1 })
	if len(s.left) == 0 {
		return s.settled(func() []want {
			if !s.rebased() {
				return nil
			}
			s.forget()
			return s.begin()
		})
	}
	return s.begin()
}

// begin chooses the founders of a round, and returns their first measurements.
func (s *search) begin() []want {
	s.founders = choose(s.left, s.batch)
	s.batch *= 2
	s.found = len(s.places)
	var wants []want
	for i, a := range s.founders {
		for _, b := range s.founders[:i] {
			if !s.apart(a, b) {
				wants = s.ask(wants, a, b, echoes)
			}
		}
	}
	if s.waiting = len(wants); s.waiting == 0 {
		return s.settle()
	}
	return wants
}

// measureRow measures each host with the next one: where addresses follow the network, that is
// nearly all there is to know. Where they do not, pairs of some hosts from everywhere are likely to
// show how near hosts of one switch are.
func (s *search) measureRow() []want {
	s.row = append([]int{}, s.left...)
	asked := map[[2]int]bool{}
	var wants []want
	ask := func(a, b int) {
		if !asked[pair(a, b)] {
			asked[pair(a, b)] = true
			wants = s.ask(wants, a, b, echoes)
		}
	}
	for i := range len(s.row) - 1 {
		ask(s.row[i], s.row[i+1])
	}
	some := choose(s.row, firstBatch)
	for i, a := range some {
		for _, b := range s.with[a][:min(1, len(s.with[a]))] {
			ask(a, b)
		}
		for _, b := range some[:i] {
			ask(a, b)
		}
	}
	s.inRow = true
	if s.waiting = len(wants); s.waiting == 0 {
		return s.endRow()
	}
	return wants
}

func (s *search) endRow() []want {
	s.inRow = false
	return s.settled(func() []want {
		s.learn()
		if wants := s.scatter(); len(wants) > 0 {
			s.inRow, s.waiting = true, len(wants)
			return wants
		}
		s.forget()
		return s.round()
	})
}

// scatter asks for pairs from everywhere, once, where all hosts measured so far are about as far
// from each other: they are on one switch, or no two of them are, as where addresses go round many
// switches. Of some hosts it is all pairs. Of more it is so many for each that two on the same
// switch are among them: for each host that shares a switch with another one, most likely.
func (s *search) scatter() (wants []want) {
	if s.levels.next != 0 || s.scattered {
		return nil
	}
	s.scattered = true
	there := slices.DeleteFunc(slices.Clone(s.row), func(h int) bool { return s.of[h] == gone })
	r := rand.New(rand.NewPCG(uint64(len(there)), 1))
	for i, a := range there {
		if len(there) <= allPairs {
			for _, b := range there[:i] {
				wants = s.ask(wants, a, b, echoes)
			}
			continue
		}
		for range somePairs {
			wants = s.ask(wants, a, there[r.IntN(len(there))], echoes)
		}
	}
	return wants
}

// settled goes on when the cut stands: the times above it are measured again, since they may be
// those of one switch that were late. All below the largest gap are, and the least ones above the
// cut in any case.
func (s *search) settled(then func() []want) []want {
	s.then = nil
	if wants := s.doubtful(); len(wants) > 0 {
		s.then, s.waiting = then, len(wants)
		return wants
	}
	return then()
}

// doubtful learns anew, and returns measurements of the times on which the cut depends.
func (s *search) doubtful() (wants []want) {
	s.learn()
	if s.levels.next == 0 {
		return nil
	}
	var above [][2]int
	for ab, t := range s.rtts {
		if t.least > s.levels.same && s.of[ab[0]] != gone && s.of[ab[1]] != gone {
			above = append(above, ab)
		}
	}
	slices.SortFunc(above, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(s.rtts[a].least, s.rtts[b].least), slices.Compare(a[:], b[:]))
	})
	for i, ab := range above {
		if t := s.rtts[ab]; i < fewest || t.least < s.levels.clear {
			if t.count < firmEchoes || t.jitter > (t.least-s.levels.same)/4 {
				wants = s.repeat(wants, ab[0], ab[1])
			}
		}
	}
	return wants
}

// echoesOf is how many echoes are of use where so many measurements have left a doubt. Where the
// kernel has put both programs on one processor, or on two, echoes stay short or long for a while.
func echoesOf(times int) int {
	if times < 3 {
		return moreEchoes
	}
	return 4 * moreEchoes
}

// repeat asks for a pair again, as long as that is of use.
func (s *search) repeat(wants []want, a, b int) []want {
	if s.tries[pair(a, b)] >= mostRepeats {
		return wants
	}
	s.tries[pair(a, b)]++
	return append(wants, want{a, b, echoesOf(s.tries[pair(a, b)] - 1), true})
}

// learn draws what is to be known of distances from all times.
func (s *search) learn() {
	times := make([]sample, 0, len(s.rtts))
	for _, t := range s.rtts {
		times = append(times, t)
	}
	s.levels = findLevels(times)
}

// rebased learns anew, and reports true if the least distance known was a wrong one: hosts were
// taken for those of one switch that are not.
func (s *search) rebased() bool {
	before := s.levels
	s.learn()
	wrong := func(t sample) bool { return t.least > s.levels.same+s.levels.unit/4 }
	for i := range len(s.row) - 1 {
		if t, ok := s.rtts[pair(s.row[i], s.row[i+1])]; ok && s.follows[s.row[i+1]] &&
			t.least <= before.same && wrong(t) {
			return true
		}
	}
	for ab, t := range s.rtts {
		if p := s.of[ab[0]]; p >= 0 && p == s.of[ab[1]] && t.least <= before.same && wrong(t) {
			return true
		}
	}
	return false
}

// apart says whether what two hosts have measured to some switch shows that they are not on the
// same one.
func (s *search) apart(a, b int) bool {
	for _, x := range s.known[a] {
		t, ok := s.rtts[pair(a, x.member)]
		i := slices.IndexFunc(s.known[b], func(y probe) bool { return x.place == y.place })
		if !ok || i < 0 {
			continue
		}
		if u, ok := s.rtts[pair(b, s.known[b][i].member)]; ok &&
			max(t.least-u.least, u.least-t.least) > s.levels.tolerance(u.least) {
			return true
		}
	}
	return false
}

// choose takes n of the hosts, spread evenly.
func choose(hosts []int, n int) (chosen []int) {
	n = min(n, len(hosts))
	for i := range n {
		chosen = append(chosen, hosts[i*len(hosts)/n])
	}
	return chosen
}

func (s *search) ask(wants []want, a, b, echoes int) []want {
	if old, ok := s.rtts[pair(a, b)]; a == b || ok && old.count >= echoes {
		return wants
	}
	return append(wants, want{a, b, echoes, false})
}

// measured takes a result and returns further measurements. When it returns none and waiting is 0,
// the round is over.
func (s *search) measured(a, b int, t sample) []want {
	s.rtts.add(a, b, t)
	s.batches[pair(a, b)] = append(s.batches[pair(a, b)], t)
	return s.answered(a, b)
}

// answered is called for every measurement that was wanted, also for one that failed.
func (s *search) answered(a, b int) []want {
	s.waiting--
	if s.then != nil {
		if s.waiting > 0 {
			return nil
		}
		return s.settled(s.then)
	}
	if s.inRow {
		if s.waiting > 0 {
			return nil
		}
		return s.endRow()
	}
	if len(s.founders) > 0 {
		if s.waiting > 0 {
			return nil
		}
		return s.settle()
	}
	var wants []want
	for _, h := range []int{a, b} {
		if k := s.seekers[h]; k != nil {
			wants = append(wants, s.step(h, k)...)
		}
	}
	s.waiting += len(wants)
	return wants
}

// settle makes places of the founders and lets the other hosts look.
func (s *search) settle() []want {
	return s.settled(func() []want {
		if s.cluster() { // the times so far were all of hosts on different switches
			s.forget()
			return s.round()
		}
		s.founders = nil
		return s.seek()
	})
}

// seek lets every unplaced host look among the places of this round.
func (s *search) seek() []want {
	for _, h := range s.left {
		if s.of[h] == -1 && s.found < len(s.places) {
			k := &seek{probed: s.known[h]}
			for p := s.found; p < len(s.places); p++ {
				if len(s.places[p].members) > 0 {
					k.candidates = append(k.candidates, p)
				}
			}
			s.seekers[h] = k
		}
	}
	var wants []want
	for _, h := range s.left {
		if k := s.seekers[h]; k != nil {
			wants = append(wants, s.step(h, k)...)
		}
	}
	s.waiting = len(wants)
	return wants
}

// step looks at what a host knows and returns its next measurement; none when it has found its
// switch or all are excluded.
func (s *search) step(h int, k *seek) []want {
	// between the distances that are known: a late one, it may be
	if last := len(k.probed) - 1; last >= 0 {
		m := k.probed[last].member
		if t, ok := s.rtts[pair(h, m)]; ok && t.least > s.levels.same && t.least < s.levels.next &&
			t.count < firmEchoes {
			if wants := s.repeat(nil, h, m); len(wants) > 0 {
				return wants
			}
		}
	}
	for {
		if s.exclude(h, k) {
			delete(s.seekers, h)
			delete(s.known, h)
			return nil
		}
		if len(k.candidates) == 0 {
			break
		}
		p := k.candidates[0]
		k.candidates = k.candidates[1:]
		next := probe{p, s.places[p].members[h%len(s.places[p].members)]}
		k.probed = append(k.probed, next)
		if wants := s.ask(nil, h, next.member, echoes); len(wants) > 0 {
			return wants
		}
	}
	// one late echo must not make a switch: the nearest once more, and what the first answer
	// excluded
	if !k.again && len(k.probed) > 0 {
		k.again = true
		if wants := s.ask(nil, h, s.nearest(h, k).member, moreEchoes); len(wants) > 0 {
			for p := s.found; p < len(s.places); p++ {
				if !slices.ContainsFunc(k.probed, func(x probe) bool { return x.place == p }) {
					k.candidates = append(k.candidates, p)
				}
			}
			return wants
		}
	}
	delete(s.seekers, h)
	s.known[h] = k.probed
	return nil
}

// exclude drops the candidates that do not fit what has been measured. It reports true if the host
// is on one of those measured.
func (s *search) exclude(h int, k *seek) bool {
	for _, x := range k.probed {
		t, ok := s.rtts[pair(h, x.member)]
		if !ok {
			continue
		}
		if t.least <= s.levels.same {
			s.join(h, x.place)
			return true
		}
		k.candidates = slices.DeleteFunc(k.candidates, func(q int) bool {
			d := s.places[x.place].at[q]
			return d >= 0 && max(d-t.least, t.least-d) > s.levels.tolerance(t.least)
		})
	}
	return false
}

func (s *search) nearest(h int, k *seek) probe {
	return slices.MinFunc(k.probed, func(a, b probe) int {
		return cmp.Compare(s.orInfinite(h, a.member), s.orInfinite(h, b.member))
	})
}

func (s *search) orInfinite(a, b int) int64 {
	if t, ok := s.rtts[pair(a, b)]; ok {
		return t.least
	}
	return math.MaxInt64
}
