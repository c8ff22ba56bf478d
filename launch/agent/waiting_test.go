package agent

import (
	"io"
	"slices"
	"testing"
	"time"

	"libspx/cluster/manage"
	"libspx/launch/control"
	"libspx/launch/job"
)

// slowConn takes a message when it is allowed to.
type slowConn struct {
	allow chan struct{}
	list  []*control.Message
}

func (s *slowConn) Send(m *control.Message) error {
	<-s.allow
	s.list = append(s.list, m)
	return nil
}
func (s *slowConn) Receive() (*control.Message, error) { return nil, io.EOF }
func (s *slowConn) Close() error                       { return nil }

// beatOf is a message of a master: the time at which it was sent tells them apart.
func beatOf(from, to int, sent int64) *control.Message {
	m := manage.Message{From: from, To: to, Seat: 0, Sent: sent, Beat: true, Voter: to,
		Promised: -1, Holder: -1}
	return &control.Message{Managed: &control.Managed{Epoch: 1, Text: m.Encode()}}
}

// Whatever masters say while another agent takes nothing: no more waits for it than there are
// masters, and events that are not to be lost, which come in their order.
func TestOutboxIsBounded(t *testing.T) {
	const masters, rounds = 50, 2000
	conn := &slowConn{allow: make(chan struct{})}
	var b outbox
	b.start(conn)
	for n := range rounds {
		for from := 1; from <= masters; from++ {
			b.put(beatOf(from, 0, int64(n+1)))
			b.put(&control.Message{Relayed: &control.Relayed{Index: from,
				Message: beatOf(from, 0, int64(n+1))}})
		}
		if n%200 == 0 {
			b.put(&control.Message{Event: job.Ended{Proc: n}})
		}
	}
	b.mu.Lock()
	waits, bytes := b.list.Len(), b.list.Bytes()
	b.mu.Unlock()
	if most := 2*masters + rounds/200; waits > most || bytes > 2*most*messageSize {
		t.Errorf("%d messages wait, of %d bytes; there are %d that differ", waits, bytes, most)
	}
	b.close()
	close(conn.allow)
	<-b.done
	var ends []int
	newest := map[int]int64{}
	for _, m := range conn.list {
		if e, is := m.Event.(job.Ended); is {
			ends = append(ends, e.Proc)
			continue
		}
		from, in := 0, m
		if m.Relayed != nil {
			in = m.Relayed.Message
			from = masters
		}
		said, err := manage.Decode(in.Managed.Text,
			&manage.Config{Agents: make([]manage.Agent, masters+1),
				Clusters: make([]manage.Cluster, 1)})
		if err != nil {
			t.Fatal(err)
		}
		newest[from+said.From] = said.Sent
	}
	if len(ends) != rounds/200 || !slices.IsSorted(ends) {
		t.Errorf("events came of the processes %v", ends)
	}
	for from := 1; from <= 2*masters; from++ {
		if newest[from] != rounds {
			t.Errorf("the last that came of master %d is number %d", from, newest[from])
		}
	}
}

// The reader of a connection waits when much of it waits for the main thread, until that takes it;
// a newer message of a master takes the place of the one that waits, and waits for nothing. Other
// connections are read meanwhile. In the end all are read.
func TestReadersWait(t *testing.T) {
	var b inbox
	if err := b.open(); err != nil {
		t.Fatal(err)
	}
	first, other := &remoteHost{number: 1}, &remoteHost{number: 2}
	question := &control.Message{Question: &control.Question{Text: make([]byte, 10<<10)}}
	hear := func(h *remoteHost, m *control.Message) {
		b.hear(&h.room, place{from: h}, m,
			fromHost{h, m})
	}
	hear(first, beatOf(1, 0, 1))
	const many = 100
	done := make(chan struct{})
	count := func() (waits, bytes int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.queue.Len(), b.queue.Bytes()
	}
	go func() {
		for range many {
			hear(first, question)
		}
		close(done)
	}()
	full := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return first.room.bytes+sizeOf(question) > mostWaiting
	}
	for late := time.Now().Add(20 * time.Second); !full(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("no more is put in, and there is room")
		}
	}
	select {
	case <-done:
		t.Fatal("all were put in, which are more than there is room for")
	default:
	}
	if waits, bytes := count(); bytes > mostWaiting || waits >= many {
		t.Errorf("%d messages wait, of %d bytes; there is room for %d", waits, bytes, mostWaiting)
	}
	hear(first, beatOf(1, 0, 2)) // in the place of the other one
	hear(other, question)
	var got, of int
	for got < many {
		for _, e := range b.take() {
			switch e := e.(fromHost); {
			case e.from == other:
				of++
			case e.m.Managed != nil:
				if s, err := manage.Decode(e.m.Managed.Text,
					&manage.Config{Agents: make([]manage.Agent, 2),
						Clusters: make([]manage.Cluster, 1)}); err != nil || s.Sent != 2 {
					t.Errorf("%+v, %v: it is not the newest", s, err)
				}
			default:
				got++
			}
		}
	}
	<-done
	if waits, bytes := count(); waits != 0 || bytes != 0 || first.room.bytes != 0 ||
		other.room.bytes != 0 || of != 1 {
		t.Errorf(
			"%d of the other host came; %d messages wait yet, of %d bytes, %d and %d of the hosts",
			of, waits, bytes, first.room.bytes, other.room.bytes)
	}

	go func() {
		time.Sleep(time.Millisecond)
		b.widen()
	}()
	for range many {
		hear(first, question)
	}
	if waits, _ := count(); waits != many {
		t.Errorf("%d of %d wait when all are to be read", waits, many)
	}
}

// A link holds no more than its bound for a shell that takes nothing, and the sender waits, until
// the shell takes something or the link is broken.
func TestLinkIsBounded(t *testing.T) {
	a := &agent{spec: &control.Job{}}
	l := &link{a: a, host: "h", words: []string{"sh", "-c", "read line; cat >/dev/null"},
		ended: make(chan struct{})}
	l.up, l.in = io.Pipe()
	stays := &link{a: a, host: "k", words: []string{"sleep", "60"}, ended: make(chan struct{})}
	stays.up, stays.in = io.Pipe()
	for _, l := range []*link{l, stays} {
		l.startHere()
	}
	text := make([]byte, 8<<10)
	text[10] = '\n'
	for range 20 * mostUnder / len(text) { // all of it passes
		if _, err := l.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	l.hangUp()
	ended := make(chan int)
	go func() {
		n := 0
		for range 20 * mostUnder / len(text) {
			if _, err := stays.Write(text); err == nil {
				n++
			}
		}
		ended <- n
	}()
	waits := func() bool {
		stays.mu.Lock()
		defer stays.mu.Unlock()
		return stays.under >= mostUnder
	}
	for late := time.Now().Add(20 * time.Second); !waits(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("no sender waits")
		}
	}
	stays.mu.Lock()
	under := stays.under
	stays.mu.Unlock()
	if under >= mostUnder+len(text) {
		t.Errorf("%d bytes wait for the shell", under)
	}
	stays.hangUp()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the sender still waits when the link is broken")
	}
	for _, l := range []*link{l, stays} {
		select {
		case <-l.ended:
		case <-time.After(20 * time.Second):
			t.Fatal("a link has not ended")
		}
	}
}
