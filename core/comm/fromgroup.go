package comm

import (
	"encoding/binary"

	"libspx/core/group"
	"libspx/core/mpierr"
)

// Creation from groups alone (MPI-5.0, sections 7.4.2 and 7.6.2): there is no communicator to send
// messages on. The members meet on a context that they make from the string tag; it is beyond the
// contexts of all processes.

// rendezvousProc is the process number in the contexts of string tags. No process has it.
const rendezvousProc = 1<<(62-counterBits) - 1

// RendezvousContext is the context on which the members of a group meet that call with the same
// string tag.
func RendezvousContext(stringTag string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a: every process must get the same
	for k := range len(stringTag) {
		h = (h ^ uint64(stringTag[k])) * 1099511628211
	}
	return (rendezvousProc<<counterBits | (h^h>>counterBits)&(1<<counterBits-1)) * CtxStep
}

// CreateFromGroup makes a communicator of the group that c, a communicator on a RendezvousContext,
// is made of (MPI_Comm_create_from_group). Collective over c.
func (c *Comm) CreateFromGroup(ids *Contexts) (*Made, error) {
	return c.createAmong(ids, c.Group(), 0)
}

// InterFromGroups makes an intercommunicator (MPI_Intercomm_create_from_groups). c is made of the
// local group, and pair, which only the leader needs, of the two leaders: both are on
// RendezvousContexts. Collective over c.
func (c *Comm) InterFromGroups(ids *Contexts, leader int, pair *Comm, remote *group.Group) (*Made,
	error) {
	t := c.localTree(1, leader)
	var payload []byte
	var failure error
	if t.me == 0 {
		first := pair.Rank == 0
		theirs, err := swap(pair.Link, 1-pair.Rank, 1, first, c.Group().Encode(), nil)
		if err == nil {
			err = checkSame(theirs, remote)
		}
		ctx, err := contextBetween(pair.Link, 1-pair.Rank, 1, first, 2, ids.Take, err)
		failure = err
		payload = append(binary.LittleEndian.AppendUint64(nil, ctx), flag(first))
	}
	payload, err := t.bcast(payload, failure)
	if err != nil {
		return nil, err
	}
	ctx, rest, err := takeUint64(payload)
	if err != nil || len(rest) < 1 {
		return nil, errShort
	}
	return &Made{Ctx: ctx, Local: c.Group(), Rank: c.Rank, Remote: remote, First: rest[0] != 0}, nil
}

// checkSame makes sure that the other side's local group is what this side calls the remote group.
func checkSame(encoded []byte, remote *group.Group) error {
	theirs, _, err := group.Decode(encoded)
	if err == nil && group.Compare(theirs, remote) != group.Ident {
		err = mpierr.New(mpierr.Group,
			"remote_group is not what the other side passes as its local_group")
	}
	return err
}
