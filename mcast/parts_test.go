package mcast

import (
	"math/bits"
	"testing"
)

// Every part comes to every host from the part's own host, through other hosts: along a ring in n-1
// steps, doubling in log2(n), rounded down. No host sends more of the message than one that has it
// once.
func TestPartsReachEveryHost(t *testing.T) {
	for n := 1; n <= 70; n++ {
		for _, way := range []struct {
			name  string
			from  func(me, i, n int) int
			steps int
		}{{"ring", RingFrom, n - 1}, {"doubling", DoublingFrom, bits.Len(uint(n)) - 1}} {
			most, sent := 0, make([]int, n)
			for i := range n {
				for me := range n {
					at, steps := me, 0
					for ; at != i && steps <= n; steps++ {
						at = way.from(at, i, n)
					}
					if at != i {
						t.Fatalf("%s, %d hosts: part %d does not come to host %d", way.name, n, i,
							me)
					}
					most = max(most, steps)
					if me != i {
						sent[way.from(me, i, n)]++
					}
				}
			}
			if most != way.steps {
				t.Errorf("%s, %d hosts: %d steps, want %d", way.name, n, most, way.steps)
			}
			for host, parts := range sent {
				if parts > n-1 {
					t.Errorf("%s, %d hosts: host %d sends %d parts", way.name, n, host, parts)
				}
			}
		}
	}
}

func TestCutsAreWholeLines(t *testing.T) {
	for _, bytes := range []int{0, 1, 63, 64, 1000, 81920, 1<<40 + 5} {
		for n := 1; n < 40; n++ {
			if Cut(bytes, n, 0) != 0 || Cut(bytes, n, n) != bytes {
				t.Fatalf("%d bytes in %d parts do not begin and end with the message", bytes, n)
			}
			for i := range n {
				from, to := Cut(bytes, n, i), Cut(bytes, n, i+1)
				if to < from || from%line != 0 || to-from > bytes/n+2*line {
					t.Fatalf("%d bytes: part %d of %d is %d to %d", bytes, i, n, from, to)
				}
			}
		}
	}
}
