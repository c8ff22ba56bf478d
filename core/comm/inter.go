package comm

import (
	"encoding/binary"
	"slices"

	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
)

// contextBetween lets the leader of the first side take n contexts and send them to the other
// leader. An error on either side becomes one on both.
func contextBetween(l Link, with, tag int, first bool, n int, take func(n int) uint64,
	failure error) (uint64, error) {
	if first {
		var ctx uint64
		if failure == nil {
			ctx = take(n)
		}
		return ctx, firstError(failure, send(l, with, tag,
			binary.LittleEndian.AppendUint64(nil, ctx), failure))
	}
	b, err := recv(l, with, tag)
	if err = firstError(failure, err); err != nil {
		return 0, err
	}
	ctx, _, err := takeUint64(b)
	return ctx, err
}

// InterCreate makes an intercommunicator of two groups (MPI_Intercomm_create). Collective over the
// two local communicators. peer, remoteLeader and failure (an error in these arguments) are used on
// the leader alone, whose rank in local is leader.
func InterCreate(ids *Contexts, local *Comm, leader int, peer *Comm, remoteLeader, userTag int,
	failure error) (*Made, error) {
	t := local.localTree(local.nextTag(), leader)
	var payload []byte
	if t.me == 0 && failure == nil {
		me, other := local.Me(), peer.RemoteGroup().At(remoteLeader)
		if order := ident.Compare(me, other); order == 0 {
			failure = mpierr.New(mpierr.Rank, "remote_leader %d is the local leader itself",
				remoteLeader)
		} else {
			payload, failure = meet(ids, local, peer.Link, remoteLeader, interCreateTag-userTag,
				order < 0, nil)
		}
	}
	return local.across(t, payload, failure)
}

// Bridge makes an intercommunicator of two groups whose leaders alone can reach each other:
// over pair, a communicator of the two (spawn, accept and connect, join). Collective over the two
// local communicators. An error of any process, passed in as failure, is one of all on both sides.
// pair is nil at the leader when there is no peer because of failure.
func Bridge(ids *Contexts, local *Comm, leader int, pair *Comm, failure error) (*Made, error) {
	t := local.localTree(local.nextTag(), leader)
	_, failure = t.gather(nil, failure)
	var payload []byte
	if t.me == 0 && pair != nil {
		own := failure
		payload, failure = meet(ids, local, pair.Link, 1-pair.Rank, 1, pair.Rank == 0, failure)
		failure = pair.caused(own, failure)
	}
	return local.across(t, payload, failure)
}

// caused is the error of an exchange over the pair c, which this side entered with the error own.
func (c *Comm) caused(own, err error) error {
	if own == nil && err != nil && c.OfPair != nil {
		return c.OfPair(err)
	}
	return err
}

// Settle completes Bridge, with any result: when it returns without an error, every process on both
// sides has called it without one. So no process that has made the intercommunicator can be gone
// before the others have it. Collective like Bridge.
func Settle(local *Comm, leader int, pair *Comm, failure error) error {
	t := local.localTree(local.nextTag(), leader)
	_, failure = t.gather(nil, failure)
	if t.me == 0 && pair != nil {
		own := failure
		_, failure = swap(pair.Link, 1-pair.Rank, 2, pair.Rank == 0, nil, failure)
		failure = pair.caused(own, failure)
	}
	_, failure = t.bcast(nil, failure)
	return failure
}

// Tell sends the root's payload, or its error, to all of the local group. Collective over it.
func (c *Comm) Tell(root int, payload []byte, failure error) ([]byte, error) {
	return c.localTree(c.nextTag(), root).bcast(payload, failure)
}

// across lets the leader send its group what it has agreed upon with the other leader, and builds
// the outcome.
func (c *Comm) across(t *tree, payload []byte, failure error) (*Made, error) {
	payload, err := t.bcast(payload, failure)
	if err != nil {
		return nil, err
	}
	ctx, rest, err := takeUint64(payload)
	if err != nil || len(rest) < 1 {
		return nil, errShort
	}
	remote, _, err := group.Decode(rest[1:])
	if err != nil {
		return nil, err
	}
	if id, both := group.Overlap(c.Group(), remote); both {
		return nil, mpierr.New(mpierr.Comm,
			"the two groups of an intercommunicator must be disjoint, and %v is in both", id)
	}
	return &Made{Ctx: ctx, Local: c.Group(), Rank: c.Rank, Remote: remote, First: rest[0] != 0}, nil
}

