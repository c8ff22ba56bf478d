package datatype

import "libspx/core/mpierr"

// Order is the storage order of an array.
type Order int

// Orders and distributions, by their values in the standard ABI.
const (
	OrderC       Order = 12
	OrderFortran Order = 15

	DistributeNone    = 16
	DistributeBlock   = 17
	DistributeCyclic  = 18
	DistributeDfltArg = 19
)

// fastest returns the dimensions in the order of memory, the one with neighbouring elements first.
func fastest(ndims int, order Order) ([]int, error) {
	dims := make([]int, ndims)
	for i := range dims {
		switch order {
		case OrderFortran:
			dims[i] = i
		case OrderC:
			dims[i] = ndims - 1 - i
		default:
			return nil, mpierr.New(mpierr.Arg, "order is %d; use MPI_ORDER_C or MPI_ORDER_FORTRAN",
				order)
		}
	}
	return dims, nil
}

// Subarray makes the part of an array that begins at starts and has subsizes elements (MPI-5.0,
// 5.1.3). The bounds are those of the whole array.
func Subarray(sizes, subsizes, starts []int64, order Order, old *Type, large bool) (*Type, error) {
	n := len(sizes)
	if n == 0 {
		return nil, mpierr.New(mpierr.Arg, "ndims is 0; an array has at least one dimension")
	}
	for i := range sizes {
		switch {
		case sizes[i] < 1:
			return nil, mpierr.New(mpierr.Arg, "array_of_sizes[%d] is %d; it must be positive", i,
				sizes[i])
		case subsizes[i] < 1 || subsizes[i] > sizes[i]:
			return nil, mpierr.New(mpierr.Arg,
				"array_of_subsizes[%d] is %d; it must be from 1 to array_of_sizes[%d] = %d", i,
				subsizes[i], i, sizes[i])
		case starts[i] < 0 || starts[i] > sizes[i]-subsizes[i]:
			return nil, mpierr.New(mpierr.Arg,
				"array_of_starts[%d] is %d; with %d of %d elements it must be from 0 to %d",
				i, starts[i], subsizes[i], sizes[i], sizes[i]-subsizes[i])
		}
	}
	dims, err := fastest(n, order)
	if err != nil {
		return nil, err
	}
	var c calc
	s, stride, off := ofType(old), old.Extent(), int64(0)
	for _, d := range dims {
		s = repeat(subsizes[d], stride, s)
		off = c.add(off, c.mul(starts[d], stride))
		stride = c.mul(stride, sizes[d])
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	array := &shape{op: opList, offs: []int64{off}, kids: []*shape{s}, marked: true,
		markEnd: stride}
	args := Contents{Types: []*Type{old}}
	if large {
		args.Ints, args.Counts = []int64{int64(n), int64(order)},
			join(0, sizes, subsizes, starts)[1:]
	} else {
		args.Ints = append(join(n, sizes, subsizes, starts), int64(order))
	}
	return finish(CombSubarray, args, array)
}

// Darray makes the part of an array that process rank of size holds, with the array distributed
// over a grid of processes (MPI-5.0, 5.1.4).
func Darray(size, rank int64, gsizes, distribs, dargs, psizes []int64, order Order, old *Type,
	large bool) (*Type, error) {
	n := len(gsizes)
	if err := checkGrid(size, rank, gsizes, psizes); err != nil {
		return nil, err
	}
	dims, err := fastest(n, order)
	if err != nil {
		return nil, err
	}
	at := make([]int64, n) // coordinates of rank in the grid, row-major
	for i, left, cells := 0, rank, size; i < n; i++ {
		cells /= psizes[i]
		at[i], left = left/cells, left%cells
	}
	var c calc
	s, extent := ofType(old), old.Extent()
	for _, d := range dims {
		block, err := blockSize(d, gsizes[d], distribs[d], dargs[d], psizes[d])
		if err != nil {
			return nil, err
		}
		s = cyclic(&c, block, gsizes[d], at[d], psizes[d], extent, s)
		extent = c.mul(extent, gsizes[d])
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	array := &shape{op: opList, offs: []int64{0}, kids: []*shape{s}, marked: true, markEnd: extent}
	args := Contents{Types: []*Type{old}}
	if large {
		args.Ints = append(append(append(append([]int64{size, rank, int64(n)}, distribs...),
			dargs...), psizes...), int64(order))
		args.Counts = gsizes
	} else {
		args.Ints = append([]int64{size, rank},
			append(join(n, gsizes, distribs, dargs, psizes), int64(order))...)
	}
	return finish(CombDarray, args, array)
}

func checkGrid(size, rank int64, gsizes, psizes []int64) error {
	switch {
	case len(gsizes) == 0:
		return mpierr.New(mpierr.Arg, "ndims is 0; an array has at least one dimension")
	case size < 1:
		return mpierr.New(mpierr.Arg, "size is %d; it must be positive", size)
	case rank < 0 || rank >= size:
		return mpierr.New(mpierr.Rank, "rank is %d; it must be from 0 to size-1 = %d", rank, size-1)
	}
	var c calc
	cells := int64(1)
	for i := range gsizes {
		if gsizes[i] < 1 {
			return mpierr.New(mpierr.Arg, "array_of_gsizes[%d] is %d; it must be positive", i,
				gsizes[i])
		}
		if psizes[i] < 1 {
			return mpierr.New(mpierr.Arg, "array_of_psizes[%d] is %d; it must be positive", i,
				psizes[i])
		}
		cells = c.mul(cells, psizes[i])
	}
	if c.overflow || cells != size {
		return mpierr.New(mpierr.Arg,
			"array_of_psizes makes a grid of %d processes, but size is %d", cells, size)
	}
	return nil
}

// blockSize returns the elements in a block of the equivalent cyclic distribution.
func blockSize(dim int, gsize, distrib, darg, psize int64) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, mpierr.New(mpierr.Arg, "array_of_dargs[%d] is %d: %s", dim, darg, why)
	}
	switch distrib {
	case DistributeNone:
		if psize != 1 {
			return 0, mpierr.New(mpierr.Arg,
				"array_of_psizes[%d] is %d; a dimension that is not distributed has 1", dim, psize)
		}
		return gsize, nil
	case DistributeBlock:
		if darg == DistributeDfltArg {
			return (gsize-1)/psize + 1, nil
		}
		if darg < 1 {
			return bad("it must be positive")
		}
		if darg < (gsize-1)/psize+1 {
			return bad(
				"blocks of this size do not cover the array; use MPI_DISTRIBUTE_DFLT_DARG or a " +
					"larger one")
		}
		return min(darg, gsize), nil
	case DistributeCyclic:
		if darg == DistributeDfltArg {
			return 1, nil
		}
		if darg < 1 {
			return bad("it must be positive")
		}
		return min(darg, gsize), nil
	}
	return 0, mpierr.New(mpierr.Arg,
		"array_of_distribs[%d] is %d; use MPI_DISTRIBUTE_BLOCK, _CYCLIC or _NONE", dim, distrib)
}

// cyclic places the elements of one dimension that fall to coordinate r: blocks of block elements,
// dealt out in turn to psize processes; the array's last block may be short.
func cyclic(c *calc, block, gsize, r, psize, extent int64, kid *shape) *shape {
	blocks := (gsize-1)/block + 1
	mine := blocks / psize
	if r < blocks%psize {
		mine++
	}
	if mine == 0 {
		return nil
	}
	round := c.mul(c.mul(psize, block), extent)
	first := c.mul(c.mul(r, block), extent)
	lastBlock := r + (mine-1)*psize
	lastLen := min(block, gsize-lastBlock*block)
	if lastLen == block {
		return placedAt(first, repeat(mine, round, repeat(block, extent, kid)))
	}
	full := repeat(mine-1, round, repeat(block, extent, kid))
	last := repeat(lastLen, extent, kid)
	lastAt := c.add(first, c.mul(mine-1, round))
	if full == nil {
		return placedAt(lastAt, last)
	}
	return &shape{op: opList, offs: []int64{first, lastAt}, kids: []*shape{full, last}}
}

func placedAt(off int64, s *shape) *shape {
	if off == 0 || s == nil {
		return s
	}
	return &shape{op: opList, offs: []int64{off}, kids: []*shape{s}}
}
