// Package attr implements cached attributes (MPI-5.0, section 7.7): keyvals, and the values that
// communicators, datatypes and windows hold under them. It owns keyvals and values, and decides
// which user function is called when and the effect of its result; it never calls one: each
// operation is a Walk, whose calls the owner (capi/) makes with no lock held.
package attr

import (
	"slices"
	"sync"

	"libspx/core/mpierr"
)

// Kind is the kind of object of a keyval.
type Kind int

// The kinds of objects that have attributes.
const (
	Comm Kind = 1 + iota
	Type
	Win
)

func (k Kind) String() string { return [...]string{"?", "communicator", "datatype", "window"}[k] }

// Values of the standard ABI that stand for functions.
const (
	NoCopy   = 0 // MPI_COMM_NULL_COPY_FN: not copied
	Dup      = 1 // MPI_COMM_DUP_FN: copied as it is
	NoDelete = 0 // MPI_COMM_NULL_DELETE_FN: nothing to be done
)

// Keyval is a key under which objects of one kind hold values. Its fields do not change.
type Keyval struct {
	Num    int // the number that the user holds
	Kind   Kind
	Copy   uintptr // user function, or NoCopy or Dup
	Delete uintptr // user function, or NoDelete
	Extra  uintptr // the user's extra_state

	refs  int  // one for the user's handle, one for every value held; guarded by Registry.mu
	freed bool // the user has freed it; guarded by Registry.mu
}

// A keyval's number is kind<<28 | generation<<20 | index + 1: a freed number differs from a live
// one.
const (
	indexBits = 20
	genBits   = 8
	kindShift = indexBits + genBits
	maxIndex  = 1<<indexBits - 1
)

// Registry holds the keyvals of a process. One lock guards it and every List that belongs to it; it
// is never held while a user function runs.
type Registry struct {
	mu    sync.Mutex
	slots []slot
	free  []int
	// OnKeyval, if set, is called for every number that becomes or ceases to be valid. Called with
	// the lock held.
	OnKeyval func(num int, live bool)
}

type slot struct {
	kv  *Keyval
	gen int
}

// Create makes a keyval (MPI_Comm_create_keyval and its kin).
func (r *Registry) Create(kind Kind, copyFn, deleteFn, extra uintptr) (*Keyval, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var k int
	switch n := len(r.free); {
	case n > 0:
		k, r.free = r.free[n-1], r.free[:n-1]
	case len(r.slots) < maxIndex:
		k = len(r.slots)
		r.slots = append(r.slots, slot{})
	default:
		return nil, mpierr.New(mpierr.NoMem, "%d keyvals exist: free some by MPI_Comm_free_keyval",
			maxIndex)
	}
	s := &r.slots[k]
	s.kv = &Keyval{Num: int(kind)<<kindShift | s.gen<<indexBits | (k + 1), Kind: kind, Copy: copyFn,
		Delete: deleteFn, Extra: extra, refs: 1}
	if r.OnKeyval != nil {
		r.OnKeyval(s.kv.Num, true)
	}
	return s.kv, nil
}

// Lookup returns the keyval with a number. A keyval that the user has freed is still found while
// objects hold values under it.
func (r *Registry) Lookup(kind Kind, num int) (*Keyval, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lookup(kind, num)
}

func (r *Registry) lookup(kind Kind, num int) (*Keyval, error) {
	k := num&maxIndex - 1
	if num <= 0 || k < 0 || k >= len(r.slots) || r.slots[k].kv == nil || r.slots[k].kv.Num != num {
		return nil, mpierr.New(mpierr.Keyval, "keyval %d is not one, or has been freed", num)
	}
	if kv := r.slots[k].kv; kv.Kind == kind {
		return kv, nil
	}
	return nil, mpierr.New(mpierr.Keyval, "keyval %d is for a %v, not for a %v", num,
		r.slots[k].kv.Kind, kind)
}

// Free releases the user's handle (MPI_Comm_free_keyval and related functions). The keyval lives on
// while objects hold values under it; meanwhile freeing it again has no effect, for delete
// functions do so.
func (r *Registry) Free(kind Kind, num int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kv, err := r.lookup(kind, num)
	if err != nil {
		return err
	}
	if !kv.freed {
		kv.freed = true
		r.unref(kv)
	}
	return nil
}

func (r *Registry) unref(kv *Keyval) {
	if kv.refs--; kv.refs > 0 {
		return
	}
	k := kv.Num&maxIndex - 1
	r.slots[k].kv = nil
	r.slots[k].gen = (r.slots[k].gen + 1) % (1 << genBits)
	r.free = append(r.free, k)
	if r.OnKeyval != nil {
		r.OnKeyval(kv.Num, false)
	}
}

type entry struct {
	kv    *Keyval
	value uintptr
}

// List holds the attributes of one object, in the order in which they were set.
type List struct {
	reg     *Registry
	entries []entry // guarded by reg.mu
	// OnChange, if set, is called for every change. Called with the registry's lock held.
	OnChange func(num int, value uintptr, present bool)
}

// NewList returns an empty list for an object.
func (r *Registry) NewList() *List { return &List{reg: r} }

// Len returns the number of attributes.
func (l *List) Len() int {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	return len(l.entries)
}

// Get returns the value held under a keyval, and whether there is one.
func (l *List) Get(kv *Keyval) (value uintptr, ok bool) {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	if k := l.find(kv); k >= 0 {
		return l.entries[k].value, true
	}
	return 0, false
}

func (l *List) find(kv *Keyval) int {
	return slices.IndexFunc(l.entries, func(e entry) bool { return e.kv == kv })
}

// put stores a value as the youngest.
func (l *List) put(kv *Keyval, value uintptr) {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	if k := l.find(kv); k >= 0 {
		l.entries = slices.Delete(l.entries, k, k+1)
	} else {
		kv.refs++
	}
	l.entries = append(l.entries, entry{kv, value})
	if l.OnChange != nil {
		l.OnChange(kv.Num, value, true)
	}
}

func (l *List) drop(kv *Keyval) {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	if k := l.find(kv); k >= 0 {
		l.entries = slices.Delete(l.entries, k, k+1)
		if l.OnChange != nil {
			l.OnChange(kv.Num, 0, false)
		}
		l.reg.unref(kv)
	}
}

func (l *List) snapshot() []entry {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	return slices.Clone(l.entries)
}

func (l *List) youngest() (entry, bool) {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	if n := len(l.entries); n > 0 {
		return l.entries[n-1], true
	}
	return entry{}, false
}
