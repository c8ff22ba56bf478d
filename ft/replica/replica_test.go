package replica

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// counted is a state that remembers all entries.
type counted struct {
	list   []Entry
	loaded int
}

func (c *counted) Apply(e Entry) { c.list = append(c.list, e) }
func (c *counted) Save() []byte  { return binary.AppendUvarint(nil, uint64(len(c.list)+c.loaded)) }
func (c *counted) Load(b []byte, _ Mark) {
	n, _ := binary.Uvarint(b)
	c.list, c.loaded = nil, int(n)
}

// group are agents whose messages arrive at once, but for those that are cut off.
type group struct {
	t      *testing.T
	agents map[int]*Machine
	states map[int]*counted
	off    map[int]bool
	now    int64
}

func newGroup(t *testing.T, n int) *group {
	g := &group{t: t, agents: map[int]*Machine{}, states: map[int]*counted{}, off: map[int]bool{}}
	var first []int
	for i := range n {
		first = append(first, i)
	}
	for i := range n {
		g.add(i, first)
	}
	return g
}

func (g *group) add(i int, first []int) {
	g.states[i] = &counted{}
	g.agents[i] = New(Config{Self: i, First: first, Seed: uint64(i), Keep: 8, State: g.states[i]})
}

func (g *group) do(agent int, e Event) {
	g.t.Helper()
	out, err := g.agents[agent].Step(e, g.now)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, act := range out {
		s, ok := act.(Send)
		if !ok || g.off[s.Message.From] || g.off[s.Message.To] || g.agents[s.Message.To] == nil {
			continue
		}
		m, err := Decode(s.Message.Encode())
		if err != nil {
			g.t.Fatal(err)
		}
		g.do(m.To, Received{m})
	}
}

func (g *group) ticks(n int) {
	for range n {
		g.now += 10
		for i := range 20 {
			if g.agents[i] != nil && !g.off[i] {
				g.do(i, Tick{})
			}
		}
	}
}

func (g *group) there(list ...int) {
	for i := range g.agents {
		g.do(i, Members{list})
	}
}

// leader is the one agent that leads among those that can be reached.
func (g *group) leader() int {
	g.t.Helper()
	var list []int
	for i, m := range g.agents {
		if m.Leads() && !g.off[i] {
			list = append(list, i)
		}
	}
	if len(list) != 1 {
		g.t.Fatalf("agents %v lead", list)
	}
	return list[0]
}

func (g *group) same(n int, agents ...int) {
	g.t.Helper()
	for _, i := range agents {
		if s := g.states[i]; len(s.list)+s.loaded != n {
			g.t.Errorf("agent %d has %d entries, not %d", i, len(s.list)+s.loaded, n)
		}
	}
}

// The first of the agents leads at once; what any of them proposes is applied everywhere, in order,
// also when the leader is lost with it.
func TestLeaderIsLost(t *testing.T) {
	g := newGroup(t, 3)
	g.ticks(1)
	if g.leader() != 0 {
		t.Fatalf("agent %d leads", g.leader())
	}
	for k := range 5 {
		g.do(2, Propose{[]byte{byte(k)}})
	}
	g.same(5, 0, 1, 2)
	g.off[0] = true
	g.do(2, Propose{[]byte{5}}) // the leader does not get it any more
	g.same(5, 1, 2)
	g.ticks(3 * electionTicks)
	l := g.leader()
	g.same(6, 1, 2)
	if n := g.agents[2].Open(); n != 0 {
		t.Errorf("%d proposals are left", n)
	}
	// of two the first one votes, and not the one that happens to lead: that hands over
	stays := 3 - l
	g.there(stays, l)
	g.ticks(5)
	if v := g.agents[stays].Voters(); !slices.Equal(v, []int{stays}) || g.leader() != stays {
		t.Errorf("of two agents %v vote, and %d leads", v, g.leader())
	}
	g.off[l] = true
	g.do(stays, Propose{[]byte{6}})
	g.same(7, stays)
}

// A leader that is cut off stops; proposals that it accepts meanwhile are applied once, in the
// order of its agent, when it is back.
func TestLeaderIsCutOff(t *testing.T) {
	g := newGroup(t, 5)
	g.ticks(1)
	g.off[0] = true
	for k := range 3 {
		g.do(0, Propose{[]byte{byte(k)}})
	}
	for range 2 * electionTicks {
		g.now += 10
		g.do(0, Tick{})
	}
	if g.agents[0].Leads() || g.agents[0].Leader() >= 0 {
		t.Error("who is cut off still leads")
	}
	g.same(0, 0)
	g.ticks(3 * electionTicks)
	g.do(1, Propose{[]byte{9}})
	g.off[0] = false
	g.ticks(2 * electionTicks)
	g.same(4, 0, 1, 2, 3, 4)
	for i := range 4 {
		if e := g.states[0].list[i]; e.Origin == 0 && int(e.Seq) != int(e.Data[0])+1 || i > 0 &&
			e.At < g.states[0].list[i-1].At {
			t.Errorf("entry %d is %v", i, e)
		}
	}
}

