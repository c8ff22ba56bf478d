package datatype

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/core/mpierr"
)

// imageBytes interprets an image as the packer in C does, and lists the displacement of every byte.
// runs, if not nil, gets the basic type of each run of a typed image.
func imageBytes(w []int64, runs func(basic, size int64)) (out []int64) {
	var walk func(at, base, basic int64)
	emit := func(base, n, basic int64) {
		for k := int64(0); k < n; k++ {
			out = append(out, base+k)
		}
		if runs != nil {
			runs(basic, n)
		}
	}
	walk = func(at, base, basic int64) {
		nd := w[at : at+nodeWords]
		n, disp, prefix := nd[2], nd[5], nd[6]
		if nd[8] != 0 {
			basic = nd[8]
		}
		before := len(out)
		switch nodeKind(nd[0]) {
		case nodeRun:
			emit(base, nd[1], basic)
		case nodeRep:
			for i := int64(0); i < n; i++ {
				walk(nd[4], base+i*nd[3], basic)
			}
		case nodeBlock:
			for i := int64(0); i < n; i++ {
				walk(nd[4], base+w[disp+i], basic)
			}
		case nodeIndex:
			for i := int64(0); i < n; i++ {
				emit(base+w[disp+i], w[prefix+i+1]-w[prefix+i], basic)
			}
		case nodeList:
			for i := int64(0); i < n; i++ {
				if int64(len(out)-before) != w[prefix+i] {
					panic("prefix of a list is wrong")
				}
				walk(w[nd[7]+i], base+w[disp+i], basic)
			}
		default:
			panic("kind of a node")
		}
		if int64(len(out)-before) != nd[1] {
			panic("size of a node is wrong")
		}
		for i := int64(0); nd[10] != 0 && i < n; i++ {
			two := binary.NativeEndian.AppendUint64(nil, uint64(w[nd[10]+i/2]))
			if int64(int32(binary.NativeEndian.Uint32(two[4*(i%2):]))) != w[disp+i] {
				panic("a short displacement is wrong")
			}
		}
		if nd[11] != 0 {
			checkPasses(w[nd[11]:], base, out[before:])
		}
	}
	if w[1] != 0 {
		walk(w[1], w[2], 0)
	}
	return out
}

// checkPasses panics unless the passes at w move the bytes of a node at base to where they are
// wanted (want: displacements), each of them at least once and nothing else.
func checkPasses(w []int64, base int64, want []int64) {
	moved := map[int64]bool{}
	for p := range w[0] {
		pass := w[1+p*(3+2*passMoves):][:3+2*passMoves]
		bytes, last, moves := pass[0], pass[1], pass[2]
		if last > bytes || last < bytes && moves != 2 || moves < 1 || moves > passMoves {
			panic("a pass for which there is no kernel")
		}
		for m := range moves {
			if m == moves-1 {
				bytes = last
			}
			for k := range bytes {
				at := pass[3+passMoves+m] + k
				if want[at] != base+pass[3+m]+k {
					panic("a move is wrong")
				}
				moved[at] = true
			}
		}
	}
	if len(moved) != len(want) {
		panic("the passes leave bytes out")
	}
}

func TestRandomTypesAgainstTypemaps(t *testing.T) {
	for seed := int64(0); seed < 20000; seed++ {
		r := rand.New(rand.NewSource(seed))
		s := random(r, 1+r.Intn(4))
		lb, ub := s.m.bounds()
		first, last := s.m.trueBounds()
		bytes := s.m.bytes(1)
		want := []int64{int64(len(bytes)), lb, ub - lb, first, last - first}
		got := []int64{s.t.Size(), s.t.LB(), s.t.Extent(), s.t.TrueLB(), s.t.TrueExtent()}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d: %s: size, lb, extent, true lb, true extent (-want +got)\n%s", seed,
				s.what, d)
		}
		if d := cmp.Diff(bytes, imageBytes(s.t.Image(false), nil)); d != "" {
			t.Fatalf("seed %d: %s: bytes of the layout (-want +got)\n%s", seed, s.what, d)
		}
		checkTyped(t, seed, s)
		checkContiguous(t, seed, s)
	}
}

