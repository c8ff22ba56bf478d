package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"libspx/launch/service"
)

// A message that many processes have for one cause is printed once in the job. A process with such
// a message asks first (service.Say); the deciding agent lets the first one print, keeps the others
// waiting until it has (service.Said), and then notifies them that it was printed: so the job is
// not ended before that process has printed. If a process is gone without having printed, the next
// one follows. At the end of the job the agent lists the processes that had the same message. A
// process that gets no answer in time prints its message.

// mostSayings bounds what is kept; what comes beyond may be said.
const mostSayings = 256

// sayer is a process, by its rank and the number of its world, or an agent, by the name of its
// host.
type sayer struct {
	world, rank uint32
	host        string
}

// speaking is a sayer, the way to it, and what it has to say, in short.
type speaking struct {
	who   sayer
	conn  client
	short string // empty: that it had this message, too, is not reported
}

// saying is the message printed for a cause: its process, and the processes that had a message too.
// That may be another one: of the errors that end a job one is printed.
type saying struct {
	cause   string
	speaker speaking
	spoken  bool
	waiting []speaking // until it has spoken
	also    []others
}

// others are the processes that had this message, in short.
type others struct {
	short string
	who   []sayer
}

type sayings struct {
	of      map[string]*saying // by cause
	inOrder []*saying
}

// answer is the answer to a process that asks.
type answer struct {
	to     client
	number uint64
}

// ask registers a process that has a message for a cause. No answer: it has to wait.
func (s *sayings) ask(cause string, by speaking) []answer {
	if x := s.of[cause]; x != nil {
		if !x.spoken {
			x.waiting = append(x.waiting, by)
			return nil
		}
		x.note(by)
		return []answer{{by.conn, service.SaidAgain}}
	}
	if len(s.inOrder) < mostSayings {
		if s.of == nil {
			s.of = map[string]*saying{}
		}
		s.of[cause] = &saying{cause: cause, speaker: by}
		s.inOrder = append(s.inOrder, s.of[cause])
	}
	return []answer{{by.conn, service.SaidFirst}}
}

// alike reports whether the process that prints for this cause has just that message, or none does.
func (s *sayings) alike(cause, short string) bool {
	x := s.of[cause]
	return x == nil || x.speaker.short == short
}

func (x *saying) note(by speaking) {
	if x.speaker.who == by.who || by.short == "" {
		return
	}
	for n := range x.also {
		if o := &x.also[n]; o.short == by.short {
			if !slices.Contains(o.who, by.who) {
				o.who = append(o.who, by.who)
			}
			return
		}
	}
	x.also = append(x.also, others{by.short, []sayer{by.who}})
}

// said: the speaker on this connection has spoken.
func (s *sayings) said(conn client) (out []answer) {
	for _, x := range s.inOrder {
		if x.speaker.conn != conn || x.spoken {
			continue
		}
		x.spoken = true
		for _, w := range x.waiting {
			x.note(w)
			out = append(out, answer{w.conn, service.SaidAgain})
		}
		x.waiting = nil
	}
	return out
}

// forget: this connection is gone. If its process has not printed, the next one does. ended: the
// job is being ended, and the waiting processes with it: that may be known before the report of the
// printing process, which ends it.
func (s *sayings) forget(conn client, ended bool) (out []answer) {
	for _, x := range s.inOrder {
		x.waiting = slices.DeleteFunc(x.waiting, func(w speaking) bool {
			if w.conn == conn && ended {
				x.note(w)
			}
			return w.conn == conn
		})
		if x.speaker.conn != conn || x.spoken {
			continue
		}
		if len(x.waiting) == 0 {
			delete(s.of, x.cause)
			continue
		}
		x.speaker, x.waiting = x.waiting[0], x.waiting[1:]
		out = append(out, answer{x.speaker.conn, service.SaidFirst})
	}
	s.inOrder = slices.DeleteFunc(s.inOrder, func(x *saying) bool { return s.of[x.cause] != x })
	return out
}

// mostOthers bounds the lines of processes that had other messages.
const mostOthers = 4

