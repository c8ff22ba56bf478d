package tool

// Handle is a handle of the interface, which the program keeps as a pointer that it does not
// follow: kind, generation, index. One that was freed, or never given out, is found out.
type Handle uintptr

// Handles with a meaning of their own.
const (
	NoHandle   Handle = 0 // MPI_T_*_NULL
	AllHandles Handle = 1 // MPI_T_PVAR_ALL_HANDLES
)

// Kinds of handles.
const (
	kindCvar = 1 + iota
	kindSession
	kindPvar
	kindEvent
	kindEnum
)

const (
	indexBits = 20 // so many handles of a kind at most
	genBits   = 36
	kindShift = indexBits + genBits
)

// Index is which of its kind a handle is: from 0 on, less than 2^20. Other handles had it before,
// perhaps.
func (h Handle) Index() int { return int(h & (1<<indexBits - 1)) }

// handles are those of one kind. A value is reused only after 2^36 others with its index.
type handles[T any] struct {
	kind  Handle
	slots []slot[T]
	free  []uint32 // indexes without an object
}

type slot[T any] struct {
	object *T // nil: free
	gen    Handle
}

// add returns a handle of o; NoHandle: there are 2^20 of this kind.
func (t *handles[T]) add(o *T) Handle {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else if n := len(t.slots); n < 1<<indexBits {
		i = uint32(n)
		t.slots = append(t.slots, slot[T]{})
	} else {
		return NoHandle
	}
	s := &t.slots[i]
	s.object = o
	s.gen = (s.gen + 1) & (1<<genBits - 1)
	return t.key(i)
}

func (t *handles[T]) key(i uint32) Handle {
	return t.kind<<kindShift | t.slots[i].gen<<indexBits | Handle(i)
}

// find returns the object of a handle, nil when the handle has none.
func (t *handles[T]) find(h Handle) *T {
	i := h & (1<<indexBits - 1)
	if h>>kindShift != t.kind || i >= Handle(len(t.slots)) ||
		t.slots[i].gen != h>>indexBits&(1<<genBits-1) {
		return nil
	}
	return t.slots[i].object
}

// forget makes a handle that has an object invalid.
func (t *handles[T]) forget(h Handle) {
	if t.find(h) == nil {
		return
	}
	i := uint32(h & (1<<indexBits - 1))
	t.slots[i].object = nil
	t.free = append(t.free, i)
}

// all yields every handle with its object. The handle may be forgotten meanwhile.
func (t *handles[T]) all(yield func(Handle, *T) bool) {
	for i := range t.slots {
		if o := t.slots[i].object; o != nil && !yield(t.key(uint32(i)), o) {
			return
		}
	}
}