// checkTyped compares the typed layout's basic types, element count and external size with the
// typemap's.
func checkTyped(t *testing.T, seed int64, s sample) {
	var wantTypes, gotTypes []int64
	elements, ext := int64(0), int64(0)
	for _, e := range s.m {
		if e.basic != nil {
			elements++
			ext += e.basic.Ext32
			for k := int64(0); k < e.basic.Size; k++ {
				wantTypes = append(wantTypes, int64(e.basic.ID))
			}
		}
	}
	w := s.t.Image(true)
	bytes := imageBytes(w, func(basic, size int64) {
		for k := int64(0); k < size; k++ {
			gotTypes = append(gotTypes, basic)
		}
	})
	if d := cmp.Diff(s.m.bytes(1), bytes); d != "" {
		t.Fatalf("seed %d: %s: bytes of the typed layout (-want +got)\n%s", seed, s.what, d)
	}
	if d := cmp.Diff(wantTypes, gotTypes); d != "" {
		t.Fatalf("seed %d: %s: basic types (-want +got)\n%s", seed, s.what, d)
	}
	if s.t.Elements() != elements || w[3] != ext || elements > 0 && w[w[1]+9] != elements {
		t.Fatalf("seed %d: %s: %d elements, %d external bytes; want %d, %d", seed, s.what,
			s.t.Elements(), w[3], elements, ext)
	}
}

func checkContiguous(t *testing.T, seed int64, s sample) {
	plain := true
	for i, b := range s.m.bytes(3) {
		plain = plain && b == int64(i)
	}
	if got := s.t.Contiguous(); got && !plain {
		t.Fatalf("seed %d: %s is said to be contiguous", seed, s.what)
	} else if plain && !got && len(s.m) > 0 && s.m.extent() == s.t.Size() && s.t.Size() > 0 {
		// a list whose borders could not be joined is allowed
		if w := s.t.Image(false); nodeKind(w[w[1]]) != nodeRun {
			return
		}
		t.Fatalf("seed %d: %s is not found to be contiguous", seed, s.what)
	}
}

// Shapes that programs use must compile to the forms that the packer runs fast.
func TestCommonTypesCompileToSimpleForms(t *testing.T) {
	i, d := NewBasic(tInt), NewBasic(tDouble)
	rows := must(Contiguous(8, d, false))
	for _, c := range []struct {
		what string
		t    *Type
		kind nodeKind
		n    int64
	}{
		{"contiguous of contiguous", must(Contiguous(4, rows, false)), nodeRun, 0},
		{"vector that is contiguous", must(Vector(5, 3, 3, d, false)), nodeRun, 0},
		{"column of a matrix", must(Vector(100, 1, 8, d, false)), nodeRep, 100},
		{"hvector of a row that is contiguous", must(Hvector(4, 1, 64, rows, false)), nodeRun, 0},
		{"block of a matrix", must(Subarray([]int64{10, 10}, []int64{4, 5}, []int64{2, 3}, OrderC,
			d, false)), nodeRep, 4},
		{"whole rows of a matrix", must(Subarray([]int64{10, 10}, []int64{4, 10}, []int64{2, 0},
			OrderC, d, false)), nodeRun, 0},
		{"indexed with one stride", must(Indexed([]int64{1, 1, 1}, []int64{0, 5, 10}, d, false)),
			nodeRep, 3},
		{"indexed block", must(IndexedBlock(1, []int64{0, 5, 7}, d, false)), nodeBlock, 3},
		{"indexed of neighbours", must(Indexed([]int64{1, 2, 3}, []int64{0, 1, 3}, d, false)),
			nodeRun, 0},
		{"indexed", must(Indexed([]int64{1, 2, 3}, []int64{0, 5, 10}, d, false)), nodeIndex, 3},
		{"struct without a gap", must(Struct([]int64{1, 1, 1}, []int64{0, 4, 8}, []*Type{i, i, d},
			false)), nodeRun, 0},
		{"struct with a gap", must(Struct([]int64{1, 1}, []int64{0, 8}, []*Type{i, d}, false)),
			nodeIndex, 2},
		{"indices that come again and again", must(IndexedBlock(1, []int64{0, 2, 5, 9, 11, 14, 18,
			20, 23, 27, 29, 32}, d, false)), nodeRep, 4},
		{"a period and a rest", must(IndexedBlock(1, []int64{0, 2, 5, 7, 10, 12, 15, 17, 20}, d,
			false)), nodeList, 2},
		{"dup of resized", Dup(must(Resized(d, 0, 32, false))), nodeRun, 0},
	} {
		if p := c.t.layout(false); p.node.kind != c.kind || p.node.n != c.n {
			t.Errorf("%s: node of kind %d, n %d; want kind %d, n %d", c.what, p.node.kind, p.node.n,
				c.kind, c.n)
		}
	}
}

