package main

/*
#include <stdlib.h>
#include "plan.h"
#include "settings.h"
#include "share.h"
#include "stat.h"

static void note_chosen(int64_t choice, int64_t reason, int64_t bytes, int64_t ctx)
{
  spx_lock();
  spx_note(SPX_EV_CHOSEN, choice, reason, bytes, ctx);
  spx_unlock();
}
*/
import "C"

import (
	"runtime/debug"
	"slices"
	"sync/atomic"
	"unsafe"

	"libspx/core/coll"
	"libspx/core/mpierr"
	"libspx/core/tool"
)

// The planner's side of capi/dataplane/coll/plan.h: a collective that the communicator's cache has
// no plan for comes here once.

func init() { internals[C.SPX_IN_PLAN] = planCollective }

// Numbers that core/coll and plan.h must agree on: each line has an index out of range when they do
// not.
var (
	_ = [1]int{}[C.SPX_COLL_COUNT-int(coll.Kinds)]
	_ = [1]int{}[C.SPX_COLL_ALLTOALLW-int(coll.Alltoallw)]
	_ = [1]int{}[C.SPX_COLL_EXSCAN-int(coll.Exscan)]
	_ = [1]int{}[C.SPX_COLL_NEIGHBOR_ALLGATHER-int(coll.NeighborAllgather)]
	_ = [1]int{}[C.SPX_COLL_NEIGHBOR_ALLTOALLW-int(coll.NeighborAlltoallw)]
	_ = [1]int{}[C.SPX_P_SEND-int(coll.OpSend)]
	_ = [1]int{}[C.SPX_P_RECV-int(coll.OpRecv)]
	_ = [1]int{}[C.SPX_P_WAIT-int(coll.OpWait)]
	_ = [1]int{}[C.SPX_P_COPY-int(coll.OpCopy)]
	_ = [1]int{}[C.SPX_P_REDUCE-int(coll.OpReduce)]
	_ = [1]int{}[C.SPX_P_POST-int(coll.OpPost)]
	_ = [1]int{}[C.SPX_P_FOLD-int(coll.OpFold)]
	_ = [1]int{}[C.SPX_PF_LOCAL-int(coll.FlagLocal)]
	_ = [1]int{}[C.SPX_PF_WAKE_ALL-int(coll.FlagWakeAll)]
	_ = [1]int{}[C.SPX_PF_WAKE_ROOT-int(coll.FlagWakeRoot)]
	_ = [1]int{}[C.SPX_PF_WAKE_ONE-int(coll.FlagWakeOne)]
	_ = [1]int{}[C.SPX_PF_SHORT-int(coll.FlagShort)]
	_ = [1]int{}[C.SPX_PF_LONG-int(coll.FlagLong)]
	_ = [1]int{}[C.SPX_PF_MOST-int(coll.FlagMost)]
	_ = [1]int{}[C.SPX_PB_CELL-int(coll.BufCell)]
	_ = [1]int{}[C.SPX_PB_PART-int(coll.BufPart)]
	_ = [1]int{}[C.SPX_SHARE_CELL-int(coll.CellBytes)]
	_ = [1]int{}[C.SPX_SHARE_SMALL_SLOT-int(coll.SmallSlotBytes)]
	_ = [1]int{}[C.SPX_SHARE_PARTS-int(coll.Parts)]
	_ = [1]int{}[C.SPX_SHARE_PART-int(coll.PartBytes)]
	_ = [1]int{}[C.SPX_PB_RECV-int(coll.BufRecv)]
	_ = [1]int{}[C.SPX_PB_TEMP-int(coll.BufTemp)]
	_ = [1]int{}[C.SPX_PM_INDEX-int(coll.Index)]
	_ = [1]int{}[C.SPX_PM_PREFIX-int(coll.Prefix)]
	_ = [1]int{}[C.SPX_PM_COUNT-int(coll.Count)]
	_ = [1]int{}[C.SPX_PM_OWN-int(coll.Own)]
	_ = [1]int{}[C.SPX_PM_ROW-int(coll.Row)]
	_ = [1]int{}[C.SPX_PT_SEND-int(coll.TypeSend)]
	_ = [1]int{}[C.SPX_PT_RECV-int(coll.TypeRecv)]
	_ = [1]int{}[C.MPI_ROOT-coll.RootSelf]
	_ = [1]int{}[C.MPI_PROC_NULL-coll.RootNone]
)

// forced returns the algorithm that a setting selects for an operation, "" when none does, and
// which setting that is.
func forced(k coll.Kind) (string, coll.Reason) {
	name := C.CString(coll.EnvName(k))
	defer C.free(unsafe.Pointer(name))
	id := C.spx_setting_find(name)
	if id == C.SPX_SETTINGS {
		return "", coll.Unknown
	}
	text := C.GoString(C.spx_setting_text(id))
	if text == "auto" {
		return "", coll.Unknown
	}
	switch C.spx_setting_from(id) {
	case C.SPX_FROM_TOOL:
		return text, coll.ByTool
	case C.SPX_FROM_TABLE:
		return text, coll.ByTuning
	}
	return text, coll.ByVariable
}

