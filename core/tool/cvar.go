package tool

import "encoding/binary"

// Control variables (MPI-5.0, section 16.3.6): every setting of libspx is one, by the name of its
// environment variable. A choice and a switch are MPI_INT with an enumeration, numbers are
// MPI_UNSIGNED_LONG_LONG, texts MPI_CHAR.

// Kind is the kind of a setting: SPX_SK_* in settings.h.
type Kind int

// The kinds of settings.
const (
	KindCount Kind = 1 + iota
	KindBytes
	KindSwitch
	KindText
	KindChoice
)

// TextMax is the size of a control variable that is a text, in bytes, with its NUL.
const TextMax = 256

// Setting is a control variable.
type Setting struct {
	Entry
	Kind         Kind
	Scope, Level int      // MPI_T_SCOPE_*, MPI_T_VERBOSITY_*
	Choices      []string // of a choice; the first is the preset
}

func (s *Setting) enumerated() bool { return s.Kind == KindChoice || s.Kind == KindSwitch }

func (s *Setting) datatype() Datatype {
	switch {
	case s.Kind == KindText:
		return Char
	case s.enumerated():
		return Int
	}
	return UnsignedLongLong
}

// cvar is what a handle of a control variable stands for.
type cvar struct{ setting int }

func (s *State) setting(i int) *Setting {
	if i < 0 || i >= len(s.settings) {
		return nil
	}
	return &s.settings[i]
}

// CvarNum is MPI_T_cvar_get_num.
func (s *State) CvarNum(num *int32) Code { return needInt(num, len(s.settings)) }

// CvarInfo is MPI_T_cvar_get_info.
func (s *State) CvarInfo(i int, name Text, verbosity *int32, datatype *Datatype, enum *Handle,
	desc Text, bind, scope *int32) Code {
	v := s.setting(i)
	if v == nil {
		return InvalidIndex
	}
	name.put(v.Name)
	desc.put(v.Description)
	putInt(verbosity, v.Level)
	put(datatype, v.datatype())
	put(enum, s.enumOf(i))
	putInt(bind, BindNothing)
	putInt(scope, v.Scope)
	return Success
}

// CvarIndex is MPI_T_cvar_get_index. name is nil when the caller has given none.
func (s *State) CvarIndex(name *string, index *int32) Code {
	return indexOf(name, index, len(s.settings),
		func(i int) bool { return s.settings[i].Name == *name })
}

// indexOf stores the index of the first of n things that is the one looked for.
func indexOf(name *string, index *int32, n int, is func(i int) bool) Code {
	if name == nil || index == nil {
		return Invalid
	}
	for i := range n {
		if is(i) {
			*index = int32(i)
			return Success
		}
	}
	return InvalidName
}

// AllocCvar is MPI_T_cvar_handle_alloc. No variable is bound to an object.
func (s *State) AllocCvar(i int, handle *Handle, count *int32) Code {
	v := s.setting(i)
	switch {
	case v == nil:
		return InvalidIndex
	case handle == nil || count == nil:
		return Invalid
	}
	h := s.cvars.add(&cvar{i})
	if h == NoHandle {
		return OutOfHandles
	}
	*handle, *count = h, 1
	if v.Kind == KindText {
		*count = TextMax
	}
	return Success
}

// FreeCvar is MPI_T_cvar_handle_free.
func (s *State) FreeCvar(handle *Handle) Code {
	if handle == nil || s.cvars.find(*handle) == nil {
		return InvalidHandle
	}
	s.cvars.forget(*handle)
	*handle = NoHandle
	return Success
}

// ReadCvar is MPI_T_cvar_read. buf begins at the caller's buffer, and is nil when there is none; no
// more of it is used than the variable has.
func (s *State) ReadCvar(handle Handle, buf []byte) Code {
	v := s.cvars.find(handle)
	switch {
	case v == nil:
		return InvalidHandle
	case buf == nil:
		return Invalid
	}
	switch s.settings[v.setting].datatype() {
	case Char:
		size := int32(TextMax)
		Text{buf[:TextMax], &size}.put(s.process.Text(v.setting))
	case Int:
		binary.NativeEndian.PutUint32(buf, uint32(s.process.Number(v.setting)))
	default:
		binary.NativeEndian.PutUint64(buf, s.process.Number(v.setting))
	}
	return Success
}

// WriteCvar is MPI_T_cvar_write; buf is as ReadCvar's. A text is read up to its NUL.
func (s *State) WriteCvar(handle Handle, buf []byte) Code {
	v := s.cvars.find(handle)
	switch {
	case v == nil:
		return InvalidHandle
	case buf == nil:
		return Invalid
	}
	switch s.settings[v.setting].datatype() {
	case Char:
		text, ok := upToNUL(buf[:TextMax])
		if !ok {
			return Invalid
		}
		return s.process.WriteText(v.setting, text)
	case Int:
		n := int32(binary.NativeEndian.Uint32(buf))
		if n < 0 {
			return Invalid
		}
		return s.process.WriteNumber(v.setting, uint64(n))
	}
	return s.process.WriteNumber(v.setting, binary.NativeEndian.Uint64(buf))
}

// upToNUL reads no byte behind the NUL: the caller's buffer may end there. false: there is none.
func upToNUL(b []byte) (string, bool) {
	for i := range b {
		if b[i] == 0 {
			return string(b[:i]), true
		}
	}
	return "", false
}

// Enumerations. The handle of one has the index of its setting; the switches share that behind the
// last setting, and then come those of what is chosen for collectives (choice.go).

var offOn = []string{"off", "on"}

// enumOf is the enumeration of a setting, NoHandle for MPI_T_ENUM_NULL.
func (s *State) enumOf(i int) Handle {
	switch s.settings[i].Kind {
	case KindChoice:
		return kindEnum<<kindShift | Handle(i)
	case KindSwitch:
		return kindEnum<<kindShift | Handle(len(s.settings))
	}
	return NoHandle
}

// items are the names of an enumeration's items, and its own; nil when the handle is none.
func (s *State) items(e Handle) (items []string, name string) {
	i := e &^ (kindEnum << kindShift)
	switch {
	case e>>kindShift != kindEnum:
		return nil, ""
	case i > Handle(len(s.settings)):
		return choiceItems(int(i) - len(s.settings) - 1)
	case i == Handle(len(s.settings)):
		return offOn, "switch"
	case s.settings[i].Kind != KindChoice:
		return nil, ""
	}
	return s.settings[i].Choices, s.settings[i].Name
}

// EnumInfo is MPI_T_enum_get_info.
func (s *State) EnumInfo(e Handle, num *int32, name Text) Code {
	items, own := s.items(e)
	if items == nil {
		return InvalidHandle
	}
	putInt(num, len(items))
	name.put(own)
	return Success
}

// EnumItem is MPI_T_enum_get_item. The value of an item is its index.
func (s *State) EnumItem(e Handle, index int, value *int32, name Text) Code {
	items, _ := s.items(e)
	switch {
	case items == nil:
		return InvalidHandle
	case index < 0 || index >= len(items):
		return InvalidItem
	}
	putInt(value, index)
	name.put(items[index])
	return Success
}
