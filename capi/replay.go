package main

/*
#include "copies.h"
#include "place.h"
#include "replay.h"
#include "replay_shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/cluster/msglog"
	"libspx/cluster/view"
	"libspx/core/comm"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// Messages that are kept, and transparent takeover: which processes are the participants of a
// system (dataplane/clusters/replay_core.h; package view).

func participantsOf(l *layout.Layout) view.Participants {
	return view.ParticipantsOf(l, system.role, system.index)
}

// tables are those of the participants, as the data plane has them: in C memory, which it frees.
func tables(p view.Participants) (procs *C.uint32_t, heals *C.bool, iop *C.uint32_t, err error) {
	var procList, iopList []C.uint32_t
	var healList []C.bool
	for _, x := range p.List {
		procList, healList = append(procList, C.uint32_t(x.Proc)), append(healList, C.bool(x.Heals))
		iopList = append(iopList, C.uint32_t(x.IOP+1))
	}
	procs, heals, iop = lasting(procList), lasting(healList), lasting(iopList)
	if procs == nil || heals == nil || iop == nil {
		return nil, nil, nil, fail(C.MPI_ERR_NO_MEM, "no memory for the messages of %d processes",
			len(p.List))
	}
	return procs, heals, iop, nil
}

// startReplay begins with it, in a system in which some cluster has it. system.mu is held.
func startReplay() error {
	l := system.layout
	if !view.Keeps(l) {
		return nil
	}
	p := participantsOf(l)
	own, standby := replaysHere(), system.role == layout.Standby
	setup := C.spx_replay_setup{participants: C.uint32_t(len(p.List)),
		ctx: C.uint64_t(comm.ReplayContext(world.origin)), whole: C.bool(view.Transparent(l))}
	me, first := p.Me(l.Find(int(world.proc)))
	setup.me = C.uint32_t(me)
	if own && l.Clusters[system.index].Copies {
		if err := startCopies(); err != nil {
			return err
		}
	}
	fd := -1
	if own && !standby {
		fd, _ = inheritedLog(me - first) // else it makes one
	}
	var err error
	if setup.procs, setup.heals, setup.iop, err = tables(p); err != nil {
		return err
	}
	if own && C.spx_mt != 0 {
		return fail(C.MPI_ERR_OTHER, "transparent takeover: calls must come from one thread at a "+
			"time, without MPI_THREAD_MULTIPLE and SPX_PROGRESS=1")
	}
	if code := C.spx_msglog_begin(&setup, C.bool(own), C.bool(standby), C.uint32_t(first),
		C.int(fd)); code != 0 {
		return fail(int(code), "%s", C.GoString(C.spx_detail_text()))
	}
	setApart(p)
	return nil
}

// setApart sets the ranks that no message of this process goes to.
func setApart(p view.Participants) {
	for i, x := range p.List {
		C.spx_replay_apart(C.uint32_t(i), C.bool(x.Apart))
	}
}

// growReplay adds participants that have been attached since, before any process can send to them.
func growReplay(before, now *layout.Layout) error {
	p := participantsOf(now)
	if len(p.List) <= len(participantsOf(before).List) {
		return nil
	}
	procs, heals, iop, err := tables(p)
	if err != nil {
		return err
	}
	if code := C.spx_msglog_grow(C.uint32_t(len(p.List)), procs, heals, iop); code != 0 {
		return fail(int(code), "no memory for the messages of %d processes", len(p.List))
	}
	setApart(p)
	return nil
}

// followReplay sets the present processes of the participants.
func followReplay(l *layout.Layout) {
	for i, x := range participantsOf(l).List {
		C.spx_msglog_moved(C.uint32_t(i), C.uint32_t(x.Proc))
		C.spx_replay_heals(C.uint32_t(i), C.bool(x.Heals))
	}
	C.spx_replay_changed()
}

// Message logs: files in memory, which standbys of the cluster open as well (package msglog).

// lookAgain is how long a process of a cluster sleeps at most that waits for what rings no bell.
const lookAgain = 2 * time.Millisecond

// lookUntil waits until done, for events that ring no bell: it polls for messages, deaths and all
// else that may have arrived before it calls done.
func (r *runner) lookUntil(done func() bool) {
	r.until(lookAgain, 0, func() bool {
		r.progress()
		return done()
	})
}

// replaysHere reports whether ranks of this process's cluster are taken over transparently.
func replaysHere() bool {
	return system.layout != nil && system.role != layout.IO &&
		system.layout.Clusters[system.index].Replays
}

// inheritedLog is a descriptor of the log of a rank that the agent has given to this process: where
// ranks are started again it has the files, since the process that is to take a rank over may not
// be there yet.
func inheritedLog(rank int) (fd int, err error) {
	list := strings.Split(getenv(service.EnvMsgLogs), ",")
	if rank >= len(list) || list[rank] == "" {
		return msglog.None, unix.EBADF
	}
	if fd, err = strconv.Atoi(list[rank]); err == nil {
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	}
	if err != nil {
		return msglog.None, err
	}
	return fd, nil
}

// closeInherited closes the logs under their former numbers: what this process needs it has, and
// processes that it starts have none.
func closeInherited() {
	for fd := range strings.SplitSeq(getenv(service.EnvMsgLogs), ",") {
		if n, err := strconv.Atoi(fd); err == nil {
			unix.Close(n) //nolint:errcheck // it may not be there
		}
	}
	os.Unsetenv(service.EnvMsgLogs) //nolint:errcheck // it cannot fail
}

// Prepare is what the ranks of a cluster and its standbys do in MPI_Init, so that each rank can be
// taken over.
func (s *takeoverShell) Prepare() error {
	standby := int(s.base.rank) >= s.ranks
	switch {
	case !replaysHere():
		return nil
	case bool(C.spx_copies_on) && standby:
		return nil
	case bool(C.spx_copies_on):
		return awaitCopy()
	}
	defer closeInherited()
	switch {
	case s.Late():
		return s.inheritLogs()
	case standby:
		return s.openLogs()
	}
	s.awaitStandbys()
	return nil
}

func (s *takeoverShell) inheritLogs() error {
	held := make([]int, s.ranks)
	for r := range held {
		fd, err := inheritedLog(r)
		if err != nil {
			return fail(C.MPI_ERR_OTHER,
				"transparent takeover: the file of what rank %d has kept was not inherited "+
					"(SPX_MSGLOGS): %v; a wrapper may have closed it", r, err)
		}
		held[r] = fd
	}
	s.logs = msglog.Inherited(s, held)
	return nil
}

func (s *takeoverShell) openLogs() (err error) {
	s.logs = msglog.NewStandby(s, s.ranks)
	here().lookUntil(func() (done bool) {
		done, err = s.logs.Look()
		return done || err != nil
	})
	return logError(err)
}

// awaitStandbys lets the standbys open the log of this rank, and waits until all of them have it
// that live.
func (s *takeoverShell) awaitStandbys() {
	me := procOf(world.proc)
	atomic.StoreUint32((*uint32)(&me.msglog), uint32(C.spx_msglog_file())+1)
	warm := ranksOf(s.base.peer, s.base.size-C.int32_t(s.cold))[s.ranks:]
	has, left := make([]bool, len(warm)), make([]bool, len(warm))
	here().lookUntil(func() bool {
		for i, proc := range warm {
			left[i] = C.spx_proc_left(C.uint32_t(proc)) != 0
			has[i] = isMarked(i)
		}
		return msglog.MayBegin(has, left)
	})
}

// markAt is where in the log of a rank a standby notes that it has it.
func markAt(standby int) int {
	return C.SPX_MSGLOG_MARKS + standby%(C.SPX_MSGLOG_HEAD-C.SPX_MSGLOG_MARKS)
}

// isMarked reports whether a standby has noted in the log of this rank that it has it.
func isMarked(standby int) bool {
	at := markAt(standby)
	word := atomic.LoadUint32((*uint32)(unsafe.Add(unsafe.Pointer(C.spx_replay_core.msglog),
		at&^3)))
	return word>>(8*(at&3))&0xff != 0
}

// See, Open, Runs, Close and Tell are package msglog's Source over the table of processes and
// /proc.
func (s *takeoverShell) See(rank int) msglog.Seen {
	proc := s.rankProc(rank)
	p := procOf(proc)
	seen := msglog.Seen{Elsewhere: p.host != C.spx_segment.host,
		Descriptor: atomic.LoadUint32((*uint32)(&p.msglog)),
		Left:       C.spx_proc_left(C.uint32_t(proc)) != 0}
	if seen.Descriptor != 0 {
		seen.PID = int(C.spx_pid_of(C.uint32_t(proc)))
	}
	return seen
}

func (s *takeoverShell) rankProc(rank int) uint32 { return ranksOf(s.base.peer, s.base.size)[rank] }

func (s *takeoverShell) Open(_ int, as msglog.Seen) (int, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", as.PID, as.Descriptor-1)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH):
		return msglog.None, msglog.ErrGone
	case err != nil:
		return msglog.None, fmt.Errorf("transparent takeover: %s: %w", path, err)
	}
	return fd, nil
}

func (s *takeoverShell) Runs(rank int) bool {
	return atomic.LoadUint32(
		(*uint32)(&procOf(s.rankProc(rank)).agent_state)) == C.SPX_AGENT_STARTED
}

func (s *takeoverShell) Close(fd int) { unix.Close(fd) } //nolint:errcheck // it is open

func (s *takeoverShell) Tell(rank, fd int) error {
	if _, err := unix.Pwrite(fd, []byte{1}, int64(markAt(int(s.base.rank)-s.ranks))); err != nil {
		return fmt.Errorf(
			"transparent takeover: a standby cannot write into the log of rank %d: %w", rank, err)
	}
	C.spx_ring_bell(C.uint32_t(s.rankProc(rank)))
	return nil
}

// logError gives an error of package msglog its class.
func logError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, msglog.ErrLeftEarly), errors.Is(err, msglog.ErrNoKeeper):
		return mpierr.New(errProcFailed, "%v", err)
	}
	return fail(C.MPI_ERR_OTHER, "%v", err)
}
