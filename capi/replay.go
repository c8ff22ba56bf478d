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
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/cluster/msglog"
	"libspx/core/comm"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// Messages that are kept, and transparent takeover: which processes are the participants of a
// system (dataplane/clusters/replay_core.h).

// participants lists the processes of a layout: of those that the system began with, and then of
// those that have been attached each time, the ranks of the clusters, one cluster after another,
// and the I/O processes. So no number changes when there are more.
type participants struct {
	procs []C.uint32_t
	heals []C.bool
	// a rank of a cluster to which no link leads from this process's; not used for I/O processes
	apart []C.bool
	iop   []C.uint32_t // 1 + its number among the I/O processes of the layout; 0: it is a rank
	first []C.uint32_t // by cluster: its rank 0
	iops  []C.uint32_t // by I/O process of the layout
}

func participantsOf(l *layout.Layout) (p participants) {
	// then it goes with its cluster
	own := system.role == layout.IO && system.layout != nil && system.index < len(l.IOPs) &&
		l.IOPs[system.index].Leaving
	reached := reachedFrom(l)
	p.first, p.iops = make([]C.uint32_t, len(l.Clusters)), make([]C.uint32_t, len(l.IOPs))
	for since := 0; since <= l.Growths; since++ {
		for i, c := range l.Clusters {
			if c.Since != since {
				continue
			}
			p.first[i] = C.uint32_t(len(p.procs))
			for _, proc := range c.Procs {
				p.procs, p.iop = append(p.procs, C.uint32_t(proc)), append(p.iop, 0)
				// one that is taken over transparently heals, until it has stopped for good
				p.heals = append(p.heals, C.bool(c.Heals && !c.Gone &&
					!slices.Contains(c.Dead, proc) && !(own && c.Leaving)))
				p.apart = append(p.apart, C.bool(system.role != layout.IO && !reached[i]))
			}
		}
		for i, x := range l.IOPs {
			if x.Since != since {
				continue
			}
			p.iops[i] = C.uint32_t(len(p.procs))
			p.procs, p.iop = append(p.procs, C.uint32_t(x.Proc)), append(p.iop, C.uint32_t(i+1))
			p.heals, p.apart = append(p.heals, false), append(p.apart, false)
		}
	}
	return p
}

// reachedFrom is, by cluster, whether a link leads there from this process's.
func reachedFrom(l *layout.Layout) []bool {
	reached := make([]bool, len(l.Clusters))
	for _, k := range l.Links {
		for _, to := range k.To {
			reached[to] = reached[to] || slices.Contains(k.From, system.index)
		}
	}
	return reached
}

func replays(l *layout.Layout) bool {
	return l.Kept || slices.ContainsFunc(l.Clusters,
		func(c layout.Cluster) bool { return c.Replays })
}

// startReplay begins with it, in a system in which some cluster has it. system.mu is held.
func startReplay() error {
	l := system.layout
	if !replays(l) {
		return nil
	}
	p := participantsOf(l)
	own := system.role != layout.IO && l.Clusters[system.index].Replays
	standby := system.role == layout.Standby
	setup := C.spx_replay_setup{participants: C.uint32_t(len(p.procs)),
		ctx: C.uint64_t(comm.ReplayContext(world.origin)),
		whole: C.bool(slices.ContainsFunc(l.Clusters,
			func(c layout.Cluster) bool { return c.Replays }))}
	first := C.uint32_t(0)
	switch role, index, rank := l.Find(int(world.proc)); {
	case role == layout.IO:
		setup.me = p.iops[index]
	case role == layout.Compute:
		setup.me = p.first[index] + C.uint32_t(rank)
		fallthrough
	default:
		first = p.first[index]
	}
	if own && l.Clusters[system.index].Copies {
		if err := startCopies(); err != nil {
			return err
		}
	}
	fd := -1
	if own && !standby {
		fd, _ = inheritedLog(int(setup.me - first)) // else it makes one
	}
	if code := C.spx_msglog_begin(&setup, &p.procs[0], &p.heals[0], &p.iop[0], C.bool(own),
		C.bool(standby), first, C.int(fd)); code != 0 {
		return fail(int(code), "%s", C.GoString(C.spx_detail_text()))
	}
	p.setApart()
	return nil
}

// setApart sets the ranks that no message of this process goes to.
func (p *participants) setApart() {
	for i, apart := range p.apart {
		C.spx_replay_apart(C.uint32_t(i), apart)
	}
}

// growReplay adds participants that have been attached since, before any process can send to them.
func growReplay(before, now *layout.Layout) error {
	p := participantsOf(now)
	if len(p.procs) <= len(participantsOf(before).procs) {
		return nil
	}
	if code := C.spx_msglog_grow(C.uint32_t(len(p.procs)), &p.procs[0], &p.heals[0],
		&p.iop[0]); code != 0 {
		return fail(int(code), "no memory for the messages of %d processes", len(p.procs))
	}
	p.setApart()
	return nil
}

// followReplay sets the present processes of the participants.
func followReplay(l *layout.Layout) {
	p := participantsOf(l)
	for i, proc := range p.procs {
		C.spx_msglog_moved(C.uint32_t(i), proc)
		C.spx_replay_heals(C.uint32_t(i), p.heals[i])
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
