// Package inspect collects the state of the processes of a job on this host: what they have
// published of their waiting in the memory file (capi/dataplane/introspect/diag.c), the kernel's
// information, and their stacks. It changes nothing in them, and decides nothing: core/diagnose
// interprets the data.
package inspect

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/diagnose"
	"libspx/shm"
)

// A Process is one of this host.
type Process struct {
	Number int // in the memory file
	Pid    int
}

// How long to look for what a process that sleeps has published: it takes its record back for a
// moment when it looks around.
const (
	looks    = 6
	lookTime = 2 * time.Millisecond
)

// Host returns the state of these processes. withStacks: also where they are, which stops for a
// moment those that are in no call that waits.
func Host(segment *shm.Segment, host string, list []Process, withStacks bool) []diagnose.Proc {
	out := make([]diagnose.Proc, len(list))
	waits := make([][]shm.Wait, len(list))
	for i, p := range list {
		pid := pidOf(segment, p)
		if pid > 0 {
			p.Pid = pid
		}
		if out[i] = about(segment, p, host); pid <= 0 {
			out[i].Missing = unseen
		}
	}
	for n := range looks {
		again := false
		for i := range out {
			if out[i].State == diagnose.Running && waits[i] == nil {
				waits[i] = segment.Waits(out[i].Proc)
				again = again || waits[i] == nil && state(out[i].Pid) == 'S'
				out[i].In = cmp.Or(CallName(segment.Call(out[i].Proc)), out[i].In)
			}
		}
		if !again || n == looks-1 {
			break
		}
		time.Sleep(lookTime)
	}
	now := clock()
	for i := range out {
		p := &out[i]
		for k := range waits[i] {
			if still(segment, p.Proc, &waits[i][k]) {
				p.Waits = append(p.Waits, waitOf(&waits[i][k], now))
			}
		}
		if len(p.Waits) == 0 {
			waits[i] = nil
			continue
		}
		p.State, p.In = diagnose.Waiting, ""
		if q, ok := segment.Queues(p.Proc); ok {
			p.Queues = queuesOf(&q)
		}
	}
	for i := range out {
		out[i].Traffic = traffic(segment, out[i].Proc)
	}
	if withStacks {
		stacks(segment, out, waits)
	}
	return out
}

// still: it waits as it did when all were inspected, and it has not been woken.
func still(segment *shm.Segment, proc int, w *shm.Wait) bool {
	if w.Woken {
		return false
	}
	for range looks {
		for _, v := range segment.Waits(proc) {
			if v.Tid == w.Tid {
				return v.Since == w.Since && v.Seq == w.Seq && v.Peer == w.Peer && !v.Woken
			}
		}
		time.Sleep(lookTime)
	}
	return false
}

// about is the information about a process without its record.
func about(segment *shm.Segment, p Process, host string) diagnose.Proc {
	m := segment.Member(p.Number)
	out := diagnose.Proc{Proc: p.Number, Rank: int(m.Rank), World: int(m.World), Host: host,
		Pid:      p.Pid,
		Multiple: segment.ThreadLevel(p.Number) == threadMultiple,
		Place:    placeOf(segment, p.Number)}
	switch segment.AgentState(p.Number) {
	case shm.AgentDead, shm.AgentExited:
		out.State = diagnose.Ended
		if segment.AgentState(p.Number) == shm.AgentDead {
			out.State = diagnose.Dead
		}
		out.End = end(syscall.WaitStatus(segment.ExitStatus(p.Number)))
		if segment.OwnerState(p.Number) == shm.OwnerFinalized {
			out.End += ", after MPI_Finalize"
		}
		return out
	}
	switch segment.OwnerState(p.Number) {
	case shm.OwnerNone:
		out.State, out.Age = diagnose.Starting, age(p.Pid)
	case shm.OwnerFinalized:
		out.State = diagnose.Finalized
	default:
		out.State = diagnose.Running
	}
	if s := state(p.Pid); s == 'T' || s == 't' {
		out.State = diagnose.Stopped
	}
	return out
}

func placeOf(segment *shm.Segment, proc int) *diagnose.Place {
	at, near := segment.Place(proc)
	return &diagnose.Place{Host: at, CPUs: segment.CPUs(), Node: int(near.Node),
		Cache: int(near.Cache), Network: segment.TCP()}
}

