package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	every  = 100 * time.Millisecond
	limit  = 2 * time.Second
	silent = 10 * time.Second
)

// A step is an activity of a process and its duration.
type step struct {
	what  string
	lasts time.Duration
}

// live has a process go through its steps, and returns the reports, with the time.
func live(steps []step, limits Limits) (out []string) {
	m := New(every)
	s := Sight{Proc: 3, Pid: 30, Limits: limits, Joined: true}
	now := time.Duration(0)
	m.Look([]Sight{s}, now)
	for _, st := range steps {
		words := strings.Fields(st.what)
		s.Stopped, s.Held, s.Pending, s.Sleeps, s.Kept = false, false, false, false, 0
		works, computes := false, false
		for _, w := range words {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "works":
				works = true
			case "computes":
				computes = true
			case "pending":
				s.Pending = true
			case "stopped":
				s.Stopped = true
			case "held":
				s.Held = true
			case "sleeps":
				s.Sleeps = true
			case "idle":
			case "kept": // no processor, for so much of the time between two looks
				s.Kept, _ = time.ParseDuration(value)
			case "promise":
				s.Promises++
				s.Promise, _ = time.ParseDuration(value)
				s.PromisedAt = s.Moves
			case "gap": // no look meanwhile
				d, _ := time.ParseDuration(value)
				now += d
			case "other": // another process has the number
				s.Pid++
				s.Used, s.Moves, s.Promises = 0, 0, 0
			default:
				panic(w)
			}
		}
		for end := now + st.lasts; now < end; {
			now += every
			if works {
				s.Moves++
			}
			if works || computes {
				s.Used += every / 2
			}
			for _, c := range m.Look([]Sight{s}, now) {
				out = append(out, fmt.Sprintf("%v %v %s", now,
					[]string{"works", "slow", "hangs"}[c.To], c.Why))
			}
		}
	}
	return out
}

