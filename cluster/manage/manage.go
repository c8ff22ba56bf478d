// Package manage decides which agents are the masters of a system of clusters, and their actions
// (MPI/SPx, section 3.4, figures 12 to 14).
//
// Every host has an agent, the master of its host. Each cluster has a master among the agents of
// its hosts, and the system has one among the masters of its clusters. Events on hosts go up this
// tree as reports, in counts and not by process; the state of the system goes down it as a View, so
// that clusters which share no network learn of each other. A message between agents without a
// common network is relayed by those between them.
//
// A place in the tree is a seat (seat.go). Its holder has a lease: a majority of the voters has
// recently promised to support no other agent. A lease ends before the promises do, so that two
// never act in one seat at a time, however messages are lost or late; an agent that is cut off
// stops acting before another begins. Clocks may differ, but must run at about the same speed
// (within a tenth).
//
// It is pure: Step(event, now) returns what is to be done; the shell sends messages, starts and
// ends processes, and calls Step with Tick when Deadline has come. It starts nothing, and is
// independent of what processes compute. Times are in milliseconds from any origin.
package manage

import (
	"fmt"
	"math"
)

// A Config is the part of the system file that all agents have, and the number of this agent.
type Config struct {
	Self     int
	Agents   []Agent // by number
	Clusters []Cluster
	BeatMS   int64 // between heartbeats
	LimitMS  int64 // duration of a promise: an agent silent for so long is replaced
	SilentMS int64 // a cluster from which the system's master receives nothing for so long is dead
	// without word from the system's master for so long, an agent ends its processes; 0: never
	FenceMS int64
}

// An Agent is the master of a host.
type Agent struct {
	Networks []int // it reaches the agents that have one of these
	IOP      bool  // I/O processes run beside it
	// system's master only if no other agent can be: the system ends with it anyway
	Last bool
}

// A Cluster is the configuration of a cluster.
type Cluster struct {
	Name       string
	Agents     []int // of its hosts; none: it is not there yet, or not any more, and has no vote
	Candidates []int // those that may be its master, the best first
	Want       int   // processes, standbys left aside
	Degrade    bool  // it continues when ranks are lost
	// the counting agent reports as Failed that it cannot continue: its lost ranks may still be
	// taken over
	Told     bool
	OnDeath  Treatment
	Restarts int // at most; Unbounded: the starter counts, and abandons it
}

// Unbounded is more restarts than any cluster can have.
const Unbounded = math.MaxInt32

// Check returns an error for an invalid configuration from another process: machines rely on all
// conditions checked here.
func (c *Config) Check() error {
	agent := func(a int) bool { return a >= 0 && a < len(c.Agents) }
	if !agent(c.Self) || c.BeatMS < 1 || c.LimitMS < c.BeatMS || c.BeatMS > mostTime ||
		c.LimitMS > mostTime {
		return fmt.Errorf("manage: agent %d of %d, with heartbeats each %d ms and a limit of %d ms",
			c.Self, len(c.Agents), c.BeatMS, c.LimitMS)
	}
	for _, k := range c.Clusters {
		for _, a := range append(append([]int(nil), k.Agents...), k.Candidates...) {
			if !agent(a) {
				return fmt.Errorf("manage: cluster %s is to have agent %d of %d", k.Name, a,
					len(c.Agents))
			}
		}
	}
	return nil
}

// Treatment is what is done when a cluster has died.
type Treatment int

// Treatments of a cluster's death.
const (
	StopSystem Treatment = iota
	RestartIt
	GoOn
)

// State is that of a cluster.
type State int

// States.
const (
	Starting State = iota // not all of its processes are there yet
	Running
	Degraded // some are lost, and it continues
	Dead     // it cannot go on
	Done     // all have ended well
)

func (s State) String() string {
	return [...]string{"starting", "running", "degraded", "dead", "done"}[s]
}

