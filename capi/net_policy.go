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
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/net/conn"
	"libspx/net/tcp"
)

// Which connections this process keeps: decided here by net/conn, whenever processes have come or
// gone, and handed to the data plane as a table (dataplane/transport/relay/net_relay.c).

// policy is what SPX_CONNECTIONS and SPX_TOPOLOGY say.
type policy struct {
	all    bool // a connection with everybody, at once
	relays bool
	random int // neighbours by chance; 0: by the topology
	cache  int
	// neighbours in conn.Few, because there may be far fewer connections than there are processes;
	// 0: there need not be
	few  int
	most uint64 // connections; with few

	groups   int   // of processes, as if they were on so many switches; 0: switches says
	switches []int // of each host
}

const defaultCache = 16

// readPolicy reads the settings.
func readPolicy() error {
	p := &netState.policy
	*p = policy{}
	text := C.GoString(C.spx_setting_text(C.SPX_SET_CONNECTIONS))
	if err := p.parse(text); err != nil {
		return fail(C.MPI_ERR_ARG, "SPX_CONNECTIONS=%s: %v", text, err)
	}
	text = C.GoString(C.spx_setting_text(C.SPX_SET_TOPOLOGY))
	if err := p.parseTopology(text); err != nil {
		return fail(C.MPI_ERR_ARG, "SPX_TOPOLOGY=%s: %v", text, err)
	}
	p.spare(uint64(C.spx_segment.world_size))
	return nil
}

