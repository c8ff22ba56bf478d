package job

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// For any spread of starts, the count equals the number found by a scan of all of them within the
// time.
func TestBudget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b := budget{most: 1 + r.IntN(5), within: time.Duration(r.IntN(4)) * time.Minute}
		var all []time.Duration
		now := time.Duration(0)
		for range 50 {
			now += time.Duration(r.IntN(90)) * time.Second
			used := 0
			for _, at := range all {
				if b.within == 0 || now-at < b.within {
					used++
				}
			}
			if b.used(now) != used || b.left(now) != max(b.most-used, 0) {
				t.Fatalf("%d of %d used, %d left, at %v within %v; started at %v", b.used(now),
					b.most, b.left(now), now, b.within, all)
			}
			if b.left(now) > 0 {
				b.spend(now)
				all = append(all, now)
			}
		}
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Minute: "1h30m",
		30 * time.Second: "30s", 10 * time.Minute: "10m", 1500 * time.Millisecond: "1.5s"} {
		if got := shortly(d); got != want {
			t.Errorf("%v is shown as %s", d, got)
		}
	}
}

// A cluster that fails now and then is restarted each time, for months; one that fails too often
// within the time is abandoned.
func TestRestartsAreForgotten(t *testing.T) {
	m := system(Part{Whole: Restart, Restarts: 2, Within: time.Hour})
	procs := []int{0, 1}
	fails := func(now time.Duration) string {
		m.Step(dies(procs[0]), now)
		out := m.Step(dies(procs[1]), now)
		if len(out) > 0 && out[len(out)-1] == (RestartPart{Part: 1}) {
			out = append(out, m.Step(Placed{Part: 1}, now)...)
			for rank := range procs {
				procs[rank] = 10 + rank
				m.Step(Spawned{Proc: procs[rank], Name: "rank", Part: 1, Rank: rank}, now)
			}
			return said(out)
		}
		return "ended"
	}
	now := time.Duration(0)
	for n := range 1000 { // about a month
		if text := fails(now); !strings.Contains(text, "of at most 2 times)") {
			t.Fatalf("failure %d, at %v: %s", n, now, text)
		}
		now += 40 * time.Minute
	}
	if p := m.Parts()[0]; p.Restarts != 1000 {
		t.Errorf("%d restarts are shown", p.Restarts)
	}
	fails(now) // the one before was 40 minutes ago
	now += 10 * time.Minute
	out := m.Step(dies(procs[0]), now)
	if !strings.Contains(said(out),
		"since it has been started again 2 times within 1h; exit status 137.") {
		t.Errorf("%s", said(out))
	}
}

// The same for processes that are started in the place of ranks, as long as there is a place for
// one.
func TestStartedOfLongAgoCountNoMore(t *testing.T) {
	m := New(Config{Host: "h", Procs: 8, Parts: []Part{{Name: "cluster a", Ranks: 1, Cold: 6,
		Process: Replace, Restarts: 2, Within: time.Minute}}})
	m.Step(Started{Proc: 0, Part: 1, Rank: 0}, 0)
	m.Step(AllStarted{}, 0)
	proc := 0
	starts := func(now time.Duration) (ok bool) {
		for _, a := range m.Step(dies(proc), now) {
			if s, is := a.(StartCold); is {
				ok, proc = true, s.Rank
				m.Step(Started{Proc: proc, Part: 1, Rank: s.Rank}, now)
				m.Step(TookOver{Part: 1, Procs: []int{proc}}, now)
			}
		}
		return ok
	}
	for n, at := range []time.Duration{0, 10 * time.Second, 61 * time.Second, 71 * time.Second,
		130 * time.Second} {
		if !starts(at) {
			t.Fatalf("death %d, at %v: no process was started", n, at)
		}
		if p := m.Parts()[0]; p.Cold != 5-n || p.Left > p.Cold ||
			p.Left != min(5-n, []int{1, 0, 0, 0, 0}[n]) {
			t.Errorf("death %d: %+v", n, p)
		}
	}
	if starts(135*time.Second) != true || starts(200*time.Second) {
		t.Error("the last place, and one more than there are")
	}
}

// The system's master orders a restart of a cluster; the starter decides whether that was too
// often, or long ago.
func TestMasterDoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		second time.Duration
		want   string
	}{"soon": {30 * time.Minute, "since it has been started again 1 times within 1h"},
		"late": {2 * time.Hour, "cluster a is started again (1 of at most 1 times)"}} {
		m := New(Config{Host: "h", Procs: 2, Masters: true,
			Parts: []Part{{Name: "cluster a", Whole: Restart, Restarts: 1, Within: time.Hour},
				{Name: "cluster b"}}})
		m.Step(Started{Proc: 0, Part: 1}, 0)
		m.Step(Started{Proc: 1, Part: 2}, 0)
		m.Step(AllStarted{}, 0)
		m.Step(dies(0), 0)
		m.Step(Judged{Part: 1, What: Restart}, 0)
		m.Step(Placed{Part: 1}, 0)
		m.Step(Spawned{Proc: 2, Name: "rank", Part: 1}, 0)
		m.Step(dies(2), c.second)
		out := m.Step(Judged{Part: 1, What: Restart}, c.second)
		if len(out) > 0 && out[len(out)-1] == (RestartPart{Part: 1}) {
			out = append(out, m.Step(Placed{Part: 1}, c.second)...)
		}
		if text := said(out); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
