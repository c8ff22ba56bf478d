package agent

import (
	"slices"
	"sync/atomic"
	"time"

	"libspx/launch/service"
)

// Questions of tools, how something is, are answered in their turn; but when that does not come
// soon, because much has happened, then between two events. So is spxrun, at once, when it asks for
// a sign of life: an agent that has much to do is alive.

// attention is after what time that is.
const attention = 50 * time.Millisecond

// A looking is such a question.
type looking struct {
	*question
	came   time.Time
	served bool
}

// looks are those that wait, and what spxrun asks.
type looks struct {
	// the number of the last question of spxrun, until it is answered between two events
	ping  atomic.Int64
	many  atomic.Int32 // of those of tools
	asked []*looking   // guarded by the inbox's mu
}

// answerAhead answers between two events what is not to wait for those to come.
func (a *agent) answerAhead() {
	if n := a.inbox.ping.Swap(0); n != 0 {
		a.answerPing(pinged(n)) // and once more in its turn, which says nothing new
	}
	for l := a.inbox.overdue(time.Now); l != nil; l = a.inbox.overdue(time.Now) {
		a.serve(l.question)
	}
}

// waits: a tool asks, and how something is.
func (q *question) waits() bool {
	return q.World == service.Waits && (q.Kind == service.Describe || q.Kind == service.Hosts ||
		q.Kind == service.Inspect)
}

// ask puts a question into the inbox.
func (b *inbox) ask(q *question) {
	if !q.waits() {
		b.put(q)
		return
	}
	l := &looking{question: q, came: time.Now()}
	b.mu.Lock()
	b.asked = append(b.asked, l)
	b.many.Store(int32(len(b.asked)))
	b.mu.Unlock()
	b.put(l)
}

// overdue takes the first one that has waited for long; nil: there is none. It is to be answered
// now.
func (b *inbox) overdue(now func() time.Time) *looking {
	if b.many.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) == 0 || now().Sub(b.asked[0].came) < attention {
		return nil
	}
	l := b.asked[0]
	b.done(l)
	return l
}

// answers takes one whose turn has come, unless it was answered before.
func (b *inbox) answers(l *looking) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.served {
		return false
	}
	b.done(l)
	return true
}

// done takes one out. b.mu is held.
func (b *inbox) done(l *looking) {
	l.served = true
	b.asked = slices.DeleteFunc(b.asked, func(x *looking) bool { return x == l })
	b.many.Store(int32(len(b.asked)))
}