// meet is the leaders' part: they exchange their groups, or errors, and settle the context, which
// the first of the two deals out.
func meet(ids *Contexts, local *Comm, link Link, with, tag int, first bool, failure error) ([]byte,
	error) {
	theirs, err := swap(link, with, tag, first, local.Group().Encode(), failure)
	ctx, err := contextBetween(link, with, tag, first, 2, ids.Take, err)
	if err != nil {
		return nil, err
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, ctx), flag(first)), theirs...), nil
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Merge makes an intracommunicator of both groups of an intercommunicator (MPI_Intercomm_merge):
// the group that passes high comes last; if both pass the same, the first side comes first.
// Collective over c.
func (c *Comm) Merge(ids *Contexts, high bool) (*Made, error) {
	if !c.Inter() {
		return nil, mpierr.New(mpierr.Comm, "the communicator is not an intercommunicator")
	}
	t := c.localTree(c.nextTag(), 0)
	var payload []byte
	var failure error
	if t.me == 0 {
		theirs, err := swap(c.Link, 0, t.tag, c.First, []byte{flag(high)}, nil)
		if err == nil && len(theirs) != 1 {
			err = errShort
		}
		ctx, err := contextBetween(c.Link, 0, t.tag, c.First, 1, ids.TakeFor, err)
		if failure = err; err == nil {
			lead := c.First
			if high != (theirs[0] != 0) {
				lead = !high
			}
			payload = append(binary.LittleEndian.AppendUint64(nil, ctx), flag(lead))
		}
	}
	payload, err := t.bcast(payload, failure)
	if err != nil {
		return nil, err
	}
	ctx, rest, err := takeUint64(payload)
	if err != nil || len(rest) < 1 {
		return nil, errShort
	}
	a, b := c.Group(), c.RemoteGroup()
	if rest[0] == 0 {
		a, b = b, a
	}
	return NewFromGroup(group.Union(a, b), ctx, c.Me()), nil
}

// createInter is Create on an intercommunicator: g counts on its own side. If either side's group
// is empty, no process gets one.
func (c *Comm) createInter(ids *Contexts, g *group.Group, tag int) (*Made, error) {
	t := c.localTree(tag, 0)
	mine := c.checkSubset(g)
	var payload []byte
	var failure error
	if t.me == 0 {
		theirs, err := swap(c.Link, 0, tag, c.First, g.Encode(), mine)
		ctx, err := contextBetween(c.Link, 0, tag, c.First, 2, ids.Take, err)
		failure = err
		payload = append(binary.LittleEndian.AppendUint64(nil, ctx), theirs...)
	}
	payload, err := t.bcast(payload, failure)
	if err = firstError(mine, err); err != nil {
		return nil, err
	}
	ctx, rest, err := takeUint64(payload)
	if err != nil {
		return nil, err
	}
	remote, _, err := group.Decode(rest)
	if err != nil {
		return nil, err
	}
	return c.between(ctx, g, remote), nil
}

// between is the outcome for this process of an intercommunicator over parts of c's groups: nil if
// it is not in its part, or if a part is empty.
func (c *Comm) between(ctx uint64, local, remote *group.Group) *Made {
	rank := local.Rank(c.Me())
	if rank == group.Undefined || remote.Size() == 0 {
		return nil
	}
	return &Made{Ctx: ctx, Local: local, Rank: rank, Remote: remote, First: c.First}
}

// splitInter is Split on an intercommunicator, after the choices of the local group have been
// gathered at its leader. A color gives an intercommunicator if both sides have chosen it.
func (c *Comm) splitInter(ids *Contexts, t *tree, color int, mine []byte, failure error) (*Made,
	error) {
	var payload []byte
	if t.me == 0 {
		theirs, err := swap(c.Link, 0, t.tag, c.First, mine, failure)
		ctx, err := contextBetween(c.Link, 0, t.tag, c.First, 2*len(common(mine, theirs)), ids.Take,
			err)
		failure = err
		payload = append(append(binary.LittleEndian.AppendUint64(nil, ctx), mine...), theirs...)
	}
	payload, err := t.bcast(payload, failure)
	if err = firstError(failure, err); err != nil {
		return nil, err
	}
	base, rest, err := takeUint64(payload)
	n := c.Group().Size() * choiceWire
	if err != nil || len(rest) != n+c.RemoteGroup().Size()*choiceWire {
		return nil, errShort
	}
	mine, theirs := rest[:n], rest[n:]
	first, second := mine, theirs
	if !c.First {
		first, second = theirs, mine
	}
	k := slices.Index(common(first, second), int32(color))
	if k < 0 {
		return nil, nil
	}
	local := chosen(c.Group(), decodeChoices(mine), int32(color))
	remote := chosen(c.RemoteGroup(), decodeChoices(theirs), int32(color))
	return c.between(base+uint64(2*k)*CtxStep, local, remote), nil
}

// common lists the colors that are in both tables, in the order of the first.
func common(first, second []byte) []int32 {
	theirs := map[int32]bool{}
	for _, color := range colors(decodeChoices(second)) {
		theirs[color] = true
	}
	var out []int32
	for _, color := range colors(decodeChoices(first)) {
		if theirs[color] {
			out = append(out, color)
		}
	}
	return out
}
