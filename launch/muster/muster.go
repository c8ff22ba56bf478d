// Package muster brings the hosts of a cluster together before its spxrun attaches it to a system
// (docs/systems.md, "One cluster after another"): who starts the agent of which host, whom the user
// is told that it waits for, when all are there, and when that will not be. It serves MPI/SPx, 3.4,
// where a cluster has several hosts.
//
// It is pure: Step(event, now) returns what is to be done. The shell (launch/agent, members.go)
// starts agents, and calls Step with Tick when Deadline has come.
package muster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config is what is known beforehand.
type Config struct {
	Cluster  string
	Hosts    []string      // by number; 0 is that of the spxrun, which is there
	Starters []int         // by host, whose agent starts its agent (hosts.Starters)
	Limit    time.Duration // for each agent to answer, once it was started; 0: none
}

// Times after which the user hears for whom is waited.
const (
	FirstWord = 5 * time.Second
	NextWord  = 15 * time.Second
)

// mostNamed is how many hosts are named in one line.
const mostNamed = 8

// An Event is one of those below.
type Event interface{}

type (
	// Began: the agents are to be started.
	Began struct{}
	// Here: the agent of a host has answered.
	Here struct{ Host int }
	// Gone: it has ended, or could not be started.
	Gone struct {
		Host int
		How  string
	}
	// Tick: time has passed.
	Tick struct{}
)

// An Action is one of those below.
type Action interface{}

type (
	// Start the agent of a host from another one, where an agent is.
	Start struct{ Host, From int }
	// Say a line to the user.
	Say struct{ Text string }
	// Complete: all are there.
	Complete struct{}
	// Fail: the cluster cannot be attached. Of Late ones it may be known why they do not answer.
	Fail struct {
		Text string
		Late []int
	}
)

// State of a host.
type state int

const (
	unsent state = iota
	awaited
	here
)

// Machine is the state of it.
type Machine struct {
	cfg   Config
	hosts []state
	since []time.Duration // then: awaited since
	word  time.Duration   // when the user is told next
	over  bool            // complete, or failed
	whole bool            // complete
}

// New makes a machine; Began is its first event.
func New(cfg Config) *Machine {
	m := &Machine{cfg: cfg, hosts: make([]state, len(cfg.Hosts)),
		since: make([]time.Duration, len(cfg.Hosts))}
	m.hosts[0] = here
	return m
}

// Deadline is when the machine wants the next Tick, if ok.
func (m *Machine) Deadline() (at time.Duration, ok bool) {
	if m.over {
		return 0, false
	}
	at = m.word
	for i, s := range m.hosts {
		if s == awaited && m.cfg.Limit > 0 {
			at = min(at, m.since[i]+m.cfg.Limit)
		}
	}
	return at, true
}

// Step takes an event at time now.
func (m *Machine) Step(event Event, now time.Duration) []Action {
	switch e := event.(type) {
	case Began:
		m.word = now + FirstWord
		return m.advance(0, now)
	case Here:
		if m.over || m.hosts[e.Host] != awaited {
			return nil
		}
		m.hosts[e.Host] = here
		return m.advance(e.Host, now)
	case Gone:
		// one that has been there counts, too, until the cluster is attached
		if m.whole || !m.over {
			m.over, m.whole = true, false
			return []Action{Fail{Text: fmt.Sprintf("cluster %s: host %s: %s", m.cfg.Cluster,
				m.cfg.Hosts[e.Host], e.How)}}
		}
	case Tick:
		return m.tick(now)
	default:
		panic(fmt.Sprintf("muster: unknown event %T", event))
	}
	return nil
}

// advance has the agent of a host start those that are its to start.
func (m *Machine) advance(from int, now time.Duration) (out []Action) {
	for i := 1; i < len(m.hosts); i++ {
		if m.hosts[i] == unsent && m.cfg.Starters[i] == from {
			m.hosts[i], m.since[i] = awaited, now
			out = append(out, Start{i, from})
		}
	}
	if !slices.ContainsFunc(m.hosts, func(s state) bool { return s != here }) {
		m.over, m.whole = true, true
		out = append(out, Complete{})
	}
	return out
}

func (m *Machine) tick(now time.Duration) []Action {
	if m.over {
		return nil
	}
	var late, waits []int
	behind := 0
	for i, s := range m.hosts {
		switch {
		case s == unsent:
			behind++
		case s == awaited:
			waits = append(waits, i)
			if m.cfg.Limit > 0 && now-m.since[i] >= m.cfg.Limit {
				late = append(late, i)
			}
		}
	}
	if len(late) > 0 {
		m.over = true
		return []Action{Fail{fmt.Sprintf(
			"cluster %s: host %s: its agent has not answered within %v", m.cfg.Cluster,
			m.named(late), m.cfg.Limit), late}}
	}
	if now < m.word {
		return nil
	}
	m.word = now + NextWord
	text := fmt.Sprintf("cluster %s: waiting for %s", m.cfg.Cluster, m.named(waits))
	if behind > 0 {
		text += fmt.Sprintf(", which are to start those of %d more hosts", behind)
	}
	return []Action{Say{text}}
}

// named are hosts in a sentence.
func (m *Machine) named(list []int) string {
	var names []string
	for _, i := range list {
		names = append(names, m.cfg.Hosts[i])
	}
	if more := len(names) - mostNamed; more > 1 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
