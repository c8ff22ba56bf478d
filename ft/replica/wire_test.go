package replica

import (
	"bytes"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func messages() []Message {
	change, _ := proto.Marshal(changeTo(pb.ConfChangeAddNode, 3).(*pb.ConfChange))
	to := func(m *pb.Message) Message {
		m.From, m.To = new(raftID(0)), new(raftID(1))
		return Message{From: 0, To: 1, raft: m}
	}
	entry := func(term, index uint64, kind pb.EntryType, data []byte) *pb.Entry {
		return &pb.Entry{Term: new(term), Index: new(index), Type: kind.Enum(), Data: data}
	}
	_, several, _ := pb.MarshalConfChange(
		&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(),
			NodeId: new(uint64(2))}, {Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(3))}}})
	snapshot := &pb.Snapshot{Data: append(appendNumbers(nil, 77, 2, 0, 4, 9, 1), "made"...),
		Metadata: &pb.SnapshotMetadata{Index: new(uint64(40)), Term: new(uint64(3)),
			ConfState: &pb.ConfState{Voters: []uint64{1, 3, 5}, Learners: []uint64{2, 4},
				VotersOutgoing: []uint64{1}}}}
	return []Message{
		to(&pb.Message{Type: pb.MsgApp.Enum(), Term: new(uint64(3)), LogTerm: new(uint64(1)),
			Index: new(uint64(1)), Commit: new(uint64(2)), Entries: []*pb.Entry{
				entry(1, 2, pb.EntryNormal, appendProposal(nil,
					&Entry{Origin: 2, Seq: 1, At: 55, Data: []byte("x")})),
				entry(2, 3, pb.EntryNormal, nil), entry(3, 4, pb.EntryConfChange, change),
				entry(3, 5, pb.EntryConfChangeV2, several),
				entry(3, 6, pb.EntryConfChangeV2, nil)}}),
		to(&pb.Message{Type: pb.MsgAppResp.Enum(), Term: new(uint64(3)), Index: new(uint64(7)),
			Reject: new(true), RejectHint: new(uint64(5)), LogTerm: new(uint64(2))}),
		to(&pb.Message{Type: pb.MsgVote.Enum(), Term: new(uint64(4)), Index: new(uint64(7)),
			LogTerm: new(uint64(3)), Context: []byte(force)}),
		to(&pb.Message{Type: pb.MsgSnap.Enum(), Term: new(uint64(4)), Snapshot: snapshot}),
		to(&pb.Message{Type: pb.MsgHeartbeat.Enum(), Term: new(uint64(4)), Commit: new(uint64(1))}),
		to(&pb.Message{Type: pb.MsgTimeoutNow.Enum(), Term: new(uint64(4))}),
		{From: 0, To: 1, offer: &offer{origin: 5, first: 3, list: [][]byte{[]byte("a"), {}},
			passed: true}},
		{From: 0, To: 1, taken: 12},
	}
}

// What is sent is what arrives, and nothing else does.
func TestWire(t *testing.T) {
	for _, m := range messages() {
		text := m.Encode()
		got, err := Decode(text)
		if err != nil {
			t.Errorf("%v: %v", m, err)
			continue
		}
		if got.From != m.From || got.To != m.To || got.taken != m.taken ||
			(got.offer == nil) != (m.offer == nil) || !bytes.Equal(got.Encode(), text) {
			t.Errorf("%v becomes %v", m, got)
		}
		for n := range text {
			if _, err := Decode(text[:n]); err == nil {
				t.Errorf("the first %d bytes of %v are a message", n, m)
			}
		}
		if _, err := Decode(append(text, 0)); err == nil {
			t.Errorf("a byte behind %v is taken", m)
		}
	}
	over := Message{From: 0, To: 1, offer: &offer{origin: 1, first: 1,
		list: [][]byte{make([]byte, MostData+1)}}}
	if _, err := Decode(over.Encode()); err == nil {
		t.Error("an entry that is too long is taken")
	}
	if _, err := Decode([]byte{wireVersion + 1}); err == nil {
		t.Error("a message of another version is taken")
	}
}

// Whatever comes is an error, or a message that a machine takes without ending the process, and
// that stays what it is.
func FuzzDecode(f *testing.F) {
	for _, one := range messages() {
		for _, other := range messages() {
			f.Add(one.Encode(), other.Encode())
		}
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		for _, self := range []int{0, 1} {
			m := New(Config{Self: self, First: []int{0, 1, 2}, State: &counted{}})
			for _, text := range [][]byte{one, other, one, other} {
				for range 2 {
					m.Step(Tick{}, 0) //nolint:errcheck // never an error
				}
				msg, err := Decode(text)
				if err != nil {
					continue
				}
				if again := msg.Encode(); !bytes.Equal(again, text) {
					t.Fatalf("%x becomes %x", text, again)
				}
				m.Step(Received{msg}, 0) //nolint:errcheck // an error is what is hoped for
			}
		}
	})
}
