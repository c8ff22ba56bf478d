package agent

import (
	"fmt"
	"slices"
	"strings"

	"libspx/launch/service"
)

// A message that many have for one cause is said once in the job. Who has one asks first (service.Say); the agent that decides keeps what was
// said, and by whom, and tells at the end of the job who had the same to say. Who gets no answer in time says what it has to say.

// mostSayings bounds what is kept; what comes beyond may be said.
const mostSayings = 256

// sayer is a process, by its rank and the number of its world, or an agent, by the name of its host.
type sayer struct {
	world, rank uint32
	host        string
}

// saying is what was said for a cause: in short, by whom first, and who would have said it too.
type saying struct {
	short string // empty: nobody needs to know who else
	first sayer
	also  []sayer
}

type sayings struct {
	of      map[string]*saying // by cause
	inOrder []*saying
}

// may decides whether one may say what it has to say for a cause: the first may. Again is not said either.
func (s *sayings) may(cause, short string, who sayer) bool {
	if old := s.of[cause]; old != nil {
		if old.first != who && !slices.Contains(old.also, who) {
			old.also = append(old.also, who)
		}
		return false
	}
	if len(s.inOrder) >= mostSayings {
		return true
	}
	if s.of == nil {
		s.of = map[string]*saying{}
	}
	s.of[cause] = &saying{short: short, first: who}
	s.inOrder = append(s.inOrder, s.of[cause])
	return true
}

// lines tell who had the same to say as others.
func (s *sayings) lines() (all []string) {
	for _, x := range s.inOrder {
		if x.short != "" && len(x.also) > 0 {
			all = append(all, fmt.Sprintf("also on %s: %s", everyone(x.also), x.short))
		}
	}
	return all
}

// everyone names processes and hosts: "ranks 1-3,7", "rank 2 of world 1", "hosts b, c".
func everyone(list []sayer) string {
	var words, hosts []string
	ranks := map[uint32][]int{}
	var worlds []uint32
	for _, w := range list {
		if w.host != "" {
			hosts = append(hosts, w.host)
			continue
		}
		if ranks[w.world] == nil {
			worlds = append(worlds, w.world)
		}
		ranks[w.world] = append(ranks[w.world], int(w.rank))
	}
	slices.Sort(worlds)
	for _, world := range worlds {
		slices.Sort(ranks[world])
		text := plural("rank", len(ranks[world])) + " " + ranges(ranks[world])
		if world != 0 {
			text += fmt.Sprintf(" of world %d", world)
		}
		words = append(words, text)
	}
	if slices.Sort(hosts); len(hosts) > 0 {
		words = append(words, plural("host", len(hosts))+" "+strings.Join(hosts, ", "))
	}
	return strings.Join(words, ", ")
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// What an answer to service.Say means (Number).
const (
	saidFirst = 1
	saidAgain = 2
)

// maySay answers one who asks whether it may say something.
func (a *agent) maySay(q *question) *service.Message {
	who := sayer{world: q.World, rank: uint32(q.Number)}
	if len(q.Slots) > 0 && int(q.Slots[0]) < len(a.spec.Hosts) {
		who = sayer{host: a.spec.Hosts[q.Slots[0]]}
	}
	if a.sayings.may(q.Name, q.Text, who) {
		return &service.Message{Number: saidFirst, FD: -1}
	}
	return &service.Message{Number: saidAgain, FD: -1}
}

// sayOnce says what agents of several hosts may have to say alike; cause is what is alike.
func (a *agent) sayOnce(cause, text string) {
	own := &ownWord{a, text}
	a.serve(&question{&service.Message{Kind: service.Say, Name: "agent: " + cause, Text: cause, Slots: []uint32{uint32(a.self)}, FD: -1}, own})
}

// ownWord is an agent that asks whether it may say something.
type ownWord struct {
	a    *agent
	text string
}

// Send takes the answer.
func (w *ownWord) Send(m *service.Message) error {
	if m.Number != saidAgain {
		w.a.say(w.text)
	}
	if w.a.up != nil {
		w.a.hungUpHere(w)
	}
	return nil
}

func (w *ownWord) Gone() bool { return false }
func (w *ownWord) Close()     {}

// tellOthers says at the end of the job who had the same to say as others.
func (a *agent) tellOthers() {
	for _, line := range a.sayings.lines() {
		a.say(line)
	}
}
