package tool

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"libspx/api"
)

// Constants are those of the standard ABI: api/constants.tsv.
func TestConstants(t *testing.T) {
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]int{}
	for _, c := range tables.Constants {
		if n, err := strconv.ParseInt(c.Value, 0, 64); err == nil {
			values[c.Name] = int(n)
		}
	}
	mine := map[string]int{
		"MPI_THREAD_SINGLE": ThreadSingle, "MPI_THREAD_MULTIPLE": ThreadMultiple,
		"MPI_T_VERBOSITY_USER_BASIC": UserBasic, "MPI_T_VERBOSITY_TUNER_DETAIL": TunerDetail,
		"MPI_T_VERBOSITY_MPIDEV_BASIC": MpidevBasic,
		"MPI_T_BIND_NO_OBJECT":         BindNothing, "MPI_T_BIND_MPI_COMM": BindComm,
		"MPI_INT": int(Int), "MPI_UNSIGNED_LONG_LONG": int(UnsignedLongLong),
		"MPI_DOUBLE": int(Double), "MPI_CHAR": int(Char),
		"MPI_T_VERBOSITY_USER_DETAIL": UserDetail, "MPI_T_PVAR_CLASS_STATE": int(ClassState),
		"MPI_T_PVAR_CLASS_LEVEL": int(ClassLevel), "MPI_T_PVAR_CLASS_HIGHWATERMARK": int(ClassHigh),
		"MPI_T_PVAR_CLASS_COUNTER":   int(ClassCounter),
		"MPI_T_PVAR_CLASS_AGGREGATE": int(ClassAggregate),
		"MPI_T_PVAR_CLASS_TIMER":     int(ClassTimer), "MPI_T_SOURCE_ORDERED": ordered,
		"MPI_T_PVAR_ALL_HANDLES": int(AllHandles), "MPI_T_ENUM_NULL": int(NoHandle),
		"MPI_T_CVAR_HANDLE_NULL":  int(NoHandle),
		"MPI_T_PVAR_SESSION_NULL": int(NoHandle), "MPI_T_PVAR_HANDLE_NULL": int(NoHandle),
		"MPI_T_CB_REQUIRE_NONE": safeties[0], "MPI_T_CB_REQUIRE_MPI_RESTRICTED": safeties[1],
		"MPI_T_CB_REQUIRE_THREAD_SAFE":       safeties[2],
		"MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE": safeties[3],
	}
	for code, name := range codeNames {
		mine[name] = int(code)
	}
	for name, v := range mine {
		if is, ok := values[name]; !ok || is != v {
			t.Errorf("%s: %d here, %d (%v) in the table", name, v, is, ok)
		}
	}
}

// Init and Finalize are counted, and nothing else may be called outside of them (section 16.3.4).
func TestBeginAndEnd(t *testing.T) {
	w := newWorld()
	x := New(w)
	use := func() Code { return x.Use(func(*State) Code { return Success }) }
	var level int32
	want(t, use(), NotInitialized, "before")
	want(t, x.Finalize(), NotInitialized, "end before the beginning")
	want(t, x.Init(-1, &level), Invalid, "level -1")
	want(t, x.Init(ThreadMultiple+1, &level), Invalid, "a level above the highest")
	want(t, x.Init(0, nil), Invalid, "no result")
	want(t, use(), NotInitialized, "after failed beginnings")
	x.Init(1, &level)
	x.Init(2, &level)
	if level != 2 {
		t.Errorf("level %d", level)
	}
	s := &x.state
	in := open(t, s)
	object := &thing{w: w}
	h := alloc(t, s, in, "spx_comm_messages_sent", object)
	var c, r Handle
	var n int32
	s.AllocCvar(0, &c, &n)
	s.AllocEvent(0, true, &r)
	s.RegisterCallback(r, 0, true, 5, 6)
	want(t, x.Finalize(), Success, "first end")
	want(t, use(), Success, "between the ends")
	if w.dropped != 0 || len(w.listens) != 1 {
		t.Error("it has ended too early")
	}
	want(t, x.Finalize(), Success, "second end")
	want(t, use(), NotInitialized, "after the end")
	if w.released[object] != 1 || w.dropped != 1 || len(w.listens) != 0 {
		t.Errorf("released %d times, events dropped %d times, %d listen", w.released[object],
			w.dropped, len(w.listens))
	}
	x.Init(0, &level)
	buf := make([]byte, TextMax)
	var v uint64
	want(t, s.ReadPvar(in, h, &v), InvalidSession, "session of before")
	want(t, s.ReadPvar(open(t, s), h, &v), InvalidHandle, "handle of before")
	want(t, s.ReadCvar(c, buf), InvalidHandle, "control variable of before")
	want(t, s.RegisterCallback(r, 0, true, 5, 6), InvalidHandle, "registration of before")
}

