package tcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// What an end that was called spends on callers that have proved nothing yet.
const (
	maxUnproved = 128
	patience    = 5 * time.Second
	// How long a caller that was sent Taken may take to confirm it: far longer than patience, after
	// which it no longer does. A caller that has confirmed uses the connection.
	confirmation = 2 * time.Minute
	// For how long an unproved caller may block other calls, where few calls are
	// answered at once.
	hurry = time.Second
)

// Refusals counts calls that were refused, by why.
type Refusals struct {
	Strangers atomic.Uint64 // nothing of this protocol, another job, another process meant
	Version   atomic.Uint64 // of another version of this protocol
	// of or for another process of that number, of an earlier or later time: also with the job's
	// key
	Old atomic.Uint64
	// without the job's key: a proof that is none, or hung up on the proof of this end
	Key atomic.Uint64
	// too slow, too many at a time, or broken off before anything was to be proved
	Slow atomic.Uint64
}

// Total is how many there were.
func (r *Refusals) Total() uint64 {
	return r.Strangers.Load() + r.Version.Load() + r.Old.Load() + r.Key.Load() + r.Slow.Load()
}

// of is where a call is counted that has ended with err before anything was proved.
func (r *Refusals) of(err error) *atomic.Uint64 {
	switch {
	case errors.Is(err, ErrStranger):
		return &r.Strangers
	case errors.Is(err, ErrVersion):
		return &r.Version
	case errors.Is(err, ErrOld):
		return &r.Old
	case errors.Is(err, ErrKey):
		return &r.Key
	}
	return &r.Slow
}

// A Server answers calls.
type Server struct {
	Identity Identity
	// Other, if it is set, is the identity for a call that names another job than Identity's, and
	// that process as its origin; nil: there is none.
	Other func(job [16]byte, from Process) *Identity
	// Decide returns whether a connection with a process, whose identity is proved, is taken. Calls
	// of it may overlap.
	Decide func(from Process) Verdict
	// Adopt gets a connection that was taken: a *tls.Conn, if the identity has TLS.
	Adopt func(c net.Conn, from Process)
	// Failed is called for a connection that Decide, or a stream that DecideFurther, has taken and
	// that its caller has abandoned. It is closed.
	Failed func(from Process, stream uint16)

	// DecideFurther and AdoptFurther do so for further streams of a pair, by number. Unset, there
	// are none.
	DecideFurther func(from Process, stream uint16) Verdict
	AdoptFurther  func(c net.Conn, from Process, stream uint16)

	// Answering is how many calls may be answered at once, from accept to verdict; other calls wait
	// in the listen queue. A caller silent for longer than hurry is dropped if it blocks other
	// calls. 0: any number, of which maxUnproved at most have proved nothing.
	Answering int

	// Short, if it is set, is called with the reason why a call cannot be accepted: there may be no
	// descriptors.
	Short func(error)
	// Refuse, if it is set, is called for calls that are counted below.
	Refuse func(from net.Addr, err error)

	// Refused counts the calls that were refused; nil: they are not counted.
	Refused *Refusals

	mu       sync.Mutex
	unproved []caller // oldest first

	places chan struct{} // one for each call that is being answered; nil: any number
}

// A caller has proved nothing yet.
type caller struct {
	net.Conn
	since time.Time
}

// Serve answers until the listener is closed. Then it hangs up on those that have proved nothing,
// and returns when no call is left.
func (s *Server) Serve(l net.Listener) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	defer s.hangUp()
	if s.Answering > 0 {
		s.places = make(chan struct{}, s.Answering)
	}
	for {
		s.await()
		c, err := l.Accept()
		if err != nil {
			s.decided()
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			if s.Short != nil {
				s.Short(err)
			}
			// out of descriptors, or the caller has gone: not this listener's end
			time.Sleep(time.Millisecond)
			continue
		}
		s.enter(c)
		calls.Go(func() { s.answer(c) })
	}
}

