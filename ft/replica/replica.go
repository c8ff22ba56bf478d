// Package replica keeps one sequence of entries at several agents, so that no agent is special:
// what is in it was taken over by a majority, and outlives the loss of fewer. Elections and
// replication are those of Raft (go.etcd.io/raft, of which this uses the pure core); the package
// says what libspx does with them: who votes, how what is proposed comes in exactly once, and how
// messages travel.
//
// A Machine is one agent's part. Its shell (launch/agent, or sim) owns clock and network, and has
// these duties:
//
//  1. It calls Step with a Tick every period, and with everything that arrives; it sends what Send
//     says. Messages may be lost, late, out of order, or there twice.
//  2. It gives the State that belongs to the sequence: that is a function of the entries alone, at
//     every agent the same.
//  3. An agent that has lost its memory comes back with a number that no agent has had. There is
//     nothing on a disk here: an agent that came back empty under its old number would deny what it
//     has voted.
//  4. It says by Members who is there. The agent that leads makes voters of them, an odd number: so
//     half of the hosts, and one more, are as a rule a majority, and with two hosts there is one
//     voter, which goes on without the other. Who is not there any more is removed, after which
//     fewer are a majority. An agent that is removed does not always hear of that: whoever hears of
//     no leader for long has to ask itself whether it still belongs to the group.
//  5. It says what time it is. Clocks of agents need not agree; as far as they do not, the time of
//     the sequence stands still when the next leader's is behind, and jumps when it is ahead.
//
// What an agent proposes (Propose) is numbered by itself, from 1, and offered to the agent that
// leads until it has been applied: again after a while, and to each new leader. Entries of one
// agent are applied in the order of their numbers, each once, wherever they have come in more than
// once. The leader writes its time into an entry: times never go back in the sequence.
//
// A leader that does not hear of a majority any more gives up within two election times, and what
// it takes in meanwhile is not applied anywhere, itself included. So whoever acts on what was
// applied alone never acts on what others do not know.
package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Config is what an agent knows beforehand.
type Config struct {
	Self int // number of this agent, from 0
	// the agents that begin, the same list at each: the first of them leads, as a rule. nil: this
	// one comes later, by the Members of the others
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

// electionTicks is after how many ticks without a leader agents begin to want to be it, within as
// many more. A leader says every tick that it is there.
const electionTicks = 10

// retryTicks is after how many ticks, or twice as many, an agent that was not elected asks again,
// the first time.
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

// Received: a message of another agent has come.
type Received struct{ Message Message }

// Propose: this agent wants Data to be an entry. At most MostData bytes.
type Propose struct{ Data []byte }

// Members: these agents are there, as far as this one knows, in the order in which they should
// vote.
type Members struct{ Agents []int }

// An Action is what the shell has to do: one of the types below.
type Action interface{}

// Send sends a message to the agent Message.To.
type Send struct{ Message Message }

// Led says who leads from now on; Self: this agent does, and its State has all that was before.
// Leader -1: none is known. Term counts elections; 0: this agent neither votes nor follows, and has
// its knowledge from another one.
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

	led     Led // as the shell knows it
	leader  int // as raft knows it
	hint    int // as another agent has told one that has not got the entries
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
	changing uint64 // index up to which a change of members may lie in the log

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
		m.patience = 1 // the others have not heard of a leader
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

// tell says who leads, when that is another one. An agent that has not got the entries does not
// hear of terms.
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

// Leader is the agent that leads, as far as this one knows; -1: none.
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
		m.hint = -1 // it may be gone: others are asked
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

// waitAnew begins the time after which this agent wants to lead. Who has just been refused, as the
// others had heard of the old leader a little later, asks again soon; who gets no answers gives
// them more and more time.
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

// receive takes a message. One that no agent of this package sends is refused: raft counts on what
// it is told.
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
		if errors.Is(err, raft.ErrStepPeerNotFound) { // an answer from one who has been removed
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

// turned notes who leads in this term.
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
	// whether it has arrived is asked with the next word to that agent
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
