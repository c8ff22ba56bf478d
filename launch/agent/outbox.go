package agent

import (
	"sync"

	"libspx/launch/control"
)

// What goes to another agent: messages in their order, without making the main thread wait, and
// output and input only as far as the other end has room for it.

// outbox sends messages in their order; putting one in does not wait.
type outbox struct {
	mu   sync.Mutex
	more sync.Cond
	list letters // guarded by mu
	over bool    // guarded by mu
	turn int     // guarded by mu: of the connections, one after another, over which it sends
	done chan struct{}
}

func (b *outbox) start(conn connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.more.L, b.done = &b.mu, make(chan struct{})
	go b.run(conn, b.turn, b.done)
}

// run sends until the box is closed, or has another connection: what it was about to send then is
// lost, as it may be if it was sent.
func (b *outbox) run(conn connection, turn int, done chan struct{}) {
	defer close(done)
	for {
		b.mu.Lock()
		for b.turn == turn && b.list.Len() == 0 && !b.over {
			b.more.Wait()
		}
		if b.turn != turn {
			b.mu.Unlock()
			return
		}
		m, more := b.list.Take()
		b.mu.Unlock()
		if !more {
			return
		}
		conn.Send(m) //nolint:errcheck // if it is gone, its end reports that
	}
}

// pause keeps what is put in until there is another connection.
func (b *outbox) pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	b.more.Broadcast()
}

// empty takes what was put in, and is not on its way.
func (b *outbox) empty() []*control.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list.All()
}

func (b *outbox) put(m *control.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over && b.more.L != nil {
		b.list.put(m)
		b.more.Signal()
	}
}

// close ends the sending when all that was put in has been sent.
func (b *outbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.more.L != nil {
		b.more.Signal()
	}
}

// window bounds what is under way.
type window struct {
	mu   sync.Mutex
	more sync.Cond
	room int
	over bool
}

func newWindow() *window {
	w := &window{room: control.Window}
	w.more.L = &w.mu
	return w
}

// take waits for room for n bytes; false: there will be none.
func (w *window) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.room < n && !w.over {
		w.more.Wait()
	}
	w.room -= n
	return !w.over
}

func (w *window) allow(n int) {
	w.mu.Lock()
	w.room += min(max(n, 0), control.Window-w.room) // never more than there was
	w.mu.Unlock()
	w.more.Broadcast()
}

func (w *window) close() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.more.Broadcast()
}
