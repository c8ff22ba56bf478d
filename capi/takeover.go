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
	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
)

// Clusters with standbys: what a process has to tell of its communicators when ranks are taken
// over, and what becomes of them then (package cluster/takeover decides). How they meet is in
// takeover_meet.go.

// inheritance is what this process knows beside its communicators. Communicators are named by their
// handles.
var inheritance struct {
	mu sync.Mutex
	// numbers of those that were made of a communicator, and freed
	freed map[uint32][]uint32
	// by parent and number: made by the one that had this rank before, and not asked for yet
	inherited map[uint32]map[uint32]*commObject

	// of processes that have died, and whose ranks others have: the rank, with transparent takeover
	past map[ident.ProcID]int

	// Of a process that has taken a rank over, with others at the same time.
	base      *group.Group // all processes of the cluster
	newcomers *commObject  // they and itself
	// by parent and number: who has those that were made of it
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
// have taken ranks over and make it again, since no living process has been in it.
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

// again makes a communicator of those who are new in old and were in none of the communicators with
// this number that live.
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
		via.c.parent = old.c.o.handle // it ends with the others
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
				e.New = world.contexts.TakeFor(2) // and one for those who are new
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

// dealer deals out the contexts of communicators that are made of o. Where ranks are taken over
// transparently they are noted.
func (o *commObject) dealer() *comm.Contexts {
	if o.c.flags&C.SPX_C_REPLAY == 0 || C.muted() != 0 {
		return world.contexts
	}
	return world.contexts.Settled(
		func(first uint64) uint64 { return uint64(C.spx_replay_context(C.uint64_t(first))) })
}

// living is g with who has a rank now in the place of those that have died: a program's group may
// be from before.
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
