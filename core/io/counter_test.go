package io

import (
	"testing"

	"libspx/core/mpierr"
)

// testCounter is rank 0's alone in these tests: the other ranks do not touch it.
type testCounter struct {
	n    int64
	fail error
}

func (c *testCounter) Add(n int64) (int64, error) {
	if c.fail != nil {
		return 0, c.fail
	}
	c.n += n
	return c.n - n, nil
}

// Processes follow each other by rank; where rank 0 has no counter, all get its error and none a
// position.
func TestInOrder(t *testing.T) {
	for _, broken := range []bool{false, true} {
		c := &testCounter{n: 10}
		if broken {
			c.fail = mpierr.New(mpierr.NoMem, "no memory")
		}
		together(5, func(p Peers) {
			at, err := InOrder(p, c, int64(p.Rank()))
			want := int64(10 + p.Rank()*(p.Rank()-1)/2)
			switch {
			case broken && mpierr.ClassOf(err) != mpierr.NoMem:
				t.Errorf("rank %d: error %v", p.Rank(), err)
			case !broken && (err != nil || at != want):
				t.Errorf("rank %d is at %d instead of %d: %v", p.Rank(), at, want, err)
			}
		})
		if !broken && c.n != 20 {
			t.Errorf("the counter is %d", c.n)
		}
	}
}
