package tool

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is what the interface should have, in the simplest way: a handle of a variable has a list
// of what was counted while it ran.
type model struct {
	begun    int
	sessions map[Handle]bool
	pvars    map[Handle]*modelPvar
	cvars    map[Handle]int
	events   map[Handle]*modelEvent
	gone     []Handle // handles that were freed
}

type modelPvar struct {
	session Handle
	v       *Variable
	running bool
	value   uint64 // of a counter: counted step by step
	of      *thing
}

type modelEvent struct {
	kind    EventKind
	fns     [len(safeties)]uintptr
	dropped uintptr
}

// FuzzCalls makes the calls given by the bytes, right and wrong ones, and compares each with the
// model: codes, values, listeners, releases. Two bytes are a call: what, and on which handle.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 0, 4, 0, 9, 3, 7, 0, 5, 0, 9, 1, 6, 0, 3, 0, 11, 0})
	f.Add([]byte{0, 0, 1, 0, 1, 0, 2, 9, 2, 73, 4, 255, 9, 7, 7, 0, 7, 1, 3, 0, 7, 0, 7, 1, 11, 0,
		0, 0, 7, 0})
	f.Add([]byte{0, 0, 13, 0, 13, 1, 14, 0, 14, 5, 14, 9, 15, 0, 16, 1, 14, 3, 16, 0, 11, 0, 14, 0})
	f.Add([]byte{0, 0, 0, 0, 12, 1, 12, 3, 11, 0, 17, 0, 17, 1, 18, 0, 18, 1, 11, 0, 17, 0})
	f.Fuzz(func(t *testing.T, calls []byte) { makeCalls(t, calls[:min(len(calls), 600)]) })
}

