package ckpt

import (
	"cmp"
	"slices"
)

// The end of a restore: data move to the processes that have requested them, and copies are made.

// endRestore: status is why this process cannot restore; all get an error then.
func (o *Object) endRestore(status error) error {
	defer o.forget()
	if _, err := o.agree(status); err != nil {
		return err
	}
	if err := o.deliver(); err != nil {
		return err
	}
	if o.set.Copies > 0 {
		if err := o.protect(); err != nil {
			return err
		}
	}
	if _, err := o.gather(0); err != nil { // all of it is safe: what is newer may go
		return err
	}
	o.goBack()
	return nil
}

// goBack drops what is newer than the chosen version, and what is in memory only to be served.
func (o *Object) goBack() {
	o.known = o.known[slices.Index(o.known, o.chosen):]
	o.discard(func(p *held) bool {
		return cmp.Or(cmp.Compare(p.Generation, o.chosen.Generation),
			cmp.Compare(p.Version, o.chosen.Version)) > 0
	})
	if o.set.Copies == 0 && o.files != nil {
		o.discard(func(p *held) bool { return p.Kind == Memory && o.hasFile(p.Item) })
	}
	o.generation++
	o.saved = -1
}

// hasFile reports whether this process has the same part in a file.
func (o *Object) hasFile(i Item) bool {
	return slices.ContainsFunc(o.parts, func(p *held) bool {
		return p.Kind == File && p.Rank == i.Rank && p.version() == i.version()
	})
}

// order is "send me this of that rank's part".
type order struct {
	rank      int
	at, bytes int64
}

// orderWords is how many words an order takes between processes.
const orderWords = 3

// deliver moves the requested data. Messages of a pair of processes are in the order of its orders.
func (o *Object) deliver() error {
	serve, err := o.placeOrders()
	if err != nil {
		return err
	}
	var receives, sends []Message
	var used []*block
	for _, w := range o.wants {
		receives = append(receives, Message{Peer: o.sources[w.rank], Tag: tagFetched, Into: w.into})
	}
	for to, orders := range serve {
		for _, w := range orders {
			b := o.part(w.rank, Memory).data
			sends = append(sends, Message{Peer: to, Tag: tagFetched,
				Data: b.bytes[w.at : w.at+w.bytes]})
			used = append(used, b)
		}
	}
	return o.exchange(receives, sends, used...)
}

// placeOrders sends each process what is wanted of it, and returns what each process wants of this
// one.
func (o *Object) placeOrders() (serve [][]order, err error) {
	n := o.peers.Size()
	ask, counts := make([][]uint64, n), make([]uint64, n)
	for _, w := range o.wants {
		of := o.sources[w.rank]
		ask[of] = append(ask[of], uint64(w.rank), uint64(w.at), uint64(w.bytes))
		counts[of]++
	}
	wanted, err := o.swap(counts)
	if err != nil {
		return nil, err
	}
	var receives, sends []Message
	lists := make([][]byte, n)
	for r := range n {
		if wanted[r] > 0 {
			lists[r] = make([]byte, 8*orderWords*wanted[r])
			receives = append(receives, Message{Peer: r, Tag: tagOrders, Data: lists[r]})
		}
		if counts[r] > 0 {
			sends = append(sends, Message{Peer: r, Tag: tagOrders, Data: octets(ask[r])})
		}
	}
	if err := o.exchange(receives, sends); err != nil {
		return nil, err
	}
	serve = make([][]order, n)
	for r, list := range lists {
		for k := range int(wanted[r]) {
			var w [orderWords]uint64
			words(list[8*orderWords*k:], w[:])
			serve[r] = append(serve[r], order{int(w[0]), int64(w[1]), int64(w[2])})
		}
	}
	return serve, nil
}

// protect recreates the copies that were lost with their holders. If any process has no memory for
// them, none are made.
func (o *Object) protect() error {
	list := Missing(o.items, o.chosen, o.sources, o.hosts, o.set.Copies)
	me := o.peers.Rank()
	var receives, sends []Message
	var parts []Item
	var blocks, used []*block
	defer func() { o.drop(blocks...) }()
	full := uint64(0)
	for _, c := range list {
		if c.To == me {
			whole, _ := o.regionOf(c.Rank, -1)
			b := o.alloc(whole.bytes)
			if b == nil {
				full = 1
				continue
			}
			blocks, used = append(blocks, b), append(used, b)
			parts = append(parts, Item{
				Generation: o.chosen.Generation, Version: o.chosen.Version, Rank: int32(c.Rank),
				Ranks: o.chosen.Ranks, Kind: Memory,
			})
			receives = append(receives, Message{Peer: c.From, Tag: tagRemade, Data: b.bytes})
		}
		if c.From == me {
			b := o.part(c.Rank, Memory).data
			used = append(used, b)
			sends = append(sends, Message{Peer: c.To, Tag: tagRemade, Data: b.bytes})
		}
	}
	all, err := o.gather(full)
	if err != nil || slices.Max(all) > 0 {
		return err
	}
	if err := o.exchange(receives, sends, used...); err != nil {
		return err
	}
	for k, i := range parts {
		o.keep(i, blocks[k])
	}
	blocks = nil
	return nil
}
