package topo

import (
	"math"

	"libspx/core/mpierr"
)

// Cart is a grid of processes (MPI-5.0, 9.5.1). Ranks count its points with the last coordinate
// running fastest.
type Cart struct {
	Dims    []int
	Periods []bool // by dimension: the last point and the first are neighbours
}

// NewCart makes a grid whose points are the first ranks of a group of size processes. Without
// dimensions it has one point. Errors: MPI_ERR_DIMS for a dimension that is not positive, or when
// the group is too small.
func NewCart(dims []int, periods []bool, size int) (*Cart, error) {
	points := 1
	for i, d := range dims {
		if d <= 0 {
			return nil, mpierr.New(mpierr.Dims, "dims[%d] is %d: it must be 1 or more", i, d)
		}
		if points > math.MaxInt32/d || points*d > size {
			return nil, mpierr.New(mpierr.Dims,
				"dims %v: the grid has more points than the communicator has processes, %d", dims,
				size)
		}
		points *= d
	}
	return &Cart{Dims: dims, Periods: periods}, nil
}

// Kind returns IsCart.
func (c *Cart) Kind() Kind { return IsCart }

// Size is the number of points.
func (c *Cart) Size() int {
	n := 1
	for _, d := range c.Dims {
		n *= d
	}
	return n
}

// Coords returns the coordinates of a rank, which must be one of the grid's (MPI_Cart_coords).
func (c *Cart) Coords(rank int) []int {
	out := make([]int, len(c.Dims))
	for i := len(c.Dims) - 1; i >= 0; i-- {
		out[i] = rank % c.Dims[i]
		rank /= c.Dims[i]
	}
	return out
}

// Rank returns the rank of the point at the given coordinates, which are wrapped around in periodic
// dimensions (MPI_Cart_rank). Errors: MPI_ERR_ARG for a coordinate outside of another dimension.
func (c *Cart) Rank(coords []int) (int, error) {
	rank := 0
	for i, d := range c.Dims {
		x := coords[i]
		if x < 0 || x >= d {
			if !c.Periods[i] {
				return 0, mpierr.New(mpierr.Arg,
					"coords[%d] is %d, but the dimension, which is not periodic, goes from 0 to %d",
					i, x, d-1)
			}
			x = mod(x, d)
		}
		rank = rank*d + x
	}
	return rank, nil
}

func mod(x, d int) int {
	if x %= d; x < 0 {
		x += d
	}
	return x
}

// Shift returns the ranks from which and to which data move when all are shifted by disp points
// along a dimension, ProcNull where the grid ends (MPI_Cart_shift). Errors: MPI_ERR_DIMS for a
// dimension that the grid does not have.
func (c *Cart) Shift(rank, direction, disp int) (source, dest int, err error) {
	if direction < 0 || direction >= len(c.Dims) {
		return 0, 0, mpierr.New(mpierr.Dims,
			"direction is %d, but the grid has %d dimensions, counted from 0", direction,
			len(c.Dims))
	}
	return c.step(rank, direction, -disp), c.step(rank, direction, disp), nil
}

// step returns the rank disp points away along a dimension.
func (c *Cart) step(rank, direction, disp int) int {
	stride := 1
	for _, d := range c.Dims[direction+1:] {
		stride *= d
	}
	d := c.Dims[direction]
	from := rank / stride % d
	to := from + disp
	if to < 0 || to >= d {
		if !c.Periods[direction] {
			return ProcNull
		}
		to = mod(to, d)
	}
	return rank + (to-from)*stride
}

// Sub cuts the grid into grids of those dimensions that are kept (MPI_Cart_sub): the one that a
// rank is in, its number among them, and the rank in it.
func (c *Cart) Sub(rank int, keep []bool) (sub *Cart, number, newRank int) {
	sub = &Cart{}
	for i, x := range c.Coords(rank) {
		if keep[i] {
			sub.Dims, sub.Periods = append(sub.Dims, c.Dims[i]), append(sub.Periods, c.Periods[i])
			newRank = newRank*c.Dims[i] + x
		} else {
			number = number*c.Dims[i] + x
		}
	}
	return sub, number, newRank
}

// Neighbors are, for each dimension, the next process in negative direction and the next in
// positive direction.
func (c *Cart) Neighbors(rank int) Neighbors {
	var out []int
	for i := range c.Dims {
		out = append(out, c.step(rank, i, -1), c.step(rank, i, 1))
	}
	return Neighbors{Sources: out, Dests: out, Paired: true}
}
