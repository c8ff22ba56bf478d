package rankset

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// dumb is the obvious implementation that Set is compared with.
type dumb map[int]bool

func (d dumb) ranks() []int {
	out := []int{}
	for r := range d {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}

func random(rng *rand.Rand, n int) (Set, dumb) {
	d := dumb{}
	for range rng.IntN(n) {
		d[rng.IntN(n)] = true
	}
	ranks := d.ranks()
	rng.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
	return Of(ranks...), d
}

func TestAgainstDumb(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(40)
		a, da := random(rng, n)
		b, db := random(rng, n)
		union, inter, rest := dumb{}, dumb{}, dumb{}
		for r := range da {
			union[r] = true
			if db[r] {
				inter[r] = true
			} else {
				rest[r] = true
			}
		}
		for r := range db {
			union[r] = true
		}
		check := func(what string, s Set, d dumb) {
			t.Helper()
			if !slices.Equal(s.Ranks(), d.ranks()) || s.Len() != len(d) {
				t.Fatalf("seed %d: %s of %v and %v is %v, want %v", seed, what, a, b, s, d.ranks())
			}
			first := 0
			for d[first] {
				first++
			}
			if s.FirstAbsent() != first {
				t.Fatalf("seed %d: FirstAbsent of %v is %d, want %d", seed, s, s.FirstAbsent(),
					first)
			}
			for r := range n {
				if s.Has(r) != d[r] {
					t.Fatalf("seed %d: Has(%d) of %v is %v", seed, r, s, s.Has(r))
				}
			}
			wire := s.Append(nil)
			back, rest, err := Decode(append(wire, 0xAA), n)
			if err != nil || !back.Equal(s) || !bytes.Equal(rest, []byte{0xAA}) {
				t.Fatalf("seed %d: %v came back from the wire as %v, rest %x, error %v", seed, s,
					back, rest, err)
			}
		}
		check("identity", a, da)
		check("union", a.Union(b), union)
		check("intersection", a.Intersect(b), inter)
		check("difference", a.Minus(b), rest)
		if got, want := a.Contains(b), len(inter) == len(db); got != want {
			t.Fatalf("seed %d: %v contains %v: %v", seed, a, b, got)
		}
	}
}

func TestBelow(t *testing.T) {
	if !Below(3).Equal(Of(2, 0, 1)) || !Below(0).Empty() || Below(-1).Len() != 0 {
		t.Error("Below is wrong")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Of(1, 2, 3, 9).Append(nil), 10)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 4)
	f.Fuzz(func(t *testing.T, src []byte, n int) {
		n = min(max(n, 0), 1<<20)
		s, _, err := Decode(src, n)
		if err != nil {
			return
		}
		for _, r := range s.runs {
			if r.lo < 0 || r.hi >= n || r.lo > r.hi {
				t.Fatalf("set %v has ranks outside 0..%d", s, n-1)
			}
		}
		back, rest, err := Decode(s.Append(nil), n)
		if err != nil || len(rest) != 0 || !back.Equal(s) {
			t.Fatalf("%v does not survive the wire: %v, %v", s, back, err)
		}
	})
}
