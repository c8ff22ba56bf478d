package tcp

import (
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
	// How long a caller that was told Taken may take to confirm it: far longer than patience, after which it does not do so any more. A caller that has
	// confirmed uses the connection.
	confirmation = 2 * time.Minute
)

// Refusals counts calls that were refused, by why.
type Refusals struct {
	Strangers atomic.Uint64 // nothing of this protocol, another job, another process meant
	Version   atomic.Uint64 // of another version of this protocol
	Old       atomic.Uint64 // of or for another process of that number, of an earlier or later time: also with the job's key
	Key       atomic.Uint64 // without the job's key: a proof that is none, or hung up on the proof of this end
	Slow      atomic.Uint64 // too slow, too many at a time, or broken off before anything was to be proved
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
	// Decide says whether a connection with a process, which has proved who it is, is taken. Calls of it may overlap.
	Decide func(from Process) Verdict
	// Adopt gets a connection that was taken: a *tls.Conn, if the identity says so.
	Adopt func(c net.Conn, from Process)
	// Failed is told of a connection that Decide has taken and whose caller has given it up.
	Failed func(from Process)

	// DecideFurther and AdoptFurther do so for further streams of a pair, by number. Unset, there are none.
	DecideFurther func(from Process, stream uint16) Verdict
	AdoptFurther  func(c net.Conn, from Process, stream uint16)

	// Short, if it is set, is told why a call that has come cannot be taken: there may be no descriptors.
	Short func(error)
	// Refuse, if it is set, is told of calls that are counted below.
	Refuse func(from net.Addr, err error)

	// Refused counts the calls that were refused; nil: nobody does.
	Refused *Refusals

	mu       sync.Mutex
	unproved []net.Conn // oldest first
}

// Serve answers until the listener is closed. Then it hangs up on those that have proved nothing, and returns when no call is left.
func (s *Server) Serve(l net.Listener) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	defer s.hangUp()
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			if s.Short != nil {
				s.Short(err)
			}
			time.Sleep(time.Millisecond) // out of descriptors, or the caller has gone: not this listener's end
			continue
		}
		s.enter(c)
		calls.Go(func() { s.answer(c) })
	}
}

func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.unproved {
		c.Close()
	}
}

func (s *Server) enter(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unproved) == maxUnproved {
		s.unproved[0].Close()
		s.unproved = s.unproved[1:]
	}
	s.unproved = append(s.unproved, c)
}

func (s *Server) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.unproved {
		if other == c {
			s.unproved = append(s.unproved[:i:i], s.unproved[i+1:]...)
			return
		}
	}
}

func (s *Server) answer(c net.Conn) {
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // a connection without one ends with its caller
	proved := false
	stream, from, number, verdict, err := respond(c, &s.Identity, func(from Process, number uint16) Verdict {
		proved = true
		s.leave(c)
		c.SetDeadline(time.Now().Add(confirmation)) //nolint:errcheck // see above
		switch {
		case number == 0:
			return s.Decide(from)
		case s.DecideFurther == nil:
			return Elsewhere
		}
		return s.DecideFurther(from, number)
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
	s.count(verdict, err, proved) // who sees that the connection is closed, sees that it was counted
	c.Close()
	if err != nil && !proved && s.Refuse != nil {
		s.Refuse(c.RemoteAddr(), err)
	}
	if err != nil && proved && verdict == Taken && number == 0 {
		s.Failed(from)
	}
}

// count counts a call that was not taken. That a connection exists already, or that messages take other ways, is no refusal.
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

// Dial connects with the process to at address, and calls it. It gives up after patience. The connection is a *tls.Conn if the identity says so.
func Dial(address string, id *Identity, to Process) (net.Conn, Verdict, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, 0, err
	}
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // a connection without one ends with the other end
	stream, verdict, err := call(c, id, to)
	if err != nil || verdict != Taken {
		c.Close()
		return nil, verdict, err
	}
	c.SetDeadline(time.Time{}) //nolint:errcheck // see above
	return stream.(net.Conn), verdict, nil
}
