package attr

import "libspx/core/mpierr"

// Call is a user function that a Walk wants called.
type Call struct {
	Copy  bool // Keyval.Copy is called, on the old object; else Keyval.Delete
	KV    *Keyval
	Value uintptr
}

// Walk is an operation on attributes as a sequence of calls of user functions:
//
//	for call, ok := w.Next(); ok; call, ok = w.Next() {
//		... call it ...
//		w.Done(code, flag, value)
//	}
//	err := w.Err()
//
// Between Next and Done no lock is held and the attributes are in a state that every MPI call may
// see: a user function may use MPI, and may leave by longjmp, after which the Walk is dropped.
type Walk struct {
	next func() (Call, bool)
	done func(flag bool, value uintptr)
	cur  Call
	err  error
}

// Next returns the next function to be called; ok is false when there is none left, or an error has
// ended the operation.
func (w *Walk) Next() (c Call, ok bool) {
	if w.err != nil {
		return Call{}, false
	}
	c, ok = w.next()
	w.cur = c
	return c, ok
}

// Done takes the result of the function: its return code and, of a copy function, its flag and
// value.
func (w *Walk) Done(code int, flag bool, value uintptr) {
	if code != 0 {
		what := "delete"
		if w.cur.Copy {
			what = "copy"
		}
		w.err = mpierr.New(mpierr.Class(code), "the %s function of keyval %d returned %d", what,
			w.cur.KV.Num, code)
		return
	}
	w.done(flag, value)
}

// Err returns the error that ended the operation: its class is the code that a user function
// returned.
func (w *Walk) Err() error { return w.err }

func failed(err error) *Walk {
	return &Walk{err: err}
}

// Set stores a value under a keyval; a value that is there is deleted first (MPI_Comm_set_attr and
// its kin). A keyval that the user has freed takes no new values.
func (l *List) Set(kv *Keyval, value uintptr) *Walk {
	l.reg.mu.Lock()
	freed := kv.freed
	l.reg.mu.Unlock()
	if freed {
		return failed(mpierr.New(mpierr.Keyval, "keyval %d has been freed", kv.Num))
	}
	asked := false
	w := &Walk{}
	w.next = func() (Call, bool) {
		if !asked {
			asked = true
			if old, ok := l.Get(kv); ok && kv.Delete != NoDelete {
				return Call{KV: kv, Value: old}, true
			}
		}
		l.put(kv, value)
		return Call{}, false
	}
	w.done = func(bool, uintptr) { l.drop(kv) }
	return w
}

// Delete removes the value under a keyval (MPI_Comm_delete_attr and its kin), if there is one.
func (l *List) Delete(kv *Keyval) *Walk {
	w := &Walk{}
	w.next = func() (Call, bool) {
		value, ok := l.Get(kv)
		switch {
		case !ok:
			return Call{}, false
		case kv.Delete != NoDelete:
			return Call{KV: kv, Value: value}, true
		}
		l.drop(kv)
		return Call{}, false
	}
	w.done = func(bool, uintptr) { l.drop(kv) }
	return w
}

// DeleteAll removes all attributes, the youngest first, as freeing an object does. The first delete
// function that fails ends it; its attribute stays.
func (l *List) DeleteAll() *Walk {
	w := &Walk{}
	w.next = func() (Call, bool) {
		for {
			e, ok := l.youngest()
			if !ok {
				return Call{}, false
			}
			if e.kv.Delete != NoDelete {
				return Call{KV: e.kv, Value: e.value}, true
			}
			l.drop(e.kv)
		}
	}
	w.done = func(bool, uintptr) { l.drop(w.cur.KV) }
	return w
}

// CopyAll copies the attributes of l to the new object's list, the oldest first, as decided by the
// copy functions.
func (l *List) CopyAll(to *List) *Walk {
	todo := l.snapshot()
	w := &Walk{}
	w.next = func() (Call, bool) {
		for len(todo) > 0 {
			e := todo[0]
			todo = todo[1:]
			switch e.kv.Copy {
			case NoCopy:
			case Dup:
				to.put(e.kv, e.value)
			default:
				return Call{Copy: true, KV: e.kv, Value: e.value}, true
			}
		}
		return Call{}, false
	}
	w.done = func(flag bool, value uintptr) {
		if flag {
			to.put(w.cur.KV, value)
		}
	}
	return w
}
