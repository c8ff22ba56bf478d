package tool

// Sessions of performance variables, their handles, and values (MPI-5.0, section 16.3.7). A handle
// of a counter remembers what the counter was when it was started, and has what it has seen in the
// times when it ran. The process keeps one high-water mark of a level: whenever a handle is read,
// all running ones are raised to it and it restarts, so that each has the highest level since its
// own start.

// session is what its handles are: see pvar.session.
type session struct{}

// pvar is what a handle of a performance variable stands for.
type pvar struct {
	session Handle
	v       *Variable
	of      Object // nil: not bound
	running bool
	base    uint64 // the counter when it was started
	seen    uint64 // what was counted in earlier runs; the high-water mark
}

// View is the value of a handle without this package: More, and the counter unless it is Still;
// Seconds: of a counter of nanoseconds. A process may show it to programs that read often.
type View struct {
	Session Handle
	Counter Counter
	Of      Object
	Still   bool
	More    uint64
	Seconds bool
}

// show has a handle read as it is now. High-water marks are not shown: to read one changes others;
// nor are states, which are ints.
func (s *State) show(key Handle, h *pvar) {
	if h.v.Class == ClassHigh || h.v.isState() {
		return
	}
	s.process.Show(key, View{Session: h.session, Counter: h.v.Counter, Of: h.of,
		Still: !h.v.isLevel() && !h.running,
		More:  h.more(), Seconds: h.v.Class == ClassTimer})
}

// more is what the value is above the counter.
func (h *pvar) more() uint64 {
	switch {
	case h.v.isLevel():
		return 0
	case h.running:
		return h.seen - h.base
	}
	return h.seen
}

// CreateSession is MPI_T_pvar_session_create.
func (s *State) CreateSession(handle *Handle) Code {
	if handle == nil {
		return Invalid
	}
	h := s.sessions.add(&session{})
	if h == NoHandle {
		return OutOfSessions
	}
	*handle = h
	return Success
}

// FreeSession is MPI_T_pvar_session_free; it frees the session's handles.
func (s *State) FreeSession(handle *Handle) Code {
	if handle == nil || s.sessions.find(*handle) == nil {
		return InvalidSession
	}
	for key, h := range s.pvars.all {
		if h.session == *handle {
			s.freePvar(key, h)
		}
	}
	s.sessions.forget(*handle)
	*handle = NoHandle
	return Success
}

func (s *State) freePvar(key Handle, h *pvar) {
	s.pvars.forget(key)
	s.process.Hide(key)
	if h.of != nil {
		h.of.Release()
	}
}

// AllocPvar is MPI_T_pvar_handle_alloc. bind is called for the object if the variable is bound to
// one, and returns nil if the caller has passed none.
func (s *State) AllocPvar(in Handle, i int, bind func() Object, handle *Handle, count *int32) Code {
	v := variable(i)
	switch {
	case s.sessions.find(in) == nil:
		return InvalidSession
	case v == nil:
		return InvalidIndex
	case handle == nil || count == nil:
		return Invalid
	}
	h := &pvar{session: in, v: v}
	if v.Bind != BindNothing {
		if h.of = bind(); h.of == nil {
			return Invalid
		}
	}
	key := s.pvars.add(h)
	if key == NoHandle {
		if h.of != nil {
			h.of.Release()
		}
		return OutOfHandles
	}
	*handle, *count = key, 1
	s.show(key, h)
	return Success
}

// pvarOf finds a handle, which is valid in its own session alone.
func (s *State) pvarOf(in, key Handle) (*pvar, Code) {
	if s.sessions.find(in) == nil {
		return nil, InvalidSession
	}
	h := s.pvars.find(key)
	if h == nil || h.session != in {
		return nil, InvalidHandle
	}
	return h, Success
}

// FreePvar is MPI_T_pvar_handle_free.
func (s *State) FreePvar(in Handle, handle *Handle) Code {
	key := NoHandle
	if handle != nil {
		key = *handle
	}
	h, code := s.pvarOf(in, key)
	if code != Success {
		return code
	}
	s.freePvar(key, h)
	*handle = NoHandle
	return Success
}

// ---- values ----

func (s *State) now(h *pvar) uint64 { return s.process.Count(h.v.Counter, h.of) }

