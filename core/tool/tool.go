// Package tool is the tool information interface (MPI_T; MPI-5.0, section 16.3): control variables,
// performance variables with their sessions, events and their registrations, categories,
// enumerations; handles, names, checks of arguments, and return codes. It has no cgo and no clock:
// what it reads and changes in the process is a Process.
//
// A result that the caller does not want, or has forgotten, is a nil pointer here as it is NULL
// there; where one is needed, it is an error. Nothing is ever raised: all methods return a Code
// (section 16.3.10).
package tool

import "sync"

// Code is a return code by its value in the standard ABI.
type Code int

// The return codes that there are.
const (
	Success        Code = 0
	NotAccessible  Code = 1002
	NotInitialized Code = 1003
	Memory         Code = 1005
	Invalid        Code = 1006
	InvalidIndex   Code = 1007
	InvalidItem    Code = 1008
	InvalidSession Code = 1009
	InvalidHandle  Code = 1010
	InvalidName    Code = 1011
	OutOfHandles   Code = 1012
	OutOfSessions  Code = 1013
	SetNotNow      Code = 1014
	SetNever       Code = 1015
	NoWrite        Code = 1016
	NoStartStop    Code = 1017
	NoAtomic       Code = 1018
)

var codeNames = map[Code]string{
	Success: "MPI_SUCCESS", NotAccessible: "MPI_T_ERR_NOT_ACCESSIBLE",
	NotInitialized: "MPI_T_ERR_NOT_INITIALIZED",
	Memory:         "MPI_T_ERR_MEMORY", Invalid: "MPI_T_ERR_INVALID",
	InvalidIndex: "MPI_T_ERR_INVALID_INDEX",
	InvalidItem:  "MPI_T_ERR_INVALID_ITEM", InvalidSession: "MPI_T_ERR_INVALID_SESSION",
	InvalidHandle: "MPI_T_ERR_INVALID_HANDLE", InvalidName: "MPI_T_ERR_INVALID_NAME",
	OutOfHandles: "MPI_T_ERR_OUT_OF_HANDLES", OutOfSessions: "MPI_T_ERR_OUT_OF_SESSIONS",
	SetNotNow: "MPI_T_ERR_CVAR_SET_NOT_NOW", SetNever: "MPI_T_ERR_CVAR_SET_NEVER",
	NoWrite:     "MPI_T_ERR_PVAR_NO_WRITE",
	NoStartStop: "MPI_T_ERR_PVAR_NO_STARTSTOP", NoAtomic: "MPI_T_ERR_PVAR_NO_ATOMIC",
}

func (c Code) Error() string { return codeNames[c] }

// Levels of thread support, as MPI_T_init_thread takes and gives them (MPI-5.0, section 11.2.1).
const (
	ThreadSingle   = 0
	ThreadMultiple = 4096
)

// Verbosity of a variable or an event (section 16.3.1).
const (
	UserBasic   = 9
	UserDetail  = 10
	TunerDetail = 18
	MpidevBasic = 33
)

// What a variable may be bound to (section 16.3.2).
const (
	BindNothing = 1
	BindComm    = 2
)

// Datatypes of values and of the elements of events: handles of the standard ABI.
const (
	Int              Datatype = 521
	UnsignedLongLong Datatype = 527
	Double           Datatype = 532
	Char             Datatype = 579
)

// Datatype is the handle of a predefined datatype.
type Datatype uintptr

// Entry is what everything with a name has: the name, the category it belongs to, and a sentence.
type Entry struct{ Name, Area, Description string }

// Object is what a performance variable is bound to. The interface releases it with the last use.
type Object interface{ Release() }