// await waits until one more call may be answered.
func (s *Server) await() {
	if s.places == nil {
		return
	}
	for {
		select {
		case s.places <- struct{}{}:
			return
		case <-time.After(hurry):
			s.hangUpOn(func(c caller) bool { return time.Since(c.since) >= hurry })
		}
	}
}

// decided: a call was answered, or is a connection from now on.
func (s *Server) decided() {
	if s.places != nil {
		<-s.places
	}
}

func (s *Server) hangUp() { s.hangUpOn(func(caller) bool { return true }) }

// hangUpOn closes some of those that have proved nothing: their calls end by that.
func (s *Server) hangUpOn(which func(caller) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.unproved {
		if which(c) {
			c.Close()
		}
	}
}

func (s *Server) enter(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unproved) == maxUnproved {
		s.unproved[0].Close()
		s.unproved = s.unproved[1:]
	}
	s.unproved = append(s.unproved, caller{c, time.Now()})
}

func (s *Server) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.unproved {
		if other.Conn == c {
			s.unproved = append(s.unproved[:i:i], s.unproved[i+1:]...)
			return
		}
	}
}

// identity is the one for a call.
func (s *Server) identity(h *hello) *Identity {
	if s.Other != nil && h.job != s.Identity.Job {
		if id := s.Other(h.job, h.from); id != nil {
			return id
		}
	}
	return &s.Identity
}

func (s *Server) answer(c net.Conn) {
	// a connection without one ends with its caller
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck
	proved := false
	var verdict Verdict
	stream, from, number, _, err := respond(c, s.identity,
		func(from Process, number uint16) Verdict {
			proved = true
			s.leave(c)
			c.SetDeadline(time.Now().Add(confirmation)) //nolint:errcheck // see above
			switch {
			case number == 0:
				verdict = s.Decide(from)
			case s.DecideFurther == nil:
				verdict = Elsewhere
			default:
				verdict = s.DecideFurther(from, number)
			}
			if verdict == Taken {
				s.decided()
			}
			return verdict
		})
	if !proved {
		s.leave(c)
	}
	if err == nil && verdict == Taken {
		c.SetDeadline(time.Time{}) //nolint:errcheck // see above
		if number != 0 {
			s.AdoptFurther(stream.(net.Conn), from, number)
		} else {
			s.Adopt(stream.(net.Conn), from)
		}
		return
	}
	// a peer that sees the connection closed also sees it counted
	s.count(verdict, err, proved)
	c.Close()
	if verdict != Taken {
		s.decided()
	} else {
		s.Failed(from, number)
	}
	if err != nil && !proved && s.Refuse != nil {
		s.Refuse(c.RemoteAddr(), err)
	}
}

// count counts a call that was not taken. That a connection exists already, or that messages take
// other ways, is no refusal.
func (s *Server) count(v Verdict, err error, proved bool) {
	switch {
	case s.Refused == nil:
	case v == Gone:
		s.Refused.Old.Add(1)
	case err == nil:
	case proved && v == Taken: // the caller has given it up
	default:
		s.Refused.of(err).Add(1)
	}
}

// Dial connects with the process to at address, and calls it. It fails after patience. The
// connection is a *tls.Conn if the identity has TLS.
func Dial(address string, id *Identity, to Process) (net.Conn, Verdict, error) {
	return DialContext(context.Background(), address, id, to)
}

// DialContext is Dial that fails earlier when ctx ends, unless the verdict is there: a confirmed
// connection is in use.
func DialContext(ctx context.Context, address string, id *Identity, to Process) (net.Conn, Verdict,
	error) {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, 0, err
	}
	// a connection without one ends with the other end
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck
	given := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // see above
		close(given)
	})
	stream, verdict, err := call(c, id, to)
	if !stop() {
		<-given // nothing touches the connection any more
	}
	if err != nil || verdict != Taken {
		c.Close()
		return nil, verdict, err
	}
	c.SetDeadline(time.Time{}) //nolint:errcheck // see above
	return stream.(net.Conn), verdict, nil
}