// spreadHigh raises all running high-water marks of h's counter to what has been. That of the
// process begins again.
func (s *State) spreadHigh(h *pvar) {
	high := s.process.TakeHigh(h.v.Counter)
	for _, other := range s.pvars.all {
		if other.running && other.v == h.v {
			other.seen = max(other.seen, high)
		}
	}
}

func (s *State) value(h *pvar) uint64 {
	switch {
	case h.v.isLevel():
		return s.now(h)
	case h.v.Class == ClassHigh:
		s.spreadHigh(h)
		return h.seen
	case h.running:
		return s.now(h) + h.more()
	}
	return h.more()
}

// set has the handle go on from value v.
func (s *State) set(h *pvar, v uint64) {
	if h.v.Class == ClassHigh {
		s.spreadHigh(h)
	}
	h.seen, h.base = v, s.now(h)
}

func (s *State) start(h *pvar) Code {
	switch {
	case h.v.isLevel():
		return NoStartStop
	case h.running:
		return Success
	}
	if h.v.Class == ClassHigh {
		s.spreadHigh(h)
		h.seen = max(h.seen, s.now(h))
	}
	h.base, h.running = s.now(h), true
	return Success
}

func (s *State) stop(h *pvar) Code {
	if h.v.isLevel() {
		return NoStartStop
	}
	h.seen = s.value(h)
	h.running = false
	return Success
}

// reset goes back to the beginning: nothing, or the level of now.
func (s *State) reset(h *pvar) Code {
	if h.v.isLevel() {
		return NoWrite
	}
	origin := uint64(0)
	if h.v.Class == ClassHigh {
		origin = s.now(h)
	}
	s.set(h, origin)
	return Success
}

// act does something to one handle, or to all of the session; those that cannot are left out then.
func (s *State) act(in, key Handle, do func(*State, *pvar) Code) Code {
	h, code := s.pvarOf(in, key)
	switch {
	case key == AllHandles && code != InvalidSession:
		for key, h := range s.pvars.all {
			if h.session == in {
				do(s, h)
				s.show(key, h)
			}
		}
		return Success
	case code != Success:
		return code
	}
	defer s.show(key, h)
	return do(s, h)
}

// Start is MPI_T_pvar_start.
func (s *State) Start(in, key Handle) Code { return s.act(in, key, (*State).start) }

// Stop is MPI_T_pvar_stop.
func (s *State) Stop(in, key Handle) Code { return s.act(in, key, (*State).stop) }

// Reset is MPI_T_pvar_reset.
func (s *State) Reset(in, key Handle) Code { return s.act(in, key, (*State).reset) }

// ReadPvar is MPI_T_pvar_read. buf gets an unsigned long long, or the bits of a double.
func (s *State) ReadPvar(in, key Handle, buf *uint64) Code {
	h, code := s.pvarOf(in, key)
	switch {
	case code != Success:
		return code
	case buf == nil:
		return Invalid
	}
	*buf = h.v.bits(s.value(h))
	return Success
}

// WritePvar is MPI_T_pvar_write; buf is as ReadPvar's.
func (s *State) WritePvar(in, key Handle, buf *uint64) Code {
	h, code := s.pvarOf(in, key)
	switch {
	case code != Success:
		return code
	case h.v.isLevel():
		return NoWrite
	case buf == nil:
		return Invalid
	}
	n, ok := h.v.count(*buf)
	if !ok {
		return Invalid
	}
	s.set(h, n)
	s.show(key, h)
	return Success
}

// ReadReset is MPI_T_pvar_readreset: nothing that is counted is in neither of two values, or in
// both.
func (s *State) ReadReset(in, key Handle, buf *uint64) Code {
	h, code := s.pvarOf(in, key)
	switch {
	case code != Success:
		return code
	case h.v.isLevel():
		return NoAtomic
	case buf == nil:
		return Invalid
	}
	defer s.show(key, h)
	if h.v.Class == ClassHigh || !h.running {
		*buf = h.v.bits(s.value(h))
		return s.reset(h)
	}
	now := s.now(h) // the counter is read once
	*buf = h.v.bits(h.seen + now - h.base)
	h.seen, h.base = 0, now
	return Success
}
