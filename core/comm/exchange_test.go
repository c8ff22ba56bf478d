package comm

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"libspx/core/mpierr"
)

// blockOf is what a rank passes in: some blocks are empty, some need several messages.
func blockOf(rank int) []byte { return bytes.Repeat([]byte{byte(rank)}, rank%4*rank*50) }

func TestExchange(t *testing.T) {
	for _, n := range sizes {
		out := run(t, newNetwork(t, n), n, func(world *Comm, ids *Contexts) []byte {
			b, err := world.Exchange(blockOf(world.Rank), nil,
				func(all [][]byte) ([][]byte, error) {
					if world.Rank != 0 {
						t.Errorf("rank %d answers", world.Rank)
					}
					reply := make([][]byte, len(all))
					for r, got := range all {
						if !bytes.Equal(got, blockOf(r)) {
							t.Errorf("n = %d: %d bytes from rank %d", n, len(got), r)
						}
						reply[len(all)-1-r] = append([]byte{'x'}, got...)
					}
					return reply, nil
				})
			if err != nil {
				t.Error(err)
			}
			return b
		})
		for r, b := range out {
			if want := append([]byte{'x'}, blockOf(n-1-r)...); !bytes.Equal(b, want) {
				t.Errorf("n = %d: rank %d got %d bytes, not %d", n, r, len(b), len(want))
			}
		}
	}
}

// TestExchangeTellsAllOfAnError: of any one process, or of the answer.
func TestExchangeTellsAllOfAnError(t *testing.T) {
	for _, n := range sizes {
		for bad := -1; bad < n; bad++ {
			out := run(t, newNetwork(t, n), n, func(world *Comm, ids *Contexts) error {
				var failure error
				if world.Rank == bad {
					failure = mpierr.New(mpierr.Dims, "rank %d is wrong", bad)
				}
				_, err := world.Exchange(nil, failure, func(all [][]byte) ([][]byte, error) {
					return nil, mpierr.New(mpierr.Dims, "rank -1 is wrong")
				})
				return err
			})
			for r, err := range out {
				if mpierr.ClassOf(err) != mpierr.Dims ||
					err.Error() != fmt.Sprintf("rank %d is wrong", bad) {
					t.Fatalf("n = %d, wrong is %d: rank %d is told %v", n, bad, r, err)
				}
			}
		}
	}
}

func TestUnframe(t *testing.T) {
	whole := frame(frame(nil, []byte("ab")), nil)
	for k := range whole {
		if got, err := unframe(whole[:k], 2); !errors.Is(err, errShort) {
			t.Errorf("%d bytes: %q %v", k, got, err)
		}
	}
	if got, err := unframe(whole, 2); err != nil || string(got[0]) != "ab" || len(got[1]) != 0 {
		t.Errorf("%q %v", got, err)
	}
	if _, err := unframe(whole, 3); err == nil {
		t.Error("two blocks for three")
	}
}
