package hosts

import (
	"slices"
	"testing"
)

func TestStarters(t *testing.T) {
	for _, c := range []struct {
		n, fanout int
		want      []int
	}{
		{1, 2, []int{0}},
		{4, 0, []int{0, 0, 0, 0}},
		{4, 1, []int{0, 0, 0, 0}},
		{4, 3, []int{0, 0, 0, 0}},
		{7, 2, []int{0, 0, 1, 1, 0, 4, 4}},
		{8, 3, []int{0, 0, 1, 1, 0, 4, 0, 6}},
	} {
		if got := Starters(c.n, c.fanout); !slices.Equal(got, c.want) {
			t.Errorf("%d hosts, fan-out %d: %v, want %v", c.n, c.fanout, got, c.want)
		}
	}
}

// Whatever the numbers: each host is started by an earlier one, none starts more than allowed, and
// the tree is no deeper than it has to be.
func TestStartersOfAny(t *testing.T) {
	for n := 1; n < 300; n++ {
		for fanout := 2; fanout < 20; fanout++ {
			of := Starters(n, fanout)
			below, depth := make([]int, n), make([]int, n)
			full, deepest := 1, 0 // hosts of a full tree of that depth
			for width := fanout; full < n; width *= fanout {
				full, deepest = full+width, deepest+1
			}
			for host := 1; host < n; host++ {
				by := of[host]
				if by >= host {
					t.Fatalf("%d hosts, fan-out %d: %d is started by %d", n, fanout, host, by)
				}
				below[by]++
				if depth[host] = depth[by] + 1; depth[host] > deepest || below[by] > fanout {
					t.Fatalf(
						"%d hosts, fan-out %d: host %d is at depth %d of %d; %d has %d below it", n,
						fanout, host, depth[host], deepest, by, below[by])
				}
			}
		}
	}
}

func TestParseFanout(t *testing.T) {
	for text, want := range map[string]int{"": Fanout, "0": 0, "16": 16} {
		if got, err := ParseFanout(text, SSH); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]int{"": 0, "16": 16} {
		if got, err := ParseFanout(text, slurmRsh); got != want || err != nil {
			t.Errorf("%q, by Slurm's command: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"-1", "x", "1.5", "99999999999"} {
		if _, err := ParseFanout(text, nil); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