// planCollective compiles the plan for a key. Arguments: const spx_plan_key *, spx_comm *, spx_plan
// ** (out).
func planCollective(c *call) error {
	key, comm := at[C.spx_plan_key](c.addr(0)), at[C.spx_comm](c.addr(1))
	a := coll.Args{
		Kind:      coll.Kind(key.kind),
		Rank:      int(comm.rank),
		Size:      int(comm.size),
		Root:      int(key.root),
		InPlace:   key.in_place != 0,
		SCount:    int64(key.scount),
		RCount:    int64(key.rcount),
		SType:     planType(&key.s, key.s_contig),
		RType:     planType(&key.r, key.r_contig),
		SizeClass: int(key.size_class),
		Commute:   key.commute != 0,

		Persistent: key.persistent != 0,
	}
	a.Force, a.ForcedBy = forced(a.Kind)
	near := knownLevels(comm)
	a.Place(&coll.Around{CPUs: processorsFor(comm), TCP: C.spx_segment != nil &&
		C.spx_segment.flags&C.SPX_SEG_TCP != 0}, &near)
	if comm.flags&C.SPX_C_INTER != 0 {
		a.Remote = int(comm.remote_size)
	}
	a.Share(C.spx_share_offered(comm) != 0)
	if comm.flags&C.SPX_C_TOPO != 0 && a.Kind >= coll.NeighborAllgather {
		n := comms.get(uint32(comm.o._go)).topo.Neighbors(a.Rank)
		a.Sources, a.Dests, a.Paired = n.Sources, n.Dests, n.Paired
	}
	p, err := coll.Compile(a)
	if err != nil {
		return fail(int(mpierr.Arg), "%v", err)
	}
	out, err := storePlan(p, prefixes(p, &a))
	if err != nil {
		return err
	}
	*at[*C.spx_plan](c.addr(2)) = out
	C.note_chosen(C.int64_t(tool.ChoiceOf(a.Kind, p.Choice)), C.int64_t(p.Choice.Reason),
		C.int64_t(a.Data()), C.int64_t(comm.ctx))
	planned(len(p.Steps))
	return nil
}

// planned gives memory back to the system after so many steps have been compiled: with a thousand
// ranks a process compiles megabytes, and what one process keeps for the next plan, a thousand
// keep.
func planned(steps int) {
	if plannedSteps.Add(int64(steps)) > 4096 {
		plannedSteps.Store(0)
		debug.FreeOSMemory()
	}
}

var plannedSteps atomic.Int64

// processors is how many processors the ranks of this host share.
func processors() int {
	if seg := C.spx_segment; seg != nil {
		return int(seg.ncpus)
	}
	return 1
}

// processorsFor is the same for the collectives of a communicator: a process that replays them on
// another host must count as many.
func processorsFor(comm *C.spx_comm) int {
	if isReplayedElsewhere(comm) {
		return int(comm.size)
	}
	return processors()
}

// knownLevels is nearnessOf, looked up once for a communicator with a Go side.
func knownLevels(c *C.spx_comm) coll.Nearness {
	o := comms.get(uint32(c.o._go))
	if o == nil || o.c != c {
		return nearnessOf(c)
	}
	o.levels.Do(func() { o.near = nearnessOf(c) })
	return o.near
}

// nearnessOf is which ranks of a communicator are near each other, and the switch of each rank
// where the messages between switches are relayed.
func nearnessOf(comm *C.spx_comm) coll.Nearness {
	around := aroundOf(comm)
	near := around.Near()
	if comm.flags&C.SPX_C_INTER == 0 {
		near.Relayed = netState.policy.relayed(placesOf(comm))
	}
	return near
}

// isReplayedElsewhere reports whether what is done with a communicator may be done again by
// processes on other hosts.
func isReplayedElsewhere(comm *C.spx_comm) bool {
	return copying != nil && comm.flags&C.SPX_C_INTER == 0 &&
		(comm.flags&C.SPX_C_REPLAY != 0 || comm == C.spx_world)
}

// placesOf returns the processes of a communicator, by rank, where they count as near or far: as
// far as collectives are replayed by processes on other hosts, those that the ranks had first. A
// successor has to send and receive what its predecessor did.
func placesOf(comm *C.spx_comm) []C.uint32_t {
	procs := unsafe.Slice(comm.local, int(comm.size))
	if !isReplayedElsewhere(comm) {
		return procs
	}
	out := slices.Clone(procs)
	first, now := ranksOf(copying.c.peer, copying.c.size),
		ranksOf(C.spx_world.local, C.spx_world.size)
	for i, p := range procs {
		if rank := slices.Index(now, uint32(p)); rank >= 0 {
			out[i] = C.uint32_t(first[rank])
		}
	}
	return out
}

