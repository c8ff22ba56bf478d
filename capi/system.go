package main

/*
#include <stdlib.h>
#include "comm.h"
#include "init.h"
#include "settings.h"
#include "system.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"libspx/cluster/choice"
	"libspx/cluster/layout"
	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// Systems of clusters: what a layout makes of this process. bodies/system.c does what each message
// needs.

// system is this process's view of its system. No layout: it belongs to none.
var system struct {
	mu     sync.Mutex
	layout *layout.Layout
	index  int                 // of its cluster or, of an IOP, among the IOPs
	role   layout.Role         //
	choice string              // the last value of SPX_IOP_CHOICE
	worlds map[int]*commObject // of an IOP: by cluster
}

func init() {
	onStart(startSystem)
	onStopped(func() {
		C.spx_system_end()
		system.layout, system.worlds = nil, nil
	})
	internals[C.SPX_IN_SYSTEM_PLAN] = func(*call) error { return planAgain() }
}

// findSystem reads the layout of the system of clusters that the process belongs to, if it does.
func (s *startInfo) findSystem() error {
	s.Ranks = len(s.World)
	text := getenv(layout.Variable)
	if text == "" {
		return nil
	}
	l, err := layout.Decode(text)
	if err != nil {
		return fail(C.MPI_ERR_OTHER, "%s: %v", layout.Variable, err)
	}
	role, index, _ := l.Find(int(s.Proc))
	if role == layout.Stranger || s.WorldID != worldNumber(l, role, index) {
		return nil // spawned by a process of a system: the numbers are another's
	}
	if s.Layout = l; role != layout.IO {
		s.Ranks, s.Cold = len(l.Clusters[index].Procs), l.Clusters[index].Cold
	}
	return nil
}

func startSystem(s *startInfo) error {
	if s.Layout == nil {
		return nil
	}
	l := s.Layout
	role, index, _ := l.Find(int(s.Proc))
	system.mu.Lock()
	defer system.mu.Unlock()
	system.layout, system.role, system.index, system.worlds = l, role, index, map[int]*commObject{}
	err := publishSystem()
	// what asks MPI_COMM_WORLD for its group means the first of its worlds
	if err == nil && role == layout.IO {
		commOf(C.SPX_HANDLE_COMM_WORLD).Comm = system.worlds[clustersOf(&l.IOPs[index])[0]].Comm
	}
	if err == nil {
		err = startReplay()
	}
	return err
}

// awaitSystem waits for a rank, if this process is a standby, and for those that are to be complete
// before the program runs ([start] of the system file).
func awaitSystem(*call) error {
	if err := standBy(); err != nil {
		return err
	}
	if system.layout == nil {
		return nil
	}
	_, err := ask(world.me.Job, &service.Message{Kind: service.Arrive, Number: uint64(world.proc),
		FD: -1}, mpierr.Other, 0)
	return err
}

func worldNumber(l *layout.Layout, role layout.Role, index int) uint32 {
	if role == layout.IO {
		return l.IOPs[index].World
	}
	return l.Clusters[index].World
}

// publishSystem gives the data plane what the layout means for this process. The lock is held.
func publishSystem() error {
	l := system.layout
	var outs, ins, clusters []int
	if system.role == layout.IO {
		clusters = clustersOf(&l.IOPs[system.index])
	} else {
		outs, ins = l.Outbound(system.index), l.Inbound(system.index)
	}
	text := C.GoString(C.spx_setting_text(C.SPX_SET_IOP_CHOICE))
	system.choice = text
	if text == "" && len(outs) > 0 {
		text = l.ChoiceFor(outs[0], system.index)
	}
	policy, err := choice.Parse(text)
	if err != nil {
		return fail(C.MPI_ERR_ARG, "SPX_IOP_CHOICE, or the link of this cluster: %v", err)
	}
	var from []choice.Candidate
	for _, i := range outs {
		from = append(from, choice.Candidate{Index: i, Weight: l.IOPs[i].Weight})
	}
	plan := choice.Make(policy, from)
	o := C.spx_system_new(C.uint32_t(len(l.IOPs)), C.uint32_t(len(outs)), C.uint32_t(len(ins)),
		C.uint32_t(len(plan.Slots)), C.uint32_t(len(clusters)))
	if o == nil {
		return noMemory()
	}
	o.clusters, o.ctx, o.mode = C.int32_t(len(l.Clusters)),
		C.uint64_t(comm.SystemContext(world.origin)), C.int(plan.Mode)
	fill(o.out, outs)
	fill(o.in, ins)
	fill(o.slot, plan.Slots)
	procs := make([]int, len(l.IOPs))
	for i, p := range l.IOPs {
		unsafe.Slice((*uint8)(o.heals), len(l.IOPs))[i] = healsOf(p.Heals, p.Leaving,
			system.role != layout.IO && l.Clusters[system.index].Leaving)
		if procs[i] = p.Proc; p.Gone {
			procs[i] = int(world.proc) // not used
		} else if p.Proc >= int(C.spx_segment.nprocs) {
			return fail(C.MPI_ERR_INTERN, "the I/O process %d is process %d; this job has %d", i,
				p.Proc, int(C.spx_segment.nprocs))
		}
	}
	fill(o.proc, procs)
	if system.role != layout.IO {
		o.cluster = C.int32_t(system.index)
	} else if err := fillWorlds(o, clusters); err != nil {
		return err
	}
	if policy.Mode == choice.User && len(outs) > 0 {
		file := C.CString(policy.Library)
		defer C.free(unsafe.Pointer(file))
		if code := C.spx_system_load(o, file); code != 0 {
			return fail(int(code), "%s", C.GoString(C.spx_detail_text()))
		}
	}
	C.spx_system_set(o)
	return nil
}

func fill(at *C.uint32_t, values []int) {
	for i, v := range values {
		unsafe.Slice(at, len(values))[i] = C.uint32_t(v)
	}
}

// clustersOf lists the clusters that an IOP is a member of, those that it receives from first.
func clustersOf(p *layout.IOP) []int {
	all := slices.Clone(p.In)
	for _, c := range p.Out {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// fillWorlds gives an IOP the worlds of its clusters.
func fillWorlds(o *C.spx_system, clusters []int) error {
	p := &system.layout.IOPs[system.index]
	worlds := unsafe.Slice(o.world, len(clusters))
	for k, c := range clusters {
		w := system.worlds[c]
		if w == nil {
			var err error
			if w, err = clusterWorld(c); err != nil {
				return err
			}
			system.worlds[c] = w
		}
		w.describe(clusters, c)
		worlds[k].comm, worlds[k].cluster = w.c, C.int32_t(c)
		worlds[k].heals = C.int32_t(healsOf(system.layout.Clusters[c].Heals,
			system.layout.Clusters[c].Leaving, p.Leaving))
		worlds[k].closing = flagOf(p.Leaving && !system.layout.Clusters[c].Leaving)
		worlds[k].in, worlds[k].out = flagOf(slices.Contains(p.In, c)),
			flagOf(slices.Contains(p.Out, c))
	}
	return nil
}

// healsOf is what this process knows of another one that heals, or belongs to a cluster which
// leaves the system. own: so does this one, for which the other is there as long as it is.
func healsOf(heals, leaving, own bool) uint8 {
	switch {
	case leaving && own:
		return C.SPX_HEALS_NO
	case leaving:
		return C.SPX_HEALS_AWAY
	case heals:
		return C.SPX_HEALS_DEAD
	}
	return C.SPX_HEALS_NO
}

func flagOf(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// clusterWorld makes the MPI_COMM_WORLD of a cluster as one of its IOPs has it: the same group and
// context, and no rank.
func clusterWorld(index int) (*commObject, error) {
	c := &system.layout.Clusters[index]
	m, err := worldAsSeen(c)
	if err != nil {
		return nil, err
	}
	o, err := newComm(m, nil)
	if err != nil {
		return nil, err
	}
	for k := range min(len(c.Name), len(o.c.name)-1) {
		o.c.name[k] = C.char(c.Name[k])
	}
	return o, nil
}

// worldAsSeen is the MPI_COMM_WORLD of a cluster in the eyes of an IOP. Its context is that which
// it had first.
func worldAsSeen(c *layout.Cluster) (*comm.Made, error) {
	ids := make([]ident.ProcID, len(c.Procs))
	for rank, proc := range c.Procs {
		if proc >= int(C.spx_segment.nprocs) {
			return nil, fail(C.MPI_ERR_INTERN,
				"rank %d of cluster %s is process %d; this job has %d", rank, c.Name, proc,
				int(C.spx_segment.nprocs))
		}
		ids[rank] = memberOf(procOf(uint32(proc)), world.me.Job)
	}
	serial := uint32(procOf(uint32(c.Procs[0])).serial)
	if c.Lead != 0 {
		serial = c.Lead - 1
	}
	return &comm.Made{Ctx: comm.WorldContext(world.origin, serial), Local: group.Of(ids...),
		Rank: -1}, nil
}

// Keys by which an IOP learns what a world is: MPI_Comm_get_info.
const (
	keyCluster   = "spx_cluster"   // its name
	keyIndex     = "spx_index"     // its index, as returned by MPISP_Status_get_cluster
	keyDirection = "spx_direction" // in, out or both, in the eyes of the IOP
	keyHeals     = "spx_heals"     // true: processes that die there are replaced
	keyDead      = "spx_dead"      // ranks that are not replaced all the same, as 0,2
	// worlds (indices of MPISP_World_get) that messages from there are for, as 1,2
	keyTo = "spx_to"
)

// describe gives the world of cluster c its hints; worlds are the clusters of the process.
func (o *commObject) describe(worlds []int, c int) {
	l := system.layout
	p := &l.IOPs[system.index]
	direction := "in"
	switch in, out := slices.Contains(p.In, c), slices.Contains(p.Out, c); {
	case in && out:
		direction = "both"
	case out:
		direction = "out"
	}
	var to []string
	for k, w := range worlds {
		if slices.Contains(p.Out, w) && linked(l, p, c, w) {
			to = append(to, strconv.Itoa(k))
		}
	}
	var dead []string
	for rank, proc := range l.Clusters[c].Procs {
		if slices.Contains(l.Clusters[c].Dead, proc) {
			dead = append(dead, strconv.Itoa(rank))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hints.Merge(info.New(keyCluster, l.Clusters[c].Name, keyIndex, strconv.Itoa(c), keyDirection,
		direction, keyHeals, strconv.FormatBool(l.Clusters[c].Heals), keyDead,
		strings.Join(dead, ","), keyTo, strings.Join(to, ",")))
}

// linked: one of the IOP's links leads from cluster a to cluster b. Without links, all it receives
// is for all that it sends to, but for the cluster itself.
func linked(l *layout.Layout, p *layout.IOP, a, b int) bool {
	if len(p.Links) == 0 {
		return slices.Contains(p.In, a) && a != b
	}
	return slices.ContainsFunc(p.Links, func(k int) bool {
		return !l.Links[k].Gone && slices.Contains(l.Links[k].From, a) &&
			slices.Contains(l.Links[k].To, b)
	})
}

// planAgain performs a change of SPX_IOP_CHOICE. A malformed one changes nothing, and is reported
// once.
func planAgain() error {
	system.mu.Lock()
	defer system.mu.Unlock()
	if system.layout == nil || system.choice == C.GoString(
		C.spx_setting_text(C.SPX_SET_IOP_CHOICE)) {
		return nil
	}
	err := publishSystem()
	if err != nil {
		sayOnce(err.Error(), err.Error(), fmt.Sprintf("%v; I/O processes are chosen as before",
			err))
	}
	return err
}

// layoutPoll looks whether the system has changed, and takes over what has.
func layoutPoll() {
	system.mu.Lock()
	defer system.mu.Unlock()
	now := atomic.LoadUint32((*uint32)(unsafe.Pointer(&C.spx_segment.layout_seq)))
	if system.layout == nil || now == 0 || now == uint32(system.layout.Version) {
		return
	}
	text, err := layoutNow()
	if err == nil && text != "" {
		err = takeLayout(text)
	}
	if err != nil {
		sayOnce("layout", "the system has changed",
			fmt.Sprintf("the system has changed, and how cannot be learnt: %v", err))
	}
}

// layoutNow queries this host's agent, which has it at hand: nothing else runs meanwhile.
func layoutNow() (string, error) {
	conn, err := service.Dial(world.me.Job)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.Send(&service.Message{Kind: service.Layout, FD: -1}); err != nil {
		return "", err
	}
	answer, err := conn.Receive()
	if err != nil {
		return "", err
	}
	return answer.Text, nil
}

func takeLayout(text string) error {
	l, err := layout.Decode(text)
	if err != nil {
		return err
	}
	if l.Version <= system.layout.Version {
		return nil
	}
	if err := l.Follows(system.layout); err != nil {
		return err
	}
	role, index, _ := l.Find(int(world.proc))
	if role == layout.Stranger {
		return nil // another one has been started in its place
	}
	if replays(l) {
		if err := growReplay(system.layout, l); err != nil {
			return err
		}
	}
	system.layout, system.role, system.index = l, role, index
	for c, w := range system.worlds {
		if err := w.follow(&l.Clusters[c]); err != nil {
			return err
		}
	}
	err = publishSystem()
	if replays(l) {
		followReplay(l)
	}
	return err
}

// follow gives a world in the eyes of an IOP the processes that its cluster has now.
func (o *commObject) follow(c *layout.Cluster) error {
	m, err := worldAsSeen(c)
	if err != nil || m.Ctx == o.Ctx && group.Compare(m.Local, o.Group()) == group.Ident {
		return err
	}
	list, err := rankArray(m.Local, nil)
	if err != nil {
		return err
	}
	if m.Ctx != o.Ctx { // it was started again
		o.renew(m, list, list)
		return nil
	}
	C.spx_comm_lists(o.c, list, list)
	o.Comm.LocalTable().Set(m.Local)
	return nil
}

//spx:body MPISP_World_left
func worldLeft(c *call) error {
	o := c.comm(0)
	here().progress()
	all := o.RemoteGroup()
	var ranks []int
	// c.remote_size is 0 in the worlds of an IOP
	for rank, proc := range unsafe.Slice((*uint32)(unsafe.Pointer(o.c.peer)), all.Size()) {
		if C.spx_proc_left(C.uint32_t(proc)) != 0 && C.spx_proc_dies(C.uint32_t(proc)) == 0 {
			ranks = append(ranks, rank)
		}
	}
	g, err := all.Incl(ranks)
	return c.onComm(0, c.setGroup(1, g, err))
}
