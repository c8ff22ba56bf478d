package topo

import "testing"

// What peers send about a distributed graph is routed or refused, and every part that is made of it
// can be read.
func FuzzRoute(f *testing.F) {
	f.Add(appendWords(nil, unweighted), appendWords(nil, weightedEdges))
	f.Add(appendWords(nil, unweighted, 0, 1, 1), appendWords(nil, unweighted, 1, 0, 1, 1, 1, 1))
	f.Add(appendWords(nil, weightedEdges, 0, 1, 7), appendWords(nil, weightedEdges, 1, 1, 0))
	f.Add(appendWords(nil, 9, 9, 9, 9), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		parts, err := Route([][]byte{a, b})
		if err != nil {
			return
		}
		in, out := 0, 0
		for rank, p := range parts {
			g, err := DecodePart(p)
			if err != nil {
				t.Fatalf("part %d: %v", rank, err)
			}
			in += len(g.Sources)
			out += len(g.Dests)
		}
		if want := (len(a) + len(b) - 8) / edgeWire; in != want || out != want {
			t.Errorf("%d edges arrive and %d leave; %d were contributed", in, out, want)
		}
	})
}

func FuzzDecodePart(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendWords(nil, unweighted, 0))
	f.Add(appendWords(nil, weightedEdges, 1, 3, 5, 4, 6))
	f.Add(appendWords(nil, weightedEdges, -1, 3, 5, 4, 6))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodePart(b)
		if err != nil {
			return
		}
		if n := len(g.Sources) + len(g.Dests); 8*n != len(b)-8 {
			t.Errorf("%d neighbours in %d bytes", n, len(b))
		}
		if g.Weighted && (len(g.SourceWeights) != len(g.Sources) ||
			len(g.DestWeights) != len(g.Dests)) {
			t.Errorf("%d and %d neighbours have %d and %d weights", len(g.Sources), len(g.Dests),
				len(g.SourceWeights), len(g.DestWeights))
		}
	})
}
