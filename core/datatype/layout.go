package datatype

// Layouts: the normalised form of a typemap, as a tree of nodes that describe bytes in packing
// order. Neighbouring runs are joined, repetitions of contiguous data collapse, short lists are
// spliced into longer ones. A plain layout knows bytes alone; a typed one keeps runs of different
// basic types apart (for external32 and for counting elements).

type nodeKind int64

// The kinds, as in dataplane/datatype/pack.h.
const (
	nodeRun   nodeKind = 1 // size bytes in a row
	nodeRep   nodeKind = 2 // n times kid, stride apart
	nodeBlock nodeKind = 3 // kid at each of offs
	nodeIndex nodeKind = 4 // runs of their own lengths (kids are runs) at offs
	nodeList  nodeKind = 5 // kids[i] at offs[i]
)

type node struct {
	kind      nodeKind
	size      int64 // packed bytes, > 0
	n, stride int64
	kid       *node
	offs      []int64
	kids      []*node
	// typed layouts only
	basic    *Basic // of all data below; nil: several
	elements int64
	ext32    int64
}

// placed is a node at a displacement; node is nil when there is no data.
type placed struct {
	off  int64
	node *node
}

const (
	spliceMax = 16 // lists up to this length are spliced into the list above
	listMax   = 64 // ... while that stays below this
)

func run(size int64, b *Basic) *node {
	nd := &node{kind: nodeRun, size: size, basic: b}
	if b != nil {
		nd.elements = size / b.Size
		nd.ext32 = nd.elements * b.Ext32
	}
	return nd
}

// sameNode reports whether two nodes describe the same bytes, as far as it is cheap to know.
func sameNode(a, b *node) bool {
	if a == b {
		return true
	}
	if a.kind != b.kind || a.size != b.size || a.basic != b.basic {
		return false
	}
	switch a.kind {
	case nodeRun:
		return true
	case nodeRep:
		return a.n == b.n && a.stride == b.stride && sameNode(a.kid, b.kid)
	}
	return false
}

// layout returns t's layout, plain or typed. Computed once.
func (t *Type) layout(typed bool) placed {
	if typed {
		t.typedOnce.Do(func() { t.typed = build(t.shape, true) })
		return t.typed
	}
	t.plainOnce.Do(func() { t.plain = build(t.shape, false) })
	return t.plain
}

func build(s *shape, typed bool) placed {
	if s == nil {
		return placed{}
	}
	switch s.op {
	case opBasic:
		return buildBasic(s.basic, typed)
	case opType:
		return s.typ.layout(typed)
	case opRep:
		return repNode(s.n, s.stride, build(s.kid, typed))
	}
	return buildList(s, typed)
}

func buildBasic(b *Basic, typed bool) placed {
	switch {
	case b.Value != nil && typed:
		return listNode([]placed{{0, run(b.Value.Size, b.Value)},
			{b.IndexAt, run(b.Index.Size, b.Index)}})
	case b.Value != nil:
		return listNode([]placed{{0, run(b.Value.Size, nil)}, {b.IndexAt, run(b.Index.Size, nil)}})
	case typed:
		return placed{0, run(b.Size, b)}
	}
	return placed{0, run(b.Size, nil)}
}

// repNode repeats p n times.
func repNode(n, stride int64, p placed) placed {
	kid := p.node
	switch {
	case n == 0 || kid == nil:
		return placed{}
	case n == 1:
		return p
	case kid.kind == nodeRun && stride == kid.size:
		return placed{p.off, run(n*kid.size, kid.basic)}
	case kid.kind == nodeRep && stride == kid.n*kid.stride:
		return repNode(n*kid.n, kid.stride, placed{p.off, kid.kid})
	}
	return placed{p.off, &node{kind: nodeRep, size: n * kid.size, n: n, stride: stride, kid: kid,
		basic: kid.basic, elements: n * kid.elements, ext32: n * kid.ext32}}
}

func buildList(s *shape, typed bool) placed {
	built := map[*shape]placed{}
	all := make([]placed, 0, len(s.offs))
	var last *shape
	var p placed
	for i, o := range s.offs {
		if k := s.kidAt(i); i == 0 || k != last {
			var ok bool
			if p, ok = built[k]; !ok {
				p = build(k, typed)
				built[k] = p
			}
			last = k
		}
		if p.node != nil {
			all = append(all, placed{o + p.off, p.node})
		}
	}
	return listNode(all)
}

