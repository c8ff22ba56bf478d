package ckpt

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// On one host and on several, of one size and of many: buddies are other ranks, on other hosts if
// there are any, and evenly spread.
func TestBuddies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n, hosts := 1+rnd.IntN(20), 1+rnd.IntN(5)
		on, size := make([]int, n), map[int]int{}
		for r := range on {
			on[r] = rnd.IntN(hosts)
			size[on[r]]++
		}
		kept, most := make([]int, n), 0
		for _, s := range size {
			most = max(most, s)
		}
		for copies := range 3 {
			for r := range on {
				b := Buddies(on, r, copies)
				if len(b) != min(copies, n-1) || slices.Contains(b, r) {
					t.Fatalf("hosts %v: the %d buddies of %d are %v", on, copies, r, b)
				}
				for k, q := range b {
					if on[q] == on[r] && k < n-size[on[r]] || slices.Contains(b[:k], q) {
						t.Fatalf(
							"hosts %v: the buddies of %d are %v, although there are others on "+
								"other hosts", on, r, b)
					}
					if copies == 1 {
						kept[q]++
					}
				}
			}
		}
		if 2*most <= n && slices.Max(kept) > 1 {
			t.Fatalf("hosts %v: copies for each rank: %v", on, kept)
		}
	}
}

// Whichever processes die, as long as every part is left, the version is found, every rank has a
// source that has the part, and after the missing copies are made any one host may be lost.
func TestSurvivors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n, hosts := 2+rnd.IntN(12), 1+rnd.IntN(4)
		on := make([]int, n)
		for r := range on {
			on[r] = r % hosts
		}
		v := Version{Generation: 3, Version: 7, Ranks: int32(n)}
		var all []Item
		for r := range n {
			for _, q := range append(Buddies(on, r, 1), r) {
				all = append(all, Item{3, 7, int32(r), int32(n), int32(q), Memory})
			}
		}
		// Those that are left have other ranks now.
		now, left := map[int32]int32{}, []int{}
		for r := range n {
			if rnd.IntN(4) > 0 {
				now[int32(r)] = int32(len(left))
				left = append(left, on[r])
			}
		}
		var items []Item
		parts := map[int32]bool{}
		for _, i := range all {
			if q, lives := now[i.Holder]; lives {
				i.Holder = q
				items = append(items, i)
				parts[i.Rank] = true
			}
		}
		found := Complete(items)
		if (len(parts) == n) != (len(found) == 1 && found[0] == v) {
			t.Fatalf("%d of %d parts are left: %v", len(parts), n, found)
		}
		if len(found) == 1 {
			checkPlan(t, items, v, left)
		}
	}
}

func checkPlan(t *testing.T, items []Item, v Version, hosts []int) {
	t.Helper()
	sources := Sources(items, v)
	for r, s := range sources {
		if !slices.ContainsFunc(items, func(i Item) bool {
			return int(i.Rank) == r &&
				int(i.Holder) == s
		}) {
			t.Fatalf("rank %d does not have part %d: %v", s, r, items)
		}
	}
	have := slices.Clone(items)
	for _, c := range Missing(items, v, sources, hosts, 1) {
		if c.From != sources[c.Rank] {
			t.Fatalf("%+v, but the source is %d", c, sources[c.Rank])
		}
		have = append(have, Item{v.Generation, v.Version, int32(c.Rank), v.Ranks, int32(c.To),
			Memory})
	}
	for r := range v.Ranks {
		holders := map[int32]bool{}
		for _, i := range have {
			if i.Rank == r {
				holders[i.Holder] = true
			}
		}
		if len(holders) < min(2, len(hosts)) {
			t.Fatalf("part %d is kept by %v alone", r, holders)
		}
	}
}