// An agent that joins late gets the current state, and may vote and lead; an agent that neither
// votes nor follows has its proposals applied, too.
func TestAgentsComeAndGo(t *testing.T) {
	g := newGroup(t, 1)
	g.ticks(1)
	for range 50 {
		g.do(0, Propose{nil})
	}
	var list []int
	for i := range 13 {
		if list = append(list, i); i > 0 {
			g.add(i, nil)
		}
	}
	g.there(list...)
	g.ticks(60)
	if v, f := g.agents[0].Voters(), g.agents[0].Followers(); len(v) != MostVoters ||
		len(f) != MostFollowers {
		t.Errorf("%v vote, %v follow", v, f)
	}
	g.same(50, 0, 1, 6, 10)
	g.do(12, Propose{[]byte("from outside")})
	g.ticks(electionTicks)
	g.same(51, 0, 10)
	if g.agents[12].Open() != 0 || g.agents[12].Leader() != 0 {
		t.Errorf("%d proposals are left; agent %d leads", g.agents[12].Open(),
			g.agents[12].Leader())
	}
	g.there(list[1:]...)
	g.ticks(3 * electionTicks)
	if l := g.leader(); l == 0 || slices.Contains(g.agents[l].Voters(), 0) {
		t.Errorf("agent %d leads, %v vote", l, g.agents[l].Voters())
	}
}

// One agent alone decides until two other agents have all entries: with only one of these it could
// not go on when that one is lost.
func TestNeverTwoVoters(t *testing.T) {
	g := newGroup(t, 1)
	g.ticks(1)
	for i := range 2 {
		g.add(i+1, nil)
	}
	g.off[2] = true // known to be present, and has not answered yet
	g.there(0, 1, 2)
	g.ticks(3 * electionTicks)
	if v := g.agents[0].Voters(); !slices.Equal(v, []int{0}) {
		t.Errorf("%v vote", v)
	}
	g.off[1] = true
	g.do(0, Propose{[]byte("alone")})
	g.same(1, 0)
	g.off[1], g.off[2] = false, false
	g.ticks(3 * electionTicks)
	if v := g.agents[g.leader()].Voters(); !slices.Equal(v, []int{0, 1, 2}) {
		t.Errorf("%v vote", v)
	}
}

// One of the two that are about to vote is lost in that moment, before the leader knows of it: the
// other agents continue. They also continue if the leader is lost then, and the snapshot for an
// agent that has no state yet is of that moment.
func TestOneOfThreeIsLostAtOnce(t *testing.T) {
	for lost := range 2 {
		g := newGroup(t, 1)
		g.ticks(1)
		g.add(1, nil)
		g.add(2, nil)
		g.off[2] = true // known to be present, and has not answered yet
		g.there(0, 1, 2)
		g.ticks(2)
		if lost == 1 {
			g.off[1] = true
		}
		g.off[2] = false
		// that one is up to date, and the other one is believed to be
		for range 2 * electionTicks {
			if g.ticks(1); len(g.agents[0].Voters()) == 3 {
				break
			}
		}
		if v := g.agents[0].Voters(); !slices.Equal(v, []int{0, 1, 2}) {
			t.Errorf("%v vote", v)
		}
		g.off[lost] = true
		left := slices.DeleteFunc([]int{0, 1, 2}, func(a int) bool { return a == lost })
		g.there(left...)
		g.ticks(10 * electionTicks)
		g.do(2, Propose{[]byte("goes on")})
		g.same(1, left...)
	}
}

// An agent that lags far behind gets many small entries at once, and all of them.
func TestManyEntries(t *testing.T) {
	g := newGroup(t, 3)
	for _, m := range g.agents {
		m.cfg.Keep = 1 << 20
	}
	g.ticks(1)
	g.off[2] = true
	const many = 20000
	for range many {
		g.do(0, Propose{nil})
	}
	g.same(many, 0, 1)
	g.off[2] = false
	g.ticks(20)
	g.same(many, 2)
	if g.states[2].loaded > 0 {
		t.Error("it was given a copy")
	}
}

func TestTooLong(t *testing.T) {
	g := newGroup(t, 1)
	if _, err := g.agents[0].Step(Propose{make([]byte, MostData+1)}, 0); !errors.Is(err,
		ErrTooLong) {
		t.Error(err)
	}
	g.ticks(1)
	for range 30 {
		g.do(0, Propose{make([]byte, MostData)})
	}
	g.ticks(1)
	g.same(30, 0)
}

// An agent that is isolated for long keeps standing for election, and is heard when the other
// agents are back.
func TestLongAlone(t *testing.T) {
	g := newGroup(t, 3)
	g.ticks(1)
	g.off[0], g.off[1] = true, true
	g.ticks(100 * 2 * electionTicks)
	g.off[0], g.off[1] = false, false
	g.ticks(6 * electionTicks)
	l := g.leader()
	g.do(2, Propose{[]byte{1}})
	g.ticks(electionTicks)
	g.same(1, 0, 1, 2)
	if g.agents[2].Leader() != l {
		t.Errorf("agent 2 has heard that %d leads, not %d", g.agents[2].Leader(), l)
	}
}
