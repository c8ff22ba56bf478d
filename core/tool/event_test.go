package tool

import (
	"slices"
	"testing"
)

func register(t *testing.T, s *State, kind EventKind) Handle {
	t.Helper()
	var h Handle
	want(t, s.AllocEvent(int(kind), true, &h), Success, "registration")
	return h
}

// The callback of the lowest level is called, of the registrations that have one, in their order.
func TestListeners(t *testing.T) {
	w, s := begun(t)
	a, b, c := register(t, s, GetDone), register(t, s, FailureSeen), register(t, s, GetDone)
	want(t, s.RegisterCallback(c, 63, true, 31, 32), Success, "callback")
	want(t, s.RegisterCallback(a, 15, true, 11, 12), Success, "callback")
	want(t, s.RegisterCallback(a, 63, true, 13, 14), Success, "callback of a higher level")
	want(t, s.SetDropped(c, 33), Success, "dropped handler")
	want(t, s.SetDropped(b, 23), Success, "dropped handler of one without a callback")
	listens := func(list ...Listener) {
		t.Helper()
		for i := range w.listens {
			if w.listens[i].Order == 0 || (i > 0 && w.listens[i].Order <= w.listens[i-1].Order) {
				t.Errorf("order %v", w.listens)
			}
			w.listens[i].Order = 0
		}
		if !slices.Equal(w.listens, list) {
			t.Errorf("%v, not %v", w.listens, list)
		}
	}
	listens(Listener{0, a, GetDone, 12, 11, 0}, Listener{0, c, GetDone, 32, 31, 33})
	want(t, s.RegisterCallback(a, 0, true, 15, 16), Success, "callback of the lowest level")
	listens(Listener{0, a, GetDone, 16, 15, 0}, Listener{0, c, GetDone, 32, 31, 33})
	for _, safety := range []int{0, 15, 63} {
		want(t, s.CallbackHints(a, safety, true), Success, "hints of a callback")
		want(t, s.RegisterCallback(a, safety, true, 0, 0), Success, "callback taken away")
		want(t, s.CallbackHints(a, safety, true), Invalid, "hints of a callback that is gone")
	}
	listens(Listener{0, c, GetDone, 32, 31, 33})
	w.full = true
	want(t, s.RegisterCallback(b, 0, true, 21, 22), Memory, "no memory")
	want(t, s.CallbackHints(b, 0, true), Invalid, "a callback that found no memory")
	want(t, s.FreeEvent(c), Success, "free")
	listens()
	want(t, s.FreeEvent(c), InvalidHandle, "free again")
}

func TestWrongRegistrations(t *testing.T) {
	_, s := begun(t)
	var h Handle
	want(t, s.AllocEvent(-1, true, &h), InvalidIndex, "no event")
	want(t, s.AllocEvent(int(EventKinds), true, &h), InvalidIndex, "no event")
	want(t, s.AllocEvent(0, true, nil), Invalid, "no result")
	want(t, s.AllocEvent(0, false, &h), InvalidHandle, "no info object")
	h = register(t, s, FailureSeen)
	want(t, s.RegisterCallback(h, 7, true, 1, 2), Invalid, "no level of safety")
	want(t, s.RegisterCallback(h, 0, false, 1, 2), InvalidHandle, "no info object")
	want(t, s.EventHints(h, true), Success, "hints")
	want(t, s.EventHints(h, false), InvalidHandle, "no info object")
	want(t, s.CallbackHints(h, 7, true), Invalid, "no level of safety")
	for _, no := range []Handle{NoHandle, 1, 99, open(t, s), h + 1, h | 1<<indexBits<<1} {
		want(t, s.RegisterCallback(no, 0, true, 1, 2), InvalidHandle, "no registration")
		want(t, s.SetDropped(no, 1), InvalidHandle, "no registration")
		want(t, s.EventHints(no, true), InvalidHandle, "no registration")
		want(t, s.CallbackHints(no, 0, true), InvalidHandle, "no registration")
		want(t, s.FreeEvent(no), InvalidHandle, "no registration")
	}
}

// Elements are at the next multiple of their size, which bodies/tool.c relies on.
func TestElements(t *testing.T) {
	_, s := begun(t)
	for k := range EventKinds {
		num := int32(8)
		el := Elements{Types: make([]Datatype, 8), At: make([]int64, 8), Num: &num}
		want(t, s.EventInfo(int(k), Text{}, nil, el, nil, Text{}, nil), Success, "info")
		n, ints := k.Elements()
		if int(num) != n || n < 1 {
			t.Fatalf("kind %d: %d and %d elements", k, num, n)
		}
		at := int64(0)
		for i := range n {
			bytes := int64(8)
			switch el.Types[i] {
			case Int:
				bytes = 4
			case UnsignedLongLong:
			default:
				t.Errorf("kind %d, element %d has type %d", k, i, el.Types[i])
			}
			at = (at + bytes - 1) / bytes * bytes
			if el.At[i] != at || ints>>i&1 != uint32(2-bytes/4) {
				t.Errorf("kind %d, element %d is at %d, not %d; ints %b", k, i, el.At[i], at, ints)
			}
			at += bytes
		}
	}
	num := int32(1)
	el := Elements{Types: make([]Datatype, 1), Num: &num}
	if s.EventInfo(int(UnexpectedMessage), Text{}, nil, el, nil, Text{}, nil); num != 4 ||
		el.Types[0] != Int {
		t.Errorf("%d elements", num)
	}
}

func TestSource(t *testing.T) {
	_, s := begun(t)
	var n, order int32
	var perSecond, most, now int64
	want(t, s.SourceNum(&n), Success, "number")
	want(t, s.SourceInfo(0, Text{}, Text{}, &order, &perSecond, &most), Success, "info")
	want(t, s.SourceTime(0, 123, &now), Success, "time")
	if n != 1 || order != ordered || perSecond != 1_000_000_000 || most <= 0 || now != 123 {
		t.Error(n, order, perSecond, most, now)
	}
	want(t, s.SourceInfo(1, Text{}, Text{}, nil, nil, nil), InvalidIndex, "no source")
	want(t, s.SourceTime(1, 1, nil), InvalidIndex, "no source")
	want(t, s.SourceTime(0, 1, nil), Invalid, "no result")
}
