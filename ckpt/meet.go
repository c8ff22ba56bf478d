package ckpt

import (
	"slices"

	"libspx/core/mpierr"
)

// Attach has the processes of p go on with the object: those that have one may have parts. All of p
// call it, or New and Attach. It is attached to none if that fails, and has given p up then.
func (o *Object) Attach(p Peers) error {
	o.peers, o.saved = p, -1
	err := o.together(o.meet)
	if err != nil {
		o.Detach()
	}
	return err
}

// meet: the processes exchange their settings, then the parts that each of them has.
func (o *Object) meet() error {
	newest, err := o.greet()
	if err != nil {
		return err
	}
	if err := o.takeStock(o.lookAtFiles()); err != nil {
		return err
	}
	for _, i := range o.items {
		newest = max(newest, i.Generation)
	}
	o.generation = newest + 1
	return nil
}

// greet finds out which processes share a host, and whether all have the same settings. It returns
// the highest generation of all.
func (o *Object) greet() (newest int64, err error) {
	const host, copies, versions, files, generation, words = 0, 1, 2, 3, 4, 5
	hasFiles := uint64(0)
	if o.files != nil {
		hasFiles = 1
	}
	all, err := o.gather(uint64(o.peers.Host()), uint64(o.set.Copies), uint64(o.set.Versions),
		hasFiles, uint64(o.generation))
	if err != nil {
		return 0, err
	}
	o.hosts = make([]int, o.peers.Size())
	for r, said := range slices.Collect(slices.Chunk(all, words)) {
		o.hosts[r] = int(int64(said[host]))
		newest = max(newest, int64(said[generation]))
		if !slices.Equal(said[copies:generation], all[copies:generation]) {
			return 0, mpierr.New(mpierr.InfoValue,
				"info is not the same at all: mpix_copies, mpix_versions or whether there is a "+
					"mpix_directory differ between ranks 0 and %d", r)
		}
	}
	o.to, o.from = Buddies(o.hosts, o.peers.Rank(), o.set.Copies), nil
	for r := range o.hosts {
		if slices.Contains(Buddies(o.hosts, r, o.set.Copies), o.peers.Rank()) {
			o.from = append(o.from, r)
		}
	}
	return newest, nil
}

// lookAtFiles replaces the list of known files by the existing ones. The processes of a
// host share that between them.
func (o *Object) lookAtFiles() error {
	o.parts = slices.DeleteFunc(o.parts, func(p *held) bool { return p.Kind == File })
	if o.files == nil {
		return nil
	}
	me, index, sharers := o.peers.Rank(), 0, 0
	for r, h := range o.hosts {
		if h == o.hosts[me] {
			sharers++
			if r < me {
				index++
			}
		}
	}
	found, err := o.files.Scan(index, sharers)
	for _, i := range found {
		o.keep(i, nil)
	}
	return err
}

// itemWords is how many words an Item takes between processes.
const itemWords = 3

// takeStock finds out what all have. status is an error of this process's before; all get it.
func (o *Object) takeStock(status error) error {
	var mine []uint64
	for _, p := range o.parts {
		mine = append(mine, uint64(p.Generation), pair(p.Version, p.Rank), pair(p.Ranks, p.Kind))
	}
	all, ranks, err := o.rows(status, mine, itemWords)
	if err != nil {
		return err
	}
	o.items = make([]Item, len(ranks))
	for k, holder := range ranks {
		w := all[itemWords*k:]
		i := Item{Generation: int64(w[0]), Holder: int32(holder)}
		i.Version, i.Rank = unpair(w[1])
		i.Ranks, i.Kind = unpair(w[2])
		o.items[k] = i
	}
	o.known = Complete(o.items)
	return nil
}

func pair(a, b int32) uint64             { return uint64(uint32(a))<<32 | uint64(uint32(b)) }
func unpair(w uint64) (a int32, b int32) { return int32(w >> 32), int32(w) }

// Detach releases the processes. It waits for a save that was begun: the other processes have their
// ends of it under way, or have revoked the communicator. Parts stay.
func (o *Object) Detach() {
	o.forget()
	o.settle() //nolint:errcheck // it is as if it had not been committed
	o.leave()
}

func (o *Object) leave() {
	if o.peers != nil {
		o.peers.Leave()
	}
	o.peers, o.hosts, o.to, o.from = nil, nil, nil, nil
}
