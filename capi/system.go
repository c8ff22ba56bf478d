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
	"sync"
	"sync/atomic"
	"unsafe"

	"libspx/cluster/choice"
	"libspx/cluster/layout"
	"libspx/cluster/view"
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
	view   *view.View          // what the layout means for this process
	worlds map[int]*commObject // of an IOP: by cluster
}

func init() {
	onStart(startSystem)
	onStopped(func() {
		C.spx_system_end()
		system.layout, system.worlds, system.view = nil, nil, nil
	})
	internals[C.SPX_IN_SYSTEM_PLAN] = func(*call) error { return planAgain() }
	internals[C.SPX_IN_SYSTEM_REFUSE] = refuse
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
		commOf(C.SPX_HANDLE_COMM_WORLD).Comm = system.worlds[system.view.Worlds[0].Cluster].Comm
	}
	if err == nil {
		err = startReplay()
	}
	return err
}

// awaitSystem waits for a rank, if this process is a standby, and for those that are to be complete
// before the program runs ([start] of the system file).
func awaitSystem() error {
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
	system.choice = C.GoString(C.spx_setting_text(C.SPX_SET_IOP_CHOICE))
	v, err := view.Of(system.layout, system.role, system.index, system.choice)
	if err != nil {
		return err
	}
	o := &C.spx_system{cluster: C.int32_t(v.Cluster), iops: C.uint32_t(len(v.IOPs)),
		outs: C.uint32_t(len(v.Outs)), ins: C.uint32_t(len(v.Ins)), mode: C.int(v.Plan.Mode),
		slots: C.uint32_t(len(v.Plan.Slots)), worlds: C.uint32_t(len(v.Worlds)),
		ctx: C.uint64_t(comm.SystemContext(world.origin))}
	iops, err := iopArray(v)
	if err != nil {
		return err
	}
	worlds, err := worldArray(v)
	if err != nil {
		return err
	}
	o.in, o.slot = lasting(numbers(v.Ins)), lasting(numbers(v.Plan.Slots))
	o.way = lasting(wayArray(v))
	heals := make([]C.uint8_t, len(v.IOPs))
	for i, p := range v.IOPs {
		heals[i] = C.uint8_t(p.Heals)
	}
	o.heals, o.world = lasting(heals), lasting(worlds)
	o.proc = C.spx_ranks_new(o.iops)
	if o.in == nil || o.slot == nil || o.way == nil || o.heals == nil || o.world == nil ||
		o.proc == nil {
		return noMemory()
	}
	copy(unsafe.Slice(o.proc, len(iops)), iops)
	if v.Policy.Mode == choice.User && len(v.Outs) > 0 {
		file := C.CString(v.Policy.Library)
		defer C.free(unsafe.Pointer(file))
		if code := C.spx_system_load(o, file); code != 0 {
			return fail(int(code), "%s", C.GoString(C.spx_detail_text()))
		}
	}
	s := lasting([]C.spx_system{*o})
	if s == nil {
		return noMemory()
	}
	system.view = v
	C.spx_system_set(s)
	return nil
}

// lasting copies values to C memory. Go never frees it: pending calls may use it. nil: there is no
// memory.
func lasting[T any](values []T) *T {
	at := (*T)(C.calloc(C.size_t(len(values)+1), C.size_t(unsafe.Sizeof(*new(T)))))
	if at != nil {
		copy(unsafe.Slice(at, len(values)), values)
	}
	return at
}

func numbers(values []int) []C.uint32_t {
	list := make([]C.uint32_t, len(values))
	for i, n := range values {
		list[i] = C.uint32_t(n)
	}
	return list
}

// iopArray lists the processes of the I/O processes.
func iopArray(v *view.View) ([]C.uint32_t, error) {
	list := make([]C.uint32_t, len(v.IOPs))
	for i, p := range v.IOPs {
		switch {
		case p.Proc == view.None:
			list[i] = C.uint32_t(world.proc) // not used
		case p.Proc >= int(C.spx_segment.nprocs):
			return nil, fail(C.MPI_ERR_INTERN, "the I/O process %d is process %d; this job has %d",
				i, p.Proc, int(C.spx_segment.nprocs))
		default:
			list[i] = C.uint32_t(p.Proc)
		}
	}
	return list, nil
}

func wayArray(v *view.View) []C.spx_iop_way {
	list := make([]C.spx_iop_way, len(v.Ways))
	for i, w := range v.Ways {
		list[i] = C.spx_iop_way{to: C.int32_t(w.To), from: C.int32_t(w.From),
			ranks: C.int32_t(w.Ranks)}
	}
	return list
}

// worldArray gives an IOP the worlds of its clusters.
func worldArray(v *view.View) ([]C.struct_spx_iop_world, error) {
	list := make([]C.struct_spx_iop_world, len(v.Worlds))
	for i, w := range v.Worlds {
		o := system.worlds[w.Cluster]
		if o == nil {
			var err error
			if o, err = clusterWorld(w.Cluster); err != nil {
				return nil, err
			}
			system.worlds[w.Cluster] = o
		}
		o.mu.Lock()
		o.hints.Merge(info.New(w.Hints...))
		o.mu.Unlock()
		list[i] = C.struct_spx_iop_world{comm: o.c, cluster: C.int32_t(w.Cluster),
			in: flagOf(w.In), out: flagOf(w.Out), heals: C.int32_t(w.Heals),
			closing: flagOf(w.Closing)}
	}
	return list, nil
}

func flagOf(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// refuse explains a send or a receive that the data plane has found impossible (system.c).
func refuse(c *call) error {
	system.mu.Lock()
	v := system.view
	system.mu.Unlock()
	return v.Refuse(view.Question{Send: c.int(0) != 0, Arg: c.str(1),
		Rank: c.int(2), Way: c.int(3), World: c.int(3) != 0})
}

//spx:body MPISP_World_count
func worldCount(c *call) error {
	system.mu.Lock()
	defer system.mu.Unlock()
	c.setInt(0, system.view.Count())
	return nil
}

//spx:body MPISP_World_get
func worldGet(c *call) error {
	system.mu.Lock()
	defer system.mu.Unlock()
	v, index := system.view, c.int(0)
	if err := v.CheckIndex(index); err != nil {
		return err
	}
	h := uintptr(C.SPX_HANDLE_COMM_WORLD)
	if v != nil && v.Cluster == view.None {
		h = system.worlds[v.Worlds[index].Cluster].handle()
	}
	c.setHandle(1, h)
	return nil
}

// bind refuses an index that there is not; all else of it is in C (system_calls.c).
//
//spx:body MPISP_Bind
func bind(c *call) error {
	system.mu.Lock()
	defer system.mu.Unlock()
	return system.view.CheckIndex(c.int(0))
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
	if view.Keeps(l) {
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
	if view.Keeps(l) {
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
