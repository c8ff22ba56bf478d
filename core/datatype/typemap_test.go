package datatype

import (
	"fmt"
	"math/rand"
)

// A dumb implementation of the standard's definitions: a typemap is the list of its entries,
// markers among them.
type entry struct {
	basic *Basic // nil: a marker
	upper bool   // of a marker: ub_marker, else lb_marker
	disp  int64
}

type typemap []entry

// bounds by the formulas of MPI-5.0, 5.1.6.
func (m typemap) bounds() (lb, ub int64) {
	var lbs, ubs []int64
	var lo, hi, align int64
	first := true
	for _, e := range m {
		switch {
		case e.basic == nil && e.upper:
			ubs = append(ubs, e.disp)
		case e.basic == nil:
			lbs = append(lbs, e.disp)
		default:
			end := e.disp + e.basic.Size
			if first {
				lo, hi, first = e.disp, end, false
			}
			lo, hi, align = min(lo, e.disp), max(hi, end), max(align, e.basic.Align)
		}
	}
	lb, ub = lo, hi
	if len(lbs) > 0 {
		lb = lbs[0]
		for _, v := range lbs {
			lb = min(lb, v)
		}
	}
	if len(ubs) > 0 {
		ub = ubs[0]
		for _, v := range ubs {
			ub = max(ub, v)
		}
	} else if align > 0 {
		for (ub-lo)%align != 0 {
			ub++
		}
	}
	return lb, ub
}

func (m typemap) extent() int64 {
	lb, ub := m.bounds()
	return ub - lb
}

func (m typemap) trueBounds() (first, last int64) {
	some := false
	for _, e := range m {
		if e.basic == nil {
			continue
		}
		if !some {
			first, last, some = e.disp, e.disp+e.basic.Size, true
		}
		first, last = min(first, e.disp), max(last, e.disp+e.basic.Size)
	}
	return first, last
}

// bytes lists the displacement of every byte of count elements, in packing order.
func (m typemap) bytes(count int64) (out []int64) {
	ex := m.extent()
	for i := int64(0); i < count; i++ {
		for _, e := range m {
			if e.basic != nil {
				for k := int64(0); k < e.basic.Size; k++ {
					out = append(out, i*ex+e.disp+k)
				}
			}
		}
	}
	return out
}

// times appends n copies of m, shifted by off + i*stride.
func (m typemap) times(dst typemap, n, off, stride int64) typemap {
	for i := int64(0); i < n; i++ {
		for _, e := range m {
			e.disp += off + i*stride
			dst = append(dst, e)
		}
	}
	return dst
}

// sample is a type beside its typemap.
type sample struct {
	t    *Type
	m    typemap
	what string
}

var (
	tByte   = &Basic{ID: 1, Name: "byte", Size: 1, Extent: 1, Align: 1, Ext32: 1}
	tShort  = &Basic{ID: 2, Name: "short", Size: 2, Extent: 2, Align: 2, Ext32: 2}
	tInt    = &Basic{ID: 3, Name: "int", Size: 4, Extent: 4, Align: 4, Ext32: 4}
	tLong   = &Basic{ID: 4, Name: "long", Size: 8, Extent: 8, Align: 8, Ext32: 4}
	tDouble = &Basic{ID: 5, Name: "double", Size: 8, Extent: 8, Align: 8, Ext32: 8}
	tLDoub  = &Basic{ID: 6, Name: "long double", Size: 16, Extent: 16, Align: 16, Ext32: 16}
	tPair   = &Basic{ID: 7, Name: "short,int", Size: 6, Extent: 8, Align: 4, Ext32: 6,
		Value: tShort, Index: tInt, IndexAt: 4}
	tPair2 = &Basic{ID: 8, Name: "int,int", Size: 8, Extent: 8, Align: 4, Ext32: 8, Value: tInt,
		Index: tInt, IndexAt: 4}
)

func basicSample(b *Basic) sample {
	s := sample{t: NewBasic(b), what: b.Name}
	if b.Value != nil {
		s.m = typemap{{basic: b.Value}, {basic: b.Index, disp: b.IndexAt}}
	} else {
		s.m = typemap{{basic: b}}
	}
	return s
}