// TestCalls makes sequences of calls at random.
func TestCalls(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		calls := make([]byte, 600)
		for i := range calls {
			calls[i] = byte(random.Uint32())
		}
		for i := 0; i < len(calls); i += 20 {
			calls[i] = 0 // init: as often as finalize, or more
		}
		if makeCalls(t, calls); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func makeCalls(t *testing.T, calls []byte) {
	w := newWorld()
	r := &run{t: t, w: w, x: New(w), object: &thing{w: w},
		m: model{sessions: map[Handle]bool{}, pvars: map[Handle]*modelPvar{},
			cvars: map[Handle]int{}, events: map[Handle]*modelEvent{}}}
	for ; len(calls) >= 2 && !t.Failed(); calls = calls[2:] {
		r.call(calls[0]%19, int(calls[1]))
		r.checkListeners()
	}
}

type run struct {
	t      *testing.T
	w      *world
	x      *Interface
	m      model
	object *thing
	bound  int // handles bound to object that were made
}

// use makes a call, which should return a code; outside of Init and Finalize it should not be made.
func (r *run) use(what string, wanted Code, call func(*State) Code) {
	r.t.Helper()
	if r.m.begun == 0 {
		wanted = NotInitialized
	}
	if code := r.x.Use(call); code != wanted {
		r.t.Errorf("%s: %v, not %v", what, code, wanted)
	}
}

// one picks a handle: one that is valid, mostly, or one that is gone, or of another kind, or none.
func (r *run) one(valid []Handle, k int) Handle {
	slices.Sort(valid)
	all := append(append(valid, r.m.gone...), NoHandle, 12345, AllHandles)
	return all[k%len(all)]
}

func keys[T any](m map[Handle]T) []Handle { return slices.Collect(maps.Keys(m)) }

func (r *run) pvar(k int) (in, h Handle, p *modelPvar, code Code) {
	h = r.one(keys(r.m.pvars), k)
	if p = r.m.pvars[h]; p != nil && k%7 != 6 {
		return p.session, h, p, Success
	}
	in = r.one(keys(r.m.sessions), k/3)
	switch {
	case !r.m.sessions[in]:
		return in, h, nil, InvalidSession
	case p == nil || p.session != in:
		return in, h, nil, InvalidHandle
	}
	return in, h, p, Success
}

func (p *modelPvar) level() bool { return p != nil && p.v.isLevel() }

// unless is code, or that of a level if the call found the handle and that is one.
func (p *modelPvar) unless(level, code Code) Code {
	if code == Success && p.level() {
		return level
	}
	return code
}

func (r *run) call(what byte, k int) {
	m := &r.m
	switch what {
	case 0:
		var level int32
		if code := r.x.Init(k%4, &level); code != Success || int(level) != k%4 {
			r.t.Errorf("init: %v, level %d", code, level)
		}
		m.begun++
	case 1:
		var h Handle
		r.use("session", Success, func(s *State) Code { return s.CreateSession(&h) })
		if h != NoHandle {
			r.fresh(h)
			m.sessions[h] = true
		}
	case 2:
		r.allocPvar(k)
	case 3:
		r.freeSession(k)
	case 4, 5, 6:
		r.startStopReset(what, k)
	case 7, 8:
		r.readPvar(what == 8, k)
	case 9:
		r.count(uint64(k))
	case 10:
		r.freePvar(k)
	case 11:
		r.finalize()
	case 12:
		r.allocCvar(k)
	case 13, 14, 15, 16:
		r.event(what, k)
	case 17, 18:
		r.cvar(what == 18, k)
	}
}

// fresh: no handle was ever given out before.
func (r *run) fresh(h Handle) {
	_, p := r.m.pvars[h]
	_, c := r.m.cvars[h]
	_, e := r.m.events[h]
	if p || c || e || r.m.sessions[h] || slices.Contains(r.m.gone, h) {
		r.t.Errorf("handle %x a second time", h)
	}
}

func (r *run) allocPvar(k int) {
	m := &r.m
	in := r.one(keys(m.sessions), k/len(variables))
	v := &variables[k%len(variables)]
	code := Success
	if !m.sessions[in] {
		code = InvalidSession
	}
	var h Handle
	var count int32
	r.use("handle", code, func(s *State) Code {
		return s.AllocPvar(in, k%len(variables), func() Object { return r.object }, &h, &count)
	})
	if h == NoHandle {
		return
	}
	r.fresh(h)
	m.pvars[h] = &modelPvar{session: in, v: v}
	if v.Bind != BindNothing {
		m.pvars[h].of = r.object
		r.bound++
	}
}

func (r *run) freeSession(k int) {
	m := &r.m
	h := r.one(keys(m.sessions), k)
	code := Success
	if !m.sessions[h] {
		code = InvalidSession
	}
	old := h
	r.use("free session", code, func(s *State) Code { return s.FreeSession(&h) })
	if h != NoHandle || old == NoHandle {
		return
	}
	for key, p := range m.pvars {
		if p.session == old {
			r.goes(key)
		}
	}
	r.goes(old)
}

// goes takes a handle out of the model.
func (r *run) goes(h Handle) {
	delete(r.m.sessions, h)
	delete(r.m.pvars, h)
	delete(r.m.cvars, h)
	delete(r.m.events, h)
	r.m.gone = append(r.m.gone, h)
}

func (r *run) freePvar(k int) {
	in, h, _, code := r.pvar(k)
	old := h
	r.use("free handle", code, func(s *State) Code { return s.FreePvar(in, &h) })
	if h == NoHandle && old != NoHandle {
		r.goes(old)
	}
}

func (r *run) startStopReset(what byte, k int) {
	in, h, p, code := r.pvar(k)
	list := []*modelPvar{p}
	if h == AllHandles && code != InvalidSession {
		code, list = Success, nil
		for _, p := range r.m.pvars {
			if p.session == in {
				list = append(list, p)
			}
		}
	} else if what == 6 {
		code = p.unless(NoWrite, code)
	} else {
		code = p.unless(NoStartStop, code)
	}
	r.use("start, stop, reset", code, func(s *State) Code {
		return [...]func(*State, Handle, Handle) Code{(*State).Start, (*State).Stop,
			(*State).Reset}[what-4](s, in, h)
	})
	for _, p := range list {
		if p == nil || code != Success || r.m.begun == 0 || p.level() {
			continue
		}
		high := r.w.counts[p.v.Counter]
		switch {
		case what == 4 && !p.running && p.v.Class == ClassHigh:
			p.value = max(p.value, high)
		case what == 6 && p.v.Class == ClassHigh:
			p.value = high
		case what == 6:
			p.value = 0
		}
		if what != 6 {
			p.running = what == 4
		}
	}
}

func (r *run) readPvar(reset bool, k int) {
	in, h, p, code := r.pvar(k)
	found := code == Success && r.m.begun > 0
	if reset {
		code = p.unless(NoAtomic, code)
	}
	var v uint64
	r.use("read", code, func(s *State) Code {
		if reset {
			return s.ReadReset(in, h, &v)
		}
		if p != nil && p.v.isState() {
			var n int32
			code, is := s.ReadState(in, h, &n)
			if v = uint64(n); !is {
				r.t.Errorf("%s is no state", p.v.Name)
			}
			return code
		}
		return s.ReadPvar(in, h, &v)
	})
	if seen, shown := r.w.read(in, h); shown && !found {
		r.t.Errorf("handle %x is shown: %d", h, seen)
	} else if shown && p.v.isState() {
		r.t.Errorf("%s is shown, which is an int", p.v.Name)
	} else if !reset && found && (seen != v || !shown) && p.v.Class != ClassHigh && !p.v.isState() {
		r.t.Errorf("%s is %d, and %d is shown: %v", p.v.Name, v, seen, shown)
	}
	if code != Success || r.m.begun == 0 {
		return
	}
	wanted := p.value
	if p.level() {
		wanted = r.w.Count(p.v.Counter, p.object())
	}
	if v != p.v.bits(wanted) {
		r.t.Errorf("%s is %d, not %d", p.v.Name, v, wanted)
	}
	if reset {
		p.value = 0
		if p.v.Class == ClassHigh {
			p.value = r.w.counts[p.v.Counter]
		}
	}
}

func (p *modelPvar) object() Object {
	if p.of == nil {
		return nil
	}
	return p.of
}

// count has everything counted go on by n; levels go up and down again.
func (r *run) count(n uint64) {
	for c := range allCounters {
		if c == UnexpectedLength {
			continue
		}
		r.w.counts[c] += n + uint64(c)
		r.object.counts[c] += n
	}
	r.w.length(n)
	r.w.length(n / 2)
	for _, p := range r.m.pvars {
		switch {
		case !p.running:
		case p.v.Class == ClassHigh:
			p.value = max(p.value, n)
		case p.of != nil:
			p.value += n
		default:
			p.value += n + uint64(p.v.Counter)
		}
	}
}

func (r *run) finalize() {
	wanted := Success
	if r.m.begun == 0 {
		wanted = NotInitialized
	}
	if code := r.x.Finalize(); code != wanted {
		r.t.Errorf("finalize: %v, not %v", code, wanted)
	}
	if r.m.begun = max(r.m.begun-1, 0); r.m.begun > 0 {
		return
	}
	for _, list := range [][]Handle{keys(r.m.sessions), keys(r.m.pvars), keys(r.m.cvars),
		keys(r.m.events)} {
		for _, h := range list {
			r.goes(h)
		}
	}
	if r.w.released[r.object] != r.bound {
		r.t.Errorf("%d handles were bound to the object, and it was released %d times", r.bound,
			r.w.released[r.object])
	}
}

func (r *run) allocCvar(k int) {
	var h Handle
	var n int32
	code := Success
	if k%8 >= len(testSettings) {
		code = InvalidIndex
	}
	r.use("control variable", code, func(s *State) Code { return s.AllocCvar(k%8, &h, &n) })
	if h != NoHandle {
		r.fresh(h)
		r.m.cvars[h] = k % 8
	}
}

// cvar writes a control variable and reads it back, or frees it.
func (r *run) cvar(free bool, k int) {
	h := r.one(keys(r.m.cvars), k)
	i, known := r.m.cvars[h]
	code := Success
	if !known {
		code = InvalidHandle
	}
	if free {
		old := h
		r.use("free control variable", code, func(s *State) Code { return s.FreeCvar(&h) })
		if h == NoHandle && old != NoHandle {
			r.goes(old)
		}
		return
	}
	in, out := make([]byte, TextMax), make([]byte, TextMax)
	in[0] = byte(k % 2)
	r.use("write", code, func(s *State) Code { return s.WriteCvar(h, in) })
	r.use("read", code, func(s *State) Code { return s.ReadCvar(h, out) })
	if known && r.m.begun > 0 && !slices.Equal(in, out) {
		r.t.Errorf("%s: %v was written, %v read", testSettings[i].Name, in[:8], out[:8])
	}
}

func (r *run) event(what byte, k int) {
	m := &r.m
	if what == 13 {
		var h Handle
		r.use("registration", Success,
			func(s *State) Code { return s.AllocEvent(k%int(EventKinds), true, &h) })
		if h != NoHandle {
			r.fresh(h)
			m.events[h] = &modelEvent{kind: EventKind(k % int(EventKinds))}
		}
		return
	}
	h := r.one(keys(m.events), k/8)
	e := m.events[h]
	code := Success
	if e == nil {
		code = InvalidHandle
	}
	ok := e != nil && m.begun > 0
	switch what {
	case 14: // half of them take a callback away
		i, fn := k%len(safeties), uintptr(k/len(safeties)%2*77)
		r.use("callback", code, func(s *State) Code {
			return s.RegisterCallback(h, safeties[i],
				true, 5, fn)
		})
		if ok {
			e.fns[i] = fn
		}
	case 15:
		r.use("dropped handler", code, func(s *State) Code { return s.SetDropped(h, uintptr(k)) })
		if ok {
			e.dropped = uintptr(k)
		}
	case 16:
		r.use("free registration", code, func(s *State) Code { return s.FreeEvent(h) })
		if ok {
			r.goes(h)
		}
	}
}

// checkListeners: those of the model, and only those, in the order in which they were registered.
func (r *run) checkListeners() {
	n := 0
	for h, e := range r.m.events {
		if i := slices.IndexFunc(e.fns[:], func(fn uintptr) bool { return fn != 0 }); i >= 0 {
			n++
			at := slices.IndexFunc(r.w.listens, func(l Listener) bool { return l.Key == h })
			if at < 0 || r.w.listens[at].Fn != e.fns[i] || r.w.listens[at].Dropped != e.dropped ||
				r.w.listens[at].Kind != e.kind {
				r.t.Errorf("registration %x is to be called: %+v", h, r.w.listens)
			}
		}
	}
	if n != len(r.w.listens) || !slices.IsSortedFunc(r.w.listens,
		func(a, b Listener) int { return int(a.Order) - int(b.Order) }) {
		r.t.Errorf("%d are to be called: %+v", n, r.w.listens)
	}
}