// splice replaces short lists by their entries, so that runs across their borders can be joined.
// Where one node is at many places they are short displacements of one node, which the packer runs
// faster.
func splice(in []placed) []placed {
	if len(in) > listMax || len(in) > spliceMax && allSame(in) {
		return in
	}
	out := make([]placed, 0, len(in))
	for _, p := range in {
		nd := p.node
		if len(nd.offs) == 0 || len(nd.offs) > spliceMax || len(out)+len(nd.offs) > listMax {
			out = append(out, p)
			continue
		}
		for i, o := range nd.offs {
			out = append(out, placed{p.off + o, nd.kidAt(i)})
		}
	}
	return out
}

func allSame(in []placed) bool {
	for _, p := range in {
		if p.node != in[0].node {
			return false
		}
	}
	return true
}

func (nd *node) kidAt(i int) *node {
	if nd.kind == nodeBlock {
		return nd.kid
	}
	return nd.kids[i]
}

// extend makes a, whose node is not shared, longer by b when that goes without another node:
// lists of millions of neighbours would leave as many nodes behind.
func extend(a, b placed) bool {
	x, y := a.node, b.node
	n := int64(1) // times the kid of a repetition
	switch {
	case x.basic != y.basic:
		return false
	case x.kind == nodeRun:
		if y.kind != nodeRun || b.off != a.off+x.size {
			return false
		}
	case x.kind != nodeRep || b.off != a.off+x.n*x.stride:
		return false
	case y.kind == nodeRep && y.stride == x.stride && sameNode(x.kid, y.kid):
		n = y.n
	case !sameNode(x.kid, y):
		return false
	}
	if x.kind == nodeRep {
		x.n += n
	}
	x.size, x.elements, x.ext32 = x.size+y.size, x.elements+y.elements, x.ext32+y.ext32
	return true
}

// joined returns a and b as one node when b begins where a ends and both are of a kind.
func joined(a, b placed) (placed, bool) {
	x, y := a.node, b.node
	if x.basic != y.basic {
		return a, false
	}
	switch {
	case x.kind == nodeRun && y.kind == nodeRun && b.off == a.off+x.size:
		return placed{a.off, run(x.size+y.size, x.basic)}, true
	case x.kind == nodeRep && y.kind == nodeRep && x.stride == y.stride && sameNode(x.kid, y.kid) &&
		b.off == a.off+x.n*x.stride:
		return repNode(x.n+y.n, x.stride, placed{a.off, x.kid}), true
	case x.kind == nodeRep && b.off == a.off+x.n*x.stride && sameNode(x.kid, y):
		return repNode(x.n+1, x.stride, placed{a.off, x.kid}), true
	}
	return a, false
}

// listNode places several nodes, in packing order. The slice becomes its own.
func listNode(in []placed) placed {
	in = splice(in)
	list := in[:0]  // never ahead of what is read
	var fresh *node // made by joining here
	for _, p := range in {
		if k := len(list); k > 0 {
			if list[k-1].node == fresh && extend(list[k-1], p) {
				continue
			}
			if j, ok := joined(list[k-1], p); ok {
				list[k-1], fresh = j, j.node
				continue
			}
		}
		list = append(list, p)
	}
	switch len(list) {
	case 0:
		return placed{}
	case 1:
		return list[0]
	}
	first := list[0]
	same, even, runs := true, true, true
	step := list[1].off - first.off
	for i, p := range list {
		same = same && sameNode(p.node, first.node)
		even = even && p.off == first.off+int64(i)*step
		runs = runs && p.node.kind == nodeRun && p.node.basic == first.node.basic
	}
	if same && even {
		return repNode(int64(len(list)), step, first)
	}
	if runs && first.node.basic == nil {
		if p := period(list); p > 0 {
			return periodic(list, p)
		}
		if !same && len(list) > movesMax {
			if unit := commonUnit(list); unit > 0 {
				return placed{first.off, collect(split(list, unit), true, true)}
			}
		}
	}
	return placed{first.off, collect(list, same, runs)}
}

