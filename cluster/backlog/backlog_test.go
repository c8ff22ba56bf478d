package backlog

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What has no key is taken once, in order; what has one, as it was last, in the place of the first
// that waits.
func TestQueue(t *testing.T) {
	var q Queue[string, int]
	q.Put(1, 10)
	q.Renew("a", 2, 20)
	q.Put(3, 30)
	if before, had, waited := q.Renew("a", 4, 5); before != 2 || had != 20 || !waited {
		t.Errorf("%d of %d bytes was replaced (%v)", before, had, waited)
	}
	if _, _, waited := q.Renew("b", 5, 1); waited || !q.Waits("b") || q.Waits("c") {
		t.Error("what came first replaces nothing, and waits")
	}
	if q.Len() != 4 || q.Bytes() != 46 || q.Most() != 4 || q.Spared() != 1 {
		t.Errorf("%d wait, of %d bytes, %d at most, %d were replaced", q.Len(), q.Bytes(), q.Most(),
			q.Spared())
	}
	var got []int
	for m, ok := q.Take(); ok; m, ok = q.Take() {
		if got = append(got, m); m == 4 { // the place is free: the next one comes behind
			q.Renew("a", 6, 1)
		}
	}
	if want := []int{1, 4, 3, 5, 6}; !slices.Equal(got, want) || q.Len() != 0 || q.Bytes() != 0 ||
		q.Waits("a") {
		t.Errorf("taken: %v; there should be %v, and no more of %d (%d bytes)", got, want, q.Len(),
			q.Bytes())
	}
	q.Renew("a", 7, 1)
	q.Put(8, 1)
	if all := q.All(); !slices.Equal(all, []int{7, 8}) || q.Len() != 0 || q.Bytes() != 0 ||
		q.Waits("a") {
		t.Errorf("all: %v; %d are left", all, q.Len())
	}
}

// Whatever comes in whatever order: nothing without a key is lost or changes its place among its
// like, the newest of each key comes out, and no more wait than there are keys and such without.
func TestQueueKeeps(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q Queue[int, int]
		newest, taken, plain, waiting := map[int]int{}, map[int]int{}, 0, map[int]bool{}
		next, open := 0, 0
		take := func() {
			m, ok := q.Take()
			switch {
			case !ok:
				if open > 0 || len(waiting) > 0 {
					t.Fatalf("seed %d: nothing came of %d and %d", seed, open, len(waiting))
				}
			case m >= 0:
				if m != next {
					t.Fatalf("seed %d: %d came, not %d", seed, m, next)
				}
				next, open = next+1, open-1
			default:
				key := -m % 8
				if delete(waiting, key); newest[key] != m {
					t.Fatalf("seed %d: of key %d came %d, the newest is %d", seed, key, m,
						newest[key])
				}
				taken[key] = m
			}
		}
		for n := 1; n < 500; n++ {
			switch r.IntN(4) {
			case 0:
				q.Put(plain, 1)
				plain, open = plain+1, open+1
			case 1, 2:
				key := r.IntN(8)
				newest[key] = -(8*n + key)
				waiting[key] = true
				q.Renew(key, newest[key], 1)
			default:
				take()
			}
			if q.Len() != open+len(waiting) || q.Bytes() != q.Len() {
				t.Fatalf("seed %d: %d wait, of %d bytes; %d and %d should", seed, q.Len(),
					q.Bytes(), open, len(waiting))
			}
		}
		for q.Len() > 0 {
			take()
		}
		for key, m := range newest {
			if taken[key] != m {
				t.Fatalf("seed %d: of key %d the last that came is %d, not %d", seed, key,
					taken[key], m)
			}
		}
	}
}
