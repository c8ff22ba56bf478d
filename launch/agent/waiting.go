package agent

import (
	"sync"

	"libspx/cluster/backlog"
	"libspx/cluster/manage"
	"libspx/launch/control"
	"libspx/launch/job"
)

// What waits between agents. Where one of them falls behind, on a host with much else to do, it is
// bounded what the others hold for it, and what it holds itself:
//
//   - Of what masters say to each other (most of all messages of a large system) the newest of a
//     kind alone waits, wherever messages wait: for the main thread, for a connection, for another
//     agent in between (package backlog).
//   - All else is sent once, and not lost. A connection is not read on while so much of it waits
//     for the main thread; then it waits with the sender, which has no more events and questions
//     than processes. The main thread never waits for a connection, so that two agents cannot wait
//     for each other.
//   - Bytes for a remote shell wait with the link (link.go), up to a bound, and the messages that
//     are to become such bytes before it, in their outbox.
//
// Heartbeats of hosts go other ways (heartbeat.go), and so do the agents that keep copies of what
// decides (mesh.go).

// mostWaiting is how many bytes of one connection wait for the main thread at most. One message may
// have more.
const mostWaiting = 256 << 10

// A subject is what a message between masters is about (manage.Slot), in a tree, as it travels
// here: a later one makes it needless.
type subject struct {
	epoch uint32
	index int // of an agent in between, + 1
	manage.Slot
}

// subjectOf is that of a message; false: it is not to be lost.
func subjectOf(m *control.Message) (s subject, ok bool) {
	if r := m.Relayed; r != nil && r.Message != nil {
		s.index, m = r.Index+1, r.Message
	}
	if m.Managed == nil {
		return subject{}, false
	}
	s.epoch = m.Managed.Epoch
	s.Slot, ok = manage.SlotOf(m.Managed.Text)
	return s, ok
}

// messageSize is what a message has beside its texts, about.
const messageSize = 1 << 10

// sizeOf is about how many bytes of memory a message has.
func sizeOf(m *control.Message) int {
	if m == nil {
		return messageSize
	}
	n := messageSize + len(m.Layout)
	switch {
	case m.Managed != nil:
		n += len(m.Managed.Text)
	case m.Question != nil:
		n += len(m.Question.Text)
	case m.Answer != nil:
		n += len(m.Answer.Text)
	case m.Inspected != nil:
		n += len(m.Inspected.Procs)
	case m.Branch != nil:
		n += len(m.Branch.Text) + len(m.Branch.Said)
	case m.Output != nil:
		n += len(m.Output.Text)
	case m.Trace != nil:
		n += len(m.Trace.Data)
	case m.Relayed != nil && m.Relayed.Message != nil:
		n += sizeOf(m.Relayed.Message)
	}
	return n
}

// letters are messages in the order in which they are sent on.
type letters struct {
	backlog.Queue[subject, *control.Message]
}

func (l *letters) put(m *control.Message) {
	if s, ok := subjectOf(m); ok {
		l.Renew(s, m, sizeOf(m))
		return
	}
	l.Put(m, sizeOf(m))
}

// A room is what of one connection waits for the main thread.
type room struct{ bytes int } // guarded by the inbox's mu

// heard is an event that waits for the main thread.
type heard struct {
	e     job.Event
	room  *room // nil: it is of no connection
	bytes int
}

// place is what an event is about, and where it came from.
type place struct {
	from any    // as it is told apart from others
	era  uint64 // of the one that decides
	subject
}

// queued are the events that wait for the main thread.
type queued struct {
	more  sync.Cond                   // there may be room
	queue backlog.Queue[place, heard] // guarded by the inbox's mu, as all below
	wide  bool                        // there is room for all: the end comes
}

// hear puts in an event of a connection: message m of it. It waits for room, unless the message
// takes the place of one that waits.
func (b *inbox) hear(r *room, from place, m *control.Message, e job.Event) {
	about, keyed := subjectOf(m)
	from.subject = about
	event := heard{e, r, sizeOf(m)}
	b.mu.Lock()
	b.more.L = &b.mu
	for !b.wide && r.bytes > 0 && r.bytes+event.bytes > mostWaiting &&
		!(keyed && b.queue.Waits(from)) {
		b.more.Wait()
	}
	r.bytes += event.bytes
	if !keyed {
		b.queue.Put(event, event.bytes)
	} else if _, had, waited := b.queue.Renew(from, event, event.bytes); waited {
		r.bytes -= had
	}
	b.mu.Unlock()
	b.ring()
}

// all takes all events. There is room for as many again.
func (w *queued) all() (list []job.Event) {
	for _, h := range w.queue.All() {
		if h.room != nil {
			h.room.bytes -= h.bytes
		}
		list = append(list, h.e)
	}
	w.more.Broadcast()
	return list
}

// widen gives room to all readers: the main thread waits for the ends of connections from now on.
func (b *inbox) widen() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wide = true
	b.more.Broadcast()
}
