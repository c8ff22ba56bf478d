package tool

import (
	"testing"

	"libspx/core/coll"
)

// The enumerations of what is chosen have the names that core/coll has; values are the numbers of a
// choice.
func TestChoices(t *testing.T) {
	w, s := begun(t)
	object := &thing{w: w}
	read := func(name string) string {
		var index, n int32
		var enum, session, h Handle
		var datatype Datatype
		want(t, s.PvarIndex(&name, int(ClassState), &index), Success, name)
		want(t, s.PvarInfo(int(index), Text{}, nil, nil, &datatype, &enum, Text{}, nil, nil, nil,
			nil), Success, name)
		if datatype != Int || enum == NoHandle {
			t.Errorf("%s: type %d, enumeration %x", name, datatype, enum)
		}
		want(t, s.CreateSession(&session), Success, "session")
		want(t, s.AllocPvar(session, int(index), func() Object { return object }, &h, &n), Success,
			name)
		want(t, s.Start(session, h), NoStartStop, name)
		var value int32
		if code, is := s.ReadState(session, h, &value); code != Success || !is {
			t.Errorf("%s: %v, %v", name, code, is)
		}
		if code, is := s.ReadState(session, h, nil); code != Invalid || !is {
			t.Errorf("%s, no result: %v, %v", name, code, is)
		}
		return itemOf(t, s, enum, int(value))
	}
	for k := range coll.Kinds {
		for i, algorithm := range coll.Choices(k) {
			reason := i % len(coll.Reasons(k))
			object.counts[ChoiceCounter(k, false)],
				object.counts[ChoiceCounter(k, true)] = uint64(i), uint64(reason)
			if got := read("spx_coll_" + k.String() + "_algorithm"); got != algorithm {
				t.Errorf("%v: %q, not %q", k, got, algorithm)
			}
			if got := read("spx_coll_" + k.String() + "_reason"); got != coll.Reasons(k)[reason] {
				t.Errorf("%v: %q, not %q", k, got, coll.Reasons(k)[reason])
			}
			var enum Handle
			want(t, s.EventInfo(int(CollectiveChosen), Text{}, nil, Elements{}, &enum, Text{}, nil),
				Success, "event")
			c := coll.Choice{Algorithm: uint8(i)}
			if got := itemOf(t, s, enum, ChoiceOf(k, c)); got != k.String()+" "+algorithm {
				t.Errorf("event of %v: %q, not %q", k, got, algorithm)
			}
		}
	}
	want(t, s.EnumInfo(s.choiceEnum(eventEnum+1), nil, Text{}), InvalidHandle,
		"behind the last enumeration")
}

func itemOf(t *testing.T, s *State, enum Handle, i int) string {
	t.Helper()
	var value int32
	buf, size := make([]byte, 300), int32(300)
	want(t, s.EnumItem(enum, i, &value, Text{buf, &size}), Success, "item")
	name, _ := upToNUL(buf)
	if int(value) != i {
		t.Errorf("item %d has value %d", i, value)
	}
	return name
}
