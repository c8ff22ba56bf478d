package main

/*
#include <stdlib.h>
#include "dp.h"
#include "mcast.h"
#include "settings.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/net/conn"
	"libspx/net/tcp"
)

// Which connections this process keeps: decided here by net/conn, whenever processes have come or
// gone, and handed to the data plane as a table (dataplane/transport/relay/net_relay.c).

// policy is the setting of SPX_CONNECTIONS and SPX_TOPOLOGY, and what follows from the number of
// processes.
type policy struct {
	conn.Policy
	// neighbours in conn.Few, because there may be far fewer connections than there are processes;
	// 0: there need not be
	few  int
	most uint64 // connections; with few
}

// readPolicy reads the settings.
func readPolicy() error {
	p := &netState.policy
	*p = policy{}
	text := C.GoString(C.spx_setting_text(C.SPX_SET_CONNECTIONS))
	if err := p.Parse(text); err != nil {
		return fail(C.MPI_ERR_ARG, "SPX_CONNECTIONS=%s: %v", text, err)
	}
	text = C.GoString(C.spx_setting_text(C.SPX_SET_TOPOLOGY))
	if err := p.ParseTopology(text); err != nil {
		return fail(C.MPI_ERR_ARG, "SPX_TOPOLOGY=%s: %v", text, err)
	}
	p.spare(uint64(C.spx_segment.world_size))
	return nil
}

// spare has messages relayed where the user allows a process fewer connections than the job has
// processes, so that a process which communicates with all of them does not need a new connection
// for each message. Only settings and the size of the job, alike for all, count: not the number of
// descriptors, nor processes that are started later.
func (p *policy) spare(procs uint64) {
	most, set := connectionsAllowed()
	usable := most - uint64(keptForAnswers(most))
	if !set || p.All || p.Relays || usable < conn.LeastFew || procs <= usable+1 {
		return
	}
	p.few, p.most = conn.Degree(int(min(usable, procs))), most
	p.Relays, p.Cache = true, int(usable)-p.few
}

// connectionsAllowed is SPX_CONNECTIONS_MAX, if it is set.
func connectionsAllowed() (most uint64, set bool) {
	const unset = 1 << 24
	most = uint64(C.spx_setting_begin(C.SPX_SET_CONNECTIONS_MAX, unset, unset))
	return most, most != unset
}

// startPolicy hands the policy over, and the first table.
func startPolicy() {
	p := &netState.policy
	if len(p.Switches) > 0 {
		of := make([]C.uint32_t, len(p.Switches))
		for i, s := range p.Switches {
			of[i] = C.uint32_t(s)
		}
		C.spx_mcast_switches(&of[0], C.uint32_t(len(of)))
	}
	procs, most := uint64(C.spx_segment.nprocs), connectionsMax()
	if procs > most && most == descriptorsForConnections() {
		raiseDescriptors(procs)
		most = connectionsMax()
	}
	most, netState.server.Answering = netState.slots.start(netState.id.Self.Number, most)
	C.spx_net_policy(C.spx_net_ways{heeds: C.bool(p.All || p.Relays), relays: C.bool(p.Relays),
		spares: C.bool(p.few > 0), cache: C.uint32_t(p.Cache), most: C.uint32_t(most)})
	reroute()
}

// String returns the settings that decide the ways of messages: all processes have to agree about
// them. Where no message is relayed the topology decides nothing, and spawned processes need not
// have the setting of the first ones.
func (p *policy) String() string {
	how := "demand"
	switch {
	case p.All:
		how = "all"
	case p.few > 0:
		return fmt.Sprintf("SPX_CONNECTIONS=demand SPX_CONNECTIONS_MAX=%d", p.most)
	case p.Random > 0:
		return fmt.Sprintf("SPX_CONNECTIONS=random:%d:%d", p.Random, p.Cache)
	case p.Relays:
		how = fmt.Sprintf("topology:%d", p.Cache)
	}
	text := "SPX_CONNECTIONS=" + how
	switch {
	case !p.Relays:
	case p.Groups > 0:
		text += fmt.Sprintf(" SPX_TOPOLOGY=groups:%d", p.Groups)
	case len(p.Switches) > 0:
		text += " SPX_TOPOLOGY=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Switches), " ",
			","), "[]")
	}
	return text
}

// descriptorsForConnections is how many this process may use: not all, since the program has files.
func descriptorsForConnections() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 256
	}
	most := min(l.Cur, 1<<20) / 4 * 3
	most -= min(16, most)
	if netState.id.TLS {
		most /= descriptorsOfSealed
	}
	return max(8, most)
}

// connectionsMax is the most connections that this process may have: the setting, or what its
// descriptors allow.
func connectionsMax() uint64 {
	return uint64(C.spx_setting_begin(C.SPX_SET_CONNECTIONS_MAX,
		C.uint64_t(descriptorsForConnections()), 1<<24))
}

// raiseDescriptors raises this process's soft limit as far as connections with all processes of the
// job take: the only case in which the library changes a limit of the program's.
func raiseDescriptors(procs uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return
	}
	need := procs
	if netState.id.TLS {
		need *= descriptorsOfSealed
	}
	l.Cur = max(l.Cur, min(l.Max, (need+16)*4/3+4))
	// then idle connections are closed to make room
	unix.Setrlimit(unix.RLIMIT_NOFILE, &l) //nolint:errcheck
}

// relayed is conn.Policy.Relayed of processes.
func (p *policy) relayed(procs []C.uint32_t) []int32 {
	if !p.Relays || p.few > 0 {
		return nil
	}
	list := make([]conn.Process, len(procs))
	for i, proc := range procs {
		at := procOf(uint32(proc))
		list[i] = conn.Process{Host: int(at.host), Rank: int(at.world_rank),
			Later: at.world_id != 0, External: at.home_job != 0}
	}
	return p.Relayed(list, int(C.spx_segment.world_size), C.spx_segment.flags&C.SPX_SEG_TCP != 0)
}

// plan is what the processes of the job, as they are now, keep.
func (p *policy) plan() *conn.Plan {
	n := int(C.spx_segment.nprocs)
	of, host, gone := make([]int, n), make([]int, n), make([]bool, n)
	shared := C.spx_segment.flags&C.SPX_SEG_TCP == 0
	for i := range n {
		at := procOf(uint32(i))
		gone[i] = hasEnded(uint32(i))
		host[i] = int(at.host)
		switch {
		case at.home_job != 0:
			of[i], gone[i] = -1, true
		case p.Groups > 0:
			of[i] = i * p.Groups / n
		default:
			of[i] = p.SwitchOf(host[i])
		}
		if !shared {
			host[i] = i
		}
	}
	if p.few > 0 {
		return conn.Few(p.few, host, gone)
	}
	if p.Random > 0 {
		return conn.Random(n, p.Random, gone)
	}
	return conn.Topology(conn.Dense(of), host, gone)
}

// reroute does what follows from processes that have come or gone.
func reroute() {
	s := &netState
	if s.policy.All {
		for i := s.id.Self.Number + 1; i < uint32(C.spx_segment.nprocs); i++ {
			if p := (tcp.Process{Number: i, Life: lifeOf(i)}); bool(
				C.spx_net_peer(C.uint32_t(i))) && !isAbroad(i) && !isGone(p) {
				go callUntil(p)
			}
		}
	}
	if !s.policy.Relays {
		return
	}
	routes := s.policy.plan().Routes(int(s.id.Self.Number), C.SPX_ROUTE_WAYS)
	t := (*C.spx_routes)(C.calloc(1, C.size_t(unsafe.Sizeof(C.spx_routes{})+
		uintptr(len(routes))*unsafe.Sizeof(C.spx_route{}))))
	if t == nil {
		return // the old table still leads everywhere, or by connections of their own
	}
	t.n = C.uint32_t(len(routes))
	kept := make([]bool, len(routes))
	to := unsafe.Slice((*C.spx_route)(unsafe.Add(unsafe.Pointer(t), unsafe.Sizeof(C.spx_routes{}))),
		len(routes))
	for i, r := range routes {
		to[i].n = C.uint8_t(len(r.Ways))
		if kept[i] = r.Kept; r.Kept {
			to[i].kept = 1
		}
		for k, w := range r.Ways {
			to[i].via[k], to[i].needs[k] = C.uint32_t(w.Via), C.uint8_t(w.Needs)
		}
	}
	s.mu.Lock()
	s.kept = kept
	s.mu.Unlock()
	C.spx_net_route(t)
}
