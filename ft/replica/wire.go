package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// The wire format of messages. Numbers are unsigned varints, and bytes stand behind their
// number. Entries have the indexes behind that of their message.
//
//	message   version, kind, from, to, then
//	raft      type, flags, term, log term, index, commit, reject hint, entries, [snapshot]
//	offer     origin, number of the first, passed, proposals
//	taken     number
//	entry     type, term, bytes
//	snapshot  index, term, voters, learners, voters before (of which a majority is needed, too, while three become of one), bytes
//	proposal  origin, number, time, bytes to the end (the bytes of an entry)
//
// Decode accepts messages that some agent of this package could have sent; possible checks, before
// raft gets one, whether it can have been sent to this agent.

// wireVersion is the first byte.
const wireVersion = 2

const (
	kindRaft = iota + 1
	kindOffer
	kindTaken
)

const (
	flagReject = 1 << iota
	flagForce  // of a vote: requested by the leader itself
	flagSnapshot
)

// force is raft's word for flagForce.
const force = "CampaignTransfer"

// Bounds. Indexes, terms and times are far from where they would overflow.
const (
	MostAgents      = 1 << 20
	MostData        = 512 << 10     // bytes of an entry
	MostSaved       = 16 << 20      // bytes of State.Save
	mostBatch       = 256 << 10     // of a message with several entries
	mostEntries     = mostBatch / 4 // each counts with more in a batch
	mostUncommitted = 8 << 20
	mostIndex       = 1 << 61
	mostTime        = 1 << 61
	mostHead        = 64 // of a proposal, beside its data
)

// A Message goes from one agent to another.
type Message struct {
	From, To int
	raft     *pb.Message
	offer    *offer
	taken    uint64 // of neither: so many of To's proposals were applied
}

// An offer is of proposals of an agent.
type offer struct {
	origin int
	first  uint64
	list   [][]byte
	passed bool // by an agent that does not lead
}

// types are those of raft's that go from agent to agent, in the order of their numbers on the wire.
var types = []pb.MessageType{pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgSnap,
	pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgPreVote, pb.MsgPreVoteResp, pb.MsgTimeoutNow}

// entryTypes likewise.
var entryTypes = []pb.EntryType{pb.EntryNormal, pb.EntryConfChange, pb.EntryConfChangeV2}

// Encode is the form of a message.
func (msg *Message) Encode() []byte {
	b := []byte{wireVersion, kindTaken}
	b = appendNumbers(b, uint64(msg.From), uint64(msg.To))
	switch {
	case msg.raft != nil:
		b[1] = kindRaft
		return appendRaft(b, msg.raft)
	case msg.offer != nil:
		b[1] = kindOffer
		o := msg.offer
		b = appendNumbers(b, uint64(o.origin), o.first, uint64(flag(o.passed, 1)),
			uint64(len(o.list)))
		for _, data := range o.list {
			b = appendBytes(b, data)
		}
		return b
	}
	return appendNumbers(b, msg.taken)
}

func appendRaft(b []byte, m *pb.Message) []byte {
	snap := m.GetSnapshot()
	flags := flag(m.GetReject(), flagReject) | flag(string(m.GetContext()) == force, flagForce) |
		flag(snap != nil, flagSnapshot)
	b = append(b, byte(slices.Index(types, m.GetType())), flags)
	b = appendNumbers(b, m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(),
		m.GetRejectHint(), uint64(len(m.GetEntries())))
	for _, e := range m.GetEntries() {
		b = appendNumbers(b, uint64(slices.Index(entryTypes, e.GetType())), e.GetTerm())
		b = appendBytes(b, e.GetData())
	}
	if snap == nil {
		return b
	}
	meta := snap.GetMetadata()
	b = appendNumbers(b, meta.GetIndex(), meta.GetTerm())
	for _, list := range [][]uint64{meta.GetConfState().GetVoters(),
		meta.GetConfState().GetLearners(), meta.GetConfState().GetVotersOutgoing()} {
		b = appendNumbers(b, uint64(len(list)))
		b = appendNumbers(b, list...)
	}
	return appendBytes(b, snap.GetData())
}

