package sim

import (
	"math/bits"
	"testing"

	"libspx/ft/place"
)

// What the failure protocols cost (docs/bench/rounds.md): an agreement goes through the tree four times, and no number of deaths adds a
// round; a revocation goes to log4 n members by each.
func TestRounds(t *testing.T) {
	for n := 4; n <= 1024; n *= 4 {
		log2, depth := bits.Len(uint(n))-1, 0
		for level, nodes := 1, 1; nodes < n; depth++ {
			level *= place.NearWidth
			nodes += level
		}
		agreed := func(faults ...Fault) Outcome {
			o, err := RunJob(Job{Hosts: 1, Ranks: n, Rounds: true, Ops: []Op{{Kind: Shrink}}, Faults: faults})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		if o := agreed(); o.Messages != 4*(n-1) || o.Returned != Time(4*depth) {
			t.Errorf("%d members: %d messages, %d rounds", n, o.Messages, o.Returned)
		}
		var half []Fault
		for p := 1; p < n; p += 2 {
			half = append(half, Fault{Kind: Kill, Who: p, At: 1})
		}
		if o := agreed(half...); o.Deaths != n/2 || o.Returned > Time(4*depth+4) {
			t.Errorf("%d members, of which %d die: %d rounds", n, o.Deaths, o.Returned)
		}
		o, err := RunJob(Job{Hosts: 1, Ranks: n, Rounds: true, Faults: []Fault{{Kind: Revoke, At: 1}}})
		if err != nil || o.Messages != n*log2/2 || o.Revoked-1 > Time(2*log2) {
			t.Errorf("%d members, a revocation: %d messages, %d rounds, %v", n, o.Messages, o.Revoked-1, err)
		}
	}
}
