// Package abroad decides how the processes of two jobs that share no memory come to know each other
// (MPI-5.0, 11.9 and 11.10).
//
// A process of another job is an external process: it has a number here, the same in the memory
// files of all hosts, under which the processes of this job reach it. So a pair of processes has
// four numbers, two in each job, and each end needs those of both. The agents that decide for the
// two jobs are joined by a link, over which they tell each other where processes listen, which
// numbers they have given, and who has ended.
//
// The package owns who is known to whom. It is pure: what happens is passed in, what is to be done
// is returned (Action), and nothing here reads a clock or a socket. launch/agent carries it out.
package abroad

import (
	"fmt"
	"net/netip"
	"slices"

	"libspx/core/ident"
)

// A Person is a process as its own job knows it: by its number there, and the incarnation of that
// number.
type Person struct {
	ID           ident.ProcID
	Number, Life uint32
	Host         uint32
	At           netip.AddrPort // where it listens
}

// A Place is a number in the memory files of a job, and an incarnation of it.
type Place struct{ Number, Life uint32 }

// How says how a process has ended.
type How uint8

// Left: it had finalized MPI, or never begun. Aborted: those that are connected with it are to end,
// too.
const (
	Died How = iota
	Left
	Aborted
)

// A Message goes over a link; one field is set.
type Message struct {
	Meet  *Meet
	Met   *Met
	Ended *Ended
}

// Meet: Asker, a process of the job that sends this, wants to know processes of the other one.
type Meet struct {
	Number uint64
	Asker  Person
	Wanted []ident.ProcID
}

// Met answers it: the place of the asker in the other job, and who the wanted ones are, in their
// order.
type Met struct {
	Number uint64
	Text   string // why not; empty: they have met
	Asker  Place
	People []Person
}

// Ended: a process of the job that sends this, of which the other one knows, has ended.
type Ended struct {
	Who ident.ProcID
	How How
}

// An Action is one of Send, Enter, Answer and Gone.
type Action interface{}

// Send is a message for the agent of a job.
type Send struct {
	Job     uint64
	Message Message
}

// Enter has people entered as external processes on all hosts of this job; Entered is to follow.
type Enter struct {
	Job    uint64
	Batch  uint64
	People []Person
}

// Answer tells a process of this job who those are that it wants to know: their places here, who
// they are at home, and its own place there.
type Answer struct {
	Question uint64
	Text     string // why it cannot know them; empty: it does
	Here     []Place
	People   []Person
	Own      Place
}

// Gone: an external process has ended.
type Gone struct {
	Who   ident.ProcID
	Place Place
	How   How
}

// external is a process of another job. place counts when it is here.
type external struct {
	Person
	place Place
	here  bool
	ended bool
	how   How
}

// need is something that is done when external processes are here: an answer to a process of this
// job, or to the other one.
type need struct {
	question uint64 // of a process of this job; counts where met is nil
	own      Place
	met      *Met // the answer to the other job
	wanted   []ident.ProcID
}

// link is what is known of another job, as long as there is a way to its agent.
type link struct {
	job       uint64
	externals map[ident.ProcID]*external
	ours      map[ident.ProcID]Place // places of processes of this job there
	told      map[ident.ProcID]bool  // processes of this job of which the other one has heard
	asks      map[uint64]*Meet       // sent, and not answered
	owner     map[uint64]uint64      // question of each of them
	needs     []*need
}

// batch are people that are being entered.
type batch struct {
	of     *link // whose link may be lost by now
	people []*external
}

// A Machine is that of one job. Look finds a process of this job that lives.
type Machine struct {
	Look func(ident.ProcID) (Person, bool)

	links   map[uint64]*link
	batches map[uint64]*batch
	count   uint64 // of questions and batches so far
	out     []Action
}

// New makes a machine without links.
func New(look func(ident.ProcID) (Person, bool)) *Machine {
	return &Machine{Look: look, links: map[uint64]*link{}, batches: map[uint64]*batch{}}
}

