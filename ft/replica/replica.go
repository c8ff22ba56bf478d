// Package replica keeps one sequence of entries at several agents, so that no agent is special: its
// entries were accepted by a majority, and survive the loss of fewer agents. Elections and
// replication are those of Raft (go.etcd.io/raft, of which this uses the pure core); the package
// defines how libspx uses them: which agents vote, how proposals are applied exactly once, and how
// messages are encoded.
//
// A Machine is one agent's part. Its shell (launch/agent, or sim) owns clock and network, and has
// these duties:
//
//  1. It calls Step with a Tick every period, and with every message that arrives; it performs the
//     Sends. Messages may be lost, late, reordered, or duplicated.
//  2. It provides the State of the sequence, which is a function of the entries alone, at
//     every agent the same.
//  3. An agent that has lost its memory comes back with a number that no agent has had. Nothing is
//     stored on disk: an agent that came back empty under its old number would contradict its
//     votes.
//  4. It reports the present agents by Members. The agent that leads makes voters of them, an odd
//     number: so half of the hosts, and one more, are as a rule a majority, and with two hosts
//     there is one voter, which goes on without the other. Agents that are no longer present are
//     removed, after which fewer are a majority. A removed agent is not always notified: an agent
//     that has no contact to a leader for long has to check whether it still belongs to the group.
//  5. It supplies the time. Clocks of agents need not agree; as far as they do not, the time of
//     the sequence stands still when the next leader's is behind, and jumps when it is ahead.
//
// What an agent proposes (Propose) is numbered by itself, from 1, and offered to the agent that
// leads until it has been applied: again after a while, and to each new leader. Entries of one
// agent are applied in the order of their numbers, each once, even if received more than once. The
// leader writes its time into an entry: times never go back in the sequence.
//
// A leader that loses contact to a majority steps down within two election times, and the proposals
// it accepts meanwhile are applied nowhere, itself included. So an agent that acts only on applied
// entries never acts on state that other agents do not have.
package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Config is the initial configuration of an agent.
type Config struct {
	Self int // number of this agent, from 0
	// the agents that begin, the same list at each: the first of them leads, as a rule. nil: this
	// one joins later, through the Members of the other agents
	First  []int
	Seed   uint64 // of the times after which this agent wants to lead: each has another one
	Voters int    // at most; 0: MostVoters. An odd number
	Follow int    // agents beside the voters that have the entries, at most; 0: MostFollowers
	Keep   int    // entries that are kept for agents that lag behind; 0: DefaultKeep
	State  State
}

// Bounds of a group that Config does not give.
const (
	MostVoters    = 7
	MostFollowers = 4
	DefaultKeep   = 1024
)

// electionTicks is the number of ticks without a leader after which agents stand for election,
// within as many more. A leader sends a heartbeat every tick.
const electionTicks = 10

// retryTicks is after how many ticks, or twice as many, an agent that was not elected retries the
// first time.
const retryTicks = 3

// mostTries is how many elections in vain count: the time between two has grown to electionTicks by
// then.
const mostTries = electionTicks

// State is what the entries make. Its methods are called within Step.
type State interface {
	Apply(Entry)                // the next entry
	Save() []byte               // what all entries up to now have made
	Load(saved []byte, at Mark) // the same of another agent, in the place of all before
}

// An Entry is one of the sequence.
type Entry struct {
	Index  uint64 // grows from entry to entry, not always by one
	Origin int    // agent that has proposed it
	Seq    uint64 // its number among those of Origin, from 1
	At     int64  // the leader's time when it came in
	Data   []byte
}

// A Mark is a place in the sequence: behind the entry of that index and time.
type Mark struct {
	Index uint64
	At    int64
}

// An Event is what happened: one of the types below.
type Event interface{}

// Tick: a period has passed.
type Tick struct{}

// Received: a message of another agent has arrived.
type Received struct{ Message Message }

// Propose: this agent wants Data to be an entry. At most MostData bytes.
type Propose struct{ Data []byte }

// Members: the agents present, as far as known here, in the order in which they should
// vote.
type Members struct{ Agents []int }

// An Action is what the shell has to do: one of the types below.
type Action interface{}

// Send sends a message to the agent Message.To.
type Send struct{ Message Message }

// Led reports the new leader; Self: this agent leads, and its State includes all earlier entries.
// Leader -1: none is known. Term counts elections; 0: this agent neither votes nor follows, and
// gets its state from another one.
type Led struct {
	Leader int
	Term   uint64
	Self   bool
}

// Machine is an agent's part.
type Machine struct {
	cfg     Config
	node    *raft.RawNode
	storage *storage
	rand    *rand.Rand
	now     int64
	out     []Action

	led     Led // as reported to the shell
	leader  int // as reported by raft
	hint    int // as reported by another agent, if this one does not have the entries
	term    uint64
	role    raft.StateType
	settled bool // this agent leads, and has applied all that was before

	idle     int // ticks without a leader's word
	patience int // after so many it wants to lead
	tries    int // since there was a leader

	applied Mark
	conf    *pb.ConfState  // as of applied
	last    map[int]uint64 // by agent: number of its latest entry, as of applied
	given   map[int]uint64 // by agent: the latest that this leader has put into its log

	wanted   []int
	changing uint64 // index up to which a change of members may be in the log

	proposals proposals
}