// The latest first; what was saved later counts more than a higher number; incomplete ones and
// nonsense not at all.
func TestComplete(t *testing.T) {
	items := []Item{
		{1, 5, 0, 2, 0, File}, {1, 5, 1, 2, 0, File}, {2, 4, 0, 1, 3, Memory},
		{2, 5, 0, 1, 3, Memory}, {2, 6, 0, 2, 3, Memory},
		{1, 9, 0, 1, 1, Memory}, {3, 7, 2, 2, 0, Memory}, {3, 7, -1, 2, 0, Memory},
	}
	want := []Version{{2, 5, 1}, {2, 4, 1}, {1, 9, 1}}
	if got := Complete(items); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if got := Sources([]Item{{1, 5, 0, 2, 0, File}, {1, 5, 0, 2, 3, Memory}, {1, 5, 1, 2, 1, File},
		{1, 5, 1, 2, 0, File}}, Version{1, 5, 2}); !slices.Equal(got, []int{3, 1}) {
		t.Fatalf("memory before files, the own rank before others: %v", got)
	}
}

func part(regions ...[]byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, HeadBytes+EntryBytes*len(regions))
	copy(b, Magic)
	le.PutUint32(b[12:], uint32(len(regions)))
	le.PutUint64(b[16:], 2)
	le.PutUint32(b[24:], 9)
	le.PutUint32(b[28:], 1)
	le.PutUint32(b[32:], 4)
	for k, r := range regions {
		e := b[HeadBytes+EntryBytes*k:]
		le.PutUint64(e, uint64(10*k))
		le.PutUint64(e[8:], uint64(len(b)))
		le.PutUint64(e[16:], uint64(len(r)))
		b = append(b, r...)
		b = append(b, make([]byte, (8-len(r)%8)%8)...)
	}
	le.PutUint64(b[40:], uint64(len(b)))
	Seal(b)
	return b
}

// Any byte that is another, and any byte that is missing, is noticed.
func TestDamage(t *testing.T) {
	good := part([]byte("some data"), nil, []byte("more"))
	item, regions, err := Parse(good)
	if err != nil || item != (Item{2, 9, 1, 4, 0, File}) || len(regions) != 3 ||
		regions[2] != (Region{20, 136, 4}) {
		t.Fatal(item, regions, err)
	}
	for k := range good {
		bad := slices.Clone(good)
		bad[k] ^= 0x10
		if _, _, err := Parse(bad); err == nil {
			t.Fatalf("byte %d is another, and nobody notices", k)
		}
		if _, _, err := Parse(good[:k]); err == nil {
			t.Fatalf("%d bytes are taken for a whole", k)
		}
	}
}

func TestNames(t *testing.T) {
	i := Item{3, 12, 5, 64, 0, File}
	name := FileName("my run", i)
	if got, tmp, ok := ParseName("my run", name); got != i || tmp || !ok {
		t.Fatal(name, got, tmp, ok)
	}
	if got, tmp, ok := ParseName("my run", name+Temporary); got != i || !tmp || !ok {
		t.Fatal(name, got, tmp, ok)
	}
	for _, other := range []string{"", "my run", "my run-g3", "my run2-g3-v12-r5-of64.ckpt",
		"my run-g03-v12-r5-of64.ckpt", "my run-g3-v12-r5-of64.ckptx", "my run-g3-v12-r5-of64.tmp"} {
		if got, _, ok := ParseName("my run", other); ok {
			t.Fatalf("%q is taken for %v", other, got)
		}
	}
}

// For any content of a file, its regions are inside it, in order, and what is accepted has the
// checksum of its data.
func FuzzParse(f *testing.F) {
	f.Add(part([]byte("some data"), nil, []byte("more")))
	f.Add(part())
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, b := range [][]byte{data, sealed(data)} {
			item, regions, err := Parse(b)
			if err != nil {
				continue
			}
			if item.Rank < 0 || item.Rank >= item.Ranks || item.Version < 0 {
				t.Fatal(item)
			}
			end := int64(HeadBytes + EntryBytes*len(regions))
			for _, r := range regions {
				if r.At < end || r.Bytes < 0 || r.At+r.Bytes > int64(len(b)) {
					t.Fatal(regions)
				}
				end = r.At + r.Bytes
			}
		}
	})
}

// sealed is the same with a checksum that fits, so that the checks behind it are reached too.
func sealed(data []byte) []byte {
	b := slices.Clone(data)
	if len(b) >= HeadBytes {
		binary.LittleEndian.PutUint64(b[40:], uint64(len(b)))
		Seal(b)
	}
	return b
}
