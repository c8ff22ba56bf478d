package msglog

import (
	"errors"
	"slices"
	"testing"
)

// table is a Source of ranks whose logs have the descriptor 100 + rank.
type table struct {
	seen   []Seen
	runs   []bool
	fails  error
	closed []int
	told   []int
}

func (t *table) See(rank int) Seen  { return t.seen[rank] }
func (t *table) Runs(rank int) bool { return t.runs[rank] }
func (t *table) Close(fd int)       { t.closed = append(t.closed, fd) }
func (t *table) Tell(rank, fd int) error {
	t.told = append(t.told, rank)
	return nil
}
func (t *table) Open(rank int, as Seen) (int, error) {
	if t.fails != nil {
		return None, t.fails
	}
	return 100 + rank, nil
}

func TestStandby(t *testing.T) {
	there := Seen{Descriptor: 8, PID: 77}
	strange := errors.New("strange")
	for name, c := range map[string]struct {
		second Seen
		runs   bool
		fails  error
		all    bool
		want   error
	}{
		"all are there":           {there, true, nil, true, nil},
		"one has not come so far": {Seen{PID: 77}, true, nil, false, nil},
		"one has ended before": {Seen{PID: 77, Left: true}, true, nil, false,
			ErrLeftEarly},
		"one is on another host": {Seen{Elsewhere: true}, true, nil, false,
			ErrElsewhere},
		"one is in another namespace":        {Seen{Descriptor: 8}, true, nil, false, ErrNamespace},
		"one ended while it was opened":      {there, false, nil, false, ErrLeftEarly},
		"one is just going, as not yet seen": {there, true, ErrGone, false, nil},
		"one is gone": {Seen{Descriptor: 8, PID: 77, Left: true}, true,
			ErrGone, false, ErrLeftEarly},
		"one may not be opened": {there, true, strange, false, strange},
	} {
		src := &table{seen: []Seen{there, there}, runs: []bool{true, true}}
		s := NewStandby(src, 2)
		src.seen[1] = Seen{}
		if all, err := s.Look(); all || err != nil {
			t.Fatalf("%s: at first %v, %v", name, all, err)
		}
		src.seen[1], src.runs[1], src.fails = c.second, c.runs, c.fails
		all, err := s.Look()
		if all != c.all || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if told := slices.Contains(src.told, 1); told != c.all || !c.runs &&
			!slices.Contains(src.closed, 101) {
			t.Errorf("%s: told %v, closed %v", name, src.told, src.closed)
		}
	}
}

func TestKeep(t *testing.T) {
	src := &table{seen: slices.Repeat([]Seen{{Descriptor: 1, PID: 1}}, 3),
		runs: []bool{true, true, true}}
	s := NewStandby(src, 3)
	if all, err := s.Look(); !all || err != nil || !slices.Equal(s.Held(), []int{100, 101, 102}) {
		t.Fatal(all, err, s.Held())
	}
	if fd := s.Keep(1); fd != 101 || !slices.Equal(src.closed, []int{100, 102}) {
		t.Error(fd, src.closed)
	}
}

func TestMayBegin(t *testing.T) {
	no, yes := false, true
	for _, c := range []struct {
		has, left []bool
		want      bool
	}{
		{nil, nil, true},
		{[]bool{yes, no}, []bool{no, no}, false},
		{[]bool{yes, yes}, []bool{no, no}, true},
		{[]bool{yes, no}, []bool{no, yes}, true},
		{[]bool{yes, no}, []bool{yes, no}, false}, // as many have it as live, and not those
	} {
		if got := MayBegin(c.has, c.left); got != c.want {
			t.Errorf("%v, %v: %v", c.has, c.left, got)
		}
	}
}

type keeping struct {
	wants, kept, has bool
	fails            error
	chosen           int
}

func (k *keeping) Wants() bool { return k.wants }
func (k *keeping) Kept() bool  { return k.kept }
func (k *keeping) Has() bool   { return k.has }
func (k *keeping) Choose() error {
	k.chosen++
	k.wants = false
	return k.fails
}

func TestCopied(t *testing.T) {
	strange := errors.New("strange")
	for name, c := range map[string]struct {
		k      keeping
		want   bool
		err    error
		chosen int
	}{
		"it is there":        {keeping{kept: true, has: true}, true, nil, 0},
		"it is on its way":   {keeping{kept: true, wants: true}, false, nil, 1},
		"no one can keep it": {keeping{wants: true}, false, ErrNoKeeper, 1},
		"it fails":           {keeping{kept: true, wants: true, fails: strange}, false, strange, 1},
	} {
		if got, err := Copied(&c.k); got != c.want || !errors.Is(err, c.err) ||
			c.k.chosen != c.chosen {
			t.Errorf("%s: %v, %v, chosen %d times", name, got, err, c.k.chosen)
		}
	}
}
