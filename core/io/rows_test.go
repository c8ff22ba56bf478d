package io

import (
	"bytes"
	"math/rand"
	"testing"

	"libspx/core/datatype"
)

// regular makes a filetype of count blocks, stride apart, within a tile that may have a gap behind
// it.
func regular(t *testing.T, r *rand.Rand) *datatype.Type {
	t.Helper()
	block := int64(1 + r.Intn(3))
	made, err := datatype.Vector(int64(1+r.Intn(200)), block, block+int64(r.Intn(300)), intType,
		false)
	ft := must(t, made, err)
	made, err = datatype.Resized(ft, 0, ft.TrueExtent()+4*int64(r.Intn(20)), true)
	return must(t, made, err)
}

// One process alone writes and reads regular and irregular views, with and without mappings,
// against byte maps.
func TestAccessAgainstByteMaps(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		ft := randomFiletype(t, r)
		if seed%3 != 0 {
			ft = regular(t, r)
		}
		v, err := NewView(int64(r.Intn(5000)), intType, ft)
		if err != nil {
			t.Fatal(err)
		}
		n, pos := 4*(1+r.Intn(4000)), 4*r.Intn(500)
		at := byteMap(v.Disp, ft, pos+n)[pos:]
		f := &memFile{room: 1 << 30, maps: seed%2 == 0, data: make([]byte, at[n-1]+1)}
		r.Read(f.data)
		want, data := append([]byte(nil), f.data...), make(Bytes, n)
		r.Read(data)
		for p, off := range at {
			want[off] = data[p]
		}
		if done, err := Access(f, v, data, int64(pos), true, false); err != nil ||
			done != int64(n) {
			t.Fatalf("seed %d: wrote %d bytes of %d: %v", seed, done, n, err)
		}
		if !bytes.Equal(f.data, want) {
			t.Fatalf("seed %d: the file is not as it should be", seed)
		}
		f.data = f.data[:r.Intn(len(f.data)+1)]
		there := 0
		for there < n && at[there] < int64(len(f.data)) {
			there++
		}
		got := make(Bytes, n)
		if done, err := Access(f, v, got, int64(pos), false, false); err != nil ||
			done != int64(there) || !bytes.Equal(got[:there], data[:there]) {
			t.Fatalf("seed %d: read %d bytes of %d: %v", seed, done, there, err)
		}
		if !bytes.Equal(got[there:], make([]byte, n-there)) {
			t.Fatalf("seed %d: memory was touched behind the %d bytes that the file has", seed,
				there)
		}
	}
}

// Many short blocks that repeat are one row, whether it is the filetype that repeats or what is in
// it.
func TestRegularViewsAreOneRow(t *testing.T) {
	made, err := datatype.Resized(intType, 0, 16, true)
	lone := must(t, made, err)
	made, err = datatype.Vector(100, 1, 4, intType, false)
	vector := must(t, made, err)
	made, err = datatype.Resized(vector, 0, 1600, true)
	tiled := must(t, made, err)
	for _, ft := range []*datatype.Type{lone, tiled} {
		v, err := NewView(12, intType, ft)
		if err != nil {
			t.Fatal(err)
		}
		if l := v.rows(0, 4000); len(l) != 1 || l[0] != (row{12, 4, 16, 1000}) {
			t.Errorf("the rows are %v", l)
		}
		if l := v.rows(2, 4002); len(l) != 3 || l.number() != 1001 || l.before(1<<62) != 4000 {
			t.Errorf("the rows of a part are %v", l)
		}
	}
}

// What is covered is exactly what some range has, in any units.
func TestCoverage(t *testing.T) {
	for seed := range int64(500) {
		r := rand.New(rand.NewSource(seed))
		unit := int64(1 + r.Intn(8))
		const from, length = 1000, 4000
		want := make([]bool, length)
		var lists []rows
		for range 1 + r.Intn(4) {
			var l rows
			for at := int64(r.Intn(50)) * unit; ; {
				n := int64(1+r.Intn(80)) * unit
				x := row{from + at, n, n + int64(r.Intn(20))*unit, int64(1 + r.Intn(9))}
				if x.end() > from+length {
					break
				}
				for i := range x.count {
					for k := range n {
						want[x.off-from+i*x.stride+k] = true
					}
				}
				at = x.end() - from + int64(r.Intn(100))*unit
				l = l.add(x)
			}
			lists = append(lists, l)
		}
		got, end := make([]bool, length), int64(-1)
		for _, x := range cover(lists, from, from+length).rows() {
			for i := range x.count {
				if x.off+i*x.stride <= end {
					t.Fatalf("seed %d: ranges touch at %d", seed, end)
				}
				for k := range x.n {
					got[x.off-from+i*x.stride+k] = true
				}
				end = x.off + i*x.stride + x.n
			}
		}
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("seed %d: byte %d: covered %v, not %v", seed, i, got[i], want[i])
			}
		}
	}
}

// The result of within is, byte by byte, the part of a row in the window.
func TestWithinCutsARow(t *testing.T) {
	for seed := range int64(2000) {
		r := rand.New(rand.NewSource(seed))
		x := row{int64(r.Intn(50)), int64(1 + r.Intn(9)), 0, 1}
		if r.Intn(4) > 0 {
			x.count = int64(2 + r.Intn(9))
			x.stride = x.n + int64(1+r.Intn(9))
		}
		from := int64(r.Intn(200))
		to := from + int64(r.Intn(100))
		want, got := map[int64]bool{}, map[int64]bool{}
		for i := range x.count {
			for k := range x.n {
				if off := x.off + i*x.stride + k; from <= off && off < to {
					want[off] = true
				}
			}
		}
		bytes := int64(0)
		for _, part := range x.within(from, to) {
			bytes += part.bytes()
			for i := range part.count {
				for k := range part.n {
					got[part.off+i*part.stride+k] = true
				}
			}
		}
		if bytes != int64(len(want)) || len(got) != len(want) {
			t.Fatalf("seed %d: %v in [%d, %d): %d bytes at %d places, want %d", seed, x, from, to,
				bytes, len(got), len(want))
		}
		for off := range want {
			if !got[off] {
				t.Fatalf("seed %d: %v in [%d, %d) misses %d", seed, x, from, to, off)
			}
		}
	}
}