// Size is how many entries the machine has in all: for tests of growth.
func (m *Machine) Size() int {
	n := len(m.links) + len(m.batches)
	for _, l := range m.links {
		n += len(l.externals) + len(l.ours) + len(l.told) + len(l.asks) + len(l.owner) +
			len(l.needs)
	}
	return n
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

func (m *Machine) done() []Action {
	out := m.out
	m.out = nil
	return out
}

// Up: there is a way to the agent of a job. What was known of an earlier one is to be lost before.
func (m *Machine) Up(job uint64) []Action {
	if m.links[job] == nil {
		m.links[job] = &link{job: job, externals: map[ident.ProcID]*external{},
			ours: map[ident.ProcID]Place{}, told: map[ident.ProcID]bool{},
			asks: map[uint64]*Meet{}, owner: map[uint64]uint64{}}
	}
	return m.done()
}

// Lost: the way to a job's agent is gone. Its processes count as dead.
func (m *Machine) Lost(job uint64) []Action {
	l := m.links[job]
	if l == nil {
		return nil
	}
	delete(m.links, job)
	text := fmt.Sprintf("job %016x has ended, or cannot be reached any more", job)
	for _, n := range sorted(l.owner) {
		m.do(Answer{Question: l.owner[n], Text: text})
	}
	for _, n := range l.needs {
		if n.met == nil {
			m.do(Answer{Question: n.question, Text: text})
		}
	}
	for _, g := range inOrder(l.externals) {
		if g.here {
			m.do(Gone{g.ID, g.place, Died})
		} else {
			g.ended = true
		}
	}
	return m.done()
}

// Ask: a process of this job wants to know processes of another one. The question is answered once,
// by an Answer.
func (m *Machine) Ask(question, job uint64, asker Person, wanted []ident.ProcID) []Action {
	l := m.links[job]
	if l == nil {
		m.do(Answer{Question: question, Text: fmt.Sprintf(
			"job %016x has ended, or is not connected with this one", job)})
		return m.done()
	}
	if own, ok := l.ours[asker.ID]; ok && l.knows(wanted) {
		m.meetNeed(l, &need{question: question, own: own, wanted: wanted})
		return m.done()
	}
	m.count++
	meet := &Meet{Number: m.count, Asker: asker, Wanted: wanted}
	l.asks[m.count], l.owner[m.count] = meet, question
	l.told[asker.ID] = true
	m.do(Send{job, Message{Meet: meet}})
	return m.done()
}

// Hear takes a message of another job. What makes no sense is dropped: the other agent may be
// broken.
func (m *Machine) Hear(job uint64, msg Message) []Action {
	l := m.links[job]
	switch {
	case l == nil:
	case msg.Meet != nil && msg.Meet.Asker.ID.Job == job:
		m.askedBy(l, msg.Meet)
	case msg.Met != nil:
		m.met(l, msg.Met)
	case msg.Ended != nil:
		m.externalEnded(l, msg.Ended)
	}
	return m.done()
}

func (m *Machine) askedBy(l *link, q *Meet) {
	met := &Met{Number: q.Number}
	if _, text := m.people(q.Wanted); text != "" {
		m.do(Send{l.job, Message{Met: &Met{Number: q.Number, Text: text}}})
		return
	}
	for _, id := range q.Wanted {
		l.told[id] = true
	}
	met.People = make([]Person, len(q.Wanted))
	for k, id := range q.Wanted {
		met.People[k].ID = id
	}
	m.welcome(l, []Person{q.Asker})
	m.meetNeed(l, &need{met: met, wanted: []ident.ProcID{q.Asker.ID}})
}

// people are processes of this job; text: why one is none.
func (m *Machine) people(ids []ident.ProcID) (list []Person, text string) {
	for _, id := range ids {
		p, ok := m.Look(id)
		if !ok {
			return nil, fmt.Sprintf("process %v has ended", id)
		}
		list = append(list, p)
	}
	return list, ""
}

func (m *Machine) met(l *link, a *Met) {
	asked, question := l.asks[a.Number], l.owner[a.Number]
	if asked == nil {
		return
	}
	delete(l.asks, a.Number)
	delete(l.owner, a.Number)
	text := a.Text
	if text == "" && !slices.EqualFunc(a.People, asked.Wanted,
		func(p Person, id ident.ProcID) bool { return p.ID == id && id.Job == l.job }) {
		text = fmt.Sprintf("the agent of job %016x has answered for other processes", l.job)
	}
	if text != "" {
		m.do(Answer{Question: question, Text: text})
		return
	}
	if l.told[asked.Asker.ID] { // it lives
		l.ours[asked.Asker.ID] = a.Asker
	}
	m.welcome(l, a.People)
	m.meetNeed(l, &need{question: question, own: a.Asker, wanted: asked.Wanted})
}

// welcome has those entered that are not known here.
func (m *Machine) welcome(l *link, people []Person) {
	b := &batch{of: l}
	var list []Person
	for _, p := range people {
		if l.externals[p.ID] == nil {
			g := &external{Person: p}
			l.externals[p.ID] = g
			b.people, list = append(b.people, g), append(list, p)
		}
	}
	if len(list) == 0 {
		return
	}
	m.count++
	m.batches[m.count] = b
	m.do(Enter{l.job, m.count, list})
}

// Entered answers Enter: the places that the people have got, in their order, or why they have
// none.
func (m *Machine) Entered(number uint64, places []Place, text string) []Action {
	b := m.batches[number]
	if b == nil {
		return nil
	}
	delete(m.batches, number)
	l := b.of
	for k, g := range b.people {
		switch {
		case text != "":
			m.forget(l, g)
		case g.ended:
			m.do(Gone{g.ID, places[k], g.how})
			m.forget(l, g)
		default:
			g.place, g.here = places[k], true
		}
	}
	if m.links[l.job] == l {
		m.look(l, text)
	}
	return m.done()
}

func (m *Machine) forget(l *link, g *external) {
	if l.externals[g.ID] == g {
		delete(l.externals, g.ID)
	}
}

// knows: all of these are here.
func (l *link) knows(ids []ident.ProcID) bool {
	return !slices.ContainsFunc(ids, func(id ident.ProcID) bool {
		return l.externals[id] == nil ||
			!l.externals[id].here
	})
}

// meetNeed does what is needed, when it can be done.
func (m *Machine) meetNeed(l *link, n *need) {
	l.needs = append(l.needs, n)
	m.look(l, "")
}

// look does what can be done now. text is why people that were to be entered have not been.
func (m *Machine) look(l *link, text string) {
	needs := l.needs
	l.needs = nil
	for _, n := range needs {
		var missing ident.ProcID
		waits, fails := false, false
		for _, id := range n.wanted {
			switch g := l.externals[id]; {
			case g == nil:
				missing, fails = id, true
			case !g.here:
				waits = true
			}
		}
		switch {
		case fails:
			why := text
			if why == "" {
				why = fmt.Sprintf("process %v has ended", missing)
			}
			m.fail(l, n, why)
		case waits:
			l.needs = append(l.needs, n)
		default:
			m.satisfy(l, n)
		}
	}
}

func (m *Machine) fail(l *link, n *need, text string) {
	if n.met == nil {
		m.do(Answer{Question: n.question, Text: text})
		return
	}
	m.do(Send{l.job, Message{Met: &Met{Number: n.met.Number, Text: text}}})
}

func (m *Machine) satisfy(l *link, n *need) {
	if n.met == nil {
		a := Answer{Question: n.question, Own: n.own}
		for _, id := range n.wanted {
			a.Here, a.People = append(a.Here, l.externals[id].place),
				append(a.People, l.externals[id].Person)
		}
		m.do(a)
		return
	}
	ids := make([]ident.ProcID, len(n.met.People))
	for k := range ids {
		ids[k] = n.met.People[k].ID
	}
	people, text := m.people(ids) // they may have ended meanwhile
	if text != "" {
		m.fail(l, n, text)
		return
	}
	m.do(Send{l.job, Message{Met: &Met{Number: n.met.Number, Asker: l.externals[n.wanted[0]].place,
		People: people}}})
}

func (m *Machine) externalEnded(l *link, e *Ended) {
	g := l.externals[e.Who]
	switch {
	case g == nil:
	case g.here:
		m.do(Gone{g.ID, g.place, e.How})
		m.forget(l, g)
		m.look(l, "")
	case !g.ended:
		g.ended, g.how = true, e.How
	}
}

// Ended: a process of this job has ended. Those jobs are told that have heard of it.
func (m *Machine) Ended(id ident.ProcID, how How) []Action {
	for _, job := range sorted(m.links) {
		l := m.links[job]
		if l.told[id] {
			m.do(Send{job, Message{Ended: &Ended{id, how}}})
		}
		delete(l.told, id)
		delete(l.ours, id)
	}
	return m.done()
}

// sorted are the keys of a map in their order: the same events lead to the same actions.
func sorted[V any](of map[uint64]V) (keys []uint64) {
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func inOrder(of map[ident.ProcID]*external) (list []*external) {
	for _, g := range of {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *external) int { return ident.Compare(a.ID, b.ID) })
	return list
}
