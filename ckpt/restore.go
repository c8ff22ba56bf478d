package ckpt

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"libspx/core/mpierr"
)

// entry is a region of the version that is being restored; of id -1 the whole part.
type entry struct {
	rank, id  int
	at, bytes int64 // at: from the beginning of the part
}

func (e entry) compare(rank, id int) int { return cmp.Or(e.rank-rank, e.id-id) }

// want is memory of the program that is to get bytes of a part.
type want struct {
	rank      int
	at, bytes int64
	into      Buffer
}

// RestoreBegin begins to go back to a version, or to the Newest: the parts that this process is to
// serve are in its memory then, and all processes know the content of all parts. It returns the
// version.
func (o *Object) RestoreBegin(version int) (Version, error) {
	if err := o.ready(false); err != nil {
		return Version{}, err
	}
	err := o.together(func() error { return o.beginRestore(version) })
	return o.chosen, err
}

// beginRestore chooses again as long as files turn out not to be what they should be.
func (o *Object) beginRestore(version int) error {
	if err := o.settle(); err != nil {
		return err
	}
	for again := true; again; {
		if err := o.takeStock(nil); err != nil {
			return err
		}
		if err := o.choose(version); err != nil {
			return err // the same at all: they see the same
		}
		bad, err := o.readFiles()
		all, err := o.agree(err, bad)
		if err != nil {
			return err
		}
		again = slices.Max(all) > 0
	}
	if err := o.makeTable(); err != nil {
		return err
	}
	o.restoring = true
	return nil
}

func (o *Object) choose(version int) error {
	i := slices.IndexFunc(o.known, func(v Version) bool {
		return version == Newest ||
			int(v.Version) == version
	})
	switch {
	case i >= 0:
		o.chosen = o.known[i]
		o.sources = Sources(o.items, o.chosen)
		return nil
	case version == Newest:
		return mpierr.New(ErrCheckpoint, "there is no version of which every part is there")
	}
	return mpierr.New(ErrCheckpoint, "version is %d, of which not every part is there", version)
}

// readFiles reads what this process is to serve and has in files alone. bad is 1 if some were not
// what they should be: these stay as files, but count no more.
func (o *Object) readFiles() (bad uint64, err error) {
	for rank, source := range o.sources {
		file := o.part(rank, File)
		if source != o.peers.Rank() || file == nil || o.part(rank, Memory) != nil {
			continue
		}
		data, err := o.files.Read(file.Item)
		if mpierr.ClassOf(err) == mpierr.NoMem {
			return bad, err
		}
		if err != nil {
			o.files.Unusable(o.peers.Rank(), fmt.Sprintf(
				"a part of checkpoint version %d is not used: %v", o.chosen.Version, err))
			o.parts = slices.DeleteFunc(o.parts, func(p *held) bool { return p == file })
			bad = 1
			continue
		}
		i := file.Item
		i.Kind = Memory
		o.keep(i, newBlock(data))
	}
	return bad, nil
}

// makeTable gives all processes the regions of all parts.
func (o *Object) makeTable() error {
	var mine []uint64
	for rank, source := range o.sources {
		p := o.part(rank, Memory)
		if source != o.peers.Rank() || p == nil {
			continue
		}
		mine = append(mine, entry{rank, -1, 0, int64(len(p.data.bytes))}.words()...)
		for _, r := range Regions(p.data.bytes) {
			mine = append(mine, entry{rank, int(r.ID), r.At, r.Bytes}.words()...)
		}
	}
	all, ranks, err := o.rows(nil, mine, entryWords)
	if err != nil {
		return err
	}
	o.table = make([]entry, len(ranks))
	for k := range o.table {
		w := all[entryWords*k:]
		o.table[k] = entry{int(w[0]), int(int64(w[1])), int64(w[2]), int64(w[3])}
	}
	slices.SortFunc(o.table, func(a, b entry) int { return a.compare(b.rank, b.id) })
	return nil
}

// entryWords is how many words an entry takes between processes.
const entryWords = 4

func (e entry) words() []uint64 {
	return []uint64{uint64(e.rank), uint64(e.id), uint64(e.at), uint64(e.bytes)}
}

// regionOf is what a rank has saved as a region; false: it has saved no such.
func (o *Object) regionOf(rank, id int) (entry, bool) {
	i, there := slices.BinarySearchFunc(o.table, id,
		func(e entry, id int) int { return e.compare(rank, id) })
	if !there {
		return entry{}, false
	}
	return o.table[i], true
}

