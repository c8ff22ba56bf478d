package topo

import (
	"encoding/binary"

	"libspx/core/mpierr"
)

// DistGraph is one process's part of a distributed graph: the edges that begin or end at it
// (MPI-5.0, 9.5.4).
type DistGraph struct {
	Sources, SourceWeights []int // without weights the latter is nil
	Dests, DestWeights     []int
	Weighted               bool
}

// Kind returns IsDistGraph.
func (g *DistGraph) Kind() Kind { return IsDistGraph }

// Neighbors are those of the process that the graph was made at.
func (g *DistGraph) Neighbors(int) Neighbors {
	return Neighbors{Sources: g.Sources,
		Dests: g.Dests}
}

// NewAdjacent makes a process's part of a graph from its own edges
// (MPI_Dist_graph_create_adjacent). A weight array is nil when there are no weights. size is the
// number of processes. Errors: MPI_ERR_RANK for a neighbour that is none of them, MPI_ERR_ARG for a
// negative weight.
func NewAdjacent(sources, sourceWeights, dests, destWeights []int, weighted bool,
	size int) (*DistGraph, error) {
	for _, list := range []struct {
		name  string
		ranks []int
	}{{"sources", sources}, {"destinations", dests}} {
		if err := checkRanks(list.name, list.ranks, size); err != nil {
			return nil, err
		}
	}
	if err := checkWeights("sourceweights", sourceWeights); err != nil {
		return nil, err
	}
	if err := checkWeights("destweights", destWeights); err != nil {
		return nil, err
	}
	return &DistGraph{sources, sourceWeights, dests, destWeights, weighted}, nil
}

func checkRanks(name string, ranks []int, size int) error {
	for i, r := range ranks {
		if r < 0 || r >= size {
			return mpierr.New(mpierr.Rank, "%s[%d] is %d, but the communicator has ranks 0 to %d",
				name, i, r, size-1)
		}
	}
	return nil
}

func checkWeights(name string, weights []int) error {
	for i, w := range weights {
		if w < 0 {
			return mpierr.New(mpierr.Arg, "%s[%d] is %d: weights are 0 or more", name, i, w)
		}
	}
	return nil
}

// Contribution is a process's part of the description of a graph, not only of its own edges
// (MPI_Dist_graph_create): edges from Sources[i] to each of the next Degrees[i] entries of Dests,
// with the weights beside them.
type Contribution struct {
	Sources, Degrees, Dests []int
	Weights                 []int // nil: MPI_UNWEIGHTED
	Weighted                bool
}

// EndCount returns the number of destinations that degrees add up to. Errors: MPI_ERR_ARG for a
// negative degree.
func EndCount(degrees []int) (int, error) {
	n := 0
	for i, d := range degrees {
		if d < 0 {
			return 0, mpierr.New(mpierr.Arg, "degrees[%d] is %d: it must be 0 or more", i, d)
		}
		n += d
	}
	return n, nil
}

// Check finds what is wrong with a contribution to a graph of size processes: MPI_ERR_RANK,
// MPI_ERR_ARG.
func (c *Contribution) Check(size int) error {
	if err := checkRanks("sources", c.Sources, size); err != nil {
		return err
	}
	if err := checkRanks("destinations", c.Dests, size); err != nil {
		return err
	}
	return checkWeights("weights", c.Weights)
}

// The encoding of a contribution: a word for whether it has weights (and, when it has no edges,
// whether it would have), then source, destination and weight of each edge.
const (
	unweighted = iota
	weightedEdges
	edgeWire = 12
)

// Encode returns the message of a checked contribution.
func (c *Contribution) Encode() []byte {
	mode := uint32(unweighted)
	if c.Weighted {
		mode = weightedEdges
	}
	b := binary.LittleEndian.AppendUint32(nil, mode)
	k := 0
	for i, source := range c.Sources {
		for range c.Degrees[i] {
			weight := 0
			if c.Weighted {
				weight = c.Weights[k]
			}
			b = appendWords(b, source, c.Dests[k], weight)
			k++
		}
	}
	return b
}

func appendWords(b []byte, words ...int) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	return b
}

func wordAt(b []byte, i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }

// Route turns the contributions of all processes, by rank, into the parts that each gets. Edges
// keep the order of the contributors and of their arrays, at both ends, so that parallel edges have
// the same order at both. Errors: MPI_ERR_ARG when only some contributions have weights.
func Route(all [][]byte) ([][]byte, error) {
	type part struct{ in, out []byte }
	parts := make([]part, len(all))
	modes, empty := [2]bool{}, [2]bool{}
	for _, b := range all {
		if len(b) < 4 || (len(b)-4)%edgeWire != 0 || wordAt(b, 0) > weightedEdges {
			return nil, errForm
		}
		mode := wordAt(b, 0)
		if len(b) == 4 {
			empty[mode] = true
		} else {
			modes[mode] = true
		}
		for b = b[4:]; len(b) > 0; b = b[edgeWire:] {
			from, to, weight := wordAt(b, 0), wordAt(b, 1), wordAt(b, 2)
			if from >= len(all) || to >= len(all) {
				return nil, errForm
			}
			parts[from].out = appendWords(parts[from].out, to, weight)
			parts[to].in = appendWords(parts[to].in, from, weight)
		}
	}
	if modes[unweighted] && modes[weightedEdges] {
		return nil, mpierr.New(mpierr.Arg,
			"some processes pass weights and others MPI_UNWEIGHTED: it must be the same for all")
	}
	mode := unweighted
	if modes[weightedEdges] || !modes[unweighted] && empty[weightedEdges] {
		mode = weightedEdges
	}
	out := make([][]byte, len(all))
	for i, p := range parts {
		out[i] = append(append(appendWords(nil, mode, len(p.in)/8), p.in...), p.out...)
	}
	return out, nil
}

var errForm = &mpierr.Error{Class: mpierr.Intern,
	Text: "a message about a distributed graph has a wrong form"}

// DecodePart reads what Route made for a process.
func DecodePart(b []byte) (*DistGraph, error) {
	if len(b) < 8 || len(b)%8 != 0 || wordAt(b, 1) > (len(b)-8)/8 {
		return nil, errForm
	}
	g := &DistGraph{Weighted: wordAt(b, 0) == weightedEdges}
	in := b[8 : 8+8*wordAt(b, 1)]
	g.Sources, g.SourceWeights = decodeEnds(in, g.Weighted)
	g.Dests, g.DestWeights = decodeEnds(b[8+len(in):], g.Weighted)
	return g, nil
}

func decodeEnds(b []byte, weighted bool) (ranks, weights []int) {
	for ; len(b) > 0; b = b[8:] {
		ranks = append(ranks, wordAt(b, 0))
		if weighted {
			weights = append(weights, wordAt(b, 1))
		}
	}
	return ranks, weights
}