func appendNumbers(b []byte, list ...uint64) []byte {
	for _, n := range list {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

// appendProposal is the data of an entry of the log.
func appendProposal(b []byte, e *Entry) []byte {
	return append(appendNumbers(b, uint64(e.Origin), e.Seq, uint64(e.At)), e.Data...)
}

func readProposal(b []byte) (e Entry, ok bool) {
	r := reader{b: b}
	e.Origin, e.Seq, e.At = int(r.number(MostAgents-1)), r.number(mostIndex),
		int64(r.number(mostTime))
	e.Data = r.b
	return e, !r.bad && e.Seq > 0 && len(e.Data) <= MostData
}

var errWire = errors.New("replica: no message of an agent")

// Decode reads a message.
func Decode(b []byte) (Message, error) {
	r := &reader{b: b}
	if version := r.byte(wireVersion); !r.bad && version != wireVersion {
		return Message{}, fmt.Errorf("replica: a message of version %d, this is version %d",
			version, wireVersion)
	}
	kind := r.byte(kindTaken)
	msg := Message{From: int(r.number(MostAgents - 1)), To: int(r.number(MostAgents - 1))}
	switch kind {
	case kindRaft:
		msg.raft = r.raft(&msg)
	case kindOffer:
		msg.offer = r.offer()
	case kindTaken:
		msg.taken = r.number(mostIndex)
	default:
		r.fail()
	}
	if r.bad || len(r.b) > 0 {
		return Message{}, errWire
	}
	return msg, nil
}

// reader takes what is in a message; after the first thing that is wrong all is empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) byte(most byte) byte {
	if len(r.b) == 0 || r.b[0] > most {
		r.fail()
		return 0
	}
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

func (r *reader) number(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > most || n > 1 && r.b[n-1] == 0 { // each number has one form
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) bytes(most int) []byte {
	n := int(r.number(uint64(most)))
	if n > len(r.b) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) offer() *offer {
	o := &offer{origin: int(r.number(MostAgents - 1)), first: r.number(mostIndex),
		passed: r.byte(1) == 1}
	size := 0
	for range r.number(window) {
		data := r.bytes(MostData)
		size += len(data)
		o.list = append(o.list, data)
	}
	if o.first == 0 || len(o.list) == 0 || size > max(offerBytes, MostData) {
		r.fail()
	}
	return o
}

func (r *reader) raft(msg *Message) *pb.Message {
	m := &pb.Message{Type: types[r.byte(byte(len(types)-1))].Enum(), From: new(raftID(msg.From)),
		To: new(raftID(msg.To))}
	flags := r.byte(flagReject | flagForce | flagSnapshot)
	m.Term, m.LogTerm, m.Index, m.Commit, m.RejectHint = new(r.number(mostIndex)),
		new(r.number(mostIndex)), new(r.number(mostIndex)), new(r.number(mostIndex)),
		new(r.number(mostIndex))
	if flags&flagReject != 0 {
		m.Reject = new(true)
	}
	if flags&flagForce != 0 {
		m.Context = []byte(force)
	}
	m.Entries = r.entries(m)
	if flags&flagSnapshot != 0 {
		m.Snapshot = r.snapshot()
	}
	if m.GetTerm() == 0 || (m.GetType() == pb.MsgSnap) != (m.Snapshot != nil) ||
		len(m.Entries) > 0 && m.GetType() != pb.MsgApp {
		r.fail()
	}
	return m
}

// entries are those of a MsgApp: the terms of a log never fall.
func (r *reader) entries(m *pb.Message) (list []*pb.Entry) {
	term, size := m.GetLogTerm(), 0
	for i := range r.number(mostEntries) {
		e := &pb.Entry{Type: entryTypes[r.byte(byte(len(entryTypes)-1))].Enum(),
			Index: new(m.GetIndex() + 1 + i), Term: new(r.number(mostIndex))}
		e.Data = r.bytes(MostData + mostHead)
		size += len(e.Data)
		if r.bad || size > max(mostBatch, MostData+mostHead) || e.GetTerm() < max(term, 1) ||
			e.GetTerm() > m.GetTerm() || !sound(e) {
			r.fail()
			return nil
		}
		term = e.GetTerm()
		list = append(list, e)
	}
	return list
}

// sound reports whether the bytes of an entry match its type.
func sound(e *pb.Entry) bool {
	if e.GetType() == pb.EntryNormal {
		_, ok := readProposal(e.GetData())
		return ok || len(e.GetData()) == 0
	}
	if e.GetType() == pb.EntryConfChangeV2 {
		var cc pb.ConfChangeV2
		// raft ends the process on unknown values
		return proto.Unmarshal(e.GetData(), &cc) == nil &&
			cc.GetTransition() == pb.ConfChangeTransitionAuto
	}
	return proto.Unmarshal(e.GetData(), &pb.ConfChange{}) == nil
}

func (r *reader) snapshot() *pb.Snapshot {
	meta := &pb.SnapshotMetadata{Index: new(r.number(mostIndex)), Term: new(r.number(mostIndex)),
		ConfState: &pb.ConfState{}}
	ids := func(seen map[uint64]bool) (list []uint64) {
		for range r.number(MostAgents) {
			id := r.number(MostAgents)
			if r.bad || id == 0 || seen[id] {
				r.fail()
				return nil
			}
			seen[id] = true
			list = append(list, id)
		}
		return list
	}
	seen, followers := map[uint64]bool{}, map[uint64]bool{}
	meta.ConfState.Voters, meta.ConfState.Learners = ids(seen), ids(seen)
	for _, id := range meta.ConfState.Learners { // none of those voted before
		followers[id] = true
	}
	meta.ConfState.VotersOutgoing = ids(followers)
	meta.ConfState.AutoLeave = new(len(meta.ConfState.VotersOutgoing) > 0)
	data := r.bytes(MostSaved + 16*MostAgents)
	if _, _, _, ok := readSnapshot(data); !ok || meta.GetIndex() == 0 || meta.GetTerm() == 0 ||
		len(meta.ConfState.Voters) == 0 {
		r.fail()
		return nil
	}
	return &pb.Snapshot{Data: data, Metadata: meta}
}

var errImpossible = errors.New("replica: a message that no agent can have sent to this one")

// possible checks whether a message is consistent with this agent's own messages: raft ends the
// process on one that is not. An agent that has lost its memory (duty 3) would get such messages.
func (m *Machine) possible(msg *pb.Message) error {
	last, _ := m.storage.LastIndex() // never an error in memory
	switch {
	case msg.GetType() == pb.MsgHeartbeat && msg.GetCommit() > last,
		msg.GetType() == pb.MsgAppResp && !msg.GetReject() && msg.GetIndex() > last &&
			m.role == raft.StateLeader && msg.GetTerm() == m.term,
		msg.GetType() == pb.MsgSnap && msg.GetSnapshot().GetMetadata().GetTerm() > msg.GetTerm():
		return errImpossible
	}
	return nil
}
