package main

/*
#include "comm.h"
#include "replay_shim.h"
#include "takeover.h"
// Not all members have c, which may have come to be after MPI_COMM_WORLD was revoked, and so was
// not.
static void give_up(spx_comm *c)
{
	c->parent = 0;
	for (; c; c = c->inner) {
		atomic_store(&c->revoked, 1);
		spx_comm_revoked(c);
	}
}
*/
import "C"

import (
	"slices"
	"sync"
	"unsafe"

	"libspx/cluster/takeover"
	"libspx/core/coll"
	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// What becomes of the communicators of a cluster when ranks have been taken over: each gets its
// members, by the statements of those that have ranks now (package cluster/takeover merges them).
// What a process states, and inherits, is in takeover.go.

// applyTakeover gives every communicator its members, as those that have ranks now have said: their
// statements, by rank. It returns how many ranks were taken over.
func applyTakeover(active *C.spx_comm, said [][]byte) (int, error) {
	w := commOf(C.SPX_HANDLE_COMM_WORLD)
	before, now := slices.Clone(ranksOf(w.c.local, w.c.size)),
		slices.Clone(ranksOf(active.local, active.size))
	statements, replaced, n, err := read(said)
	if err != nil {
		return 0, err
	}
	transparent := system.layout != nil && system.layout.Clusters[system.index].Replays
	x := &taking{now: now, replaced: replaced, rank: int(active.rank),
		isNew: before[active.rank] != world.proc, mine: map[uint64]*commObject{},
		lists: map[string]*C.uint32_t{}}
	defer x.done()
	if transparent {
		if err := x.follow(before); err != nil {
			return 0, err
		}
		return n, tellTakeover(replaced, x)
	}
	if !x.isNew {
		for _, o := range heritage() {
			x.mine[uint64(o.c.ctx)] = o
		}
	}
	if err := x.takeAll(takeover.Merge(statements, replaced)); err != nil {
		return 0, err
	}
	return n, tellTakeover(replaced, x)
}

func (x *taking) takeAll(list []takeover.Comm) error {
	inheritance.mu.Lock()
	defer inheritance.mu.Unlock()
	for _, m := range list {
		if local, remote := m.Has(x.rank); local || remote {
			if err := x.take(&m, local); err != nil {
				return err
			}
		}
	}
	for _, o := range x.mine {
		C.give_up(o.c)
	}
	if x.isNew {
		return x.meetNewcomers(list)
	}
	return nil
}

// meetNewcomers makes the communicator of those who are new, and notes who has which of the others.
func (x *taking) meetNewcomers(list []takeover.Comm) error {
	var ids []ident.ProcID
	for r, isNew := range x.replaced {
		if isNew {
			ids = append(ids, memberOf(procOf(x.now[r]), world.me.Job))
		}
	}
	var err error
	inheritance.newcomers, err = newComm(comm.NewFromGroup(group.Of(ids...),
		list[0].New+comm.CtxStep,
		world.me), commOf(C.SPX_HANDLE_COMM_WORLD))
	if err != nil {
		return err
	}
	// it ends with the others
	inheritance.newcomers.c.parent, inheritance.newcomers.c.birth = C.SPX_HANDLE_COMM_WORLD,
		C.uint32_t(^uint32(0))
	inheritance.kept = map[uint32]map[uint32][]uint32{}
	for _, m := range list {
		parent := x.made[m.Parent]
		if parent == nil {
			continue
		}
		h := uint32(parent.c.o.handle)
		if inheritance.kept[h] == nil {
			inheritance.kept[h] = map[uint32][]uint32{}
		}
		for _, r := range slices.Concat(m.Local, m.Remote) {
			inheritance.kept[h][m.Birth] = append(inheritance.kept[h][m.Birth], x.now[r])
		}
	}
	return nil
}

// read reads the statements of all, and finds out whose rank was taken over: a statement with
// nothing in it comes from one that is new, as MPI_COMM_WORLD is in all others.
func read(said [][]byte) (all []*takeover.Statement, replaced []bool, n int, err error) {
	for _, b := range said {
		s, err := takeover.Decode(b)
		if err != nil {
			return nil, nil, 0, fail(C.MPI_ERR_INTERN, "%v", err)
		}
		isNew := len(s.Has) == 0
		all, replaced = append(all, s), append(replaced, isNew)
		if isNew {
			n++
		}
	}
	return all, replaced, n, nil
}

// taking is the work of applyTakeover.
type taking struct {
	now   []uint32 // process by rank of MPI_COMM_WORLD
	rank  int
	isNew bool

	replaced []bool
	mine     map[uint64]*commObject // by former context: what is left to be done
	// by its members: equal groups share their list, by which duplicates are known
	lists map[string]*C.uint32_t
	made  map[uint64]*commObject
}

func (x *taking) done() {
	for _, l := range x.lists {
		C.spx_ranks_free(l)
	}
}

// members makes a group of ranks, and its list, with one reference for the caller.
func (x *taking) members(ranks []int) (*group.Group, *C.uint32_t, error) {
	ids := make([]ident.ProcID, len(ranks))
	procs := make([]uint32, len(ranks))
	for i, r := range ranks {
		procs[i] = x.now[r]
		ids[i] = memberOf(procOf(procs[i]), world.me.Job)
	}
	key := string(unsafe.Slice((*byte)(unsafe.Pointer(&procs[0])), 4*len(procs)))
	list := x.lists[key]
	if list == nil {
		if list = C.spx_ranks_new(C.uint32_t(len(procs))); list == nil {
			return nil, nil, noMemory()
		}
		copy(unsafe.Slice((*uint32)(unsafe.Pointer(list)), len(procs)), procs)
		C.spx_ranks_hold(list)
		x.lists[key] = list
	}
	return group.Of(ids...), C.spx_ranks_share(list), nil
}

// take gives this process its part of m: renewed, or made. local: it is in the local group, else in
// the other.
func (x *taking) take(m *takeover.Comm, local bool) error {
	mine, others := m.Local, m.Remote
	first := m.First
	if !local {
		mine, others, first = m.Remote, m.Local, !m.First
	}
	g, list, err := x.members(mine)
	if err != nil {
		return err
	}
	made := &comm.Made{Ctx: m.New, Local: g, Rank: slices.Index(mine, x.rank), First: first}
	peer := list
	if len(others) > 0 {
		if made.Remote, peer, err = x.members(others); err != nil {
			C.spx_ranks_free(list)
			return err
		}
	}
	o := x.mine[m.Ctx]
	if x.isNew && m.Parent == 0 {
		o = commOf(C.SPX_HANDLE_COMM_WORLD)
	}
	if o == nil { // the process that had this rank has made it
		if o, err = x.inherit(m, made, list, peer); err != nil {
			return err
		}
	} else {
		delete(x.mine, m.Ctx)
		o.renew(made, list, peer)
	}
	if x.made == nil {
		x.made = map[uint64]*commObject{}
	}
	x.made[m.Ctx] = o
	if x.isNew {
		o.c.inherited, o.c.births = C.uint32_t(m.Births), 0
	} else {
		o.c.births = C.uint32_t(m.Births)
	}
	inheritance.freed[uint32(o.c.o.handle)] = m.Freed
	return nil
}

// inherit makes a communicator for the rank that this process has now.
func (x *taking) inherit(m *takeover.Comm, made *comm.Made, list, peer *C.uint32_t) (*commObject,
	error) {
	parent := x.made[m.Parent]
	handler := parent
	if handler == nil {
		handler = commOf(C.SPX_HANDLE_COMM_WORLD)
	}
	o, err := newComm(made, handler)
	if err != nil {
		C.spx_ranks_free(list)
		return nil, err
	}
	C.spx_comm_lists(o.c, peer, list)
	for k := range min(len(m.Name), len(o.c.name)-1) {
		o.c.name[k] = C.char(m.Name[k])
	}
	if parent == nil || !m.Inherited() {
		return o, nil
	}
	o.c.parent, o.c.birth = parent.c.o.handle, C.uint32_t(m.Birth)
	h := uint32(parent.c.o.handle)
	if inheritance.inherited[h] == nil {
		inheritance.inherited[h] = map[uint32]*commObject{}
	}
	inheritance.inherited[h][m.Birth] = o
	return o, nil
}

// follow gives the communicators their members, transparently: nothing else of them changes, and
// nothing that is on its way is lost. What this process has not made itself yet, since it is new,
// it makes again.
func (x *taking) follow(before []uint32) error {
	all := heritage()
	if x.isNew {
		all = all[:1] // MPI_COMM_WORLD
	}
	for _, o := range all {
		local, ok := worldRanks(before, ranksOf(o.c.local, o.c.size))
		if !ok || o.Inter() {
			continue
		}
		g, list, err := x.members(local)
		if err != nil {
			return err
		}
		made := &comm.Made{Ctx: uint64(o.c.ctx), Local: g, Rank: x.rank, First: o.First}
		if x.isNew {
			o.renew(made, list, list)
		} else {
			o.follows(made, list, list)
		}
	}
	first := C.uint32_t(participantsOf(system.layout).First[system.index])
	for r, isNew := range x.replaced {
		if isNew && r < len(before) {
			inheritance.mu.Lock()
			if inheritance.past == nil {
				inheritance.past = map[ident.ProcID]int{}
			}
			inheritance.past[memberOf(procOf(before[r]), world.me.Job)] = r
			inheritance.mu.Unlock()
		}
		if isNew && !x.isNew {
			C.spx_msglog_moved(first+C.uint32_t(r), C.uint32_t(x.now[r]))
		}
	}
	return nil
}

// follows gives o other members, and leaves the rest as it is.
func (o *commObject) follows(m *comm.Made, local, peer *C.uint32_t) {
	C.spx_comm_lists(o.c, peer, local)
	o.Comm.LocalTable().Set(m.Local)
	if m.Remote != nil {
		o.Comm.RemoteTable().Set(m.Remote)
	}
	o.levels, o.near = sync.Once{}, coll.Nearness{}
	o.setFar()
}

// renew gives o another context and other members. It takes over the lists.
func (o *commObject) renew(m *comm.Made, local, peer *C.uint32_t) {
	before := uint64(o.c.ctx)
	C.spx_comm_renew(o.c, C.int(m.Rank), C.uint64_t(m.Ctx), peer, local)
	o.Comm = comm.New(m)
	o.Link = link{o.c}
	o.LocalLink = o.Link
	if o.c.inner != nil {
		o.LocalLink = link{o.c.inner}
	}
	o.levels, o.near = sync.Once{}, coll.Nearness{}
	o.setFar()
	ft.mu.Lock()
	defer ft.mu.Unlock()
	if f := ft.comms[before]; f != nil && before != m.Ctx {
		f.obj = nil
		ft.retired = append(ft.retired, before)
	}
	C.spx_ctrl_expected()
}

// tellTakeover tells the agent who has which rank: one of those that had theirs before does, and
// waits for as long as the agent lives.
func tellTakeover(replaced []bool, x *taking) error {
	if system.layout == nil || max(slices.Index(replaced, false), 0) != x.rank {
		return nil
	}
	m := &service.Message{Kind: service.TookOver, Number: uint64(world.proc), Slots: x.now, FD: -1}
	_, err := ask(world.me.Job, m, mpierr.Other, 0)
	return err
}
