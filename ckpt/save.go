package ckpt

import (
	"cmp"

	"libspx/core/mpierr"
)

// save is a version on its way to where its parts are kept.
type save struct {
	is      Item
	part    *block    // this process's; nil: there was no memory
	in      []*block  // a part of each of Object.from; nil where none comes
	copies  *transfer // of the parts; nil: not begun
	writing *transfer // into a file; nil: it is not
}

// cannot records why this process cannot keep all saved data. The other processes are notified at
// the commit.
func (o *Object) cannot(err error) { o.trouble = cmp.Or(o.trouble, err) }

// Save copies the regions, as version, to all places where it is kept. It counts when Commit has
// succeeded.
func (o *Object) Save(version int) error {
	return o.save(version, func() error {
		if err := o.beginSave(version); err != nil {
			return err
		}
		return o.settle()
	})
}

// SaveBegin is Save, but returns when the regions have been copied within this process.
func (o *Object) SaveBegin(version int) error {
	return o.save(version, func() error { return o.beginSave(version) })
}

func (o *Object) save(version int, do func() error) error {
	err := o.ready(false)
	switch {
	case err != nil:
		return err
	case version < 0:
		return mpierr.New(mpierr.Arg, "version is %d, but must be 0 or more", version)
	case len(o.known) > 0 && version <= int(o.known[0].Version):
		return mpierr.New(mpierr.Arg,
			"version is %d, but must be above %d, which is there already", version,
			o.known[0].Version)
	}
	return o.together(do)
}

// uncommitted: the part is of the version that was saved and not committed.
func (o *Object) uncommitted(p *held) bool {
	return p.Generation == o.generation && int64(p.Version) == o.saved
}

// beginSave saves a version. From its end on the program may change what is saved: it is in a
// block, from which the copies and the file are made.
//
// Each attempt has a generation of its own: the same version may be saved again, and if a process
// dies then, some have parts of one attempt and some of the other.
func (o *Object) beginSave(version int) error {
	if err := o.settle(); err != nil {
		return err
	}
	if o.saved >= 0 {
		o.discard(o.uncommitted)
	}
	o.generation++
	o.saved, o.trouble = int64(version), nil
	me := int32(o.peers.Rank())
	s := &save{is: Item{
		Generation: o.generation, Version: int32(version), Rank: me, Ranks: int32(o.peers.Size()),
		Kind: Memory,
	}}
	begun := false
	defer func() {
		if !begun { // it was left: copies may not be what they should be
			s.end(o)
		}
	}()
	o.pack(s)
	if s.part != nil && o.files != nil {
		Seal(s.part.bytes)
		s.writing = o.using(o.files.Write(s.is, s.part.bytes), s.part)
	}
	err := o.sendCopies(s)
	begun = true
	if err != nil {
		return o.finish(s, err)
	}
	o.pending = s
	return nil
}

// pack makes this process's part, with what is registered. If there is no memory for it, that is
// noted.
func (o *Object) pack(s *save) {
	regions := make([]Region, len(o.regions))
	for k, r := range o.regions {
		regions[k] = Region{ID: int64(r.id), Bytes: r.bytes}
	}
	bytes := Layout(regions)
	if s.part = o.alloc(bytes); s.part == nil {
		o.cannot(noMemory(bytes))
		return
	}
	part := s.part.bytes
	Begin(part, s.is, regions)
	var all []Packing
	for k, r := range regions {
		if r.Bytes > 0 {
			all = append(all, Packing{part[r.At : r.At+r.Bytes], o.regions[k].in})
		}
	}
	o.mem.Pack(all)
}

// sendCopies sends the size of this process's part to its buddies, which reply whether they have
// memory for it. Then the part is sent, and those of others are received.
func (o *Object) sendCopies(s *save) error {
	size := uint64(0)
	if s.part != nil {
		size = uint64(len(s.part.bytes))
	}
	sizes, err := o.ask(tagSizes, o.from, o.to, fill(len(o.to), size))
	if err != nil {
		return err
	}
	s.in = make([]*block, len(o.from))
	mine := make([]uint64, len(o.from))
	for k, n := range sizes {
		if n == 0 {
			continue
		}
		if s.in[k] = o.alloc(int64(n)); s.in[k] != nil {
			mine[k] = 1
		} else {
			o.cannot(noMemory(int64(n)))
		}
	}
	yes, err := o.ask(tagVerdicts, o.to, o.from, mine)
	if err != nil {
		return err
	}
	s.copies, err = o.postCopies(s, yes)
	return err
}