// collect makes the list node; its displacements count from the first entry.
func collect(list []placed, same, runs bool) *node {
	nd := &node{kind: nodeList, n: int64(len(list)), offs: make([]int64, len(list)),
		basic: list[0].node.basic}
	for i, p := range list {
		nd.offs[i] = p.off - list[0].off
		nd.size += p.node.size
		nd.elements += p.node.elements
		nd.ext32 += p.node.ext32
		if p.node.basic != nd.basic {
			nd.basic = nil
		}
	}
	if same {
		nd.kind, nd.kid = nodeBlock, list[0].node
		return nd
	}
	if runs {
		nd.kind = nodeIndex
	}
	nd.kids = make([]*node, len(list))
	for i, p := range list {
		nd.kids[i] = p.node
	}
	return nd
}

// Contiguous reports whether count elements of t at an address are count*Size bytes at that
// address.
func (t *Type) Contiguous() bool {
	p := t.layout(false)
	return p.node == nil || p.node.kind == nodeRun && p.off == 0 && p.node.size == t.Extent()
}

// Simple reports whether t is quickly compiled: it is made of few parts.
func (t *Type) Simple() bool {
	parts := 64
	t.shape.count(&parts)
	return parts >= 0
}

// count takes the parts that compiling visits off left, until it is negative.
func (s *shape) count(left *int) {
	if *left -= 1; s == nil || *left < 0 {
		return
	}
	*left -= len(s.offs)
	switch s.op {
	case opType:
		s.typ.shape.count(left)
	case opRep:
		s.kid.count(left)
	case opList:
		for _, k := range s.kids {
			k.count(left)
		}
	}
}

// NeedsTyped reports whether elements of t can only be told apart with a typed layout: several
// basic types, or a pair.
func (t *Type) NeedsTyped() bool {
	return t.size > 0 && (t.mixed || t.basic.Value != nil)
}

// Sizes of the C structs spx_layout and spx_node, in words.
const (
	headWords = 4
	nodeWords = 12
)

// Image returns the layout as the words of a C spx_layout (dataplane/datatype/pack.h), plain or
// typed.
func (t *Type) Image(typed bool) []int64 {
	p := t.layout(typed)
	w := writer{plain: !typed, words: make([]int64, headWords, headWords+4*nodeWords)}
	if p.node != nil {
		w.words[1] = w.node(p.node)
		w.words[2] = p.off
		w.words[3] = p.node.ext32
	}
	w.words[0] = int64(len(w.words))
	return w.words
}

// writer collects the words. Below the first list a node may be met again: at tells where it was
// written.
type writer struct {
	words []int64
	plain bool // with what only the packer takes: moves, short displacements
	at    map[*node]int64
}

func (w *writer) table(v []int64) int64 {
	at := len(w.words)
	w.words = append(w.words, v...)
	return int64(at)
}

// node writes a node after what it refers to, and returns the index of its first word.
func (w *writer) node(nd *node) int64 {
	if at, ok := w.at[nd]; ok {
		return at
	}
	rec := [nodeWords]int64{0: int64(nd.kind), 1: nd.size, 2: nd.n, 3: nd.stride, 9: nd.elements}
	if nd.kid != nil {
		rec[4] = w.node(nd.kid)
	}
	if nd.offs != nil {
		rec[5] = w.table(nd.offs)
	}
	if nd.kids != nil {
		prefix := make([]int64, 1, len(nd.kids)+1)
		for i, k := range nd.kids {
			prefix = append(prefix, prefix[i]+k.size)
		}
		rec[6] = w.table(prefix)
	}
	if nd.kind == nodeList {
		if w.at == nil {
			w.at = map[*node]int64{}
		}
		kids := make([]int64, len(nd.kids))
		for i, k := range nd.kids {
			kids[i] = w.node(k)
		}
		rec[7] = w.table(kids)
	}
	if nd.basic != nil {
		rec[8] = int64(nd.basic.ID)
	}
	if w.plain {
		if nd.kind == nodeBlock {
			rec[10] = w.near(nd)
		}
		if passes := nd.passes(); passes != nil {
			rec[11] = w.table(passes)
		}
	}
	at := w.table(rec[:])
	if w.at != nil {
		w.at[nd] = at
	}
	return at
}
