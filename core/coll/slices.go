package coll

// Vectors that are too long to be reduced at once. Temporary memory is as long as the vector in
// most schedules, so that it is cut: the plan of the whole is the plans of the slices, one after
// another, in the same temporary memory. All ranks cut alike, since counts and datatypes have one
// signature (MPI-5.0 6.9.1).

// SliceBytes is the longest vector that is reduced at once.
const SliceBytes = 1 << 28

// mostSlices bounds the length of a plan: a vector of a TiB. Longer ones do not occur.
const mostSlices = 4096

// slice is how many elements are reduced at once.
func (a *Args) slice() int64 {
	switch a.Kind {
	case Reduce, Allreduce, Scan, Exscan:
	default:
		return a.RCount
	}
	most := a.Slice
	if most == 0 {
		most = SliceBytes
	}
	if a.RType.Size == 0 {
		return a.RCount
	}
	each := max(1, most/a.RType.Size)
	if a.RCount/each > mostSlices {
		return a.RCount
	}
	return min(each, a.RCount)
}

// firstSlice: what is done for the whole is decided by its first slice.
func (a Args) firstSlice() Args {
	if n := a.slice(); n < a.RCount {
		a.SCount, a.RCount = n, n
	}
	return a
}

// compileSlices makes the plan of a vector from the plans of its slices, of each elements.
func compileSlices(a Args, each int64) (*Plan, error) {
	whole := &Plan{Unit: a.RType.Size}
	for from := int64(0); from < a.RCount; from += each {
		part := a
		part.SCount = min(each, a.RCount-from)
		part.RCount = part.SCount
		p, err := Compile(part)
		if err != nil {
			return nil, err
		}
		whole.add(p, from*a.SType.Extent, from*a.RType.Extent)
		if from == 0 {
			whole.Algorithm, whole.Choice = p.Algorithm, p.Choice
			whole.Parameters = append([]Parameter{{"slice", each * a.RType.Size, "bytes"}},
				p.Parameters...)
		}
		if whole.Signature == 0 {
			whole.Signature = p.Signature
		}
	}
	return whole, nil
}

// add appends a plan whose buffers begin sent and received bytes further on, and makes what follows
// wait for its end. Its temporary memory is that of the plans before.
func (p *Plan) add(next *Plan, sent, received int64) {
	slots, waits, ticks := p.Slots, int32(len(p.Waits)), p.Ticks
	move := func(r *Ref) {
		switch r.Buf {
		case BufSend:
			r.Off += sent
		case BufRecv:
			r.Off += received
		case BufCell, BufPart:
			r.B += ticks
		}
	}
	for _, s := range next.Steps {
		switch s.Op {
		case OpSend, OpRecv:
			s.Slot += slots
		case OpWait:
			s.First += waits
		case OpPost, OpAwait, OpRoom, OpThrough:
			s.Slot += ticks
		}
		move(&s.X)
		move(&s.Y)
		p.Steps = append(p.Steps, s)
	}
	for _, w := range next.Waits {
		p.Waits = append(p.Waits, w+slots)
	}
	p.Slots, p.Ticks = slots+next.Slots, ticks+next.Ticks
	if next.Slots > 0 {
		p.Steps = append(p.Steps, Step{Op: OpWait, First: int32(len(p.Waits)), N: next.Slots})
		for s := slots; s < p.Slots; s++ {
			p.Waits = append(p.Waits, s)
		}
	}
	if next.Ticks > 0 {
		p.Steps = append(p.Steps, Step{Op: OpThrough, Slot: p.Ticks - 1})
	}
	for i, r := range next.Regions {
		if i == len(p.Regions) {
			p.Regions = append(p.Regions, Region{})
		}
		p.Regions[i].Fixed = max(p.Regions[i].Fixed, r.Fixed)
	}
}
