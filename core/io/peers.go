package io

import (
	"encoding/binary"
	"math"

	"libspx/core/mpierr"
)

// Gather gives every process the records of all, which have the same length: result r is that of
// process r.
func Gather(p Peers, record []byte) ([][]byte, error) {
	size, me, n := p.Size(), p.Rank(), len(record)
	if g, ok := p.(Gatherer); ok {
		all := make([]byte, size*n)
		err := g.Gather(record, all)
		return cut(all, n, 0, size), err
	}
	all := append(make([]byte, 0, size*n), record...) // those of me, me+1, ... (mod size)
	for have := 1; have < size; have *= 2 {
		k := min(have, size-have)
		in := make([]byte, k*n)
		err := p.Exchange([]Message{{(me - have + size) % size, all[:k*n]}},
			[]Message{{(me + have) % size, in}})
		if err != nil {
			return nil, err
		}
		all = append(all, in...)
	}
	return cut(all, n, me, size), nil
}

// cut returns the size records of n bytes in all, the first of which is that of process first.
func cut(all []byte, n, first, size int) [][]byte {
	out := make([][]byte, size)
	for i := range out {
		out[(first+i)%size] = all[i*n : (i+1)*n]
	}
	return out
}

// GatherInts is Gather for numbers.
func GatherInts(p Peers, values ...int64) ([][]int64, error) {
	record := make([]byte, 0, 8*len(values))
	for _, v := range values {
		record = binary.LittleEndian.AppendUint64(record, uint64(v))
	}
	all, err := Gather(p, record)
	if err != nil {
		return nil, err
	}
	out := make([][]int64, len(all))
	for r, b := range all {
		for i := range values {
			out[r] = append(out[r], int64(binary.LittleEndian.Uint64(b[8*i:])))
		}
	}
	return out, nil
}

const textMax = 240 // bytes of an error's text that other processes get

// Agree gives every process the first process's error, by rank: nil if none has one.
func Agree(p Peers, mine error) error {
	classes, err := GatherInts(p, int64(mpierr.ClassOf(mine)))
	if err != nil {
		return err
	}
	first := -1
	for r, c := range classes {
		if c[0] != 0 {
			first = r
			break
		}
	}
	if first < 0 {
		return nil
	}
	record := make([]byte, 1+textMax)
	if mine != nil {
		record[0] = byte(copy(record[1:], mine.Error()))
	}
	texts, err := Gather(p, record)
	if err != nil {
		return err
	}
	if first == p.Rank() {
		return mine
	}
	class, t := classes[first][0], texts[first]
	if class < 0 || class > math.MaxInt32 {
		class = int64(mpierr.Intern)
	}
	return mpierr.New(mpierr.Class(class), "on rank %d: %s", first, t[1:1+min(int(t[0]), textMax)])
}

// AgreeOn fails on all processes unless all have passed the same value of the argument called name.
func AgreeOn(p Peers, name string, value int64, mine error) error {
	if mine == nil {
		all, err := GatherInts(p, value)
		if err != nil {
			return err
		}
		for r, v := range all {
			if v[0] != value {
				mine = mpierr.New(mpierr.NotSame,
					"%s is %d here, but %d on rank %d: it must be the same everywhere", name, value,
					v[0], r)
			}
		}
	} else if _, err := GatherInts(p, value); err != nil {
		return err
	}
	return Agree(p, mine)
}

// InOrder gives each process, by rank, its n counts of a shared counter, and returns where those of
// the calling process begin.
func InOrder(p Peers, c Counter, n int64) (int64, error) {
	all, err := GatherInts(p, n)
	if err != nil {
		return 0, err
	}
	before, total := int64(0), int64(0)
	for r, v := range all {
		if r == p.Rank() {
			before = total
		}
		total += v[0]
	}
	start, failure := int64(0), error(nil)
	if p.Rank() == 0 {
		start, failure = c.Add(total)
	}
	starts, err := GatherInts(p, start, int64(mpierr.ClassOf(failure)))
	if err != nil {
		return 0, err
	}
	if starts[0][1] != 0 {
		return 0, Agree(p, failure)
	}
	return starts[0][0] + before, nil
}