func (o *Object) checkRank(rank int) error {
	if rank >= 0 && rank < int(o.chosen.Ranks) {
		return nil
	}
	return mpierr.New(mpierr.Rank,
		"rank is %d, but version %d was saved by ranks 0 to %d", rank, o.chosen.Version,
		o.chosen.Ranks-1)
}

// Bytes is how large a region of a rank is, in the version that is being restored; -1: there is
// none.
func (o *Object) Bytes(rank, id int) (int64, error) {
	if err := cmp.Or(o.ready(true), o.checkRank(rank)); err != nil {
		return 0, err
	}
	if e, there := o.regionOf(rank, id); there && id >= 0 {
		return e.bytes, nil
	}
	return -1, nil
}

// Fetch requests count elements of size bytes each, from an offset in bytes of a region of a rank
// on, for buf, which gets them at RestoreEnd. kept reports whether the Object owns buf now, and
// will release it.
func (o *Object) Fetch(rank, id int, offset, count, size int64, buf Buffer) (kept bool, err error) {
	if err := o.ready(true); err != nil {
		return false, err
	}
	return o.fetch(rank, id, offset, count, size, buf)
}

func (o *Object) fetch(rank, id int, offset, count, size int64, buf Buffer) (kept bool, err error) {
	if err := o.checkRank(rank); err != nil {
		return false, err
	}
	e, there := o.regionOf(rank, id)
	if id < 0 || !there {
		return false, mpierr.New(ErrCheckpoint,
			"id is %d, but rank %d has saved no such region in version %d", id, rank,
			o.chosen.Version)
	}
	high, bytes := bits.Mul64(uint64(count), uint64(size))
	if offset < 0 || offset > e.bytes || high > 0 || bytes > uint64(e.bytes-offset) {
		return false, mpierr.New(mpierr.Truncate,
			"offset is %d and count is %d, of %d bytes each, but region %d of rank %d has %d "+
				"bytes in version %d",
			offset, count, size, id, rank, e.bytes, o.chosen.Version)
	}
	if bytes == 0 {
		return false, nil
	}
	o.wants = append(o.wants, want{rank, e.at + offset, int64(bytes), buf})
	return true, nil
}

// RestoreEnd moves the requested data, and recreates the lost copies. Newer versions are dropped.
func (o *Object) RestoreEnd() error {
	if err := o.ready(true); err != nil {
		return err
	}
	return o.together(func() error { return o.endRestore(nil) })
}

// Restore gives the program all that is registered as the process with this rank has saved it in a
// version, or in the Newest. It returns which version it is. buf is called for each region and
// gives a buffer that the Object releases.
func (o *Object) Restore(version int, again func(Buffer) Buffer) (Version, error) {
	if err := o.ready(false); err != nil {
		return Version{}, err
	}
	err := o.together(func() error {
		if err := o.beginRestore(version); err != nil {
			return err
		}
		return o.endRestore(o.fetchOwn(again))
	})
	return o.chosen, err
}

func (o *Object) fetchOwn(again func(Buffer) Buffer) error {
	if size := o.peers.Size(); int(o.chosen.Ranks) != size {
		return mpierr.New(ErrCheckpoint,
			"version %d was saved by %d processes, but there are %d now: use "+
				"MPIX_Checkpoint_restore_begin, "+
				"MPIX_Checkpoint_fetch and MPIX_Checkpoint_restore_end", o.chosen.Version,
			o.chosen.Ranks, size)
	}
	me := o.peers.Rank()
	for _, r := range o.regions {
		e, there := o.regionOf(me, r.id)
		if !there {
			e.bytes = -1
		}
		if e.bytes != r.bytes {
			return mpierr.New(ErrCheckpoint,
				"checkpoint has %d bytes registered as region %d, but %d in version %d (-1: none)",
				r.bytes, r.id, e.bytes, o.chosen.Version)
		}
		buf := again(r.in)
		if kept, err := o.fetch(me, r.id, 0, r.bytes, 1, buf); !kept {
			o.mem.Release(buf)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forget releases the resources of a restore that does not continue.
func (o *Object) forget() {
	for _, w := range o.wants {
		o.mem.Release(w.into)
	}
	o.restoring, o.sources, o.table, o.wants = false, nil, nil, nil
}