// A string is cut to what there is room for, and its length is that of all of it (section 16.3.3).
func TestText(t *testing.T) {
	for _, test := range []struct {
		room int
		text string
	}{{-3, ""}, {0, ""}, {1, ""}, {3, "ab"}, {6, "abcde"}, {7, "abcdef"}, {20, "abcdef"}} {
		buf := []byte("????????????????????")
		size := int32(test.room)
		Text{buf[:max(test.room, 0)], &size}.put("abcdef")
		is, _ := upToNUL(buf[:max(test.room, 0)])
		if is != test.text || size != 7 || (test.room < 20 && buf[max(test.room, 0)] != '?') {
			t.Errorf("room for %d: %q, length %d", test.room, buf, size)
		}
	}
	size := int32(4)
	Text{nil, &size}.put("abcdef")
	if size != 7 {
		t.Errorf("length alone: %d", size)
	}
	Text{}.put("abcdef")
}

// Everything is found by its name, and described.
func TestTables(t *testing.T) {
	_, s := begun(t)
	var num, index int32
	for _, table := range []struct {
		what  string
		num   func(*int32) Code
		info  func(int, Text) Code
		index func(*string, *int32) Code
	}{
		{"control variable", s.CvarNum, func(i int, name Text) Code {
			return s.CvarInfo(i, name,
				nil, nil, nil, Text{}, nil, nil)
		}, s.CvarIndex},
		{"variable", s.PvarNum, func(i int, name Text) Code {
			return s.PvarInfo(i, name, nil, nil, nil, nil, Text{}, nil, nil, nil, nil)
		}, func(name *string, index *int32) Code {
			for _, class := range []Class{ClassState, ClassLevel, ClassHigh, ClassCounter,
				ClassAggregate} {
				if code := s.PvarIndex(name, int(class), index); code != InvalidName {
					return code
				}
			}
			return s.PvarIndex(name, int(ClassTimer), index)
		}},
		{"event", s.EventNum, func(i int, name Text) Code {
			return s.EventInfo(i, name, nil,
				Elements{}, nil, Text{}, nil)
		}, s.EventIndex},
		{"category", s.CategoryNum, func(i int, name Text) Code {
			return s.CategoryInfo(i, name,
				Text{}, nil, nil, nil)
		}, s.CategoryIndex},
	} {
		want(t, table.num(&num), Success, table.what)
		want(t, table.num(nil), Invalid, table.what+": no result")
		for i := range int(num) {
			buf, size := make([]byte, 100), int32(100)
			want(t, table.info(i, Text{buf, &size}), Success, table.what)
			name, _ := upToNUL(buf)
			want(t, table.index(&name, &index), Success, name)
			if int(index) != i || len(name)+1 != int(size) {
				t.Errorf("%s %d is %q, which is %d", table.what, i, name, index)
			}
			want(t, table.index(&name, nil), Invalid, name+": no result")
		}
		none := "spx_none"
		want(t, table.info(-1, Text{}), InvalidIndex, table.what+" -1")
		want(t, table.info(int(num), Text{}), InvalidIndex, table.what+" behind the last")
		want(t, table.index(&none, &index), InvalidName, table.what)
		want(t, table.index(nil, &index), Invalid, table.what+": no name")
	}
	for i := range variables {
		v := &variables[i]
		if v.Area == "" || len(v.Description) < 10 ||
			(v.Bind != BindNothing) != (strings.HasPrefix(v.Name, "spx_comm_") || v.isState()) {
			t.Errorf("%+v", v)
		}
	}
}

