package datatype

import "libspx/core/mpierr"

// The constructors. large says that the MPI_..._c form was called, which only decides where
// Contents keeps the counts. Arguments are checked here, except that types are not nil; errors
// carry MPI error classes.

// counted sorts the arguments of a constructor: counts go to Ints, or to Counts in the large form,
// where they are joined by what is an address otherwise.
func counted(large bool, counts, addrs []int64, types ...*Type) Contents {
	if large {
		return Contents{Counts: append(counts, addrs...), Types: types}
	}
	return Contents{Ints: counts, Addrs: addrs, Types: types}
}

func checkCount(name string, n int64) error {
	if n < 0 {
		return mpierr.New(mpierr.Count, "%s is %d; it may not be negative", name, n)
	}
	return nil
}

func checkBlocks(lengths []int64) error {
	for i, n := range lengths {
		if n < 0 {
			return mpierr.New(mpierr.Arg, "array_of_blocklengths[%d] is %d; it may not be negative",
				i, n)
		}
	}
	return nil
}

// Dup makes a copy of old (MPI-5.0, 5.1.10).
func Dup(old *Type) *Type {
	return &Type{combiner: CombDup, contents: Contents{Types: []*Type{old}}, shape: ofType(old),
		facts: old.facts}
}

// Contiguous makes count elements of old in a row (5.1.2).
func Contiguous(count int64, old *Type, large bool) (*Type, error) {
	if err := checkCount("count", count); err != nil {
		return nil, err
	}
	return finish(CombContiguous, counted(large, []int64{count}, nil, old),
		repeat(count, old.Extent(), ofType(old)))
}

// Vector makes count blocks of blocklen elements, which start stride elements apart (5.1.2).
func Vector(count, blocklen, stride int64, old *Type, large bool) (*Type, error) {
	var c calc
	bytes := c.mul(stride, old.Extent())
	if err := c.err(); err != nil {
		return nil, err
	}
	return vector(CombVector, counted(large, []int64{count, blocklen, stride}, nil, old), count,
		blocklen, bytes, old)
}

// Hvector is Vector with the stride in bytes (5.1.2).
func Hvector(count, blocklen, stride int64, old *Type, large bool) (*Type, error) {
	return vector(CombHvector, counted(large, []int64{count, blocklen}, []int64{stride}, old),
		count, blocklen, stride, old)
}

func vector(comb Combiner, args Contents, count, blocklen, bytes int64, old *Type) (*Type, error) {
	if err := checkCount("count", count); err != nil {
		return nil, err
	}
	if blocklen < 0 {
		return nil, mpierr.New(mpierr.Arg, "blocklength is %d; it may not be negative", blocklen)
	}
	return finish(comb, args, repeat(count, bytes, repeat(blocklen, old.Extent(), ofType(old))))
}

// scaled returns displacements in units of old's extent as bytes.
func scaled(displs []int64, old *Type) ([]int64, error) {
	var c calc
	out := make([]int64, len(displs))
	for i, d := range displs {
		out[i] = c.mul(d, old.Extent())
	}
	return out, c.err()
}

func join(count int, lists ...[]int64) []int64 {
	n := 1
	for _, l := range lists {
		n += len(l)
	}
	out := append(make([]int64, 0, n), int64(count))
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// Indexed makes blocks of their own lengths at displacements in elements (5.1.2). The slices have
// the same length and become the type's own.
func Indexed(lengths, displs []int64, old *Type, large bool) (*Type, error) {
	bytes, err := scaled(displs, old)
	if err != nil {
		return nil, err
	}
	return indexed(CombIndexed, counted(large, join(len(lengths), lengths, displs), nil, old),
		lengths, bytes, old)
}

// Hindexed is Indexed with displacements in bytes (5.1.2).
func Hindexed(lengths, displs []int64, old *Type, large bool) (*Type, error) {
	return indexed(CombHindexed, counted(large, join(len(lengths), lengths), displs, old), lengths,
		displs, old)
}

func indexed(comb Combiner, args Contents, lengths, bytes []int64, old *Type) (*Type, error) {
	if err := checkBlocks(lengths); err != nil {
		return nil, err
	}
	one, extent := ofType(old), old.Extent()
	return finish(comb, args, listOf(bytes,
		mapped(lengths, func(n int64) *shape { return repeat(n, extent, one) })))
}

// mapped returns f of each element, and calls it once for equal ones: lists are long, and much in
// them is the same.
func mapped[K comparable, V any](in []K, f func(K) V) []V {
	known := map[K]V{}
	out := make([]V, len(in))
	for i, k := range in {
		if i > 0 && k == in[i-1] {
			out[i] = out[i-1]
			continue
		}
		v, ok := known[k]
		if !ok {
			v = f(k)
			known[k] = v
		}
		out[i] = v
	}
	return out
}

// listOf places kids at offsets; a single one, or the same everywhere, is kept once.
func listOf(offs []int64, kids []*shape) *shape {
	if len(kids) == 0 {
		return nil
	}
	same := true
	for _, k := range kids {
		same = same && k == kids[0]
	}
	if same {
		if kids[0] == nil {
			return nil
		}
		kids = []*shape{kids[0]} // the long list goes
	}
	return &shape{op: opList, offs: offs, kids: kids}
}

// IndexedBlock is Indexed with one length for all blocks (5.1.2).
func IndexedBlock(blocklen int64, displs []int64, old *Type, large bool) (*Type, error) {
	bytes, err := scaled(displs, old)
	if err != nil {
		return nil, err
	}
	args := counted(large, append([]int64{int64(len(displs)), blocklen}, displs...), nil, old)
	return blocks(CombIndexedBlock, args, blocklen, bytes, old)
}

// HindexedBlock is IndexedBlock with displacements in bytes (5.1.2).
func HindexedBlock(blocklen int64, displs []int64, old *Type, large bool) (*Type, error) {
	args := counted(large, []int64{int64(len(displs)), blocklen}, displs, old)
	return blocks(CombHindexedBlock, args, blocklen, displs, old)
}

func blocks(comb Combiner, args Contents, blocklen int64, bytes []int64, old *Type) (*Type, error) {
	if blocklen < 0 {
		return nil, mpierr.New(mpierr.Arg, "blocklength is %d; it may not be negative", blocklen)
	}
	block := repeat(blocklen, old.Extent(), ofType(old))
	var s *shape
	if block != nil && len(bytes) > 0 {
		s = &shape{op: opList, offs: bytes, kids: []*shape{block}}
	}
	return finish(comb, args, s)
}

// Struct places lengths[i] elements of types[i] at byte displacement displs[i] (5.1.2).
func Struct(lengths, displs []int64, types []*Type, large bool) (*Type, error) {
	if err := checkBlocks(lengths); err != nil {
		return nil, err
	}
	type block struct {
		n int64
		t *Type
	}
	parts := make([]block, len(lengths))
	for i, n := range lengths {
		parts[i] = block{n, types[i]}
	}
	kids := mapped(parts, func(b block) *shape { return repeat(b.n, b.t.Extent(), ofType(b.t)) })
	return finish(CombStruct, counted(large, join(len(lengths), lengths), displs, types...),
		listOf(displs, kids))
}

// Resized gives old new bounds (5.1.7).
func Resized(old *Type, lb, extent int64, large bool) (*Type, error) {
	var c calc
	end := c.add(lb, extent)
	if err := c.err(); err != nil {
		return nil, err
	}
	s := &shape{op: opType, typ: old, marked: true, markLow: lb, markEnd: end}
	return finish(CombResized, counted(large, nil, []int64{lb, extent}, old), s)
}
