package tool

import (
	"math"
	"slices"
	"testing"
)

// The process under test as the tests see it: what it has to show to tools, played.

// world is a process of the tests: it counts what a test says.
type world struct {
	counts   [allCounters]uint64
	high     uint64 // of UnexpectedLength, since the last look
	numbers  []uint64
	texts    []string
	listens  []Listener
	full     bool // Listen finds no memory for more
	dropped  int
	released map[*thing]int
	shown    map[Handle]View
}

// thing is what a variable may be bound to.
type thing struct {
	w      *world
	counts [allCounters]uint64
}

func (o *thing) Release() { o.w.released[o]++ }

var testSettings = []Setting{
	{Entry{"SPX_SIZE", "point-to-point", "a size"}, KindBytes, 3, TunerDetail, nil},
	{Entry{"SPX_WAY", "collectives", "a way"}, KindChoice, 7, TunerDetail,
		[]string{"auto", "left", "right"}},
	{Entry{"SPX_ON", "point-to-point", "a switch"}, KindSwitch, 3, UserBasic, nil},
	{Entry{"SPX_FILE", "diagnosis", "a text"}, KindText, 3, UserBasic, nil},
	{Entry{"SPX_TIMES", "other", "a number"}, KindCount, 3, UserBasic, nil},
}

func newWorld() *world {
	return &world{numbers: make([]uint64, len(testSettings)),
		texts: make([]string, len(testSettings)), released: map[*thing]int{},
		shown: map[Handle]View{}}
}

func (w *world) Settings() []Setting { return testSettings }
func (w *world) Number(i int) uint64 { return w.numbers[i] }
func (w *world) Text(i int) string   { return w.texts[i] }

func (w *world) WriteNumber(i int, v uint64) Code {
	if v >= 1<<40 || (testSettings[i].Kind == KindSwitch && v > 1) {
		return Invalid
	}
	w.numbers[i] = v
	return Success
}

func (w *world) WriteText(i int, s string) Code {
	if s == "never" {
		return SetNever
	}
	w.texts[i] = s
	return Success
}

func (w *world) Count(c Counter, of Object) uint64 {
	if o, ok := of.(*thing); ok {
		return o.counts[c]
	}
	return w.counts[c]
}

func (w *world) TakeHigh(c Counter) uint64 {
	high := w.high
	w.high = w.counts[c]
	return high
}

// length sets how many messages wait.
func (w *world) length(n uint64) {
	w.counts[UnexpectedLength] = n
	w.high = max(w.high, n)
}

func (w *world) Listen(list []Listener) bool {
	if w.full && len(list) > len(w.listens) {
		return false
	}
	w.listens = slices.Clone(list)
	return true
}

func (w *world) DropEvents() { w.dropped++ }

func (w *world) Show(key Handle, v View) { w.shown[key] = v }
func (w *world) Hide(key Handle)         { delete(w.shown, key) }

// read is what a program reads of a handle that is shown, in a session.
func (w *world) read(in, key Handle) (v uint64, shown bool) {
	view, shown := w.shown[key]
	if !shown || view.Session != in {
		return 0, false
	}
	v = view.More
	if !view.Still {
		v += w.Count(view.Counter, view.Of)
	}
	if view.Seconds {
		return math.Float64bits(float64(v) / 1e9), true
	}
	return v, true
}

// begun is an interface in use.
func begun(t *testing.T) (*world, *State) {
	t.Helper()
	w := newWorld()
	x := New(w)
	var level int32
	if code := x.Init(ThreadMultiple, &level); code != Success || level != ThreadMultiple {
		t.Fatalf("%v, level %d", code, level)
	}
	return w, &x.state
}

func want(t *testing.T, is, wanted Code, what string) {
	t.Helper()
	if is != wanted {
		t.Errorf("%s: %v, not %v", what, is, wanted)
	}
}

func indexNamed(t *testing.T, name string) int {
	t.Helper()
	i := slices.IndexFunc(variables[:], func(v Variable) bool { return v.Name == name })
	if i < 0 {
		t.Fatal("no variable " + name)
	}
	return i
}

func alloc(t *testing.T, s *State, in Handle, name string, of Object) Handle {
	t.Helper()
	var h Handle
	var count int32
	bind := func() Object { return of }
	want(t, s.AllocPvar(in, indexNamed(t, name), bind, &h, &count), Success, name)
	if count != 1 {
		t.Errorf("%s: count %d", name, count)
	}
	return h
}

func open(t *testing.T, s *State) Handle {
	t.Helper()
	var h Handle
	want(t, s.CreateSession(&h), Success, "session")
	return h
}

func read(t *testing.T, s *State, in, h Handle) uint64 {
	t.Helper()
	v := uint64(12345678)
	want(t, s.ReadPvar(in, h, &v), Success, "read")
	return v
}
