package replica

import (
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// storage holds the log, in memory. What is older than Keep entries is dropped; an agent that lacks
// it gets what it has made, as it is at that moment.
type storage struct {
	*raft.MemoryStorage
	m *Machine
}

// begin makes the log of a group in which nothing has happened yet: the same at all its agents.
func (s *storage) begin(conf *pb.ConfState) {
	// it is the first
	s.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: conf}}) //nolint:errcheck
	// memory
	s.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}) //nolint:errcheck
}

// Snapshot is made when raft wants to send one: so it includes the agent that it is for.
func (s *storage) Snapshot() (*pb.Snapshot, error) {
	m := s.m
	term, err := s.Term(m.applied.Index)
	if err != nil {
		return nil, err
	}
	b := binary.AppendUvarint(nil, uint64(m.applied.At))
	b = binary.AppendUvarint(b, uint64(len(m.last)))
	for _, a := range slices.Sorted(maps.Keys(m.last)) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(a)), m.last[a])
	}
	return &pb.Snapshot{Data: append(b, m.cfg.State.Save()...),
		Metadata: &pb.SnapshotMetadata{Index: new(m.applied.Index), Term: new(term),
			ConfState: m.conf}}, nil
}

// compact drops old entries, many at a time.
func (s *storage) compact() {
	first, _ := s.FirstIndex() // never an error in memory
	if keep := uint64(s.m.cfg.Keep); s.m.applied.Index > first+2*keep {
		s.Compact(s.m.applied.Index - keep) //nolint:errcheck // it lies between the two
	}
}

// restore installs the state that another agent has built from the entries.
func (m *Machine) restore(snap *pb.Snapshot) {
	at, last, state, _ := readSnapshot(snap.GetData()) // validated by possible
	m.applied = Mark{snap.GetMetadata().GetIndex(), at}
	m.conf = snap.GetMetadata().GetConfState()
	m.last = last
	m.proposals.done(last[m.cfg.Self])
	m.cfg.State.Load(state, m.applied)
}

// readSnapshot decodes the data of a snapshot.
func readSnapshot(b []byte) (at int64, last map[int]uint64, state []byte, ok bool) {
	r := reader{b: b}
	at, last = int64(r.number(mostTime)), map[int]uint64{}
	before := -1
	for range r.number(MostAgents) {
		a, seq := int(r.number(MostAgents-1)), r.number(mostIndex)
		if r.bad || a <= before || seq == 0 {
			return 0, nil, nil, false
		}
		before, last[a] = a, seq
	}
	return at, last, r.b, !r.bad
}

// apply takes the next entry that was taken over by a majority.
func (m *Machine) apply(e *pb.Entry) {
	m.applied.Index = e.GetIndex()
	switch {
	case e.GetType() == pb.EntryConfChange:
		m.applyChange(e.GetData())
	case e.GetType() == pb.EntryConfChangeV2:
		m.applyJoint(e.GetData())
	case len(e.GetData()) > 0:
		m.applyProposal(e)
	}
	if m.role == raft.StateLeader && e.GetTerm() == m.term {
		m.settled = true
	}
}

func (m *Machine) applyChange(data []byte) {
	var cc pb.ConfChange
	if proto.Unmarshal(data, &cc) != nil || !m.changes(&cc) {
		return
	}
	m.conf = m.node.ApplyConfChange(&cc)
}

func (m *Machine) applyJoint(data []byte) {
	var cc pb.ConfChangeV2
	if proto.Unmarshal(data, &cc) != nil || !m.changesJointly(&cc) {
		return
	}
	m.conf = m.node.ApplyConfChange(&cc)
}

func (m *Machine) applyProposal(e *pb.Entry) {
	p, ok := readProposal(e.GetData())
	if !ok || p.Seq != m.last[p.Origin]+1 { // it was there before, or one before it is missing
		return
	}
	m.last[p.Origin] = p.Seq
	m.applied.At = max(m.applied.At, p.At)
	p.Index, p.At = e.GetIndex(), m.applied.At
	m.cfg.State.Apply(p)
	switch {
	case p.Origin == m.cfg.Self:
		m.proposals.done(p.Seq)
	case m.role == raft.StateLeader && !m.isMember(p.Origin):
		m.answer(p.Origin)
	}
}