// Process is what the interface reads and changes in the process. It is called under the lock of
// the interface.
type Process interface {
	// Settings are the control variables, always the same.
	Settings() []Setting
	// Number is the present value of setting i, Text that of one of KindText.
	Number(i int) uint64
	Text(i int) string
	// WriteNumber and WriteText return Success, SetNotNow, SetNever, or Invalid.
	WriteNumber(i int, v uint64) Code
	WriteText(i int, s string) Code

	// Count is a counter now, of the process, or of the object if that is not nil.
	Count(c Counter, of Object) uint64
	// TakeHigh returns the highest value that a level has had since the last call, or since the
	// process began. From now on it is the present one.
	TakeHigh(c Counter) uint64

	// Listen has these called, in this order, for each event of their kind, instead of those given
	// before; false: there is no memory, and it is as before. Fewer than before always find memory.
	Listen(list []Listener) bool
	// DropEvents forgets the events that have not been delivered.
	DropEvents()
	// Show makes reads of handle key return v from now on, without ReadPvar.
	Show(key Handle, v View)
	// Hide ends Show.
	Hide(key Handle)
}

// Interface is the tool information interface of a process. It may be used by several threads.
type Interface struct {
	mu    sync.Mutex
	begun int // calls of Init less those of Finalize; guarded by mu
	state State
}

// State is what may be done between Init and Finalize: see Use.
type State struct {
	process  Process
	settings []Setting
	areas    []string // categories; the first is the root

	cvars    handles[cvar]
	sessions handles[session]
	pvars    handles[pvar]
	events   handles[registration]

	registered uint64 // registrations so far
}

// New makes the interface of a process that is not in use yet.
func New(p Process) *Interface {
	return &Interface{state: State{
		process: p,
		cvars:   handles[cvar]{kind: kindCvar}, sessions: handles[session]{kind: kindSession},
		pvars: handles[pvar]{kind: kindPvar}, events: handles[registration]{kind: kindEvent},
	}}
}

// Init begins the use of the interface, at any time and any number of times (section 16.3.4).
// provided gets the level of thread support, which is always that required.
func (t *Interface) Init(required int, provided *int32) Code {
	if provided == nil || required < ThreadSingle || required > ThreadMultiple {
		return Invalid
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := &t.state; s.settings == nil {
		s.settings = s.process.Settings()
		s.areas = areasOf(s.settings)
	}
	t.begun++
	*provided = int32(required)
	return Success
}

// Finalize ends the use that one call of Init has begun. The last one frees what the tool has left;
// what was written to control variables stays.
func (t *Interface) Finalize() Code {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == 0 {
		return NotInitialized
	}
	if t.begun--; t.begun == 0 {
		t.state.end()
	}
	return Success
}

func (s *State) end() {
	for key := range s.cvars.all {
		s.cvars.forget(key)
	}
	for key, h := range s.pvars.all {
		s.freePvar(key, h)
	}
	for key := range s.sessions.all {
		s.sessions.forget(key)
	}
	for key := range s.events.all {
		s.events.forget(key)
	}
	s.publish()
	s.process.DropEvents()
}

// Use calls what, with the interface locked: NotInitialized outside of Init and Finalize. what must
// not call the program.
func (t *Interface) Use(what func(s *State) Code) Code {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == 0 {
		return NotInitialized
	}
	return what(&t.state)
}

// Text is a buffer for a string, and where its length goes (section 16.3.3). Len is nil: the caller
// does not want it.
type Text struct {
	Buf []byte
	Len *int32
}

// put stores s with a NUL, cut to what there is room for, and the length of all of it with the NUL.
func (t Text) put(s string) {
	if t.Len == nil {
		return
	}
	if n := len(t.Buf); n > 0 {
		t.Buf[copy(t.Buf[:n-1], s)] = 0
	}
	*t.Len = int32(len(s) + 1)
}

// put stores a result that is wanted.
func put[T any](to *T, v T) {
	if to != nil {
		*to = v
	}
}

func putInt(to *int32, v int) { put(to, int32(v)) }

// needInt is for results that cannot be left out.
func needInt(to *int32, v int) Code {
	if to == nil {
		return Invalid
	}
	*to = int32(v)
	return Success
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
