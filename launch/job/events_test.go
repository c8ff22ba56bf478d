package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand"
	"reflect"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// anyEvent is some event, that may have happened or not.
func anyEvent(r *rand.Rand) Event {
	proc, part := r.Intn(9)-1, r.Intn(4)
	ended := Ended{Proc: proc, Wait: Wait{Code: r.Intn(3), Signal: r.Intn(2) * 9},
		Owner: Owner(r.Intn(4)), Fault: Fault(r.Intn(3)), Call: "MPI_Recv", Returns: r.Intn(2) == 0,
		OtherMPI: r.Intn(2) == 0, Aborted: r.Intn(12) == 0, Code: r.Intn(3),
		Spawning: r.Intn(9) == 0, Connected: [][]int{nil, {proc, 2}}[r.Intn(2)], Also: []int{1, 20}}
	switch r.Intn(28) {
	case 0, 1, 2, 3, 4:
		return Started{Proc: proc, Pid: 100 + r.Intn(9), Host: "a", Part: part, Rank: r.Intn(4)}
	case 5:
		return Spawned{Proc: proc + 2, Pid: 200, Name: "rank 1 of world 2", Host: "b", Part: part,
			Rank: r.Intn(4)}
	case 6, 7:
		return AllStarted{}
	case 8, 9, 10, 11:
		return ended
	case 12:
		return []Event{NotStarted{proc, "why", 3}, Split{"why"}, ExternalAborted{"it", []int{proc}},
			FrontLost{}, Signalled{SIGTERM}}[r.Intn(5)]
	case 13:
		return []Event{TookOver{part, []int{proc, 1, 3}},
			Manned{part, Crew{World: 7, Lead: 3, Procs: []int{proc, 1},
				Standbys: []int{2}}}}[r.Intn(2)]
	case 14:
		return Placed{part, " on host b", []int{1, 0}}
	case 15:
		return []Event{NotRestarted{part, "no host", r.Intn(2) == 0}, Inherited{}}[r.Intn(2)]
	case 16:
		return Hung{proc, 100 + r.Intn(9), "does not run", time.Second}
	case 17:
		return []Event{Slowed{proc, 100}, WentOn{proc, 100 + r.Intn(9), time.Second}}[r.Intn(2)]
	case 18:
		return []Event{Attached{part}, Coming{r.Intn(2)}}[r.Intn(2)]
	case 19:
		return Detached{part}
	case 20:
		return Judged{part, Treatment(r.Intn(3))}
	case 21:
		return PartSignalled{part, SIGINT}
	case 22:
		return []Event{Joined{}, Signalled{10}, Reported{}}[r.Intn(3)]
	case 25:
		return Depart{part, time.Duration(r.Intn(3)) * time.Second, r.Intn(2) == 0}
	case 24:
		return Grown{[]Part{{Name: "cluster n", Ranks: 1, Whole: Treatment(r.Intn(3)), Added: 3},
			{Name: "more", Serves: true, Whole: Restart, Restarts: 1, With: 4, Added: 2}}}
	case 23:
		return Looked{time.Duration(r.Intn(9)) * time.Second, r.Intn(9) == 0}
	}
	return Tick{}
}

func anyConfig(r *rand.Rand) Config {
	cfg := Config{Host: "a", Procs: 6, OnDeath: OnDeath(r.Intn(3)), Detach: r.Intn(2) == 0,
		HangAfter: time.Duration(r.Intn(2)) * time.Second,
		Timeout:   time.Duration(r.Intn(2)) * time.Minute, Report: r.Intn(2) == 0}
	if r.Intn(3) > 0 {
		cfg.Parts = []Part{
			{Name: "cluster in", Ranks: 2, Waiting: 1, Cold: 1, Process: Replace, Host: Replace,
				Whole: Restart, Restarts: 2, Within: time.Minute, Hang: Restart},
			{Name: "cluster out", Process: Degrade, Whole: Degrade, Away: r.Intn(2) == 0},
			{Name: "link", Serves: true, Whole: Restart, Restarts: 1, Link: 1, Hang: Restart},
		}
		cfg.Masters = r.Intn(2) == 0
	}
	return cfg
}