// ErrTooLong is the error for what is no entry.
var ErrTooLong = fmt.Errorf("replica: an entry has at most %d bytes", MostData)

// New makes an agent's part.
func New(cfg Config) *Machine {
	cfg.Voters, cfg.Follow, cfg.Keep = orElse(cfg.Voters, MostVoters),
		orElse(cfg.Follow, MostFollowers), orElse(cfg.Keep, DefaultKeep)
	if cfg.Self < 0 || cfg.Self >= MostAgents || cfg.Voters%2 == 0 || cfg.State == nil {
		panic(fmt.Sprintf("replica: a group of %d voters, for agent %d", cfg.Voters, cfg.Self))
	}
	m := &Machine{cfg: cfg, rand: rand.New(rand.NewPCG(cfg.Seed, uint64(cfg.Self))), leader: -1,
		hint: -1, led: Led{Leader: -1}, last: map[int]uint64{}, given: map[int]uint64{},
		wanted: slices.Clone(cfg.First), conf: &pb.ConfState{}}
	m.storage = &storage{MemoryStorage: raft.NewMemoryStorage(), m: m}
	if len(cfg.First) > 0 {
		voters := oddMost(min(len(cfg.First), cfg.Voters))
		m.conf = &pb.ConfState{Voters: raftIDs(cfg.First[:voters]),
			Learners: raftIDs(cfg.First[voters:min(len(cfg.First), voters+cfg.Follow)])}
		m.storage.begin(m.conf)
		m.applied.Index, m.term = 1, 1
	}
	node, err := raft.NewRawNode(&raft.Config{ID: raftID(cfg.Self), ElectionTick: electionTicks,
		HeartbeatTick: 1, Storage: m.storage, Applied: m.applied.Index, MaxSizePerMsg: mostBatch,
		MaxUncommittedEntriesSize: mostUncommitted, MaxInflightMsgs: 64, CheckQuorum: true,
		PreVote: true, StepDownOnRemoval: true, DisableProposalForwarding: true, Logger: quiet{}})
	if err != nil {
		panic(err) // of constants alone
	}
	m.node = node
	m.waitAnew()
	if len(cfg.First) > 0 && cfg.First[0] == cfg.Self {
		m.patience = 1 // the other agents know of no leader
	}
	return m
}

// Step takes an event at time now and returns what is to be done. An error: nothing was done with
// it.
func (m *Machine) Step(event Event, now int64) (out []Action, err error) {
	m.now = max(m.now, now)
	switch e := event.(type) {
	case Tick:
		m.tick()
	case Received:
		err = m.receive(&e.Message)
	case Propose:
		if len(e.Data) > MostData {
			return nil, ErrTooLong
		}
		m.proposals.add(e.Data)
	case Members:
		m.wanted = slices.Clone(e.Agents)
	default:
		panic(fmt.Sprintf("replica: unknown event %T", event))
	}
	m.drain()
	m.offer()
	m.tend()
	m.tell()
	out, m.out = m.out, nil
	return out, err
}

// tell reports the leader when it has changed. An agent that does not have the entries is not
// notified of terms.
func (m *Machine) tell() {
	led := Led{Leader: m.Leader(), Term: m.term, Self: m.settled}
	if !m.isMember(m.cfg.Self) {
		led.Term = 0
	}
	if led != m.led {
		m.led = led
		m.out = append(m.out, led)
	}
}

// Leader is the agent that leads, as far as known here; -1: none.
func (m *Machine) Leader() int {
	if m.leader < 0 && !m.isMember(m.cfg.Self) {
		return m.hint
	}
	return m.leader
}

// Leads reports whether this agent leads, and its State has all that was before.
func (m *Machine) Leads() bool { return m.settled }

// Term counts elections.
func (m *Machine) Term() uint64 { return m.term }

// Applied is where this agent is in the sequence.
func (m *Machine) Applied() Mark { return m.applied }

// Open is how many proposals of this agent are not applied yet.
func (m *Machine) Open() int { return len(m.proposals.list) }

// Voters are the agents that vote, and Followers those that have the entries beside them, as of
// Applied.
func (m *Machine) Voters() []int    { return agents(m.conf.GetVoters()) }
func (m *Machine) Followers() []int { return agents(m.conf.GetLearners()) }

// Councils are the lists of agents of which each needs a majority for whatever is to be taken over,
// as of Applied: the voters, and those before as long as three become of one.
func (m *Machine) Councils() [][]int {
	out := [][]int{m.Voters()}
	if m.isJoint() {
		out = append(out, agents(m.conf.GetVotersOutgoing()))
	}
	return out
}

// isMember: an agent votes or follows.
func (m *Machine) isMember(agent int) bool {
	return slices.Contains(m.conf.GetVoters(), raftID(agent)) ||
		slices.Contains(m.conf.GetLearners(), raftID(agent))
}

