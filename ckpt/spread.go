package ckpt

import (
	"encoding/binary"
	"math"

	"libspx/core/mpierr"
)

// Collectives of the object's processes that Peers does not have, over its messages. Their messages
// are short.

// Tags of messages.
const (
	tagSizes    = 1 + iota // size of a part of which a copy is requested
	tagVerdicts            // whether there is memory for it
	tagCopies              // the part
	tagSpread
	tagSwap
	tagOrders
	tagFetched
	tagRemade // parts of which copies were lost
)

// broken is the error of a call that has failed for what other processes do, or cannot be completed
// here: the object's communicator is revoked, so that no process waits for those that recover.
func (o *Object) broken(err error) error {
	if err == nil {
		return nil
	}
	o.peers.Revoke()
	text := err.Error()
	if text != "" {
		text += "; "
	}
	return mpierr.New(mpierr.ClassOf(err),
		"%sthe processes have to come together again by MPIX_Checkpoint_attach", text)
}

func (o *Object) gather(mine ...uint64) ([]uint64, error) {
	all, err := o.peers.Gather(mine)
	return all, o.broken(err)
}

// agree gives all processes' words, as many of each, by rank. If a process has an error, all get
// one of its class: that of the highest class, and of those the one of the highest rank, which
// alone keeps its text.
func (o *Object) agree(status error, words ...uint64) ([]uint64, error) {
	all, err := o.gather(append([]uint64{uint64(mpierr.ClassOf(status))}, words...)...)
	if err != nil {
		return nil, err
	}
	n := 1 + len(words)
	worst, out := 0, make([]uint64, 0, len(all)-o.peers.Size())
	for r := range o.peers.Size() {
		if all[r*n] >= all[worst*n] {
			worst = r
		}
		out = append(out, all[r*n+1:(r+1)*n]...)
	}
	switch class := mpierr.Class(all[worst*n]); {
	case class == 0:
		return out, nil
	case worst == o.peers.Rank():
		return nil, status
	default:
		return nil, mpierr.New(class,
			"checkpoint: rank %d could not do its part; it has the reason", worst)
	}
}

// transfer is messages under way, or a file, and the memory that is needed for that.
type transfer struct {
	o *Object
	Pending
	blocks []*block
}

func (o *Object) using(p Pending, blocks ...*block) *transfer {
	for _, b := range blocks {
		b.uses.Add(1)
	}
	return &transfer{o, p, blocks}
}

// post begins to receive and to send messages, whose memory is in blocks.
func (o *Object) post(receives, sends []Message, blocks ...*block) (*transfer, error) {
	p, err := o.peers.Post(receives, sends, o.peers.Revoke)
	if err != nil {
		return nil, o.broken(err)
	}
	t := o.using(p, blocks...)
	t.whole(p.Begin)
	return t, nil
}

// whole does what may wait. If it does not return, the transfer is abandoned.
func (t *transfer) whole(do func()) {
	returns := false
	defer func() {
		if !returns {
			t.Abandon(t.over)
		}
	}()
	do()
	returns = true
}

// wait waits for the end of it.
func (t *transfer) wait() (err error) {
	t.whole(func() { err = t.Wait() })
	t.over()
	return err
}

func (t *transfer) over() { t.o.drop(t.blocks...) }

// exchange receives and sends messages, whose memory is in blocks, and waits for them.
func (o *Object) exchange(receives, sends []Message, blocks ...*block) error {
	if len(receives)+len(sends) == 0 {
		return nil
	}
	t, err := o.post(receives, sends, blocks...)
	if err != nil {
		return err
	}
	return o.broken(t.wait())
}

// step exchanges words with two processes, which may be the same.
func (o *Object) step(tag, from, to int, in, out []uint64) error {
	var receives, sends []Message
	room := make([]byte, 8*len(in))
	if len(in) > 0 {
		receives = []Message{{Peer: from, Tag: tag, Data: room}}
	}
	if len(out) > 0 {
		sends = []Message{{Peer: to, Tag: tag, Data: octets(out)}}
	}
	if err := o.exchange(receives, sends); err != nil {
		return err
	}
	words(room, in)
	return nil
}

func octets(words []uint64) []byte {
	out := make([]byte, 0, 8*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

func words(from []byte, to []uint64) {
	for k := range to {
		to[k] = binary.LittleEndian.Uint64(from[8*k:])
	}
}

// spread gives all processes what each of them has, by rank: counts has the number of words of
// each, known to all. In each step, a process sends all that it has to one that is twice as far
// away as in the step before (Bruck et al., Efficient Algorithms for All-to-All Communications in
// Multiport Message-Passing Systems, IEEE TPDS 8 (11), 1997, section 4).
func (o *Object) spread(mine []uint64, counts []int) ([][]uint64, error) {
	n, me := len(counts), o.peers.Rank()
	out := make([][]uint64, n)
	out[me] = mine
	for d := 1; d < n; d *= 2 {
		blocks := min(d, n-d)
		var send []uint64
		expected := 0
		for k := range blocks {
			send = append(send, out[(me+k)%n]...)
			expected += counts[(me+d+k)%n]
		}
		got := make([]uint64, expected)
		if err := o.step(tagSpread, (me+d)%n, (me-d+n)%n, got, send); err != nil {
			return nil, err
		}
		for k := range blocks {
			r := (me + d + k) % n
			out[r], got = got[:counts[r]:counts[r]], got[counts[r]:]
		}
	}
	return out, nil
}

// swap sends word r to rank r, and returns what each rank has sent to this one: also by Bruck et
// al., section 3. In the step for distance d a word moves on that has a way with this bit before
// it.
func (o *Object) swap(mine []uint64) ([]uint64, error) {
	n, me := len(mine), o.peers.Rank()
	moving := make([]uint64, n) // by how far each has to go
	for far := range moving {
		moving[far] = mine[(me+far)%n]
	}
	for d := 1; d < n; d *= 2 {
		var send []uint64
		for far, w := range moving {
			if far&d != 0 {
				send = append(send, w)
			}
		}
		got := make([]uint64, len(send))
		if err := o.step(tagSwap, (me-d+n)%n, (me+d)%n, got, send); err != nil {
			return nil, err
		}
		for far := range moving {
			if far&d != 0 {
				moving[far], got = got[0], got[1:]
			}
		}
	}
	out := make([]uint64, n)
	for far, w := range moving {
		out[(me-far+n)%n] = w
	}
	return out, nil
}

// rows gives everyone's rows of width words by what each process has of them: flat, in the order of
// the ranks.
func (o *Object) rows(status error, mine []uint64, width int) (all []uint64, ranks []int,
	err error) {
	lengths, err := o.agree(status, uint64(len(mine)))
	if err != nil {
		return nil, nil, err
	}
	counts := make([]int, len(lengths))
	for r, n := range lengths {
		if n > math.MaxInt32 {
			return nil, nil, o.broken(noMemory(int64(n)))
		}
		counts[r] = int(n)
	}
	blocks, err := o.spread(mine, counts)
	if err != nil {
		return nil, nil, err
	}
	for r, b := range blocks {
		all = append(all, b...)
		for range len(b) / width {
			ranks = append(ranks, r)
		}
	}
	return all, ranks, nil
}