// Each thing is in one category, and in the root there are the categories.
func TestCategories(t *testing.T) {
	_, s := begun(t)
	var cvars, pvars, events, below, n int32
	var sum [3]int32
	list := make([]int32, 100)
	for cat := range s.areas {
		want(t, s.CategoryInfo(cat, Text{}, Text{}, &cvars, &pvars, &below), Success, "info")
		want(t, s.CategoryEvents(cat, &events), Success, "events")
		for i, k := range []int32{cvars, pvars, events} {
			sum[i] += k
		}
		for of, k := range map[Member]int32{Cvars: cvars, Pvars: pvars, Events: events,
			Categories: below} {
			for i := range list {
				list[i] = -1
			}
			want(t, s.CategoryMembers(cat, of, len(list), list), Success, "members")
			if !slices.IsSorted(list[:k]) || list[k] != -1 || (k > 0 && list[0] < 0) {
				t.Errorf("category %d has %d of kind %d: %v", cat, k, of, list)
			}
			if k > 1 {
				list[1] = -1
				want(t, s.CategoryMembers(cat, of, 1, list[:1]), Success, "the first")
				if list[1] != -1 {
					t.Error("more than there is room for")
				}
			}
		}
	}
	if want := [3]int32{int32(len(testSettings)), int32(len(variables)),
		int32(len(eventTypes))}; sum != want {
		t.Errorf("%v in categories, not %v", sum, want)
	}
	want(t, s.CategoryMembers(0, Cvars, -1, list), Invalid, "a negative length")
	want(t, s.CategoryMembers(0, Cvars, 1, nil), Invalid, "no array")
	want(t, s.CategoryMembers(0, Cvars, 0, nil), Success, "nothing wanted")
	want(t, s.CategoryMembers(99, Cvars, 0, nil), InvalidIndex, "no category")
	want(t, s.CategoryEvents(0, nil), Invalid, "no result")
	want(t, s.CategoryChanged(nil), Invalid, "no result")
	want(t, s.CategoryChanged(&n), Success, "changed")
	for _, area := range s.areas {
		if areaText(area) == "" {
			t.Error(area)
		}
	}
}