// traffic is what a process has counted until now.
func traffic(segment *shm.Segment, proc int) diagnose.Traffic {
	now := clock()
	c := segment.Counters(proc, now)
	return diagnose.Traffic{At: float64(now) / 1e9, Life: segment.Incarnation(proc), Sent: c.Sent,
		SentBytes: c.SentBytes, Received: c.Received, ReceivedBytes: c.ReceivedBytes,
		Collectives: c.Collectives, Waited: float64(c.WaitNS) / 1e9, Sleeps: c.Sleeps,
		Failures: c.Failures, Unexpected: c.Unexpected, UnexpectedBytes: c.UnexpectedBytes,
		Peers: c.Peers, Connections: c.NetOpen, SentAgain: c.NetAgain, HeldMessages: c.HeldMessages,
		HeldBytes: c.HeldBytes}
}

const threadMultiple = 4096 // MPI_THREAD_MULTIPLE

func end(s syscall.WaitStatus) string {
	if s.Signaled() {
		return "killed by signal " + fmt.Sprint(int(s.Signal())) + " (" + s.Signal().String() + ")"
	}
	return fmt.Sprintf("exit status %d", s.ExitStatus())
}

// state is the letter that the kernel shows for a process; 0: there is none.
func state(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if at := strings.LastIndexByte(string(b), ')'); err == nil && at >= 0 && at+2 < len(b) {
		return b[at+2]
	}
	return 0
}

// age is the number of seconds since a process was started; 0: not known.
func age(pid int) float64 {
	const perSecond = 100 // USER_HZ, of every Linux
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	at := strings.LastIndexByte(string(b), ')')
	var t unix.Timespec
	if err != nil || at < 0 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	fields := strings.Fields(string(b[at+1:]))
	if len(fields) < 20 {
		return 0
	}
	began, err := strconv.ParseFloat(fields[19], 64)
	if err != nil {
		return 0
	}
	return max(0, float64(t.Nano())/1e9-began/perSecond)
}

// clock is CLOCK_MONOTONIC in ns.
func clock() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return uint64(t.Nano())
}

var whats = map[uint32]string{shm.WaitsEvent: diagnose.Event, shm.WaitsRecv: diagnose.Recv,
	shm.WaitsSend: diagnose.Send, shm.WaitsColl: diagnose.Coll,
	shm.WaitsProbe: diagnose.Probe, shm.WaitsAny: diagnose.Any, shm.WaitsRequest: diagnose.Request}

// colls are the collectives in the order of spx_coll_kind.
var colls = strings.Fields(
	"Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv " +
		"Alltoallw Reduce Allreduce " +
		"Reduce_scatter_block Reduce_scatter Scan Exscan Neighbor_allgather Neighbor_allgatherv " +
		"Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw")

func waitOf(w *shm.Wait, now uint64) diagnose.Wait {
	out := diagnose.Wait{Thread: int(w.Tid), Call: CallName(w.Fn), What: whats[w.What],
		Comm: w.Comm, Context: w.Context, CommRank: int(w.CommRank), CommSize: int(w.CommSize),
		PeerRank: int(w.PeerRank), Peer: diagnose.Nobody, Tag: int(w.Tag), Root: int(w.Root),
		Seq: w.Seq, Count: w.Count, Bytes: w.Bytes, Members: w.Members, More: w.MoreMembers > 0}
	if out.Call == "" {
		out.Call = "MPI"
	}
	if now > w.Since {
		out.For = float64(now-w.Since) / 1e9
	}
	if w.Peer != nobody {
		out.Peer = int(w.Peer)
	}
	if w.Coll > 0 && int(w.Coll) <= len(colls) {
		out.Coll = "MPI_" + colls[w.Coll-1]
	}
	out.Type = w.Type
	if w.Derived {
		out.Type = strings.TrimSuffix("derived from "+w.Type, " from ")
	}
	return out
}

const nobody = 1<<32 - 1

var kinds = map[uint32]string{shm.QueuePosted: diagnose.PostedReceive,
	shm.QueueUnexpected: diagnose.Unexpected, shm.QueueSent: diagnose.Announced,
	shm.QueueNoRoom: diagnose.NoRoom}

func queuesOf(q *shm.Queues) *diagnose.Queues {
	out := &diagnose.Queues{Posted: q.Posted, Unexpected: q.Unexpected, Pending: q.Pending}
	for _, e := range q.Entries {
		peer := diagnose.Nobody
		if e.Peer != nobody {
			peer = int(e.Peer)
		}
		out.Entries = append(out.Entries, diagnose.Entry{Kind: kinds[e.Kind], Peer: peer,
			Rank: int(e.Rank), Tag: int(e.Tag), Context: e.Context, Comm: e.Comm, Bytes: e.Bytes})
	}
	return out
}

// CallName is the name of an MPI function by its number (SPX_FN_*): its place in the tables,
// counted from 1. Empty for none.
func CallName(number uint32) string {
	if int(number) < len(callNames) {
		return callNames[number]
	}
	return ""
}