// A very large type takes no memory: counts are not listed anywhere.
func TestLargeCounts(t *testing.T) {
	big := int64(math.MaxInt32) * 1000
	v := must(Vector(big, 2, 3, NewBasic(tInt), true))
	if v.Size() != big*8 || v.Extent() != ((big-1)*3+2)*4 {
		t.Errorf("size %d, extent %d", v.Size(), v.Extent())
	}
	if n := len(v.Image(false)); n > 100 {
		t.Errorf("image of %d words", n)
	}
}

func TestSimple(t *testing.T) {
	i := NewBasic(tInt)
	v := must(Vector(1000000, 2, 3, i, false))
	many := make([]int64, 1000)
	for k := range many {
		many[k] = int64(k * k)
	}
	long := must(IndexedBlock(1, many, i, false))
	bushy := i
	for range 40 { // 2^40 paths lead down
		bushy = must(Struct([]int64{1, 2}, []int64{0, 0}, []*Type{bushy, Dup(bushy)}, false))
		if bushy.Size() > 1<<40 {
			break
		}
	}
	for _, c := range []struct {
		what string
		t    *Type
		want bool
	}{{"int", i, true}, {"vector", v, true}, {"long list", long, false},
		{"vector of long lists", must(Vector(2, 1, 2, long, false)), false},
		{"bushy", bushy, false}} {
		if got := c.t.Simple(); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestOverflowIsAnError(t *testing.T) {
	huge := must(Contiguous(math.MaxInt64/16, NewBasic(tDouble), true))
	for what, make := range map[string]func() (*Type, error){
		"contiguous": func() (*Type, error) { return Contiguous(4, huge, true) },
		"vector":     func() (*Type, error) { return Vector(2, 1, 4, huge, true) },
		"hvector": func() (*Type, error) {
			return Hvector(1<<31, 1, 1<<40, NewBasic(tInt),
				true)
		},
		"hvector down": func() (*Type, error) {
			return Hvector(1<<31, 1, -1<<40, NewBasic(tInt), true)
		},
		"indexed": func() (*Type, error) { return Indexed([]int64{1}, []int64{8}, huge, true) },
		"hindexed": func() (*Type, error) {
			return Hindexed([]int64{1}, []int64{math.MaxInt64},
				NewBasic(tInt), true)
		},
		"struct": func() (*Type, error) {
			return Struct([]int64{1, 1}, []int64{math.MinInt64 + 1, math.MaxInt64 - 100},
				[]*Type{NewBasic(tInt), NewBasic(tInt)}, true)
		},
		"subarray": func() (*Type, error) {
			return Subarray([]int64{1 << 40, 1 << 40}, []int64{1, 1}, []int64{0, 0}, OrderC,
				NewBasic(tInt), true)
		},
		"resized": func() (*Type, error) { return Resized(NewBasic(tInt), math.MaxInt64, 1, true) },
	} {
		if made, err := make(); err == nil {
			t.Errorf("%s: size %d, extent %d; want an error", what, made.Size(), made.Extent())
		}
	}
}

func TestBadArguments(t *testing.T) {
	i := NewBasic(tInt)
	one := []int64{1}
	for _, c := range []struct {
		what  string
		make  func() (*Type, error)
		class mpierr.Class
	}{
		{"contiguous -1", func() (*Type, error) { return Contiguous(-1, i, false) }, mpierr.Count},
		{"vector count -1", func() (*Type, error) { return Vector(-1, 1, 1, i, false) },
			mpierr.Count},
		{"vector blocklength -1", func() (*Type, error) { return Vector(1, -1, 1, i, false) },
			mpierr.Arg},
		{"indexed blocklength -1", func() (*Type,
			error) {
			return Indexed([]int64{-1}, one, i, false)
		}, mpierr.Arg},
		{"indexed_block -1", func() (*Type, error) { return IndexedBlock(-1, one, i, false) },
			mpierr.Arg},
		{"struct -1", func() (*Type, error) { return Struct([]int64{-1}, one, []*Type{i}, false) },
			mpierr.Arg},
		{"subarray without dimensions", func() (*Type,
			error) {
			return Subarray(nil, nil, nil, OrderC, i, false)
		}, mpierr.Arg},
		{"subarray size 0", func() (*Type, error) {
			return Subarray([]int64{0}, one, []int64{0},
				OrderC, i, false)
		}, mpierr.Arg},
		{"subarray subsize 0", func() (*Type, error) {
			return Subarray(one, []int64{0}, []int64{0},
				OrderC, i, false)
		}, mpierr.Arg},
		{"subarray subsize 2 of 1", func() (*Type,
			error) {
			return Subarray(one, []int64{2}, []int64{0}, OrderC, i, false)
		}, mpierr.Arg},
		{"subarray start 1 of 1", func() (*Type,
			error) {
			return Subarray(one, one, one, OrderC, i, false)
		}, mpierr.Arg},
		{"subarray order", func() (*Type, error) {
			return Subarray(one, one, []int64{0}, 14, i,
				false)
		}, mpierr.Arg},
		{"darray rank", func() (*Type, error) {
			return Darray(1, 1, one, []int64{DistributeNone}, one, one, OrderC, i, false)
		}, mpierr.Rank},
		{"darray grid", func() (*Type, error) {
			return Darray(2, 0, one, []int64{DistributeNone}, one, one, OrderC, i, false)
		}, mpierr.Arg},
		{"darray distribution", func() (*Type, error) {
			return Darray(1, 0, one, []int64{15}, one,
				one, OrderC, i, false)
		}, mpierr.Arg},
		{"darray block too small", func() (*Type, error) {
			return Darray(2, 0, []int64{9}, []int64{DistributeBlock}, []int64{4}, []int64{2},
				OrderC, i, false)
		}, mpierr.Arg},
		{"darray cyclic 0", func() (*Type, error) {
			return Darray(1, 0, one, []int64{DistributeCyclic}, []int64{0}, one, OrderC, i, false)
		}, mpierr.Arg},
	} {
		_, err := c.make()
		var e *mpierr.Error
		if !errors.As(err, &e) || e.Class != c.class {
			t.Errorf("%s: %v; want class %d", c.what, err, c.class)
		}
	}
}

func TestContents(t *testing.T) {
	i, d := NewBasic(tInt), NewBasic(tDouble)
	v := func(n ...int64) []int64 { return n }
	for _, c := range []struct {
		what                string
		t                   *Type
		comb                Combiner
		ints, addrs, counts []int64
		types               int
	}{
		{"named", i, Named, nil, nil, nil, 0},
		{"dup", Dup(i), CombDup, nil, nil, nil, 1},
		{"contiguous", must(Contiguous(3, i, false)), CombContiguous, v(3), nil, nil, 1},
		{"contiguous_c", must(Contiguous(3, i, true)), CombContiguous, nil, nil, v(3), 1},
		{"vector", must(Vector(3, 2, 4, i, false)), CombVector, v(3, 2, 4), nil, nil, 1},
		{"hvector", must(Hvector(3, 2, 4, i, false)), CombHvector, v(3, 2), v(4), nil, 1},
		{"hvector_c", must(Hvector(3, 2, 4, i, true)), CombHvector, nil, nil, v(3, 2, 4), 1},
		{"indexed", must(Indexed(v(1, 2), v(3, 4), i, false)), CombIndexed, v(2, 1, 2, 3, 4), nil,
			nil, 1},
		{"hindexed", must(Hindexed(v(1, 2), v(30, 40), i, false)), CombHindexed, v(2, 1, 2),
			v(30, 40), nil, 1},
		{"hindexed_c", must(Hindexed(v(1, 2), v(30, 40), i, true)), CombHindexed, nil, nil,
			v(2, 1, 2, 30, 40), 1},
		{"indexed_block", must(IndexedBlock(7, v(3, 4), i, false)), CombIndexedBlock, v(2, 7, 3, 4),
			nil, nil, 1},
		{"hindexed_block", must(HindexedBlock(7, v(30, 40), i, false)), CombHindexedBlock, v(2, 7),
			v(30, 40), nil, 1},
		{"struct", must(Struct(v(1, 2), v(0, 8), []*Type{i, d}, false)), CombStruct, v(2, 1, 2),
			v(0, 8), nil, 2},
		{"struct_c", must(Struct(v(1, 2), v(0, 8), []*Type{i, d}, true)), CombStruct, nil, nil,
			v(2, 1, 2, 0, 8), 2},
		{"subarray", must(Subarray(v(4, 5), v(2, 3), v(1, 0), OrderC, i, false)), CombSubarray,
			v(2, 4, 5, 2, 3, 1, 0, 12), nil, nil, 1},
		{"subarray_c", must(Subarray(v(4, 5), v(2, 3), v(1, 0), OrderC, i, true)), CombSubarray,
			v(2, 12), nil, v(4, 5, 2, 3, 1, 0), 1},
		{"darray", must(Darray(2, 1, v(4, 5), v(17, 16), v(19, 0), v(2, 1), OrderC, i, false)),
			CombDarray,
			v(2, 1, 2, 4, 5, 17, 16, 19, 0, 2, 1, 12), nil, nil, 1},
		{"darray_c", must(Darray(2, 1, v(4, 5), v(17, 16), v(19, 0), v(2, 1), OrderC, i, true)),
			CombDarray,
			v(2, 1, 2, 17, 16, 19, 0, 2, 1, 12), nil, v(4, 5), 1},
		{"resized", must(Resized(i, -3, 9, false)), CombResized, nil, v(-3, 9), nil, 1},
		{"resized_c", must(Resized(i, -3, 9, true)), CombResized, nil, nil, v(-3, 9), 1},
		{"f90", NewF90(CombF90Real, tDouble, 15, 307), CombF90Real, v(15, 307), nil, nil, 0},
		{"pair", NewPair(tPair, i, i), CombValueIndex, nil, nil, nil, 2},
	} {
		k := c.t.Contents()
		got := [][]int64{{int64(c.t.Combiner())}, k.Ints, k.Addrs, k.Counts, {int64(len(k.Types))}}
		want := [][]int64{{int64(c.comb)}, c.ints, c.addrs, c.counts, {int64(c.types)}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: combiner, integers, addresses, large counts, types (-want +got)\n%s",
				c.what, diff)
		}
	}
}

// The example of MPI-5.0, 5.1.6.
func TestMarkersStick(t *testing.T) {
	t1 := must(Resized(NewBasic(tInt), -3, 9, false))
	t2 := must(Contiguous(2, t1, false))
	if t2.LB() != -3 || t2.Extent() != 18 || t2.TrueLB() != 0 || t2.TrueExtent() != 13 {
		t.Errorf("lb %d, extent %d, true lb %d, true extent %d", t2.LB(), t2.Extent(), t2.TrueLB(),
			t2.TrueExtent())
	}
}

func TestFortranKinds(t *testing.T) {
	for _, c := range []struct {
		p, r int64
		want string
	}{{6, 37, "MPI_REAL4"}, {6, Undefined, "MPI_REAL4"}, {7, 30, "MPI_REAL8"},
		{Undefined, 38, "MPI_REAL8"}, {15, 307, "MPI_REAL8"},
		{16, 1, "MPI_LONG_DOUBLE"}, {19, Undefined, "MPI_REAL16"}, {33, 4931, "MPI_REAL16"}} {
		if got, err := F90Real(c.p, c.r, false); got != c.want || err != nil {
			t.Errorf("real(%d, %d) = %s, %v; want %s", c.p, c.r, got, err, c.want)
		}
	}
	for _, bad := range [][2]int64{{34, 1}, {1, 4932}, {Undefined, Undefined}} {
		if got, err := F90Real(bad[0], bad[1], true); err == nil {
			t.Errorf("complex(%d, %d) = %s; want an error", bad[0], bad[1], got)
		}
	}
	for r, want := range map[int64]string{2: "MPI_INTEGER1", 3: "MPI_INTEGER2", 9: "MPI_INTEGER4",
		10: "MPI_INTEGER8", 38: "MPI_INTEGER16"} {
		if got, err := F90Integer(r); got != want || err != nil {
			t.Errorf("integer(%d) = %s, %v; want %s", r, got, err, want)
		}
	}
	if _, err := F90Integer(39); err == nil {
		t.Error("integer(39) is not refused")
	}
	if got, err := MatchSize(ClassComplex, 16); got != "MPI_COMPLEX16" || err != nil {
		t.Errorf("match complex 16: %s, %v", got, err)
	}
	if _, err := MatchSize(ClassReal, 5); err == nil {
		t.Error("a real of 5 bytes is not refused")
	}
}

// Long lists become what the kernels take: many short blocks of one length at displacements of 32
// bits, also where some of them touch.
func TestListsForKernels(t *testing.T) {
	d := NewBasic(tDouble)
	r := rand.New(rand.NewSource(1))
	const n = 1000
	displs, ones := make([]int64, n), make([]int64, n)
	for i := range displs {
		displs[i], ones[i] = int64(3*i)+r.Int63n(3), 1 // some of them side by side
	}
	particle := must(Struct([]int64{1, 1}, []int64{0, 12}, []*Type{d, NewBasic(tInt)}, false))
	for _, c := range []struct {
		what string
		t    *Type
	}{
		{"blocks", must(IndexedBlock(1, displs, d, false))},
		{"indexed", must(Indexed(ones, displs, d, false))},
		{"structs", must(IndexedBlock(1, displs[:40], particle, false))},
	} {
		w := c.t.Image(false)
		nd := w[w[1]:][:nodeWords]
		if nodeKind(nd[0]) != nodeBlock || nd[10] == 0 {
			t.Errorf("%s: kind %d, short displacements at %d", c.what, nd[0], nd[10])
		}
		if kid := w[nd[4]:][:nodeWords]; nodeKind(kid[0]) != nodeRun && kid[11] == 0 {
			t.Errorf("%s: no passes", c.what)
		}
	}
	far := must(HindexedBlock(1, []int64{0, 8 << 32, 9}, d, false)).Image(false)
	if nd := far[far[1]:][:nodeWords]; nd[10] != 0 {
		t.Error("short displacements of what is further than they reach")
	}
}
