package tool

import (
	"cmp"
	"math"
	"slices"
)

// Events, their registrations and their source (MPI-5.0, section 16.3.8). The data plane notes an
// event where it happens, with its time; callbacks are called out of the next MPI call that makes
// progress, with no lock held: they may do what any program may (MPI_T_CB_REQUIRE_NONE), so the
// callback of the lowest level that is registered is taken. Which are to be called is given to
// Process.Listen.

// EventKind is a kind of event, and its index: SPX_EV_* in stat.h.
type EventKind int

// The kinds of events.
const (
	UnexpectedMessage EventKind = iota
	FailureSeen
	GetDone
	CollectiveChosen
	EventKinds // how many there are
)

// element is a part of an event: its type, and where it is in the event's data.
type element struct {
	datatype Datatype
	at       int64
}

type eventType struct {
	Entry
	level    int
	elements []element
}

var eventTypes = [EventKinds]eventType{
	UnexpectedMessage: {Entry{"spx_unexpected_message", "matching",
		"a message has come before its receive: " +
			"rank of the source, tag, bytes, context of the communicator"}, TunerDetail,
		[]element{{Int, 0}, {Int, 4}, {UnsignedLongLong, 8}, {UnsignedLongLong, 16}}},
	FailureSeen: {Entry{"spx_failure_seen", "failures",
		"the failure of another process was noticed: " +
			"its number in the job, its rank in its world"}, UserBasic,
		[]element{{Int, 0}, {Int, 4}}},
	GetDone: {Entry{"spx_get_done", "transfer", "a message was read out of its sender's memory: " +
		"the sender's number in the job, bytes"}, TunerDetail,
		[]element{{Int, 0}, {UnsignedLongLong, 8}}},
	CollectiveChosen: {Entry{"spx_collective_chosen", "collectives",
		"an algorithm was chosen for a collective, the first time " +
			"that it is called like this on a communicator: operation and algorithm by the " +
			"event's " +
			"enumeration, reason by that of " +
			"spx_coll_OPERATION_reason, bytes that the choice rests on, context of the " +
			"communicator"},
		UserDetail,
		[]element{{Int, 0}, {Int, 4}, {UnsignedLongLong, 8}, {UnsignedLongLong, 16}}},
}

// EventNum is MPI_T_event_get_num.
func (s *State) EventNum(num *int32) Code { return needInt(num, len(eventTypes)) }

// Elements are the arrays of MPI_T_event_get_info: each as long as *Num says, or nil when the
// caller has given none.
type Elements struct {
	Types []Datatype
	At    []int64
	Num   *int32
}

func (e Elements) put(list []element) {
	for i, x := range list {
		if i < len(e.Types) {
			e.Types[i] = x.datatype
		}
		if i < len(e.At) {
			e.At[i] = x.at
		}
	}
	putInt(e.Num, len(list))
}

// EventInfo is MPI_T_event_get_info, but for the info object.
func (s *State) EventInfo(i int, name Text, verbosity *int32, elements Elements, enum *Handle,
	desc Text, bind *int32) Code {
	if i < 0 || i >= len(eventTypes) {
		return InvalidIndex
	}
	t := &eventTypes[i]
	name.put(t.Name)
	desc.put(t.Description)
	putInt(verbosity, t.level)
	elements.put(t.elements)
	put(enum, s.enumOfEvent(EventKind(i)))
	putInt(bind, BindNothing)
	return Success
}

// EventIndex is MPI_T_event_get_index.
func (s *State) EventIndex(name *string, index *int32) Code {
	return indexOf(name, index, len(eventTypes),
		func(i int) bool { return eventTypes[i].Name == *name })
}

// ---- registrations ----

// safeties are the levels of safety that callbacks are registered for, from the lowest on:
// MPI_T_CB_REQUIRE_*.
var safeties = [...]int{0, 3, 15, 63}

// callback is a function of the program, and what it is called with. No function: none is
// registered.
type callback struct{ fn, data uintptr }

// registration is what a handle of a registration stands for.
type registration struct {
	order     uint64
	kind      EventKind
	callbacks [len(safeties)]callback
	dropped   uintptr // a function of the program, or 0
}

func (r *registration) chosen() callback {
	for _, cb := range r.callbacks {
		if cb.fn != 0 {
			return cb
		}
	}
	return callback{}
}

// Listener is a registration that has a callback, for its callers. Functions and data are
// addresses of the program's.
type Listener struct {
	Order             uint64 // grows from one registration to the next
	Key               Handle
	Kind              EventKind
	Fn, Data, Dropped uintptr // Dropped is 0 where there is none
}

