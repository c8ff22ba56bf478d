package ident

import (
	"strings"
	"testing"
)

func TestWireFormRoundTrip(t *testing.T) {
	for _, p := range []ProcID{{}, {Job: 1 << 63, World: 7, Rank: 1<<32 - 1, Incarnation: 3}} {
		b := Append(nil, p)
		if len(b) != WireSize {
			t.Fatalf("%v encodes to %d bytes, want %d", p, len(b), WireSize)
		}
		got, ok := Decode(b)
		if !ok || got != p {
			t.Errorf("Decode(Append(%v)) = %v, %v", p, got, ok)
		}
		if _, ok := Decode(b[:WireSize-1]); ok {
			t.Errorf("a cut ProcID decodes")
		}
	}
}

func TestOrderGoesByWorldThenRankThenIncarnation(t *testing.T) {
	asc := []ProcID{{Job: 1}, {Job: 1, Incarnation: 1}, {Job: 1, Rank: 1}, {Job: 1, World: 1},
		{Job: 2}}
	for i := range asc {
		for j := range asc {
			got := Compare(asc[i], asc[j])
			if (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("Compare(%v, %v) = %d", asc[i], asc[j], got)
			}
		}
	}
}

func TestSameWorldIgnoresOnlyTheRank(t *testing.T) {
	p := ProcID{Job: 1, World: 2, Rank: 3, Incarnation: 4}
	if !p.SameWorld(p.Next(-3)) {
		t.Error("a neighbour is not in the same world")
	}
	q := p
	q.Incarnation++
	if p.SameWorld(q) {
		t.Error("another incarnation counts as the same")
	}
}

func TestCheckCluster(t *testing.T) {
	for name, good := range map[string]bool{"a": true, "radar-2.front_end": true,
		strings.Repeat("x", 64): true,
		"":                      false, "a b": false, "a/b": false, "caf\u00e9": false,
		"a\x00":                 false,
		strings.Repeat("x", 65): false} {
		if err := CheckCluster(name); (err == nil) != good {
			t.Errorf("CheckCluster(%q) is %v", name, err)
		}
	}
}
