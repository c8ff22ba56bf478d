package comm

import "testing"

// In every communicator each step's sends and receives fit, and after the last one every process
// has heard, directly or not, from all.
func TestFarewell(t *testing.T) {
	for size := 1; size <= 9; size++ {
		for remote := 0; remote <= 5; remote++ {
			testFarewell(t, size, remote)
		}
	}
}

func testFarewell(t *testing.T, size, remote int) {
	// The processes of the first group, and then of the other.
	n := size + remote
	steps := make([][]FarewellStep, n)
	for u := range steps {
		if u < size {
			steps[u] = Farewell(size, remote, true, u)
		} else {
			steps[u] = Farewell(remote, size, false, u-size)
		}
		if len(steps[u]) != len(steps[0]) {
			t.Fatalf("%d and %d: %d steps, %d", size, remote, len(steps[0]), len(steps[u]))
		}
	}
	number := func(u int, p Partner) int { // of a partner of u
		if (u < size) != p.Remote {
			return p.Rank
		}
		return size + p.Rank
	}
	heard := make([]map[int]bool, n)
	for u := range heard {
		heard[u] = map[int]bool{u: true}
	}
	for k := range steps[0] {
		next := make([]map[int]bool, n)
		for u := range steps {
			from := number(u, steps[u][k].From)
			if to := number(from, steps[from][k].To); to != u {
				t.Fatalf("%d and %d, step %d: %d waits for %d, which sends to %d", size, remote, k,
					u, from, to)
			}
			next[u] = map[int]bool{}
			for _, all := range []map[int]bool{heard[u], heard[from]} {
				for v := range all {
					next[u][v] = true
				}
			}
		}
		heard = next
	}
	for u := range heard {
		if len(heard[u]) != n {
			t.Errorf("%d and %d: %d has heard from %d", size, remote, u, len(heard[u]))
		}
	}
}