// postCopies begins to send this process's part to those of o.to that have memory for it (yes), and
// to receive those for which s.in has some.
func (o *Object) postCopies(s *save, yes []uint64) (*transfer, error) {
	var receives, sends []Message
	var used []*block
	for k, b := range s.in {
		if b != nil {
			receives = append(receives, Message{Peer: o.from[k], Tag: tagCopies, Data: b.bytes})
			used = append(used, b)
		}
	}
	for k, to := range o.to {
		if yes[k] != 0 {
			sends = append(sends, Message{Peer: to, Tag: tagCopies, Data: s.part.bytes})
		}
	}
	if len(receives)+len(sends) == 0 {
		return nil, nil
	}
	if len(sends) > 0 {
		used = append(used, s.part)
	}
	return o.post(receives, sends, used...)
}

func fill(n int, w uint64) []uint64 {
	out := make([]uint64, n)
	for k := range out {
		out[k] = w
	}
	return out
}

// ask sends a word to each rank of to, and returns the words received from the ranks of from.
func (o *Object) ask(tag int, from, to []int, mine []uint64) ([]uint64, error) {
	room := make([]byte, 8*len(from))
	var receives, sends []Message
	for k, r := range from {
		receives = append(receives, Message{Peer: r, Tag: tag, Data: room[8*k : 8*k+8]})
	}
	for k, r := range to {
		sends = append(sends, Message{Peer: r, Tag: tag, Data: octets(mine[k : k+1])})
	}
	if err := o.exchange(receives, sends); err != nil {
		return nil, err
	}
	out := make([]uint64, len(from))
	words(room, out)
	return out, nil
}

// settle waits for what was begun to be saved.
func (o *Object) settle() error {
	s := o.pending
	o.pending = nil
	if s == nil {
		return nil
	}
	return o.finish(s, nil)
}

// finish is the end of what beginSave has begun. err is what has failed of it before.
func (o *Object) finish(s *save, err error) error {
	defer s.end(o) // also when a wait is left
	if t := s.copies; t != nil {
		s.copies = nil
		err = cmp.Or(err, o.broken(t.wait()))
	}
	if t := s.writing; t != nil {
		s.writing = nil
		o.written(s.is, t.wait())
	}
	for k, b := range s.in {
		if b != nil && err == nil { // else copies count for nothing
			i := s.is
			i.Rank = int32(o.from[k])
			o.keep(i, b)
			s.in[k] = nil
		}
	}
	if s.part != nil && (o.files == nil || o.set.Copies > 0) { // else the file is enough
		o.keep(s.is, s.part)
		s.part = nil
	}
	return err
}

// written notes a file that has been written, or why it could not be.
func (o *Object) written(i Item, err error) {
	if err != nil {
		o.cannot(err)
		return
	}
	i.Kind = File
	o.keep(i, nil)
}

// end releases what is left of a save: unfinished transfers and the memory that was not kept.
func (s *save) end(o *Object) {
	for _, t := range []*transfer{s.copies, s.writing} {
		if t != nil {
			t.Abandon(t.over)
		}
	}
	o.drop(s.in...)
	o.drop(s.part)
}

// Commit makes the version that was saved last count: if it succeeds at any process, every process
// has its part, in all the places where it is kept.
func (o *Object) Commit() error {
	if err := o.ready(false); err != nil {
		return err
	}
	if o.saved < 0 {
		return mpierr.New(mpierr.Arg,
			"checkpoint has no version that was saved since the last commit")
	}
	return o.together(func() error {
		if err := o.settle(); err != nil {
			return err
		}
		return o.commit()
	})
}

func (o *Object) commit() error {
	version := int(o.saved)
	all, err := o.gather(uint64(version), uint64(mpierr.ClassOf(o.trouble)))
	if err != nil {
		return err
	}
	least, most, worst := version, version, 0
	for r := range o.peers.Size() {
		v, class := int(all[2*r]), all[2*r+1]
		least, most = min(least, v), max(most, v)
		if class >= all[2*worst+1] {
			worst = r
		}
	}
	class := mpierr.Class(all[2*worst+1])
	if class == 0 && least == most {
		o.count(Version{o.generation, int32(version), int32(o.peers.Size())})
		return nil
	}
	o.discard(o.uncommitted)
	o.saved = -1
	switch {
	case least != most:
		return mpierr.New(cmp.Or(class, mpierr.Arg),
			"this process has saved version %d, but others have saved others, from %d to %d",
			version, least, most)
	case o.trouble != nil:
		return mpierr.New(class, "version %d: %v", version, o.trouble)
	}
	return mpierr.New(class,
		"version %d: rank %d could not keep its part; it has the reason", version, worst)
}

// count makes v the newest known version, and drops versions beyond the number to be kept.
func (o *Object) count(v Version) {
	o.known = append([]Version{v}, o.known[:min(len(o.known), o.set.Versions-1)]...)
	o.saved = -1
	o.discard(func(p *held) bool {
		for _, v := range o.known {
			if p.Generation == v.Generation && p.Version == v.Version {
				return false
			}
		}
		return true
	})
}