var basicSamples = []sample{basicSample(tByte), basicSample(tShort), basicSample(tInt),
	basicSample(tLong),
	basicSample(tDouble), basicSample(tLDoub), basicSample(tPair), basicSample(tPair2)}

func must(t *Type, err error) *Type {
	if err != nil {
		panic(err)
	}
	return t
}

func randoms(r *rand.Rand, n int, lo, hi int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = lo + r.Int63n(hi-lo+1)
	}
	return out
}

func copyOf(v []int64) []int64 { return append([]int64(nil), v...) }

// random makes a type of up to depth nested constructors, with at most some hundred entries.
func random(r *rand.Rand, depth int) sample {
	if depth == 0 || r.Intn(8) == 0 {
		return basicSamples[r.Intn(len(basicSamples))]
	}
	old := random(r, depth-1)
	if len(old.m) > 200 {
		return old
	}
	s := derive(r, old, depth)
	if len(s.m) > 600 {
		return old
	}
	return s
}

func derive(r *rand.Rand, old sample, depth int) sample {
	ex := old.m.extent()
	large := r.Intn(2) == 0
	switch r.Intn(11) {
	case 0:
		n := r.Int63n(5)
		return sample{must(Contiguous(n, old.t, large)), old.m.times(nil, n, 0, ex),
			fmt.Sprintf("contiguous(%d, %s)", n, old.what)}
	case 1:
		n, bl, st := r.Int63n(4), r.Int63n(4), r.Int63n(9)-4
		return sample{must(Vector(n, bl, st, old.t, large)), vectorMap(old.m, n, bl, st*ex),
			fmt.Sprintf("vector(%d, %d, %d, %s)", n, bl, st, old.what)}
	case 2:
		n, bl, st := r.Int63n(4), r.Int63n(4), r.Int63n(90)-40
		return sample{must(Hvector(n, bl, st, old.t, large)), vectorMap(old.m, n, bl, st),
			fmt.Sprintf("hvector(%d, %d, %d, %s)", n, bl, st, old.what)}
	case 3, 4:
		k := r.Intn(5)
		bl, d := randoms(r, k, 0, 3), randoms(r, k, -6, 10)
		if r.Intn(2) == 0 {
			return sample{must(Indexed(bl, copyOf(d), old.t, large)), indexedMap(old.m, bl, d, ex),
				fmt.Sprintf("indexed(%v, %v, %s)", bl, d, old.what)}
		}
		d = randoms(r, k, -50, 100)
		return sample{must(Hindexed(bl, copyOf(d), old.t, large)), indexedMap(old.m, bl, d, 1),
			fmt.Sprintf("hindexed(%v, %v, %s)", bl, d, old.what)}
	case 5:
		k, bl := r.Intn(5), r.Int63n(3)
		d, same := randoms(r, k, -6, 10), make([]int64, k)
		for i := range same {
			same[i] = bl
		}
		if r.Intn(2) == 0 {
			return sample{must(IndexedBlock(bl, copyOf(d), old.t, large)),
				indexedMap(old.m, same, d, ex), fmt.Sprintf("indexed_block(%d, %v, %s)", bl, d,
					old.what)}
		}
		return sample{must(HindexedBlock(bl, copyOf(d), old.t, large)),
			indexedMap(old.m, same, d, 1), fmt.Sprintf("hindexed_block(%d, %v, %s)", bl, d,
				old.what)}
	case 6, 7:
		return randomStruct(r, old, depth, large)
	case 8:
		lb, extent := r.Int63n(40)-20, r.Int63n(60)-20
		return sample{must(Resized(old.t, lb, extent, large)), resizedMap(old.m, lb, lb+extent),
			fmt.Sprintf("resized(%d, %d, %s)", lb, extent, old.what)}
	case 9:
		return randomSubarray(r, old, large)
	}
	return randomDarray(r, old, large)
}

func vectorMap(m typemap, n, bl, stride int64) (out typemap) {
	for i := int64(0); i < n; i++ {
		out = m.times(out, bl, i*stride, m.extent())
	}
	return out
}

func indexedMap(m typemap, bl, d []int64, unit int64) (out typemap) {
	for i := range bl {
		out = m.times(out, bl[i], d[i]*unit, m.extent())
	}
	return out
}

func resizedMap(m typemap, lb, ub int64) typemap {
	out := typemap{{disp: lb}}
	for _, e := range m {
		if e.basic != nil {
			out = append(out, e)
		}
	}
	return append(out, entry{upper: true, disp: ub})
}

