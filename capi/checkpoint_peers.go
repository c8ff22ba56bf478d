package main

/*
#include <stdatomic.h>
#include "ckpt.h"
static int ckpt_is_revoked(const spx_comm *c) { return atomic_load(&c->revoked) != 0; }
*/
import "C"

import (
	"slices"
	"sync"

	"libspx/ckpt"
	"libspx/core/mpierr"
)

// checkpointPeers are the processes of the user's communicator, on one of the object's own: a
// process that sees a failure there revokes it, so that no process waits for one that has gone away
// to recover. It is revoked with the user's, too.
type checkpointPeers struct {
	user *commObject // retained
	own  *commObject
}

// attachedPeers are those of all objects of this process that are attached.
var attachedPeers struct {
	mu   sync.Mutex // no other lock of the engine is taken while it is held
	list []*checkpointPeers
}

func init() {
	revokedHere = append(revokedHere, checkpointRevoked)
	onStopped(func() {
		attachedPeers.mu.Lock()
		defer attachedPeers.mu.Unlock()
		attachedPeers.list = nil
	})
}

// checkpointRevoked: the user's communicator c has been revoked.
func checkpointRevoked(c *C.spx_comm) {
	attachedPeers.mu.Lock()
	defer attachedPeers.mu.Unlock()
	for _, p := range attachedPeers.list {
		if p.user.c == c {
			revokeHere(p.own.c)
		}
	}
}

// newCheckpointPeers makes the object's own communicator, with all processes of user. A process
// that takes a rank over makes it again.
func newCheckpointPeers(user *commObject) (*checkpointPeers, error) {
	if user.Inter() {
		return nil, mpierr.New(mpierr.Comm, "comm is an intercommunicator: merge it first")
	}
	m, err := user.Split(world.contexts, 0, user.Rank, nil) // a duplicate would copy attributes
	if err != nil {
		return nil, err
	}
	own, err := newLiving(m, user, true)
	if err != nil {
		return nil, err
	}
	p := &checkpointPeers{user, own}
	user.retain()
	attachedPeers.mu.Lock()
	attachedPeers.list = append(attachedPeers.list, p)
	attachedPeers.mu.Unlock()
	if C.ckpt_is_revoked(user.c) != 0 {
		revokeHere(own.c)
	}
	return p, nil
}

func (p *checkpointPeers) Rank() int { return p.own.Rank }
func (p *checkpointPeers) Size() int { return int(p.own.c.size) }
func (p *checkpointPeers) Host() int { return p.own.sharedColor() }
func (p *checkpointPeers) Revoke()   { p.own.revoke() }

func (p *checkpointPeers) Leave() {
	attachedPeers.mu.Lock()
	attachedPeers.list = slices.DeleteFunc(attachedPeers.list,
		func(q *checkpointPeers) bool { return q == p })
	attachedPeers.mu.Unlock()
	C.spx_retire(C.SPX_K_COMM, &p.own.c.o)
	p.user.release()
}

func (p *checkpointPeers) Gather(mine []uint64) ([]uint64, error) {
	all := make([]uint64, len(mine)*p.Size())
	err := here().gather(p.own.c, mine, all)
	return all, err
}

func (p *checkpointPeers) Post(receives, sends []ckpt.Message, failed func()) (ckpt.Transfer,
	error) {
	b, err := newBatch(p.own.c, C.SPX_CTX_P2P, len(receives), len(receives)+len(sends),
		[2][]ckpt.Message{receives, sends})
	if err != nil {
		return nil, err
	}
	for i, m := range slices.Concat(receives, sends) {
		b.put(i, message{m.Peer, m.Tag, m.Data})
		if m.Into != nil {
			into, to := m.Into.(*checkpointBuffer), &b.messages()[i]
			to.data, to.bytes, to._type = C.uintptr_t(into.at), C.int64_t(into.count), into.typ
		}
	}
	return &checkpointTransfer{b, failed}, nil
}

// checkpointTransfer is messages.
type checkpointTransfer struct {
	b      *batch
	failed func()
}

func (t *checkpointTransfer) Begin() { here().begin(t.b) }

func (t *checkpointTransfer) Wait() error { return here().settle(t.b, t.failed) }

func (t *checkpointTransfer) Abandon(over func()) {
	t.b.over = over
	t.b.end()
}
