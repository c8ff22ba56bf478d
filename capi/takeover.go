package main

/*
#include <stdlib.h>
#include <string.h>
#include "comm.h"
#include "stat.h"
#include "takeover.h"
#include "replay_shim.h"
static void born(spx_comm *old, spx_comm *c) { spx_takeover_born(old, c); }
static int inherits(const spx_comm *c) { return spx_takeover_inherits(c); }
static int muted(void) { return spx_mute != 0; }
// Not all members have c, which may have come to be after MPI_COMM_WORLD was revoked, and so was not.
static void give_up(spx_comm *c)
{
	c->parent = 0;
	for (; c; c = c->inner) {
		atomic_store(&c->revoked, 1);
		spx_comm_revoked(c);
	}
}
// A communicator begins with the error handler of the one that it is made of.
static void take_handler(spx_comm *c, const spx_comm *of)
{
	spx_errh *was = c->errh;
	if (of->errh) spx_ref(&of->errh->o);
	c->errh = of->errh;
	if (was) spx_unref(SPX_K_ERRH, &was->o);
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

// Clusters with standbys: the statement of a process about its communicators when ranks are taken
// over, and the change of these (package cluster/takeover decides). The meetings are in
// takeover_meet.go.

// inheritance is this process's data beside its communicators. Communicators are named by their
// handles.
var inheritance struct {
	mu sync.Mutex
	// numbers of those that were made of a communicator, and freed
	freed map[uint32][]uint32
	// by parent and number: made by the predecessor with this rank, and not requested yet
	inherited map[uint32]map[uint32]*commObject

	// of processes that have died and have successors: the rank, with transparent takeover
	past map[ident.ProcID]int

	// Of a process that has taken a rank over, with others at the same time.
	base      *group.Group // all processes of the cluster
	newcomers *commObject  // they and itself
	// by parent and number: the processes that have those that were made of it
	kept map[uint32]map[uint32][]uint32
}

func init() {
	onStopped(func() {
		inheritance.freed, inheritance.inherited, inheritance.newcomers, inheritance.kept,
			inheritance.past = nil, nil,
			nil, nil, nil
	})
}

// startStandbys makes the two communicators of a cluster and its standbys.
func startStandbys(s *startInfo, all *group.Group) error {
	if s.Ranks == all.Size() {
		return nil
	}
	inheritance.freed, inheritance.inherited = map[uint32][]uint32{},
		map[uint32]map[uint32]*commObject{}
	var made [2]*commObject
	base, pool := comm.StandbyContexts(s.Origin, uint32(procOf(s.World[0]).serial))
	inheritance.base = all
	there := all // from the beginning
	if warm := all.Size() - s.Cold; s.Rank >= warm {
		there = group.Of(world.me)
		pool, _ = comm.StandbyContexts(s.Origin, uint32(procOf(s.Proc).serial))
	} else {
		var ids []ident.ProcID
		for i := range warm {
			ids = append(ids, all.At(i))
		}
		there = group.Of(ids...)
	}
	for i, of := range []struct {
		members *group.Group
		ctx     uint64
	}{{all, base}, {there, pool}} {
		o, err := newComm(comm.NewFromGroup(of.members, of.ctx, world.me), nil)
		if err != nil {
			return err
		}
		made[i] = o
	}
	startMeetings(made[0], made[1], s.Ranks, s.Cold)
	return nil
}

// poolOf makes the communicator of those members of the base that are to meet from now on, some of
// which have just been started. Each of these is new once, so that the first of them has the
// context.
func poolOf(members []int, first int) (*commObject, error) {
	var ids []ident.ProcID
	for _, m := range members {
		ids = append(ids, inheritance.base.At(m))
	}
	_, ctx := comm.StandbyContexts(world.origin,
		uint32(procOf(world.index[inheritance.base.At(first)]).serial))
	return newComm(comm.NewFromGroup(group.Of(ids...), ctx, world.me), nil)
}

// bear notes that the user has made o, nil for MPI_COMM_NULL, of old.
func (old *commObject) bear(o *commObject) {
	if o == nil {
		C.born(old.c, nil)
		return
	}
	C.born(old.c, o.c)
}

// noteFreed notes that the user has freed o.
func (o *commObject) noteFreed() {
	if o.c.parent == 0 {
		return
	}
	inheritance.mu.Lock()
	defer inheritance.mu.Unlock()
	inheritance.freed[uint32(o.c.parent)] = append(inheritance.freed[uint32(o.c.parent)],
		uint32(o.c.birth))
}

// inherit is for a function that makes a communicator of old. done: it was made before this process
// had its rank; o is nil for MPI_COMM_NULL. Else it is to be made by way of via: old, or those that
// have taken ranks over and make it again, since nobody who lives has been in it.
func (old *commObject) inherit() (o *commObject, done bool, via *commObject, err error) {
	if C.inherits(old.c) == 0 {
		if old.c.flags&C.SPX_C_REPLAY != 0 && C.muted() == 0 && C.spx_msglog_closed() != 0 {
			return nil, false, nil, fail(C.MPI_ERR_UNSUPPORTED_OPERATION,
				"in a cluster with transparent takeover communicators are made before the first "+
					"MPISP_Commit")
		}
		return nil, false, old, nil
	}
	inheritance.mu.Lock()
	defer inheritance.mu.Unlock()
	parent, birth := uint32(old.c.o.handle), uint32(old.c.births)
	if o = inheritance.inherited[parent][birth]; o != nil {
		delete(inheritance.inherited[parent], birth)
		old.c.births++
		C.take_handler(o.c, old.c)
		return o, true, old, nil
	}
	if slices.Contains(inheritance.freed[parent], birth) {
		old.c.births++
		return nil, true, old, mpierr.New(mpierr.Comm,
			"the others have made this communicator, and freed it: it is number %d of those "+
				"made of %s (MPISP_Is_replacement tells who "+
				"should not ask for it)", birth, C.GoString(&old.c.name[0]))
	}
	via, err = old.again(inheritance.kept[parent][birth], birth)
	return nil, false, via, err
}

// again makes a communicator of the processes that are new in old and were in none of the living
// communicators with this number.
func (old *commObject) again(kept []uint32, birth uint32) (*commObject, error) {
	news := inheritance.newcomers
	var ids []ident.ProcID
	for i, p := range ranksOf(old.c.local, old.c.size) {
		if !slices.Contains(kept, p) && slices.Contains(ranksOf(news.c.local, news.c.size), p) {
			ids = append(ids, old.Group().At(i))
		}
	}
	tag := int((uint64(old.c.ctx)*0x9e3779b97f4a7c15>>40 + uint64(birth)) % C.SPX_TAG_UB)
	m, err := news.CreateGroup(world.contexts, group.Of(ids...), tag)
	if err != nil {
		return nil, err
	}
	via, err := newComm(m, old)
	if err == nil {
		via.c.parent = old.c.o.handle // it ends with the rest
		via.c.birth = C.uint32_t(^uint32(0))
	}
	return via, err
}

// heritage lists the communicators that standbys inherit, MPI_COMM_WORLD among them.
func heritage() (out []*commObject) {
	handles := make([]C.uint32_t, 16)
	for {
		n := int(C.spx_comms_of(&handles[0], C.uint32_t(len(handles))))
		if n <= len(handles) {
			handles = handles[:n]
			break
		}
		handles = make([]C.uint32_t, 2*n)
	}
	out = append(out, commOf(C.SPX_HANDLE_COMM_WORLD))
	for _, h := range handles {
		if o := commOf(uintptr(h)); o != nil {
			out = append(out, o)
		}
	}
	return out
}

func ranksOf(list *C.uint32_t, n C.int32_t) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(list)), int(n))
}

// statementHere is the statement of this process for those that are to have ranks (package
// takeover).
func statementHere(active *C.spx_comm) *takeover.Statement {
	w := commOf(C.SPX_HANDLE_COMM_WORLD)
	var s takeover.Statement
	before, now := ranksOf(w.c.local, w.c.size), ranksOf(active.local, active.size)
	if before[active.rank] == world.proc { // else this process is new
		lives := func(r int) bool { return before[r] == now[r] }
		for _, o := range heritage() {
			local, ok := worldRanks(before, ranksOf(o.c.local, o.c.size))
			var remote []int
			if ok && o.Inter() {
				remote, ok = worldRanks(before, ranksOf(o.c.peer, o.c.remote_size))
			}
			if !ok {
				continue
			}
			inheritance.mu.Lock()
			freed := slices.Clone(inheritance.freed[uint32(o.c.o.handle)])
			inheritance.mu.Unlock()
			s.Has = append(s.Has, takeover.Has{Ctx: uint64(o.c.ctx),
				Births: uint32(max(o.c.births, o.c.inherited)), Freed: freed})
			first := slices.IndexFunc(before, func(p uint32) bool { return p == world.proc })
			if slices.ContainsFunc(slices.Concat(local, remote),
				func(r int) bool { return r < first && lives(r) }) {
				continue
			}
			e := takeover.Comm{Ctx: uint64(o.c.ctx), New: world.contexts.TakeLike(o.Comm),
				Birth: uint32(o.c.birth), First: o.First, Local: local, Remote: remote,
				Name: C.GoString(&o.c.name[0])}
			if o == w {
				e.New = world.contexts.TakeFor(2) // and one for the new processes
			} else if parent := commOf(uintptr(o.c.parent)); parent != nil {
				e.Parent = uint64(parent.c.ctx)
			} else {
				e.Parent = 1 // freed
			}
			s.Led = append(s.Led, e)
		}
	} else if active.rank == 0 {
		all := make([]int, len(now))
		for r := range all {
			all[r] = r
		}
		s.Led = []takeover.Comm{{Ctx: uint64(w.c.ctx), New: world.contexts.TakeFor(2), Local: all,
			Name: C.GoString(&w.c.name[0])}}
	}
	return &s
}

// worldRanks names processes by their ranks in MPI_COMM_WORLD; false: some have none.
func worldRanks(all, procs []uint32) ([]int, bool) {
	out := make([]int, len(procs))
	for i, p := range procs {
		if out[i] = slices.Index(all, p); out[i] < 0 {
			return nil, false
		}
	}
	return out, true
}

// applyTakeover gives every communicator its members, from the statements of the present ranks, by
// rank. It returns how many ranks were taken over.
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

// meetNewcomers makes the communicator of the new processes, and notes which of the peers have
// which communicators.
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
	// it ends with the rest
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

// read reads all statements, and finds the ranks that were taken over: an empty statement comes
// from a new process, as all others have MPI_COMM_WORLD.
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
	first := participantsOf(system.layout).first[system.index]
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

// dealer deals out the contexts of communicators that are made of o. Where ranks are taken over
// transparently they are noted.
func (o *commObject) dealer() *comm.Contexts {
	if o.c.flags&C.SPX_C_REPLAY == 0 || C.muted() != 0 {
		return world.contexts
	}
	return world.contexts.Settled(
		func(first uint64) uint64 { return uint64(C.spx_replay_context(C.uint64_t(first))) })
}

// living is g with the successors in place of processes that have died: a program's group may be
// from before.
func (o *commObject) living(g *group.Group) *group.Group {
	if g == nil || o.c.flags&C.SPX_C_REPLAY == 0 {
		return g
	}
	inheritance.mu.Lock()
	defer inheritance.mu.Unlock()
	if len(inheritance.past) == 0 {
		return g
	}
	w := commOf(C.SPX_HANDLE_COMM_WORLD)
	now := ranksOf(w.c.local, w.c.size)
	ids, changed := slices.Clone(g.IDs()), false
	for i, id := range ids {
		if rank, ok := inheritance.past[id]; ok {
			ids[i], changed = memberOf(procOf(now[rank]), world.me.Job), true
		}
	}
	if !changed {
		return g
	}
	return group.Of(ids...)
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

// tellTakeover reports the present processes of the ranks to the agent: one of the surviving ranks
// does, and waits for as long as the agent lives.
func tellTakeover(replaced []bool, x *taking) error {
	if system.layout == nil || max(slices.Index(replaced, false), 0) != x.rank {
		return nil
	}
	m := &service.Message{Kind: service.TookOver, Number: uint64(world.proc), Slots: x.now, FD: -1}
	_, err := ask(world.me.Job, m, mpierr.Other, 0)
	return err
}