func randomStruct(r *rand.Rand, old sample, depth int, large bool) sample {
	k := 1 + r.Intn(3)
	bl, d := randoms(r, k, 0, 3), randoms(r, k, -30, 60)
	types := make([]*Type, k)
	var m typemap
	what := "struct("
	for i := range types {
		s := old
		if i > 0 {
			s = random(r, r.Intn(depth))
		}
		if r.Intn(3) == 0 && i > 0 { // beside the one before
			_, d[i] = m.bounds()
		}
		types[i] = s.t
		m = s.m.times(m, bl[i], d[i], s.m.extent())
		what += fmt.Sprintf("%d @%d %s; ", bl[i], d[i], s.what)
	}
	return sample{must(Struct(bl, copyOf(d), types, large)), m, what + ")"}
}

func randomSubarray(r *rand.Rand, old sample, large bool) sample {
	k := 1 + r.Intn(3)
	order := []Order{OrderC, OrderFortran}[r.Intn(2)]
	sizes := randoms(r, k, 1, 4)
	sub, start := make([]int64, k), make([]int64, k)
	for i := range sizes {
		sub[i] = 1 + r.Int63n(sizes[i])
		start[i] = r.Int63n(sizes[i] - sub[i] + 1)
	}
	in := func(d int, x int64) bool { return x >= start[d] && x < start[d]+sub[d] }
	return sample{must(Subarray(sizes, sub, start, order, old.t, large)),
		arrayMap(old.m, sizes, order, in),
		fmt.Sprintf("subarray(%v, %v, %v, %d, %s)", sizes, sub, start, order, old.what)}
}

// arrayMap lists the elements of an array for which every coordinate is in, in the order of memory.
func arrayMap(m typemap, sizes []int64, order Order, in func(dim int, x int64) bool) typemap {
	total := int64(1)
	for _, s := range sizes {
		total *= s
	}
	out := typemap{{disp: 0}, {upper: true, disp: total * m.extent()}}
	for i := int64(0); i < total; i++ {
		ok, rest := true, i
		for k := range sizes {
			d := k
			if order == OrderC {
				d = len(sizes) - 1 - k
			}
			ok = ok && in(d, rest%sizes[d])
			rest /= sizes[d]
		}
		if ok {
			for _, e := range m {
				if e.basic != nil {
					e.disp += i * m.extent()
					out = append(out, e)
				}
			}
		}
	}
	return out
}

func randomDarray(r *rand.Rand, old sample, large bool) sample {
	k := 1 + r.Intn(3)
	order := []Order{OrderC, OrderFortran}[r.Intn(2)]
	gs, dist, arg, ps := randoms(r, k, 1, 5), make([]int64, k), make([]int64, k),
		randoms(r, k, 1, 3)
	size := int64(1)
	block := make([]int64, k)
	for i := range gs {
		dist[i] = []int64{DistributeNone, DistributeBlock, DistributeCyclic}[r.Intn(3)]
		arg[i] = DistributeDfltArg
		switch dist[i] {
		case DistributeNone:
			ps[i], block[i] = 1, gs[i]
		case DistributeBlock:
			block[i] = (gs[i] + ps[i] - 1) / ps[i]
			if r.Intn(2) == 0 {
				block[i] += r.Int63n(2)
				arg[i] = block[i]
			}
		case DistributeCyclic:
			block[i] = 1
			if r.Intn(2) == 0 {
				block[i] = 1 + r.Int63n(3)
				arg[i] = block[i]
			}
		}
		size *= ps[i]
	}
	rank := r.Int63n(size)
	at, left := make([]int64, k), rank
	for i := k - 1; i >= 0; i-- { // row-major: the last coordinate is the fastest
		at[i] = left % ps[i]
		left /= ps[i]
	}
	in := func(d int, x int64) bool { return x/block[d]%ps[d] == at[d] }
	return sample{must(Darray(size, rank, gs, dist, arg, ps, order, old.t, large)),
		arrayMap(old.m, gs, order, in),
		fmt.Sprintf("darray(%d of %d, %v, %v, %v, %v, %d, %s)", rank, size, gs, dist, arg, ps,
			order, old.what)}
}