// tick lets a period pass. When an agent wants to lead is this package's matter and not raft's,
// which draws that from a source of its own: a run is to follow from its seed.
func (m *Machine) tick() {
	if m.proposals.tick() && !m.isMember(m.cfg.Self) {
		m.hint = -1 // it may be gone: other agents are queried
	}
	if m.role == raft.StateLeader {
		m.node.Tick()
		return
	}
	m.node.TickQuiesced()
	if m.idle++; m.idle >= m.patience {
		m.tries = min(m.tries+1, mostTries)
		m.waitAnew()
		m.node.Campaign() //nolint:errcheck // one that may not lead stays what it is
	}
}

// waitAnew starts the timeout after which this agent stands for election. An agent that has just
// been refused, because the others had contact to the old leader a little later, retries soon; one
// that gets no answers backs off.
func (m *Machine) waitAnew() {
	time := electionTicks
	if m.tries > 0 {
		time = min(retryTicks<<(m.tries-1), electionTicks)
	}
	m.idle, m.patience = 0, time+m.rand.IntN(time)
}

// heardLeader: there is one, or there will be.
func (m *Machine) heardLeader() {
	if m.tries = 0; m.patience < electionTicks {
		m.waitAnew()
	}
	m.idle = 0
}

var errNotForMe = errors.New("replica: a message for another agent")

// receive takes a message. A message that no agent of this package sends is refused, as raft trusts
// its input.
func (m *Machine) receive(msg *Message) error {
	if msg.To != m.cfg.Self || msg.From == m.cfg.Self {
		return errNotForMe
	}
	switch {
	case msg.raft != nil:
		if err := m.possible(msg.raft); err != nil {
			return err
		}
		err := m.node.Step(msg.raft)
		if t := msg.raft.GetType(); (t == pb.MsgApp || t == pb.MsgHeartbeat || t == pb.MsgSnap) &&
			msg.raft.GetTerm() >= m.term {
			m.heardLeader()
		}
		// an answer from an agent that has been removed
		if errors.Is(err, raft.ErrStepPeerNotFound) {
			err = nil
		}
		return err
	case msg.offer != nil:
		m.offered(msg)
	default:
		m.taken(msg)
	}
	return nil
}

// drain does what raft wants done, until there is nothing.
func (m *Machine) drain() {
	for m.node.HasReady() {
		rd := m.node.Ready()
		if !raft.IsEmptyHardState(rd.HardState) {
			if t := rd.HardState.GetTerm(); t != m.term {
				m.term = t
				m.turned(m.role, m.leader)
			}
			m.storage.SetHardState(rd.HardState) //nolint:errcheck // memory
		}
		if rd.SoftState != nil {
			m.turned(rd.RaftState, agent(rd.Lead))
		}
		if !raft.IsEmptySnap(rd.Snapshot) {
			// raft has looked that it is newer
			m.storage.ApplySnapshot(rd.Snapshot) //nolint:errcheck
			m.restore(rd.Snapshot)
		}
		m.storage.Append(rd.Entries) //nolint:errcheck // memory
		for _, msg := range rd.Messages {
			m.post(msg)
		}
		for _, e := range rd.CommittedEntries {
			m.apply(e)
		}
		m.node.Advance(rd)
	}
	m.storage.compact()
}

// turned records the leader of this term.
func (m *Machine) turned(role raft.StateType, leader int) {
	m.role, m.leader = role, leader
	m.settled, m.given, m.changing = false, map[int]uint64{}, 0
	m.proposals.anew()
}

// post sends one of raft's messages.
func (m *Machine) post(msg *pb.Message) {
	if msg.GetType() == pb.MsgVoteResp && !msg.GetReject() {
		m.heardLeader()
	}
	m.out = append(m.out, Send{Message{From: m.cfg.Self, To: agent(msg.GetTo()), raft: msg}})
	// the next message to that agent checks whether it has arrived
	if msg.GetType() == pb.MsgSnap {
		m.node.ReportSnapshot(msg.GetTo(), raft.SnapshotFinish)
	}
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// raft's numbers are from 1.
func raftID(agent int) uint64 { return uint64(agent) + 1 }
func agent(id uint64) int     { return int(id) - 1 }

func raftIDs(list []int) (out []uint64) {
	for _, a := range list {
		out = append(out, raftID(a))
	}
	return out
}

func agents(list []uint64) (out []int) {
	for _, id := range list {
		out = append(out, agent(id))
	}
	return out
}

// quiet is where raft's words go. What it cannot go on from is a bug here or there, and ends the
// process with a trace.
type quiet struct{}

func (quiet) Debug(...any)                   {}
func (quiet) Debugf(string, ...any)          {}
func (quiet) Error(...any)                   {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Info(...any)                    {}
func (quiet) Infof(string, ...any)           {}
func (quiet) Warning(...any)                 {}
func (quiet) Warningf(string, ...any)        {}
func (quiet) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (quiet) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (quiet) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