// Values of each kind are written and read back; what is none leaves the variable as it is (section
// 16.3.6).
func TestControlVariables(t *testing.T) {
	w, s := begun(t)
	open := func(name string) (h Handle, count int32) {
		var i int32
		want(t, s.CvarIndex(&name, &i), Success, name)
		want(t, s.AllocCvar(int(i), &h, &count), Success, name)
		return h, count
	}
	size, n := open("SPX_SIZE")
	buf := make([]byte, TextMax)
	for i := range 8 {
		buf[i] = byte(i % 5)
	}
	want(t, s.WriteCvar(size, buf), Invalid, "a number that is too large")
	buf[5], buf[6], buf[7] = 0, 0, 0
	want(t, s.WriteCvar(size, buf[:8]), Success, "a number")
	back := make([]byte, 8)
	want(t, s.ReadCvar(size, back), Success, "a number")
	if !slices.Equal(back, buf[:8]) || n != 1 {
		t.Errorf("%v, count %d", back, n)
	}
	on, _ := open("SPX_ON")
	want(t, s.WriteCvar(on, []byte{1, 0, 0, 0}), Success, "on")
	want(t, s.WriteCvar(on, []byte{255, 255, 255, 255}), Invalid, "-1")
	if back = make([]byte, 4); s.ReadCvar(on, back) != Success || back[0] != 1 {
		t.Errorf("%v", back)
	}
	file, n := open("SPX_FILE")
	if n != TextMax {
		t.Errorf("count %d of a text", n)
	}
	want(t, s.WriteCvar(file, append([]byte("/x\x00"), make([]byte, 300)...)), Success, "a text")
	want(t, s.WriteCvar(file, slices.Repeat([]byte("x"), 300)), Invalid, "a text without an end")
	want(t, s.WriteCvar(file, append([]byte("never\x00"), make([]byte, 300)...)), SetNever,
		"a text that is refused")
	want(t, s.ReadCvar(file, buf), Success, "a text")
	if text, _ := upToNUL(buf); text != "/x" || w.texts[3] != "/x" {
		t.Errorf("%q", text)
	}
	w.texts[3] = string(slices.Repeat([]byte("y"), 400))
	if s.ReadCvar(file, buf); buf[254] != 'y' || buf[255] != 0 {
		t.Error("a long text of the environment is not cut")
	}
	want(t, s.ReadCvar(file, nil), Invalid, "no buffer")
	want(t, s.WriteCvar(file, nil), Invalid, "no buffer")
	old := file
	want(t, s.FreeCvar(&file), Success, "free")
	want(t, s.FreeCvar(&old), InvalidHandle, "free again")
	want(t, s.FreeCvar(nil), InvalidHandle, "free none")
	want(t, s.ReadCvar(old, buf), InvalidHandle, "read what is free")
	want(t, s.AllocCvar(77, &old, &n), InvalidIndex, "no variable")
	want(t, s.AllocCvar(0, nil, &n), Invalid, "no result")
	if file != NoHandle {
		t.Error("the handle is still there")
	}
}

func TestEnumerations(t *testing.T) {
	_, s := begun(t)
	items := map[string][]string{}
	for i := range testSettings {
		var e Handle
		var datatype Datatype
		s.CvarInfo(i, Text{}, nil, &datatype, &e, Text{}, nil, nil)
		if (e != NoHandle) != (datatype == Int) {
			t.Errorf("%s: type %d, enumeration %x", testSettings[i].Name, datatype, e)
		}
		if e == NoHandle {
			continue
		}
		var num, value int32
		buf, size := make([]byte, 50), int32(50)
		want(t, s.EnumInfo(e, &num, Text{buf, &size}), Success, "info")
		name, _ := upToNUL(buf)
		for k := range int(num) {
			size = 50
			want(t, s.EnumItem(e, k, &value, Text{buf, &size}), Success, "item")
			item, _ := upToNUL(buf)
			items[name] = append(items[name], item)
			if int(value) != k {
				t.Errorf("item %d is %d", k, value)
			}
		}
		want(t, s.EnumItem(e, int(num), nil, Text{}), InvalidItem, "behind the last")
		want(t, s.EnumItem(e, -1, nil, Text{}), InvalidItem, "-1")
	}
	if !slices.Equal(items["SPX_WAY"], testSettings[1].Choices) ||
		!slices.Equal(items["switch"], offOn) || len(items) != 2 {
		t.Errorf("%v", items)
	}
	for _, e := range []Handle{0, 1, 77, kindEnum << kindShift, kindEnum<<kindShift + 99,
		kindCvar << kindShift} {
		want(t, s.EnumInfo(e, nil, Text{}), InvalidHandle, "no enumeration")
		want(t, s.EnumItem(e, 0, nil, Text{}), InvalidHandle, "no enumeration")
	}
}