// A Count is what a host, or a cluster, has of a cluster's processes.
type Count struct {
	Life   uint32 // which start of the cluster they belong to, from 1
	Alive  int
	Lost   int  // have died, and their ranks have not been taken over
	Done   int  // have ended well
	Failed bool // the cluster cannot continue, as reported by the counting agent
}

func (c *Count) add(o Count) {
	c.Alive += o.Alive
	c.Lost += o.Lost
	c.Done += o.Done
	c.Failed = c.Failed || o.Failed
}

// A ClusterView is a cluster as all see it.
type ClusterView struct {
	State  State
	Life   uint32 // which start, from 1
	Alive  int
	Master int // agent, -1: none
}

// A View is the system as published by its master. A later one has a higher term, or the same term
// and a higher version.
type View struct {
	Term, Version uint64
	Master        int
	Stopping      bool // the system ends
	Clusters      []ClusterView
}

func (v *View) newer(o *View) bool {
	return v.Term > o.Term || v.Term == o.Term && v.Version > o.Version
}

// differs: more than the number of living processes.
func (v *View) differs(o *View) bool {
	if v.Term != o.Term || v.Stopping != o.Stopping || len(v.Clusters) != len(o.Clusters) {
		return true
	}
	for i, c := range v.Clusters {
		c.Alive = o.Clusters[i].Alive
		if c != o.Clusters[i] {
			return true
		}
	}
	return false
}

// Seats: a cluster's has its number. Watch is none: views for agents that belong to no cluster.
const (
	System = -1
	Watch  = -2
)

// A Message travels between agents, relayed on its way if need be.
type Message struct {
	From, To int
	Hops     int
	Way      int // which way it takes, where there are several; an answer takes that of its beat
	Seat     int
	Term     uint64
	Sent     int64 // of a beat, on its sender's clock; answers repeat it

	Age     int64 // of a beat: age of the sender's last news of the system's master
	Beat    bool  // from the holder of a seat, or a candidate
	Held    bool  // of a beat: its sender holds the seat
	Granted bool  // of an answer: the promise is given
	// of an answer: the promising voter: an agent or, for the system's seat, a cluster
	Voter    int
	Promised int // of an answer that refuses: the agent with the current promise, -1: none
	// of an answer for the system's seat: the agent that represents the cluster, -1: not known
	Holder   int
	Counts   []Count
	Clusters []int // which clusters the counts are of
	View     *View // when the receiver may not have it
	Term2    uint64
	Version  uint64 // of the view that the sender of an answer has; its term is Term2
}

// Size is about how many bytes a message takes.
func (m *Message) Size() int {
	n := 48 + 16*len(m.Counts)
	if m.View != nil {
		n += 24 + 16*len(m.View.Clusters)
	}
	return n
}

// An Event is one of the types below.
type Event interface{}

// Tick: time has passed.
type Tick struct{}

// Received: a message has arrived.
type Received struct{ Message Message }

// Counted: what this host has of a cluster's processes has changed.
type Counted struct {
	Cluster int
	Count
}

// Gone: an agent has ended for certain, its host's processes with it: reported by the kernel, or
// fenced. A cluster of which all agents are gone has no vote any more.
type Gone struct{ Agent int }

// An Action is one of the types below.
type Action interface{}

// Send hands a message to an agent that this one reaches: its receiver, or one on the way.
type Send struct {
	To      int
	Message Message
}

// Learned: this is the system now. The shell notifies its processes of the present clusters.
type Learned struct{ View View }

// Start: processes of a cluster that belong on this host are to be started, in this incarnation of
// the cluster. Another machine of the same agent (Revive) may repeat it.
type Start struct {
	Cluster int
	Life    uint32
}

// End: processes of a cluster on this host are to be ended, those of this incarnation and earlier
// ones: the cluster is dead, or the system stops.
type End struct {
	Cluster int
	Life    uint32
}

// Fence: this agent is cut off; its processes are to be ended, since the other agents may continue
// without it.
type Fence struct{}