// For any events: machines that get the same events decide the same, including one that starts in
// the middle with the state of another.
func TestCopies(t *testing.T) {
	seen := map[string]int{}
	for seed := range int64(600) {
		r := rand.New(rand.NewSource(seed))
		cfg := anyConfig(r)
		a, b := New(cfg), New(cfg)
		now := time.Duration(0)
		for n := range 60 {
			e := anyEvent(r)
			again, err := DecodeEvent(EncodeEvent(e))
			if err != nil || !reflect.DeepEqual(again, e) {
				t.Fatalf("%#v becomes %#v, %v", e, again, err)
			}
			now += time.Duration(r.Int63n(int64(time.Second)))
			if a.Accepts(e) != b.Accepts(e) {
				t.Fatalf("seed %d, event %d: %#v: only one takes it", seed, n, e)
			}
			if !a.Accepts(e) {
				continue
			}
			seen[reflect.TypeOf(e).Name()]++
			if d := cmp.Diff(a.Step(e, now), b.Step(again, now)); d != "" {
				t.Fatalf("seed %d, event %d: %#v: %s", seed, n, e, d)
			}
			if r.Intn(6) == 0 {
				c, err := Resume(cfg, b.Save())
				if err != nil {
					t.Fatalf("seed %d, event %d: %v", seed, n, err)
				}
				if d := cmp.Diff(b, c, cmp.Exporter(
					func(reflect.Type) bool { return true })); d != "" {
					t.Fatalf("seed %d, event %d: %s", seed, n, d)
				}
				b = c
			}
		}
	}
	for name := range events {
		if seen[name] < 20 {
			t.Errorf("%s was accepted %d times", name, seen[name])
		}
	}
}

// What is saved has all fields.
func TestSavedFields(t *testing.T) {
	for _, pair := range [][2]any{{Machine{}, savedMachine{}}, {process{}, savedProcess{}},
		{part{}, savedPart{}}} {
		names := func(of any) (out []string) {
			for f := range reflect.TypeOf(of).Fields() {
				if f.Name != "cfg" && !f.Anonymous {
					out = append(out, string(unicode.ToLower(rune(f.Name[0])))+f.Name[1:])
				}
			}
			return out
		}
		if d := cmp.Diff(names(pair[0]), names(pair[1])); d != "" {
			t.Errorf("%T: (-is +saved)\n%s", pair[0], d)
		}
	}
}

// Every event that Step knows has a form.
func TestEventNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "job.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Step" {
			return true
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, x := range c.List {
					if id, ok := x.(*ast.Ident); ok {
						found++
						if events[id.Name] == nil {
							t.Errorf("%s has none", id.Name)
						}
					}
				}
			}
			return true
		})
		return false
	})
	if found != len(events) {
		t.Errorf("Step knows %d, %d have one", found, len(events))
	}
}

// Whatever stands for an event: it is one that the machine takes, or it is left aside; the same for
// what a machine was.
func FuzzEvents(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for range 40 {
		f.Add(EncodeEvent(anyEvent(r)), EncodeEvent(anyEvent(r)), New(anyConfig(r)).Save())
	}
	f.Fuzz(func(_ *testing.T, one, other, saved []byte) {
		cfg := anyConfig(rand.New(rand.NewSource(3)))
		m, err := Resume(cfg, saved)
		if err != nil {
			m = New(cfg)
		}
		for k, data := range [][]byte{EncodeEvent(Started{Proc: 1, Pid: 7, Part: 1}), one,
			EncodeEvent(AllStarted{}), other, EncodeEvent(Tick{}), one} {
			if e, err := DecodeEvent(data); err == nil && m.Accepts(e) {
				m.Step(e, time.Duration(k)*time.Second)
			}
		}
	})
}