// lines list the processes that had the same message, or another one for the same cause.
func (s *sayings) lines() (all []string) {
	for _, x := range s.inOrder {
		for _, w := range x.waiting { // the job is over before it is known that one has spoken
			x.note(w)
		}
		var rest []sayer
		more := 0
		for _, o := range x.also {
			line, _, _ := strings.Cut(o.short, "\n")
			switch {
			case o.short == x.speaker.short:
				all = append(all, fmt.Sprintf("also on %s: %s", everyone(o.who), line))
			case more < mostOthers:
				more++
				all = append(all, fmt.Sprintf("at the same time on %s: %s", everyone(o.who), line))
			default:
				rest = append(rest, o.who...)
			}
		}
		if len(rest) > 0 {
			all = append(all, fmt.Sprintf("at the same time on %s: other errors", everyone(rest)))
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

// maySay answers a process that asks whether it may print.
func (a *agent) maySay(q *question) {
	who := sayer{world: q.World, rank: uint32(q.Number)}
	if len(q.Slots) > 0 && int(q.Slots[0]) < len(a.spec.Hosts) {
		who = sayer{host: a.spec.Hosts[q.Slots[0]]}
	}
	if a.machine.Ending() && !a.sayings.alike(q.Name, q.Text) {
		q.Text = "" // it comes of that
	}
	list := a.sayings.ask(q.Name, speaking{who, q.conn, q.Text})
	if _, own := q.conn.(*ownWord); !own && len(list) == 1 && list[0].number == service.SaidFirst {
		a.awaitOthers(mayBegin{conn: q.conn})
		return
	}
	tellSayers(list)
}

// sameTime is how long the first process waits before it prints: questions asked at the same time
// are read meanwhile. Questions that come when the job ends may be a consequence of that. While a
// connection waits that this agent has had no processor for, it waits again, mostWaits times at
// most.
const (
	sameTime  = 3 * time.Millisecond
	mostWaits = 30
)

// mayBegin: the process that asked first may print, if it has not gone.
type mayBegin struct {
	conn  client
	waits int // so often it has waited
}

func (a *agent) awaitOthers(e mayBegin) {
	e.waits++
	time.AfterFunc(sameTime, func() { a.inbox.put(e) })
}

func (a *agent) letBegin(e mayBegin) {
	if e.waits < mostWaits && a.isAsked() {
		a.awaitOthers(e)
		return
	}
	tellSayers(a.sayings.begin(e.conn))
}

// begin lists the answer for the process that asked first, on this connection, and has not printed.
func (s *sayings) begin(conn client) (out []answer) {
	for _, x := range s.inOrder {
		if x.speaker.conn == conn && !x.spoken {
			out = append(out, answer{conn, service.SaidFirst})
		}
	}
	return out
}

func tellSayers(list []answer) {
	for _, x := range list {
		// it may be gone
		x.to.Send(&service.Message{Kind: service.Say, Number: x.number, FD: -1}) //nolint:errcheck
	}
}

// sayOnce prints a message that agents of several hosts may have; cause is what these have in
// common.
func (a *agent) sayOnce(cause, text string) {
	a.serve(&question{&service.Message{Kind: service.Say, Name: "agent: " + cause, Text: cause,
		Slots: []uint32{uint32(a.self)}, FD: -1}, &ownWord{a, text}})
}

// ownWord is an agent that asks whether it may say something.
type ownWord struct {
	a    *agent
	text string
}

// Send takes the answer.
func (w *ownWord) Send(m *service.Message) error {
	if m.Number != service.SaidAgain {
		w.a.say(w.text)
		w.a.serve(&question{&service.Message{Kind: service.Said, FD: -1}, w})
	}
	if w.a.up != nil {
		w.a.hungUpHere(w)
	}
	return nil
}

func (w *ownWord) Gone() bool { return false }
func (w *ownWord) Close()     {}

// tellOthers lists, at the end of the job, the processes that had the same messages.
func (a *agent) tellOthers() {
	for _, line := range a.sayings.lines() {
		a.say(line)
	}
}