// aroundOf returns where the ranks of a communicator are. All ranks get the same: hosts are
// numbered alike in all files of a job, and the bindings of ranks are in the file before they
// start. The processes of a world get the same data about switches when they start, so they count
// where all ranks are of one.
func aroundOf(comm *C.spx_comm) coll.Around {
	w := coll.Around{CPUs: processors(), Inter: comm.flags&C.SPX_C_INTER != 0,
		Foreign: isForeign(comm), Moving: copying != nil}
	if w.Foreign || w.Inter || comm.size < 2 {
		return w
	}
	w.Switches = len(netState.policy.Switches) > 0
	first := C.spx_proc_of(*comm.local)
	for _, proc := range placesOf(comm) {
		p := C.spx_proc_of(proc)
		w.Places = append(w.Places, coll.Place{Host: uint32(p.host),
			Switch: uint32(netState.policy.SwitchOf(int(p.host))),
			Node:   uint32(p.node), Cache: uint32(p.cache)})
		w.Switches = w.Switches && p.world_id == first.world_id
	}
	return w
}

// isForeign reports whether a communicator has processes of several jobs; all of them get the same
// result. Jobs number hosts differently, may use other processors of a host, and one may
// communicate over the network within it where the other does not: none of that counts then.
func isForeign(comm *C.spx_comm) bool {
	external := func(proc C.uint32_t) bool { return C.spx_proc_of(proc).home_job != 0 }
	return slices.ContainsFunc(unsafe.Slice(comm.local, int(comm.size)), external) ||
		comm.flags&C.SPX_C_INTER != 0 && slices.ContainsFunc(
			unsafe.Slice(comm.peer, int(comm.remote_size)), external)
}

func planType(t *[4]C.int64_t, contig C.uint8_t) coll.Type {
	return coll.Type{Size: int64(t[0]), Extent: int64(t[1]), TrueLB: int64(t[2]),
		TrueExtent: int64(t[3]), Contig: contig != 0}
}

// prefixes is the number of receive counts whose running sums the plan uses.
func prefixes(p *coll.Plan, a *coll.Args) int {
	for _, r := range p.Regions {
		if r.PerUnit != 0 {
			return a.Size
		}
	}
	for i := range p.Steps {
		if p.Steps[i].X.Mode == coll.Prefix || p.Steps[i].Y.Mode == coll.Prefix {
			return a.Size
		}
	}
	return 0
}

// storePlan writes a plan into C memory.
func storePlan(p *coll.Plan, nprefix int) (*C.spx_plan, error) {
	if len(p.Regions) > C.SPX_PLAN_REGIONS {
		return nil, fail(int(mpierr.Intern), "a plan (%s) with %d temporary regions; %d fit",
			p.Algorithm, len(p.Regions), C.SPX_PLAN_REGIONS)
	}
	out := C.spx_plan_new(C.uint32_t(len(p.Steps)), C.uint32_t(len(p.Waits)), C.uint32_t(p.Slots),
		C.uint32_t(len(p.Regions)))
	if out == nil {
		return nil, fail(int(mpierr.NoMem), "no memory for a plan of %d steps", len(p.Steps))
	}
	out.ticks, out.signature, out.limit = C.uint32_t(p.Ticks), C.uint32_t(p.Signature),
		C.int64_t(p.Limit)
	out.small_slots = C.bool(p.SmallSlots)
	out.unit, out.nprefix = C.int64_t(p.Unit), C.uint32_t(nprefix)
	out.choice = C.uint16_t(p.Choice.Algorithm) | C.uint16_t(p.Choice.Reason)<<8
	for i, b := range []byte(p.Algorithm) {
		if i < len(out.algorithm)-1 {
			out.algorithm[i] = C.char(b)
		}
	}
	steps := unsafe.Slice(out.steps, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		steps[i] = C.spx_step{op: C.uint8_t(s.Op), flags: C.uint8_t(s.Flags),
			peer: C.int32_t(s.Peer), slot: C.int32_t(s.Slot),
			first: C.int32_t(s.First), n: C.int32_t(s.N), x: operand(s.X), y: operand(s.Y)}
	}
	waits := unsafe.Slice(out.waits, len(p.Waits))
	for i, w := range p.Waits {
		waits[i] = C.int32_t(w)
	}
	regions := unsafe.Slice(out.regions, len(p.Regions))
	for i, r := range p.Regions {
		regions[i] = C.spx_region{fixed: C.int64_t(r.Fixed), per_unit: C.int64_t(r.PerUnit)}
	}
	return out, nil
}

func operand(r coll.Ref) C.spx_operand {
	return C.spx_operand{off: C.int64_t(r.Off), count: C.int64_t(r.Count), a: C.int32_t(r.A),
		b:   C.int32_t(r.B),
		buf: C.uint8_t(r.Buf), mode: C.uint8_t(r.Mode), _type: C.uint8_t(r.Type)}
}