// A handle counts while it runs, apart from the others (section 16.3.7).
func TestCounter(t *testing.T) {
	w, s := begun(t)
	in := open(t, s)
	a, b := alloc(t, s, in, "spx_messages_sent", nil), alloc(t, s, in, "spx_messages_sent", nil)
	w.counts[Sent] = 100
	is := func(wantA, wantB uint64) {
		t.Helper()
		if va, vb := read(t, s, in, a), read(t, s, in, b); va != wantA || vb != wantB {
			t.Errorf("%d and %d, not %d and %d", va, vb, wantA, wantB)
		}
	}
	is(0, 0)
	want(t, s.Start(in, a), Success, "start")
	w.counts[Sent] += 5
	want(t, s.Start(in, b), Success, "start")
	w.counts[Sent] += 7
	is(12, 7)
	want(t, s.Start(in, a), Success, "start again")
	want(t, s.Stop(in, b), Success, "stop")
	w.counts[Sent]++
	is(13, 7)
	want(t, s.Stop(in, b), Success, "stop again")
	s.Start(in, b)
	w.counts[Sent] += 2
	is(15, 9)
	want(t, s.Reset(in, a), Success, "reset")
	is(0, 9)
	v := uint64(1000)
	want(t, s.WritePvar(in, b, &v), Success, "write")
	w.counts[Sent]++
	is(1, 1001)
	want(t, s.ReadReset(in, b, &v), Success, "read and reset")
	if v != 1001 {
		t.Error(v)
	}
	is(1, 0)
	s.Stop(in, a)
	want(t, s.ReadReset(in, a, &v), Success, "read and reset, stopped")
	w.counts[Sent] = 0 // a counter may begin again where MPI does
	is(0, math.MaxUint64-115)
}

// A timer is seconds, as a double.
func TestTimer(t *testing.T) {
	w, s := begun(t)
	in := open(t, s)
	h := alloc(t, s, in, "spx_sleep_time", nil)
	s.Start(in, h)
	w.counts[SleepNs] += 2_500_000_000
	if v := math.Float64frombits(read(t, s, in, h)); v != 2.5 {
		t.Error(v)
	}
	for _, v := range []float64{-1, math.NaN(), math.Inf(1), 1e30} {
		bits := math.Float64bits(v)
		want(t, s.WritePvar(in, h, &bits), Invalid, "no time")
	}
	bits := math.Float64bits(0.25)
	want(t, s.WritePvar(in, h, &bits), Success, "a time")
	w.counts[SleepNs] += 1_000_000_000
	if v := math.Float64frombits(read(t, s, in, h)); v != 1.25 {
		t.Error(v)
	}
}

func TestLevel(t *testing.T) {
	w, s := begun(t)
	in := open(t, s)
	h := alloc(t, s, in, "spx_posted_length", nil)
	w.counts[PostedLength] = 7
	v := uint64(1)
	if v := read(t, s, in, h); v != 7 {
		t.Error(v)
	}
	want(t, s.Start(in, h), NoStartStop, "start")
	want(t, s.Stop(in, h), NoStartStop, "stop")
	want(t, s.Reset(in, h), NoWrite, "reset")
	want(t, s.WritePvar(in, h, &v), NoWrite, "write")
	want(t, s.ReadReset(in, h, &v), NoAtomic, "read and reset")
}

// Each handle has the most since its own start, though the process keeps one mark for all.
func TestHighWaterMark(t *testing.T) {
	w, s := begun(t)
	in, other := open(t, s), open(t, s)
	a, b := alloc(t, s, in, "spx_unexpected_length_high", nil),
		alloc(t, s, other, "spx_unexpected_length_high", nil)
	w.length(50)
	w.length(2)
	s.Start(in, a)
	if v := read(t, s, in, a); v != 2 {
		t.Errorf("%d: what was before its start counts", v)
	}
	w.length(30)
	w.length(0)
	s.Start(other, b)
	w.length(20)
	w.length(1)
	if va, vb := read(t, s, in, a), read(t, s, other, b); va != 30 || vb != 20 {
		t.Errorf("%d and %d", va, vb)
	}
	s.Stop(other, b)
	w.length(90)
	w.length(3)
	if va, vb := read(t, s, in, a), read(t, s, other, b); va != 90 || vb != 20 {
		t.Errorf("%d, and %d of one that is stopped", va, vb)
	}
	var v uint64
	want(t, s.ReadReset(in, a, &v), Success, "read and reset")
	if w.length(1); v != 90 || read(t, s, in, a) != 3 {
		t.Errorf("%d, then %d", v, read(t, s, in, a))
	}
}

