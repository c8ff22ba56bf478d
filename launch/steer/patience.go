package steer

import (
	"fmt"
	"os"
	"time"

	"libspx/launch/inspect"
	"libspx/launch/service"
)

// Bounds of waiting for an answer.
const (
	stillLimit  = 2 * time.Second  // of an agent that does nothing and can answer by itself
	fetchLimit  = 30 * time.Second // of one that has to ask other hosts first
	answerLimit = 10 * time.Minute // of any, whatever it does

	lookEach  = 50 * time.Millisecond
	firstWord = 3 * time.Second // then the user is told what is waited for
	nextWord  = 15 * time.Second
)

// Waiting, if it is set, is told what an answer is waited for that has not come for a while.
var Waiting func(text string)

// A patience decides for how long an agent is waited for that has been asked something. Its silence
// is no proof that it is dead: its end shows at once, by that of the connection, and spxrun ends
// one that hangs (launch/front). So only time counts against it in which it could have answered:
// neither that in which it, or the process that takes its answer, waited for a processor, nor that
// which it used a processor for. It knows no clock: what has passed is told.
type patience struct {
	still time.Duration // limit of what counts
	idle  time.Duration // that which has counted
	all   time.Duration
	spoke time.Duration // of all, when the user was told
	last  sight
}

// A sight is what was seen of an agent since the look before.
type sight struct {
	passed  time.Duration
	kept    time.Duration // of that it, or who asks, waited for a processor
	used    time.Duration // of processors
	stopped bool          // by a signal or a debugger
	host    string        // that decides about the job, and was asked in turn; empty: none
}

// look reports whether the agent is waited for no longer, and whether the user is to be told of
// what it is.
func (p *patience) look(s sight) (over, speak bool) {
	p.last = s
	if s.host != "" {
		p.still = max(p.still, fetchLimit)
	}
	p.all += s.passed
	if s.stopped {
		p.idle += s.passed
	} else {
		p.idle += max(0, s.passed-s.kept-s.used)
	}
	if p.idle >= p.still || p.all >= answerLimit {
		return true, false
	}
	if p.all >= firstWord && (p.spoke == 0 || p.all-p.spoke >= nextWord) {
		p.spoke = p.all
		return false, true
	}
	return false, false
}

// why says in words what the agent does.
func (p *patience) why() string {
	switch {
	case p.last.stopped:
		return "it is stopped: SIGCONT lets it go on"
	case p.last.host != "":
		return fmt.Sprintf("it has asked host %s, which decides", p.last.host)
	case 2*p.idle < p.all:
		return "it is busy, or waits for a processor"
	}
	return "it does nothing"
}

// A lateAnswer is an agent's that has not come in time.
type lateAnswer struct {
	job    uint64
	pid    int
	silent time.Duration
	why    string
}

func (l *lateAnswer) Error() string {
	return fmt.Sprintf("job %016x: its agent (pid %d) has not answered for %.1f s: %s", l.job,
		l.pid, l.silent.Seconds(), l.why)
}

// Is makes it ErrLate.
func (l *lateAnswer) Is(target error) bool { return target == ErrLate }

// watched is the agent that is waited for.
type watched struct {
	pid    int // 0: it cannot be seen
	used   time.Duration
	last   time.Time
	queues [2]inspect.Queue // its own, and that of this process
}

func watch(conn *service.Conn) *watched {
	w := &watched{last: time.Now()}
	w.pid, _, _ = conn.Peer() // of another pid namespace: 0
	if a, ok := inspect.ActivityOf(w.pid); ok {
		w.used = a.Used
	} else {
		w.pid = 0
	}
	w.look()
	return w
}

func (w *watched) look() (s sight) {
	now := time.Now()
	s.passed, w.last = now.Sub(w.last), now
	s.kept = w.queues[1].Look(os.Getpid(), s.passed)
	if late := s.passed - 2*lookEach; late > 0 {
		s.kept = max(s.kept, late) // this process was stopped, or the machine has slept
	}
	if w.pid == 0 {
		return s
	}
	s.kept += w.queues[0].Look(w.pid, s.passed)
	if a, ok := inspect.ActivityOf(w.pid); ok {
		s.used, w.used = a.Used-w.used, a.Used
		s.stopped = a.State == 'T' || a.State == 't'
	}
	return s
}

// await receives the answer to a question that was sent over conn.
func await(conn *service.Conn, job uint64, still time.Duration) (*service.Message, error) {
	type received struct {
		m   *service.Message
		err error
	}
	come := make(chan received, 1)
	receive := func() {
		m, err := conn.Receive()
		come <- received{m, err}
	}
	go receive()
	w, p := watch(conn), &patience{still: still}
	if w.pid == 0 {
		p.still = max(still, fetchLimit)
	}
	host := ""
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		select {
		case r := <-come:
			if r.err != nil || r.m.World != service.PassedOn {
				return r.m, r.err
			}
			host = Plain(r.m.Name)
			go receive()
		case <-tick.C:
			s := w.look()
			s.host = host
			over, speak := p.look(s)
			if over {
				conn.Hang()
				<-come // then the connection is this one's alone
				return nil, &lateAnswer{job, w.pid, p.all, p.why()}
			}
			if speak && Waiting != nil {
				Waiting(fmt.Sprintf("waiting for the agent of job %016x (pid %d), for %.0f s: %s",
					job, w.pid, p.all.Seconds(), p.why()))
			}
		}
	}
}
