package attr

import (
	"fmt"
	"strings"
	"testing"

	"libspx/core/mpierr"
)

// user stands for the user's functions: it logs what is called and answers by a table of codes.
type user struct {
	log  []string
	code map[uintptr]int // by value: what the function returns for it
	keep map[uintptr]bool
}

func (u *user) run(w *Walk) error {
	for c, ok := w.Next(); ok; c, ok = w.Next() {
		what, fn := "del", c.KV.Delete
		if c.Copy {
			what, fn = "copy", c.KV.Copy
		}
		u.log = append(u.log, fmt.Sprintf("%s:%d(%d)", what, fn, c.Value))
		w.Done(u.code[c.Value], !u.keep[c.Value], c.Value+1000)
	}
	return w.Err()
}

func (u *user) calls() string {
	s := strings.Join(u.log, " ")
	u.log = nil
	return s
}

func keyval(t *testing.T, r *Registry, copyFn, deleteFn uintptr) *Keyval {
	t.Helper()
	kv, err := r.Create(Comm, copyFn, deleteFn, 0)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func (u *user) set(t *testing.T, l *List, kv *Keyval, v uintptr) {
	t.Helper()
	if err := u.run(l.Set(kv, v)); err != nil {
		t.Fatal(err)
	}
}

func TestSettingAgainDeletesTheOldValue(t *testing.T) {
	r, u := &Registry{}, &user{}
	kv, l := keyval(t, r, 50, 60), r.NewList()
	u.set(t, l, kv, 1)
	if got := u.calls(); got != "" {
		t.Errorf("the first setting called %s", got)
	}
	u.set(t, l, kv, 2)
	if got := u.calls(); got != "del:60(1)" {
		t.Errorf("the second setting called %q", got)
	}
	if v, ok := l.Get(kv); !ok || v != 2 {
		t.Errorf("value = %d, %v", v, ok)
	}
}

func TestFailingDeleteKeepsTheAttribute(t *testing.T) {
	r, u := &Registry{}, &user{code: map[uintptr]int{1: 77}}
	kv, l := keyval(t, r, 50, 60), r.NewList()
	u.set(t, l, kv, 1)
	for what, w := range map[string]*Walk{"set": l.Set(kv, 2), "delete": l.Delete(kv),
		"free": l.DeleteAll()} {
		if err := u.run(w); mpierr.ClassOf(err) != 77 {
			t.Errorf("%s: %v, want the function's code 77", what, err)
		}
		if v, ok := l.Get(kv); !ok || v != 1 {
			t.Errorf("after %s: value = %d, %v", what, v, ok)
		}
	}
}

func TestCopyFollowsTheCopyFunctions(t *testing.T) {
	r, u := &Registry{}, &user{keep: map[uintptr]bool{4: true}}
	l, to := r.NewList(), r.NewList()
	none, dup, fn, flagged := keyval(t, r, NoCopy, 0), keyval(t, r, Dup, 0), keyval(t, r, 50, 0),
		keyval(t, r, 51, 0)
	for k, kv := range []*Keyval{none, dup, fn, flagged} {
		u.set(t, l, kv, uintptr(k+1))
	}
	if err := u.run(l.CopyAll(to)); err != nil {
		t.Fatal(err)
	}
	if got := u.calls(); got != "copy:50(3) copy:51(4)" {
		t.Errorf("called %q", got)
	}
	if v, ok := to.Get(dup); !ok || v != 2 {
		t.Errorf("dup copied as %d, %v", v, ok)
	}
	if v, ok := to.Get(fn); !ok || v != 1003 {
		t.Errorf("copied as %d, %v", v, ok)
	}
	if to.Len() != 2 {
		t.Errorf("%d attributes were copied, want 2", to.Len())
	}
}

func TestFailingCopyStops(t *testing.T) {
	r, u := &Registry{}, &user{code: map[uintptr]int{1: 5}}
	l, to := r.NewList(), r.NewList()
	u.set(t, l, keyval(t, r, 50, 0), 1)
	u.set(t, l, keyval(t, r, 50, 0), 2)
	if err := u.run(l.CopyAll(to)); mpierr.ClassOf(err) != 5 {
		t.Errorf("error %v, want code 5", err)
	}
	if got := u.calls(); got != "copy:50(1)" {
		t.Errorf("called %q", got)
	}
}

// MPI-5.0, section 11.2.4: attributes of MPI_COMM_SELF are deleted in the reverse of the order in
// which they were set.
func TestDeleteAllGoesFromTheYoungest(t *testing.T) {
	r, u := &Registry{}, &user{}
	l := r.NewList()
	a, b := keyval(t, r, 0, 60), keyval(t, r, 0, 61)
	u.set(t, l, a, 1)
	u.set(t, l, b, 2)
	u.set(t, l, keyval(t, r, 0, NoDelete), 3)
	u.set(t, l, a, 4) // set again: a is the youngest now
	u.calls()
	if err := u.run(l.DeleteAll()); err != nil {
		t.Fatal(err)
	}
	if got := u.calls(); got != "del:60(4) del:61(2)" || l.Len() != 0 {
		t.Errorf("called %q, %d left", got, l.Len())
	}
}

func TestFreedKeyvalLivesWhileInUse(t *testing.T) {
	live := map[int]bool{}
	r, u := &Registry{}, &user{}
	r.OnKeyval = func(num int, l bool) { live[num] = l }
	kv, l := keyval(t, r, Dup, 60), r.NewList()
	u.set(t, l, kv, 1)
	if err := r.Free(Comm, kv.Num); err != nil {
		t.Fatal(err)
	}
	if err := r.Free(Comm, kv.Num); err != nil {
		t.Errorf("freed again while in use: %v", err)
	}
	if err := u.run(l.Set(kv, 2)); mpierr.ClassOf(err) != mpierr.Keyval {
		t.Errorf("set under a freed keyval: %v", err)
	}
	to := r.NewList()
	if err := u.run(l.CopyAll(to)); err != nil || to.Len() != 1 {
		t.Errorf("copy under a freed keyval: %v, %d attributes", err, to.Len())
	}
	if err := u.run(l.DeleteAll()); err != nil {
		t.Fatal(err)
	}
	if !live[kv.Num] {
		t.Error("the keyval ended while a copy of its value was held")
	}
	if err := u.run(to.DeleteAll()); err != nil {
		t.Fatal(err)
	}
	if live[kv.Num] {
		t.Error("the keyval lives although nothing refers to it")
	}
	if err := r.Free(Comm, kv.Num); mpierr.ClassOf(err) != mpierr.Keyval {
		t.Errorf("freed after its end: %v", err)
	}
	if _, err := r.Lookup(Comm, kv.Num); mpierr.ClassOf(err) != mpierr.Keyval {
		t.Errorf("lookup of an ended keyval: %v", err)
	}
	if again := keyval(t, r, 0, 0); again.Num == kv.Num {
		t.Error("the number of an ended keyval is given out again at once")
	}
}

func TestWrongKeyvals(t *testing.T) {
	r, u := &Registry{}, &user{}
	kv, l := keyval(t, r, 0, 0), r.NewList()
	if _, err := r.Lookup(Win, kv.Num); mpierr.ClassOf(err) != mpierr.Keyval {
		t.Errorf("keyval of another kind: %v", err)
	}
	for _, num := range []int{0, -1, 1, 1 << 28, kv.Num + 1} {
		if _, err := r.Lookup(Comm, num); mpierr.ClassOf(err) != mpierr.Keyval {
			t.Errorf("keyval %d: %v", num, err)
		}
	}
	if err := u.run(l.Delete(kv)); err != nil || u.calls() != "" {
		t.Errorf("deletion of an attribute that is not there: %v", err)
	}
}
