package tool

import (
	"encoding/binary"
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

// Elements lie where MPI_T_event_get_info says.
func TestElements(t *testing.T) {
	_, s := begun(t)
	e := &Event{Kind: UnexpectedMessage, At: 77, Words: [EventWords]int64{1, -2, 1 << 40, 99}}
	num := int32(8)
	el := Elements{Types: make([]Datatype, 8), At: make([]int64, 8), Num: &num}
	want(t, s.EventInfo(int(e.Kind), Text{}, nil, el, nil, Text{}, nil), Success, "info")
	all := make([]byte, 8*EventWords)
	want(t, e.Copy(all), Success, "copy")
	for i := range int(num) {
		one := make([]byte, 8)
		want(t, e.Read(i, one), Success, "read")
		at := all[el.At[i]:]
		v := int64(binary.NativeEndian.Uint64(at))
		if el.Types[i] == Int {
			v = int64(int32(binary.NativeEndian.Uint32(at)))
		} else if el.Types[i] != UnsignedLongLong {
			t.Errorf("element %d has type %d", i, el.Types[i])
		}
		if v != e.Words[i] || !slices.Equal(one[:4], at[:4]) {
			t.Errorf("element %d: %d, not %d", i, v, e.Words[i])
		}
	}
	num = 1
	el = Elements{Types: make([]Datatype, 1), Num: &num}
	if s.EventInfo(int(e.Kind), Text{}, nil, el, nil, Text{}, nil); num != 4 || el.Types[0] != Int {
		t.Errorf("%d elements", num)
	}
	var stamp int64
	var source int32
	want(t, e.Stamp(&stamp), Success, "time")
	want(t, e.Source(&source), Success, "source")
	if stamp != 77 || source != 0 {
		t.Errorf("time %d, source %d", stamp, source)
	}
	want(t, e.Read(4, all), InvalidIndex, "behind the last")
	want(t, e.Read(-1, all), InvalidIndex, "-1")
	want(t, e.Read(0, nil), Invalid, "no buffer")
	want(t, e.Copy(nil), Invalid, "no buffer")
	want(t, e.Stamp(nil), Invalid, "no result")
	want(t, e.Source(nil), Invalid, "no result")
	e = nil
	want(t, e.Read(0, all), InvalidHandle, "no instance")
	want(t, e.Copy(all), InvalidHandle, "no instance")
	want(t, e.Stamp(&stamp), InvalidHandle, "no instance")
	want(t, e.Source(&source), InvalidHandle, "no instance")
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
