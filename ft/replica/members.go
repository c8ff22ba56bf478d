package replica

import (
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// The voters. The leader changes one member at a time until the members are the present agents; it
// goes from one voter to three in one step.

// oddMost is the largest odd number that is not larger than n.
func oddMost(n int) int { return n - 1 + n%2 }

// tend moves the members towards the agents known to be present, if this agent leads.
func (m *Machine) tend() {
	if !m.settled || m.applied.Index < m.changing || len(m.wanted) == 0 || m.isJoint() {
		return
	}
	change := m.nextChange()
	if change == nil {
		return
	}
	if one, ok := change.AsV1(); ok {
		if one.GetNodeId() == raftID(m.cfg.Self) { // it is to leave: another one has to lead
			m.handOver()
			return
		}
		if len(m.wanted) == 2 && one.GetType() == pb.ConfChangeAddLearnerNode &&
			one.GetNodeId() == raftID(m.wanted[0]) && m.upToDate()[m.wanted[0]] {
			m.handOver() // of two only one votes, which is the first of those that should
			return
		}
	}
	if m.node.ProposeConfChange(change) != nil {
		return
	}
	m.drain()
	m.changing, _ = m.storage.LastIndex() // never an error in memory
}

// isJoint: the members are on their way from one list to another, and a majority of each is needed.
// The leader ends that by itself.
func (m *Machine) isJoint() bool { return len(m.conf.GetVotersOutgoing()) > 0 }

// nextChange is the next step from the members to those that are wanted; nil: there is none.
func (m *Machine) nextChange() pb.ConfChangeI {
	voters, followers := m.Voters(), m.Followers()
	gone := func(a int) bool { return !slices.Contains(m.wanted, a) }
	if i := slices.IndexFunc(voters, func(a int) bool {
		return gone(a) &&
			a != m.cfg.Self
	}); i >= 0 && len(voters) > 1 {
		return changeTo(pb.ConfChangeRemoveNode, voters[i])
	}
	if i := slices.IndexFunc(followers, gone); i >= 0 {
		return changeTo(pb.ConfChangeRemoveNode, followers[i])
	}
	there := len(voters) + len(followers)
	for _, a := range m.wanted {
		if there < m.cfg.Voters+m.cfg.Follow && !m.isMember(a) {
			return changeTo(pb.ConfChangeAddLearnerNode, a)
		}
	}
	target := oddMost(min(len(m.wanted), m.cfg.Voters))
	if gone(m.cfg.Self) && len(voters) > 1 {
		return changeTo(pb.ConfChangeRemoveNode, m.cfg.Self)
	}
	if len(voters) < target {
		ready := m.upToDate()
		// of two voters none may be lost: they become three at once, so that any of them may be,
		// while they do and after
		if len(voters) == 1 {
			var both []int
			for _, a := range m.wanted {
				if slices.Contains(followers, a) && ready[a] && len(both) < 2 {
					both = append(both, a)
				}
			}
			if len(both) < 2 {
				return nil
			}
			return &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{
				{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(raftID(both[0]))},
				{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(raftID(both[1]))}}}
		}
		for _, a := range m.wanted {
			if slices.Contains(followers, a) && ready[a] {
				return changeTo(pb.ConfChangeAddNode, a)
			}
		}
	}
	for _, a := range slices.Backward(m.wanted) {
		if len(voters) > target && a != m.cfg.Self && slices.Contains(voters, a) {
			return changeTo(pb.ConfChangeAddLearnerNode, a)
		}
	}
	return nil
}

func changeTo(what pb.ConfChangeType, agent int) pb.ConfChangeI {
	return &pb.ConfChange{Type: what.Enum(), NodeId: new(raftID(agent))}
}

// changes reports whether a change that is in the log can be made: it is one of the kinds above,
// and a voter is left.
func (m *Machine) changes(cc *pb.ConfChange) bool {
	id := cc.GetNodeId()
	if id == 0 || id > MostAgents || m.isJoint() {
		return false
	}
	voters := m.conf.GetVoters()
	last := len(voters) <= 1 && slices.Contains(voters, id)
	switch cc.GetType() {
	case pb.ConfChangeAddNode:
		return true
	case pb.ConfChangeRemoveNode, pb.ConfChangeAddLearnerNode:
		return len(voters) > 0 && !last
	}
	return false
}

// changesJointly reports the same of several at once, which make voters, and of the end of that.
func (m *Machine) changesJointly(cc *pb.ConfChangeV2) bool {
	switch {
	case cc.GetTransition() != pb.ConfChangeTransitionAuto:
		return false
	case cc.LeaveJoint():
		return m.isJoint()
	}
	auto, joint := cc.EnterJoint()
	return auto && joint && !m.isJoint() && len(m.conf.GetVoters()) > 0 &&
		!slices.ContainsFunc(cc.GetChanges(), func(c *pb.ConfChangeSingle) bool {
			return c.GetType() != pb.ConfChangeAddNode || c.GetNodeId() == 0 ||
				c.GetNodeId() > MostAgents
		})
}

// upToDate are the agents that have been sent all entries, and answer.
func (m *Machine) upToDate() map[int]bool {
	out := map[int]bool{}
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if p.State == tracker.StateReplicate && p.RecentActive {
			out[agent(id)] = true
		}
	})
	return out
}

// handOver lets another voter lead that is there and up to date.
func (m *Machine) handOver() {
	if m.node.BasicStatus().LeadTransferee != raft.None {
		return
	}
	ready := m.upToDate()
	for _, a := range m.wanted {
		if ready[a] && a != m.cfg.Self && slices.Contains(m.Voters(), a) {
			m.node.TransferLeader(raftID(a))
			m.drain()
			return
		}
	}
}