// spare has messages relayed where the user allows a process fewer connections than the job has
// processes, so that not each message of those who talk with all of them needs one that is made for
// it. What does not follow from settings and the size of the job, alike for all, changes nothing:
// the number of descriptors, processes that are started later.
func (p *policy) spare(procs uint64) {
	most, set := connectionsAllowed()
	usable := most - uint64(keptForAnswers(most))
	if !set || p.all || p.relays || usable < conn.LeastFew || procs <= usable+1 {
		return
	}
	p.few, p.most = conn.Degree(int(min(usable, procs))), most
	p.relays, p.cache = true, int(usable)-p.few
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
	if len(p.switches) > 0 {
		of := make([]C.uint32_t, len(p.switches))
		for i, s := range p.switches {
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
	C.spx_net_policy(C.spx_net_ways{heeds: C.bool(p.all || p.relays), relays: C.bool(p.relays),
		spares: C.bool(p.few > 0), cache: C.uint32_t(p.cache), most: C.uint32_t(most)})
	reroute()
}

// String says what decides the ways of messages, as the settings would: what all processes have to
// agree about. Where no message is relayed the topology decides nothing, and processes that were
// spawned need not have what the first ones were told.
func (p *policy) String() string {
	how := "demand"
	switch {
	case p.all:
		how = "all"
	case p.few > 0:
		return fmt.Sprintf("SPX_CONNECTIONS=demand SPX_CONNECTIONS_MAX=%d", p.most)
	case p.random > 0:
		return fmt.Sprintf("SPX_CONNECTIONS=random:%d:%d", p.random, p.cache)
	case p.relays:
		how = fmt.Sprintf("topology:%d", p.cache)
	}
	text := "SPX_CONNECTIONS=" + how
	switch {
	case !p.relays:
	case p.groups > 0:
		text += fmt.Sprintf(" SPX_TOPOLOGY=groups:%d", p.groups)
	case len(p.switches) > 0:
		text += " SPX_TOPOLOGY=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.switches), " ",
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
	// then idle connections are closed for others
	unix.Setrlimit(unix.RLIMIT_NOFILE, &l) //nolint:errcheck
}

func (p *policy) parse(text string) error {
	words := strings.Split(text, ":")
	number := func(i, preset, least int) (int, error) {
		if i >= len(words) {
			return preset, nil
		}
		n, err := strconv.Atoi(words[i])
		if err != nil || n < least || n > 1<<20 {
			return 0, fmt.Errorf("%q is no number of connections", words[i])
		}
		return n, nil
	}
	most := 1
	var err error
	switch words[0] {
	case "", "demand":
	case "all":
		p.all = true
	case "topology":
		p.relays, most = true, 2
		p.cache, err = number(1, defaultCache, 0)
	case "random":
		p.relays, most = true, 3
		if p.random, err = number(1, 64, 1); err == nil {
			p.cache, err = number(2, 0, 0)
		}
	default:
		return fmt.Errorf("there are demand, all, topology:K and random:N:K, not %s", words[0])
	}
	if err == nil && len(words) > most {
		err = fmt.Errorf("%q is too much", strings.Join(words[most:], ":"))
	}
	return err
}

func (p *policy) parseTopology(text string) error {
	if n, ok := strings.CutPrefix(text, "groups:"); ok {
		groups, err := strconv.Atoi(n)
		if err != nil || groups < 1 || groups > 1<<20 {
			return fmt.Errorf("%q is no number of groups", n)
		}
		p.groups = groups
		return nil
	}
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return r == ',' || r == ' ' }) {
		s, err := strconv.Atoi(word)
		if err != nil || s < 0 || s > 1<<20 {
			return fmt.Errorf(
				"%q is no number of a switch; it is groups:N, or one for each host, as 0,0,1,1",
				word)
		}
		p.switches = append(p.switches, s)
	}
	return nil
}

// switchOf is the switch of a host: one of its own, beyond those that are known, if nothing is.
func (p *policy) switchOf(host int) int {
	if host < len(p.switches) {
		return p.switches[host]
	}
	return 1<<20 + 1 + host
}

// relayed numbers the switches of processes by which plan connects them; nil where it does not, or
// may not do so at all of them. All that relay for each other were told the same of the switches,
// of whatever world they are: else the first connection between them ends the job.
func (p *policy) relayed(procs []C.uint32_t) []int32 {
	if !p.relays || p.random > 0 || p.few > 0 {
		return nil
	}
	first, several := procOf(uint32(procs[0])), C.spx_segment.flags&C.SPX_SEG_TCP != 0
	of := make([]int, len(procs))
	for rank, proc := range procs {
		at := procOf(uint32(proc))
		if at.home_job != 0 || p.groups > 0 && at.world_id != 0 {
			return nil
		}
		several = several || at.host != first.host
		if of[rank] = p.switchOf(int(at.host)); p.groups > 0 {
			of[rank] = int(at.world_rank) * p.groups / int(C.spx_segment.world_size)
		}
	}
	if !several {
		return nil
	}
	near := make([]int32, len(of))
	for rank, s := range dense(of) {
		near[rank] = int32(s)
	}
	return near
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
		case p.groups > 0:
			of[i] = i * p.groups / n
		default:
			of[i] = p.switchOf(host[i])
		}
		if !shared {
			host[i] = i
		}
	}
	if p.few > 0 {
		return conn.Few(p.few, host, gone)
	}
	if p.random > 0 {
		return conn.Random(n, p.random, gone)
	}
	return conn.Topology(dense(of), host, gone)
}

// dense numbers switches from 0 in the order in which they occur; -1 stays.
func dense(of []int) []int {
	number := map[int]int{-1: -1}
	for i, s := range of {
		if _, ok := number[s]; !ok {
			number[s] = len(number) - 1
		}
		of[i] = number[s]
	}
	return of
}

// reroute does what follows from processes that have come or gone.
func reroute() {
	s := &netState
	if s.policy.all {
		for i := s.id.Self.Number + 1; i < uint32(C.spx_segment.nprocs); i++ {
			if p := (tcp.Process{Number: i, Life: lifeOf(i)}); bool(
				C.spx_net_peer(C.uint32_t(i))) && !isAbroad(i) && !isGone(p) {
				go callUntil(p)
			}
		}
	}
	if !s.policy.relays {
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
