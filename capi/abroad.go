package main

/*
#include "dp.h"
#include "comm.h"
#include "settings.h"
*/
import "C"

import (
	"errors"
	"strings"
	"time"

	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/service"
	"libspx/net/tcp"
)

// Processes of other jobs that are reached over the network (launch/abroad). A pair of them has
// four numbers: each end has one in its own job and one in the other's. The caller sends the number
// by which the called end has it, and proves by the key of the two jobs, the pact, that it belongs
// to one of them.

// acquaintance is the data that a process needs to call one of another job, or to answer it.
type acquaintance struct {
	there tcp.Process // the peer, in its own job
	me    tcp.Process // this one, there
	pact  [16]byte
	key   [32]byte
}

// isAbroad: the process with this number is of another job, and reached over the network.
func isAbroad(number uint32) bool {
	return procOf(number).home_job != 0 &&
		procOf(number).port != 0
}

// overNetwork reports whether the job is connected with others only over the network.
func overNetwork() bool { return C.spx_segment.flags&C.SPX_SEG_HOSTS != 0 }

// meetAbroad makes processes of other jobs known here, and this one to their jobs.
func meetAbroad(ids []ident.ProcID) error {
	jobs := map[uint64][]service.Peer{}
	for _, id := range ids {
		jobs[id.Job] = append(jobs[id.Job], service.Peer{ID: id})
	}
	for _, peers := range jobs {
		answer, err := ask(world.me.Job, &service.Message{Kind: service.Externals, Peer: self(),
			Peers: peers, FD: -1}, mpierr.Other, 0)
		if err != nil {
			return err
		}
		if err := acquaint(peers, answer); err != nil {
			return err
		}
	}
	return nil
}

const pactBytes = 16 + 32

// acquaint takes the agent's word on processes of another job.
func acquaint(asked []service.Peer, answer *service.Message) error {
	n := len(asked)
	if len(answer.Slots) != n || len(answer.Codes) != n || len(answer.Peers) != n ||
		len(answer.Text) != pactBytes {
		return mpierr.New(mpierr.Intern, "the agent has named %d of %d processes",
			len(answer.Slots), n)
	}
	a := acquaintance{me: tcp.Process{Number: uint32(answer.Number >> 32),
		Life: uint32(answer.Number)}}
	copy(a.pact[:], answer.Text)
	copy(a.key[:], answer.Text[len(a.pact):])
	for k, p := range answer.Peers {
		here := tcp.Process{Number: answer.Slots[k], Life: answer.Codes[k]}
		if p.ID != asked[k].ID || here.Number >= uint32(C.spx_map.nprocs) {
			return mpierr.New(mpierr.Intern, "the agent has named process %v in place of %v", p.ID,
				asked[k].ID)
		}
		a.there = tcp.Process{Number: p.Slot, Life: p.Pid}
		netState.befriend(here, a)
		C.spx_peer_abroad(C.uint32_t(here.Number), C.uint32_t(here.Life), C.uint32_t(a.me.Life))
		remember(p.ID, here.Number)
	}
	return nil
}

// befriend keeps an acquaintance. Those that have gone are forgotten when there are many.
func (s *netEngine) befriend(p tcp.Process, a acquaintance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abroad == nil {
		s.abroad = map[tcp.Process]acquaintance{}
	}
	s.abroad[p] = a
	if len(s.abroad) > 64+2*int(C.spx_segment.nprocs) {
		for p := range s.abroad {
			if isGone(p) {
				delete(s.abroad, p)
			}
		}
	}
}

func (s *netEngine) friend(p tcp.Process) (acquaintance, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.abroad[p]
	return a, ok
}

// askLimit is the agent's time limit for identifying a caller from another job.
const askLimit = 4 * time.Second

// meetCaller queries the agent for a process of another job that has met this one before this one
// has met it. Called on an engine's goroutine.
func meetCaller(p tcp.Process) (acquaintance, bool) {
	if p.Number >= uint32(C.spx_map.nprocs) || !isAbroad(p.Number) || isGone(p) {
		return acquaintance{}, false
	}
	id := memberOf(procOf(p.Number), world.me.Job)
	conn, err := service.Dial(world.me.Job)
	if err != nil {
		return acquaintance{}, false
	}
	defer conn.Close()
	defer time.AfterFunc(askLimit, conn.Hang).Stop()
	peers := []service.Peer{{ID: id}}
	if conn.Send(&service.Message{Kind: service.Externals, Peer: self(), Peers: peers,
		FD: -1}) != nil {
		return acquaintance{}, false
	}
	answer, err := conn.Receive()
	if err != nil || answer.Class != 0 || acquaint(peers, answer) != nil {
		return acquaintance{}, false
	}
	return netState.friend(p)
}

// identityAbroad is with which identity a call of a process of another job is answered.
func identityAbroad(job [16]byte, from tcp.Process) *tcp.Identity {
	a, ok := netState.friend(from)
	if !ok || a.pact != job {
		a, ok = meetCaller(from)
	}
	if !ok || a.pact != job {
		return nil
	}
	id := netState.id
	id.Job, id.Key, id.Ways = a.pact, a.key, waysAbroad()
	return &id
}

var errNotMet = errors.New("the process is of another job, and this one has not met it yet")

// identityFor returns the identity by which this process calls another one, and the process to name
// in the call.
func identityFor(p tcp.Process, stream uint16) (*tcp.Identity, tcp.Process, error) {
	id := netState.id
	id.Stream = stream
	if !isAbroad(p.Number) {
		return &id, p, nil
	}
	a, ok := netState.friend(p)
	if !ok {
		if a, ok = meetCaller(p); !ok {
			return nil, p, errNotMet
		}
	}
	id.Job, id.Key, id.Self, id.Ways = a.pact, a.key, a.me, waysAbroad()
	return &id, a.there, nil
}

// waysAbroad is what two jobs have to agree about.
func waysAbroad() string {
	if netState.id.TLS {
		return "between jobs, SPX_TLS=1"
	}
	return "between jobs"
}

// yields: of two calls at the same time that of p counts, and this process's does not. Both ends
// see it alike.
func yields(p tcp.Process) bool {
	if isAbroad(p.Number) {
		return ident.Compare(world.me, memberOf(procOf(p.Number), world.me.Job)) > 0
	}
	return netState.id.Self.Number > p.Number
}

// sealing describes, in words, the settings that both ends of a port must agree on.
func sealing() string {
	if netState.id.TLS {
		return "1"
	}
	return "0"
}

// mayGoAbroad returns an error if a process of this job cannot meet those of another one, which has
// opened a port.
func mayGoAbroad(port string) error {
	_, listens := strings.CutPrefix(port, portPrefix)
	listens = listens && strings.Contains(port, "@")
	switch {
	case overNetwork() && netState.policy.Relays && netState.policy.few == 0:
		return mpierr.New(mpierr.UnsupportedOperation,
			"with SPX_CONNECTIONS=%s the messages of a job go through its own processes, and "+
				"none to other jobs; leave it unset",
			C.GoString(C.spx_setting_text(C.SPX_SET_CONNECTIONS)))
	case overNetwork() && !listens:
		return mpierr.New(mpierr.UnsupportedOperation,
			"the port is of a job of one host, whose processes are reached in its memory alone; "+
				"start that one with --more-hosts, and it is reached over the network")
	case !overNetwork() && listens:
		return mpierr.New(mpierr.UnsupportedOperation,
			"the port is of a job whose processes are reached over the network; start this one "+
				"with --more-hosts, and its are, too")
	}
	return nil
}
