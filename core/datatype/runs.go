package datatype

// Runs calls emit for the runs of bytes that hold the packed bytes [from, to) of one element of t,
// in packing order: off is the displacement of a run from the element's origin, n its length in
// bytes. Runs that touch may come one by one. It stops when emit returns false, and returns whether
// it came to the end.
func (t *Type) Runs(from, to int64, emit func(off, n int64) bool) bool {
	return t.Strides(from, to, func(off, n, stride, count int64) bool {
		for i := range count {
			if !emit(off+i*stride, n) {
				return false
			}
		}
		return true
	})
}

// Strides is Runs, but runs of a repetition come together: count runs of n bytes each, the first at
// off, stride bytes from one to the next.
func (t *Type) Strides(from, to int64, emit func(off, n, stride, count int64) bool) bool {
	p := t.layout(false)
	if p.node == nil || from >= to {
		return true
	}
	return p.node.strides(p.off, max(from, 0), min(to, p.node.size), emit)
}

func (nd *node) strides(at, from, to int64, emit func(off, n, stride, count int64) bool) bool {
	if nd.kind == nodeRun {
		return emit(at+from, to-from, 0, 1)
	}
	if nd.kind == nodeRep && nd.kid.kind == nodeRun {
		return Repetition(at, nd.kid.size, nd.stride, from, to, emit)
	}
	if nd.kid != nil { // equal parts: the first one is found by division
		k := nd.kid.size
		for i := from / k; i*k < to; i++ {
			off := i * nd.stride
			if nd.kind == nodeBlock {
				off = nd.offs[i]
			}
			if !nd.kid.strides(at+off, max(from-i*k, 0), min(to-i*k, k), emit) {
				return false
			}
		}
		return true
	}
	begin := int64(0)
	for i, kid := range nd.kids {
		if begin >= to {
			break
		}
		if a, b := max(from-begin, 0), min(to-begin, kid.size); a < b {
			if !kid.strides(at+nd.offs[i], a, b, emit) {
				return false
			}
		}
		begin += kid.size
	}
	return true
}

// Repetition calls emit as Strides does for the packed bytes [from, to) of runs of n bytes, the
// first at off, stride from one to the next: what is cut off at either end comes apart.
func Repetition(off, n, stride, from, to int64, emit func(off, n, stride, count int64) bool) bool {
	i := from / n
	if skip := from - i*n; skip > 0 {
		k := min(to-from, n-skip)
		if !emit(off+i*stride+skip, k, 0, 1) {
			return false
		}
		from += k
		i++
	}
	if whole := (to - from) / n; whole > 0 {
		if !emit(off+i*stride, n, stride, whole) {
			return false
		}
		from += whole * n
		i += whole
	}
	return from >= to || emit(off+i*stride, to-from, 0, 1)
}

// Retype makes t anew with every basic type b replaced by f(b): the same type for other sizes of
// the basic types, as files have them (MPI-5.0, 15.5.2). Displacements that were given in bytes
// stay as they are.
func (t *Type) Retype(f func(*Basic) *Basic) (*Type, error) {
	r := retyper{f: f, done: map[*Type]*Type{}}
	return r.retype(t)
}

type retyper struct {
	f    func(*Basic) *Basic
	done map[*Type]*Type
}

func (r *retyper) retype(t *Type) (*Type, error) {
	if made, ok := r.done[t]; ok {
		return made, nil
	}
	made, err := r.make(t)
	if err == nil {
		r.done[t] = made
	}
	return made, err
}

func (r *retyper) make(t *Type) (*Type, error) {
	if t.Predefined() {
		return NewBasic(r.f(t.Basic())), nil
	}
	c := t.Contents()
	kids := make([]*Type, len(c.Types))
	for i, k := range c.Types {
		kid, err := r.retype(k)
		if err != nil {
			return nil, err
		}
		kids[i] = kid
	}
	return rebuild(t.Combiner(), c, kids)
}

// arguments takes the contents of a constructor apart: small constructors have counts among the
// ints, large ones apart.
type arguments struct {
	ints, addrs, counts []int64
	large               bool
}

// number takes one count.
func (a *arguments) number() int64 {
	if a.large {
		return take(&a.counts, 1)[0]
	}
	return take(&a.ints, 1)[0]
}

// numbers takes n counts.
func (a *arguments) numbers(n int64) []int64 {
	if a.large {
		return take(&a.counts, n)
	}
	return take(&a.ints, n)
}

// bytes takes n displacements in bytes.
func (a *arguments) bytes(n int64) []int64 {
	if a.large {
		return take(&a.counts, n)
	}
	return take(&a.addrs, n)
}

func take(from *[]int64, n int64) []int64 {
	out := append([]int64(nil), (*from)[:n]...)
	*from = (*from)[n:]
	return out
}

// rebuild calls the constructor comb with the arguments c, but with the types kids.
func rebuild(comb Combiner, c Contents, kids []*Type) (*Type, error) {
	a := arguments{c.Ints, c.Addrs, c.Counts, len(c.Counts) > 0}
	switch comb {
	case CombDup:
		return Dup(kids[0]), nil
	case CombContiguous:
		return Contiguous(a.number(), kids[0], a.large)
	case CombVector:
		v := a.numbers(3)
		return Vector(v[0], v[1], v[2], kids[0], a.large)
	case CombHvector:
		v := a.numbers(2)
		return Hvector(v[0], v[1], a.bytes(1)[0], kids[0], a.large)
	case CombIndexed:
		n := a.number()
		lengths := a.numbers(n)
		return Indexed(lengths, a.numbers(n), kids[0], a.large)
	case CombHindexed:
		n := a.number()
		lengths := a.numbers(n)
		return Hindexed(lengths, a.bytes(n), kids[0], a.large)
	case CombIndexedBlock:
		v := a.numbers(2)
		return IndexedBlock(v[1], a.numbers(v[0]), kids[0], a.large)
	case CombHindexedBlock:
		v := a.numbers(2)
		return HindexedBlock(v[1], a.bytes(v[0]), kids[0], a.large)
	case CombStruct:
		n := a.number()
		lengths := a.numbers(n)
		return Struct(lengths, a.bytes(n), kids, a.large)
	case CombResized:
		v := a.bytes(2)
		return Resized(kids[0], v[0], v[1], a.large)
	}
	return a.array(comb, kids[0])
}

// array makes a Subarray or a Darray.
func (a *arguments) array(comb Combiner, old *Type) (*Type, error) {
	if comb == CombSubarray {
		n := take(&a.ints, 1)[0]
		sizes := a.numbers(n)
		subsizes := a.numbers(n)
		return Subarray(sizes, subsizes, a.numbers(n), Order(a.ints[0]), old, a.large)
	}
	v := take(&a.ints, 3)
	n := v[2]
	gsizes := a.numbers(n)
	distribs := take(&a.ints, n)
	dargs := take(&a.ints, n)
	return Darray(v[0], v[1], gsizes, distribs, dargs, take(&a.ints, n), Order(a.ints[0]), old,
		a.large)
}