func TestSchedules(t *testing.T) {
	const stopped, still = "is stopped", "does not run, and messages wait for it"
	for name, c := range map[string]struct {
		steps  []step
		silent time.Duration
		want   []string
	}{
		"works": {[]step{{"works pending", 60 * time.Second}}, silent, nil},
		"nothing to do": {[]step{{"sleeps", time.Hour / 60}, {"idle", time.Minute}}, silent,
			nil},
		// in a wait that does not look: it is woken when it is its turn
		"sleeps in a call": {[]step{{"sleeps pending", time.Minute}}, silent, nil},
		"stopped, and goes on": {[]step{{"works", time.Second},
			{"stopped pending", 5 * time.Second}, {"works", time.Second}}, 0,
			[]string{"1.2s slow ", "3s hangs " + stopped, "6.1s works "}},
		"stopped, with nothing to do": {[]step{{"stopped", 3 * time.Second}}, 0,
			[]string{"200ms slow ", "2s hangs " + stopped}},
		"stopped before MPI_Init, say": {[]step{{"other stopped", 3 * time.Second}}, 0,
			[]string{"300ms slow ", "2.1s hangs " + stopped}},
		"stopped for a moment": {[]step{{"stopped", 1500 * time.Millisecond},
			{"works", time.Second}, {"stopped", 1500 * time.Millisecond}, {"works", time.Second}},
			0, []string{"200ms slow ", "1.6s works ", "2.7s slow ", "4.1s works "}},
		"by a debugger": {[]step{{"held pending", time.Minute}}, silent, nil},
		"is not scheduled": {[]step{{"idle pending", 3 * time.Second},
			{"works", time.Second}}, 0, []string{"200ms slow ", "2s hangs " + still,
			"3.1s works "}},
		"has no processor": {[]step{{"idle pending kept=100ms", time.Minute}}, silent,
			nil},
		"has one for a moment at times": {[]step{{"idle pending kept=50ms", 5 * time.Second}},
			silent, []string{"400ms slow ", "4s hangs " + still}},
		"computes":                    {[]step{{"computes", time.Minute}}, silent, nil},
		"computes, and messages wait": {[]step{{"computes pending", time.Minute}}, 0, nil},
		"computes for too long": {[]step{{"computes pending", 15 * time.Second},
			{"works", time.Second}}, silent,
			[]string{"10s hangs computes and does not communicate, and messages wait for it",
				"15.1s works "}},
		"promises, and keeps that": {[]step{{"works", time.Second},
			{"promise=30s computes pending", 29 * time.Second}, {"works", time.Second},
			{"computes", time.Minute}}, silent, nil},
		"promises again": {[]step{{"promise=30s computes pending", 29 * time.Second},
			{"promise=30s idle pending", 29 * time.Second}}, silent, nil},
		"breaks a promise": {[]step{{"works", time.Second},
			{"promise=5s computes", 7 * time.Second}, {"works", time.Second}}, 0,
			[]string{"6.1s hangs has said by MPISP_Alive that it would communicate again within " +
				"5s, and has not", "8.1s works "}},
		"communicates, and computes then": {[]step{{"promise=5s computes", 2 * time.Second},
			{"works", time.Second}, {"computes", time.Minute}}, 0, nil},
		"waits, and has promised": {[]step{{"promise=5s sleeps", time.Minute}}, 0, nil},
		"takes the promise back": {[]step{{"promise=5s computes", time.Second},
			{"promise=0s computes", time.Minute}}, 0, nil},
		"stopped, in spite of a promise": {[]step{{"promise=1h stopped", 3 * time.Second}}, 0,
			[]string{"200ms slow ", "2s hangs " + stopped}},
		"no look meanwhile": {[]step{{"idle pending", time.Second},
			{"gap=1h works", time.Second}, {"gap=1h idle pending", time.Second}}, silent,
			[]string{"200ms slow ", "1h0m1.1s works ", "2h0m2.2s slow "}},
		"another process has the number now": {[]step{{"stopped", 1900 * time.Millisecond},
			{"other stopped", time.Second}}, 0, []string{"200ms slow ", "2.2s slow "}},
	} {
		got := live(c.steps, Limits{limit, c.silent})
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nnot\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if got := live([]step{{"stopped", time.Hour / 10}}, Limits{}); got != nil {
		t.Errorf("without limits: %q", got)
	}
}

// The user has stopped all, and has them go on: what was before does not count.
func TestForget(t *testing.T) {
	m := New(every)
	s := []Sight{{Proc: 1, Pid: 1, Limits: Limits{Still: limit}, Stopped: true}}
	now := time.Duration(0)
	for range 10 {
		for range 15 {
			for _, c := range m.Look(s, now) {
				if c.To == Hangs {
					t.Fatalf("%v: %+v", now, c)
				}
			}
			now += every
		}
		now += time.Minute
		m.Forget(now)
	}
	if at := m.Due(); at != now+every {
		t.Errorf("due at %v", at)
	}
}

// The last report of a process can be repeated, as long as it exists; there is none for one that
// was never reported.
func TestTold(t *testing.T) {
	m := New(time.Second)
	sights := []Sight{{Proc: 3, Pid: 30, Limits: Limits{Still: 2 * time.Second}, Stopped: true},
		{Proc: 1, Pid: 10, Limits: Limits{Still: 2 * time.Second}}}
	for now := time.Duration(0); now < 9*time.Second; now += time.Second {
		m.Look(sights, now)
	}
	if got := m.Told(); len(got) != 1 || got[0].Proc != 3 || got[0].To != Hangs ||
		got[0].Why != "is stopped" {
		t.Errorf("%+v", got)
	}
	sights[0].Stopped = false
	m.Look(sights, 9*time.Second)
	if got := m.Told(); len(got) != 1 || got[0].To != Works {
		t.Errorf("%+v", got)
	}
	if m.Look(sights[1:], 10*time.Second); m.Told() != nil {
		t.Errorf("%+v", m.Told())
	}
}