// Elements are how many elements events of the kind have, and a bit for each that is an int; the
// others are unsigned long long.
func (k EventKind) Elements() (n int, ints uint32) {
	for i, x := range eventTypes[k].elements {
		if x.datatype == Int {
			ints |= 1 << i
		}
	}
	return len(eventTypes[k].elements), ints
}

// publish has the callbacks called that are registered now.
func (s *State) publish() Code {
	var list []Listener
	for key, r := range s.events.all {
		if cb := r.chosen(); cb.fn != 0 {
			list = append(list, Listener{r.order, key, r.kind, cb.fn, cb.data, r.dropped})
		}
	}
	slices.SortFunc(list, func(a, b Listener) int { return cmp.Compare(a.Order, b.Order) })
	if !s.process.Listen(list) {
		return Memory
	}
	return Success
}

// AllocEvent is MPI_T_event_handle_alloc. infoOK: the info object is one, or MPI_INFO_NULL. No hint
// has a meaning.
func (s *State) AllocEvent(i int, infoOK bool, handle *Handle) Code {
	switch {
	case i < 0 || i >= len(eventTypes):
		return InvalidIndex
	case handle == nil:
		return Invalid
	case !infoOK:
		return InvalidHandle
	}
	s.registered++
	h := s.events.add(&registration{order: s.registered, kind: EventKind(i)})
	if h == NoHandle {
		return OutOfHandles
	}
	*handle = h
	return Success
}

// EventHints is MPI_T_event_handle_set_info, and what MPI_T_event_handle_get_info checks.
func (s *State) EventHints(key Handle, infoOK bool) Code {
	if s.events.find(key) == nil || !infoOK {
		return InvalidHandle
	}
	return Success
}

// RegisterCallback is MPI_T_event_register_callback; fn is 0 to take a callback away.
func (s *State) RegisterCallback(key Handle, safety int, infoOK bool, data, fn uintptr) Code {
	r, i := s.events.find(key), slices.Index(safeties[:], safety)
	switch {
	case r == nil:
		return InvalidHandle
	case i < 0:
		return Invalid
	case !infoOK:
		return InvalidHandle
	}
	before := r.callbacks[i]
	r.callbacks[i] = callback{fn, data}
	code := s.publish()
	if code != Success {
		r.callbacks[i] = before
	}
	return code
}

// CallbackHints is MPI_T_event_callback_set_info, and what MPI_T_event_callback_get_info checks.
func (s *State) CallbackHints(key Handle, safety int, infoOK bool) Code {
	r, i := s.events.find(key), slices.Index(safeties[:], safety)
	switch {
	case r == nil:
		return InvalidHandle
	case i < 0 || r.callbacks[i].fn == 0:
		return Invalid
	case !infoOK:
		return InvalidHandle
	}
	return Success
}

// SetDropped is MPI_T_event_set_dropped_handler; fn is 0 to take it away.
func (s *State) SetDropped(key Handle, fn uintptr) Code {
	r := s.events.find(key)
	if r == nil {
		return InvalidHandle
	}
	before := r.dropped
	r.dropped = fn
	code := s.publish()
	if code != Success {
		r.dropped = before
	}
	return code
}

// FreeEvent is MPI_T_event_handle_free, but for the function that the caller calls at the end:
// nothing else is called for the registration any more.
func (s *State) FreeEvent(key Handle) Code {
	if s.events.find(key) == nil {
		return InvalidHandle
	}
	s.events.forget(key)
	return s.publish()
}

// ---- the source: this process ----

// The order of a source's events, and the ticks of its clock in a second.
const (
	ordered = 1 // MPI_T_SOURCE_ORDERED
	ticks   = 1e9
)

// SourceNum is MPI_T_source_get_num.
func (s *State) SourceNum(num *int32) Code { return needInt(num, 1) }

// SourceInfo is MPI_T_source_get_info, but for the info object.
func (s *State) SourceInfo(i int, name, desc Text, ordering *int32, perSecond, most *int64) Code {
	if i != 0 {
		return InvalidIndex
	}
	name.put("spx_process")
	desc.put("what happens in this process, with the time of CLOCK_MONOTONIC")
	putInt(ordering, ordered)
	put(perSecond, ticks)
	put(most, math.MaxInt64)
	return Success
}

// SourceTime is MPI_T_source_get_timestamp; now is the time of the source's clock.
func (s *State) SourceTime(i int, now int64, to *int64) Code {
	switch {
	case i != 0:
		return InvalidIndex
	case to == nil:
		return Invalid
	}
	*to = now
	return Success
}
