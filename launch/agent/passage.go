package agent

import (
	"io"
	"sync"

	"libspx/launch/control"
)

// Agents that the one which decides reaches through others (members.go): what goes there and comes
// from there is Relayed over the connection with the one in between. To all that follows a passage
// is what a connection is.

// connection is the way to another agent: a connection, or a passage.
type connection interface {
	Send(m *control.Message) error
	Receive() (*control.Message, error) // from one goroutine
	Close() error
}

// upper takes messages on their way to an agent in between, or to the one that decides. It does not
// wait.
type upper interface{ put(m *control.Message) }

// passage is the way to an agent behind another one.
type passage struct {
	by    upper // the agent in between
	index int   // that it is known there by

	mu   sync.Mutex
	more sync.Cond
	list letters         // guarded by mu, as all below
	end  *control.Ending // no more will come
	shut bool            // it was closed here
}

// passages are those through the agent of one host, by the numbers that it gives.
type passages struct {
	mu   sync.Mutex
	list map[int]*passage // guarded by mu
	over *control.Ending  // guarded by mu: that agent has gone
}

// to is the passage to an agent, which is made when it is asked for first.
func (p *passages) to(by upper, index int) *passage {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.list[index]
	if w == nil {
		w = &passage{by: by, index: index, end: p.over}
		w.more.L = &w.mu
		if p.list == nil {
			p.list = map[int]*passage{}
		}
		p.list[index] = w
	}
	return w
}

// known tells whether there is such a passage.
func (p *passages) known(index int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list[index] != nil
}

// lose ends all of them: the agent in between has gone. What had come before is still received.
func (p *passages) lose(how string) {
	end := &control.Ending{How: how}
	p.mu.Lock()
	list := p.list
	p.over = end
	p.mu.Unlock()
	for _, w := range list {
		w.take(&control.Relayed{End: end})
	}
}

// take takes what the agent in between has handed on.
func (w *passage) take(r *control.Relayed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.end != nil:
	case r.End != nil:
		w.end = r.End
	case r.Message != nil:
		w.list.put(r.Message)
	}
	w.more.Signal()
}

// Send hands a message to the agent in between, and waits for nothing.
func (w *passage) Send(m *control.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut || w.end != nil {
		return io.ErrClosedPipe
	}
	w.by.put(&control.Message{Relayed: &control.Relayed{Index: w.index, Message: m}})
	return nil
}

// Receive waits for a message.
func (w *passage) Receive() (*control.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.list.Len() == 0 && w.end == nil && !w.shut {
		w.more.Wait()
	}
	switch {
	case w.list.Len() > 0 && !w.shut:
		m, _ := w.list.Take()
		return m, nil
	case w.end != nil && w.end.Changed:
		return nil, errChanged
	}
	return nil, io.EOF
}

// Close has the agent in between break the connection.
func (w *passage) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.shut {
		w.shut = true
		w.by.put(&control.Message{Relayed: &control.Relayed{Index: w.index, Kill: true}})
		w.more.Signal()
	}
	return nil
}

// quiet: the host had not been heard for some time when the connection with it ended, as the agent
// in between says.
func (w *passage) quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end != nil && w.end.Quiet
}

// how is how it has ended, for messages.
func (w *passage) how() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		return "the connection with its agent was closed"
	}
	return w.end.How
}