// Handles are valid in their session alone, and all of a session's can be used at once.
func TestSessions(t *testing.T) {
	w, s := begun(t)
	in, other := open(t, s), open(t, s)
	a := alloc(t, s, in, "spx_messages_sent", nil)
	level := alloc(t, s, other, "spx_posted_length", nil)
	b := alloc(t, s, other, "spx_bytes_sent", nil)
	var v uint64
	want(t, s.ReadPvar(other, a, &v), InvalidHandle, "a handle of another session")
	want(t, s.FreePvar(other, &a), InvalidHandle, "a handle of another session")
	want(t, s.ReadPvar(in, AllHandles, &v), InvalidHandle, "read all")
	want(t, s.Start(99, AllHandles), InvalidSession, "no session")
	want(t, s.Start(other, AllHandles), Success, "start all")
	w.counts[Sent], w.counts[SentBytes] = 3, 40
	want(t, s.Stop(other, AllHandles), Success, "stop all")
	if va, vb := read(t, s, in, a), read(t, s, other, b); va != 0 || vb != 40 {
		t.Errorf("%d and %d", va, vb)
	}
	want(t, s.Reset(other, AllHandles), Success, "reset all")
	if vb := read(t, s, other, b); vb != 0 {
		t.Error(vb)
	}
	old := other
	want(t, s.FreeSession(&other), Success, "free the session")
	want(t, s.FreeSession(&old), InvalidSession, "free it again")
	want(t, s.FreeSession(nil), InvalidSession, "free none")
	want(t, s.ReadPvar(in, b, &v), InvalidHandle, "a handle of a session that is gone")
	want(t, s.ReadPvar(old, level, &v), InvalidSession, "a session that is gone")
	want(t, s.FreePvar(in, nil), InvalidHandle, "free no handle")
	want(t, s.FreePvar(in, &a), Success, "free a handle")
	if a != NoHandle || other != NoHandle {
		t.Error("handles are still there")
	}
}

// Variables of communicators are bound, and release what they are bound to.
func TestBinding(t *testing.T) {
	w, s := begun(t)
	in := open(t, s)
	x, y := &thing{w: w}, &thing{w: w}
	a, b := alloc(t, s, in, "spx_comm_bytes_sent", x), alloc(t, s, in, "spx_comm_bytes_sent", y)
	s.Start(in, AllHandles)
	x.counts[SentBytes], y.counts[SentBytes], w.counts[SentBytes] = 5, 6, 100
	if va, vb := read(t, s, in, a), read(t, s, in, b); va != 5 || vb != 6 {
		t.Errorf("%d and %d", va, vb)
	}
	var h Handle
	var n int32
	i := indexNamed(t, "spx_comm_failures")
	none := func() Object { return nil }
	want(t, s.AllocPvar(in, i, none, &h, &n), Invalid, "bound to nothing")
	want(t, s.AllocPvar(in, i, none, nil, &n), Invalid, "no result")
	want(t, s.AllocPvar(in, -1, none, &h, &n), InvalidIndex, "no variable")
	want(t, s.AllocPvar(77, i, none, &h, &n), InvalidSession, "no session")
	never := func() Object { t.Error("it is asked for an object"); return nil }
	want(t, s.AllocPvar(in, indexNamed(t, "spx_gets"), never, &h, &n), Success, "not bound")
	s.FreePvar(in, &a)
	s.FreeSession(&in)
	if w.released[x] != 1 || w.released[y] != 1 {
		t.Errorf("released %d and %d times", w.released[x], w.released[y])
	}
}

// There are 2^20 handles of a kind.
func TestManyHandles(t *testing.T) {
	_, s := begun(t)
	var h, last Handle
	s.sessions.slots = make([]slot[session], 1<<indexBits-1) // all but one are taken
	want(t, s.CreateSession(&last), Success, "the last")
	want(t, s.CreateSession(&h), OutOfSessions, "one more")
	s.FreeSession(&last)
	want(t, s.CreateSession(&h), Success, "after one was freed")
}
