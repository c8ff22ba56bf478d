package datatype

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Moves: what the packer's kernels run. A node of few short runs is moved by passes over many of
// its kind, of up to four moves of as many bytes each; lists of runs are given forms that have
// them.

const (
	moveMax     = 16 // bytes of a move
	passMoves   = 4  // moves of a pass
	movesMax    = 32 // moves of a node, at most
	repMovesMax = 8  // those of a repetition: longer ones are a loop of their own
	shortRun    = passMoves * moveMax
	periodMax   = 8 // entries that come again and again
)

// move copies bytes from off in memory to at of the packed form.
type move struct{ bytes, off, at int64 }

// appendMoves adds the moves of a run to list: of the largest power of 2 that it holds, the last
// one ending where the run does.
func appendMoves(list []move, off, at, size int64) []move {
	b := min(int64(1)<<(bits.Len64(uint64(size))-1), moveMax)
	for d := int64(0); d < size; d += b {
		d = min(d, size-b)
		list = append(list, move{b, off + d, at + d})
	}
	return list
}

// flat adds the moves of the node at off, of which the first packed byte is at; false when there
// are too many, or a run is long.
func (nd *node) flat(list []move, off, at int64) ([]move, bool) {
	if nd.kind == nodeRun {
		if nd.size > shortRun || len(list) >= movesMax {
			return nil, false
		}
		return appendMoves(list, off, at, nd.size), true
	}
	if nd.n > movesMax || nd.kind == nodeRep && nd.size > repMovesMax*moveMax {
		return nil, false
	}
	before, ok := len(list), true
	for i := range int(nd.n) {
		kid, d := nd.kid, int64(i)*nd.stride
		if nd.kind != nodeRep {
			kid, d = nd.kidAt(i), nd.offs[i]
		}
		if list, ok = kid.flat(list, off+d, at); !ok {
			return nil, false
		}
		at += kid.size
	}
	most := movesMax
	if nd.kind == nodeRep {
		most = before + repMovesMax
	}
	return list, len(list) <= most
}

// passes returns the passes of a node, as the packer has them; nil: it has none.
func (nd *node) passes() []int64 {
	if nd.kind == nodeRun {
		return nil
	}
	list, ok := nd.flat(nil, 0, 0)
	if !ok {
		return nil
	}
	out := []int64{0}
	add := func(of []move) {
		last := len(of) - 1
		pass := [3 + 2*passMoves]int64{of[0].bytes, of[last].bytes, int64(last + 1)}
		for i, m := range of {
			pass[3+i], pass[3+passMoves+i] = m.off, m.at
		}
		out = append(out, pass[:]...)
		out[0]++
	}
	var alone []move // one of its size that is left
	for b := int64(moveMax); b > 0; b /= 2 {
		var of []move
		for _, m := range list {
			if m.bytes == b {
				of = append(of, m)
			}
		}
		if len(of) == 1 {
			alone = append(alone, of[0])
			continue
		}
		for left := (len(of) + passMoves - 1) / passMoves; left > 0; left-- {
			k := (len(of) + left - 1) / left // passes of about as many moves
			add(of[:k])
			of = of[k:]
		}
	}
	for ; len(alone) > 1; alone = alone[2:] {
		add(alone[:2])
	}
	if len(alone) > 0 {
		add(alone)
	}
	return out
}

// near writes the displacements of a block node in 32 bits each, two in a word, and returns where;
// 0 when they do not fit, or no kernel would take them.
func (w *writer) near(nd *node) int64 {
	if nd.kid.kind != nodeRun && nd.kid.passes() == nil {
		return 0
	}
	table := make([]int64, (len(nd.offs)+1)/2)
	b := make([]byte, 8*len(table)) // as the packer reads them, on any processor
	for i, o := range nd.offs {
		if o < math.MinInt32 || o > math.MaxInt32 {
			return 0
		}
		binary.NativeEndian.PutUint32(b[4*i:], uint32(o))
	}
	for i := range table {
		table[i] = int64(binary.NativeEndian.Uint64(b[8*i:]))
	}
	return w.table(table)
}

// period returns after how many entries a list of runs goes on as it began, further on in memory;
// 0: it does not, or too few times.
func period(list []placed) int {
	for p := 2; p <= periodMax && 4*p <= len(list); p++ {
		step, i := list[p].off-list[0].off, p
		for i < len(list) && list[i].off-list[i-p].off == step && list[i].node.size <= shortRun &&
			list[i].node.size == list[i-p].node.size {
			i++
		}
		if i == len(list) {
			return p
		}
	}
	return 0
}

// periodic is a list of runs with a period, as a repetition and what is left.
func periodic(list []placed, p int) placed {
	n := len(list) / p
	step := list[p].off - list[0].off
	out := []placed{repNode(int64(n), step, listNode(append([]placed(nil), list[:p]...)))}
	return listNode(append(out, list[n*p:]...))
}

// commonUnit is the size of the blocks into which runs of unequal lengths are better cut, since
// most are of one or two of them; 0: they are not.
func commonUnit(list []placed) int64 {
	size, unit := int64(0), int64(0)
	for _, p := range list {
		size += p.node.size
		for a := p.node.size; a != 0; {
			unit, a = a, unit%a
		}
	}
	if unit >= 4 && unit <= shortRun && size <= 2*unit*int64(len(list)) {
		return unit
	}
	return 0
}

// split cuts runs into blocks of unit bytes.
func split(list []placed, unit int64) []placed {
	block, out := run(unit, nil), make([]placed, 0, 2*len(list))
	for _, p := range list {
		for d := int64(0); d < p.node.size; d += unit {
			out = append(out, placed{p.off + d, block})
		}
	}
	return out
}
