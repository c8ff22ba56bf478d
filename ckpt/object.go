package ckpt

import (
	"math"
	"slices"
	"sync/atomic"

	"libspx/core/mpierr"
)

// ErrCheckpoint is the class MPIX_ERR_CHECKPOINT of mpi-ext.h.
const ErrCheckpoint mpierr.Class = 16388

// Newest is MPIX_CHECKPOINT_NEWEST, in place of a version's number.
const Newest = -16387

// Settings are the program's settings: the same at all processes, but for the directory's
// name.
type Settings struct {
	Copies   int // how many other processes keep a copy of each part in memory
	Versions int // how many committed versions are kept
}

// An Object is a process's side of a checkpoint object (MPIX_Checkpoint). One call at a time is
// made of it.
type Object struct {
	set   Settings
	mem   Heap
	files Files // nil: none are written

	peers    Peers // nil: attached to none
	hosts    []int // a number for the host of each rank
	to, from []int // ranks that keep copies of this one's part; ranks whose parts this one keeps
	// of what was saved last: with the version's number it names one attempt to save
	generation int64

	regions []registered // in ascending order of id
	parts   []*held
	known   []Version // of which all parts are there, the newest first

	saved   int64 // version that was saved and not committed; -1: none
	trouble error // why this process could not keep all of that; nil: it could
	pending *save // what was begun to be saved; nil: nothing

	restoring bool
	chosen    Version
	sources   []int   // the rank that serves each part of chosen
	table     []entry // its regions, in ascending order of rank and id
	items     []Item  // what all have
	wants     []want
}

// registered is memory of the program that is saved.
type registered struct {
	id    int
	bytes int64
	in    Buffer
}

// held is a part that this process has: in memory, or (data nil) in a file.
type held struct {
	Item // Holder is not used
	data *block
}

// block is memory of a part. It is freed when nothing uses it any more: the list of parts,
// messages, a file that is being written.
type block struct {
	bytes []byte
	uses  atomic.Int32
}

// New makes an object that is attached to no processes. files is nil if none are to be written.
func New(set Settings, mem Heap, files Files) *Object {
	return &Object{set: set, mem: mem, files: files, saved: -1}
}

// alloc is new memory for a part, with one use; nil if there is none.
func (o *Object) alloc(bytes int64) *block {
	data := o.mem.Alloc(bytes)
	if data == nil {
		return nil
	}
	return newBlock(data)
}

func newBlock(data []byte) *block {
	b := &block{bytes: data}
	b.uses.Store(1)
	return b
}

// drop ends a use of each block, nil for none.
func (o *Object) drop(blocks ...*block) {
	for _, b := range blocks {
		if b != nil && b.uses.Add(-1) == 0 {
			o.mem.Free(b.bytes)
		}
	}
}

func noMemory(bytes int64) error {
	return mpierr.New(mpierr.NoMem, "no memory for %d bytes of a checkpoint", bytes)
}

// keep adds a part to those that this process has. The list takes the caller's use of data over.
func (o *Object) keep(i Item, data *block) { o.parts = append(o.parts, &held{i, data}) }

// discard drops the parts of which gone is true, also the files of those that are in files.
func (o *Object) discard(gone func(*held) bool) {
	o.parts = slices.DeleteFunc(o.parts, func(p *held) bool {
		if !gone(p) {
			return false
		}
		if p.Kind == File {
			o.files.Remove(p.Item)
		}
		o.drop(p.data)
		return true
	})
}

// part is what this process has of a rank's part of the chosen version, of one kind; nil: nothing.
func (o *Object) part(rank, kind int) *held {
	for _, p := range o.parts {
		if int(p.Kind) == kind && int(p.Rank) == rank && p.version() == o.chosen {
			return p
		}
	}
	return nil
}

// ready is nil, or why the object cannot be used: it is attached to none, or it is (not) being
// restored.
func (o *Object) ready(restoring bool) error {
	switch {
	case o.peers == nil:
		return mpierr.New(mpierr.Comm,
			"checkpoint is attached to no communicator, since MPIX_Checkpoint_attach has "+
				"failed: call it again")
	case restoring && !o.restoring:
		return mpierr.New(mpierr.Arg,
			"checkpoint is not being restored: call MPIX_Checkpoint_restore_begin first")
	case !restoring && o.restoring:
		return mpierr.New(mpierr.Arg,
			"checkpoint is being restored: call MPIX_Checkpoint_restore_end first")
	}
	return nil
}

// together runs a collective step. If it does not return, because the program has left it, the
// other processes do not wait for this one.
func (o *Object) together(do func() error) error {
	returns := false
	defer func() {
		if !returns {
			o.forget()
			if o.peers != nil {
				o.peers.Revoke()
			}
		}
	}()
	err := do()
	returns = true
	return err
}

// Register has count elements of size bytes each in buf saved from now on, as region id.
func (o *Object) Register(id int, count, size int64, buf Buffer) error {
	if id < 0 {
		return mpierr.New(mpierr.Arg, "id is %d, but must be 0 or more", id)
	}
	if size > 0 && count > math.MaxInt64/4/size {
		return mpierr.New(mpierr.Count, "count is %d: a region of that size cannot be saved", count)
	}
	r := registered{id, count * size, buf}
	i, there := o.region(id)
	if !there {
		o.regions = slices.Insert(o.regions, i, r)
		return nil
	}
	o.mem.Release(o.regions[i].in)
	o.regions[i] = r
	return nil
}

// region is where a region is registered, or would be.
func (o *Object) region(id int) (int, bool) {
	return slices.BinarySearchFunc(o.regions, id,
		func(r registered, id int) int { return r.id - id })
}

// Unregister has region id saved no more.
func (o *Object) Unregister(id int) error {
	i, there := o.region(id)
	if !there {
		return mpierr.New(mpierr.Arg, "id is %d, but no region is registered by that", id)
	}
	o.mem.Release(o.regions[i].in)
	o.regions = slices.Delete(o.regions, i, i+1)
	return nil
}

// Versions lists the versions of which all parts are there, the newest first.
func (o *Object) Versions() []Version { return o.known }

// Delete drops what this process has of a version.
func (o *Object) Delete(version int) error {
	if o.restoring {
		return o.ready(false)
	}
	i := slices.IndexFunc(o.known, func(v Version) bool { return int(v.Version) == version })
	if i < 0 {
		return mpierr.New(ErrCheckpoint, "version is %d, which is not there", version)
	}
	o.discard(func(p *held) bool { return int(p.Version) == version })
	o.known = slices.Delete(o.known, i, i+1)
	return nil
}

// Free gives all of it up. Files stay. It waits for what was begun to be saved.
func (o *Object) Free() {
	defer o.Abandon() // also when that wait is left
	o.Detach()
}

// Abandon is Free of an object that saves nothing now: it does not wait.
func (o *Object) Abandon() {
	o.forget()
	o.leave()
	for _, p := range o.parts {
		o.drop(p.data)
	}
	for _, r := range o.regions {
		o.mem.Release(r.in)
	}
	o.parts, o.regions, o.known = nil, nil, nil
}
