package job

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// step is one event of a scenario and what has to come of it, as text.
type step struct {
	at    time.Duration
	event Event
	want  string
}

func text(actions []Action) string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case Publish:
			out = append(out, fmt.Sprintf("publish %d %s", a.Proc,
				map[bool]string{true: "dead", false: "exited"}[a.Dead]))
		case Say:
			out = append(out, "say "+a.Text)
		case Send:
			out = append(out, fmt.Sprintf("send %d", a.Signal))
		case SendTo:
			out = append(out, fmt.Sprintf("send %d to %v", a.Signal, a.Procs))
		case Finish:
			out = append(out, fmt.Sprintf("finish %d", a.Status))
		default:
			out = append(out, strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a), "job.")))
		}
	}
	return strings.Join(out, " | ")
}

// run starts cfg.Procs processes with pids 100, 101 ..., then plays the scenario.
func run(t *testing.T, cfg Config, steps []step) {
	t.Helper()
	cfg.Host = "h"
	m := New(cfg)
	for i := range cfg.Procs {
		m.Step(Started{Proc: i, Pid: 100 + i}, 0)
	}
	if got := m.Step(AllStarted{}, 0); len(got) != 0 {
		t.Fatalf("a job that has just started: %s", text(got))
	}
	for i, s := range steps {
		if d := cmp.Diff(s.want, text(m.Step(s.event, s.at))); d != "" {
			t.Errorf("step %d, %T: (-want +got)\n%s", i, s.event, d)
		}
	}
}

func finalized(p, code int) Event {
	return Ended{Proc: p, Owner: OwnerFinalized, Wait: Wait{Code: code}, OtherMPI: true}
}
func plain(p, code int) Event { return Ended{Proc: p, Wait: Wait{Code: code}} }
func killed(p, sig int) Event {
	return Ended{Proc: p, Owner: OwnerInit, Wait: Wait{Signal: sig}, OtherMPI: true}
}

func TestSuccess(t *testing.T) {
	run(t, Config{Procs: 2}, []step{
		{1 * ms, finalized(0, 0), "publish 0 exited"},
		{2 * ms, finalized(1, 0), "publish 1 exited | finish 0"},
		{3 * ms, Signalled{SIGINT}, ""},
	})
}

// MPI-5.0, 11.5 leaves the exit status to us: the first that is not zero.
func TestFirstStatusWins(t *testing.T) {
	run(t, Config{Procs: 3}, []step{
		{1 * ms, finalized(2, 4),
			"publish 2 exited | say rank 2 (pid 102 on h) exited with status 4 after " +
				"MPI_Finalize; exit status 4."},
		{2 * ms, finalized(0, 9), "publish 0 exited"},
		{2 * ms, finalized(1, 0), "publish 1 exited | finish 4"},
	})
}

func TestDeathEndsTheJob(t *testing.T) {
	hint := " (To let the others go on: an error handler that returns, or --with-ft.)"
	run(t, Config{Procs: 2}, []step{
		{1 * ms, Ended{Proc: 1, Owner: OwnerInit, Wait: Wait{Signal: 11, Core: true},
			Call: "MPI_Recv", OtherMPI: true},
			"say rank 1 (pid 101 on h) was killed by signal 11 (SIGSEGV: invalid memory " +
				"access), core dumped, in MPI_Recv; the job is ended with exit status 139." + hint +
				" | send 15"},
		{2 * ms, Tick{}, ""},
		{1*ms + GraceFailure, Tick{}, "send 9"},
		{300 * ms, killed(0, 9), "finish 139"},
	})
	run(t, Config{Procs: 2, OnDeath: Kill}, []step{
		{1 * ms, Ended{Proc: 1, Owner: OwnerInit, Returns: true, OtherMPI: true},
			"say rank 1 (pid 101 on h) exited with status 0 without calling MPI_Finalize; the " +
				"job is ended with exit status 1. | send 15"},
		{2 * ms, killed(0, 15), "finish 1"},
	})
}

func TestSurvivorsAreTold(t *testing.T) {
	told := "publish 1 dead | say rank 1 (pid 101 on h) was killed by signal 9 (SIGKILL); the " +
		"other 2 are told and go on."
	death := Ended{Proc: 1, Owner: OwnerInit, Wait: Wait{Signal: 9}, Returns: true, OtherMPI: true}
	run(t, Config{Procs: 3}, []step{
		{1 * ms, death, told},
		{2 * ms, finalized(0, 0), "publish 0 exited"},
		// a death that was handled does not count
		{2 * ms, finalized(2, 0), "publish 2 exited | finish 0"},
	})
	run(t, Config{Procs: 3, OnDeath: Continue}, []step{
		{1 * ms, killed(1, 9), told},
		{2 * ms, finalized(0, 3),
			"publish 0 exited | say rank 0 (pid 100 on h) exited with status 3 after " +
				"MPI_Finalize; exit status 3."},
		{2 * ms, finalized(2, 0), "publish 2 exited | finish 3"},
	})
	run(t, Config{Procs: 1, OnDeath: Continue}, []step{ // no process is left to handle it
		{1 * ms, killed(0, 9),
			"publish 0 dead | say rank 0 (pid 100 on h) was killed by signal 9 (SIGKILL) | " +
				"finish 137"},
	})
}

func TestAbort(t *testing.T) {
	for code, status := range map[int]int{5: 5, 0: 1, 256: 1, 257: 1, -1: 255} {
		run(t, Config{Procs: 2, OnDeath: Continue}, []step{
			{1 * ms, Ended{Proc: 0, Owner: OwnerAborted, Wait: Wait{Code: 7}, Aborted: true,
				Code: code, OtherMPI: true}, "send 15"},
			{2 * ms, killed(1, 15), fmt.Sprintf("finish %d", status)},
		})
	}
}

// MPI_Abort on a communicator of some processes: the other processes may continue, but the status
// stays.
func TestAbortOfSome(t *testing.T) {
	run(t, Config{Procs: 2, OnDeath: Continue}, []step{
		{1 * ms, Ended{Proc: 0, Owner: OwnerAborted, Wait: Wait{Code: 7}, OtherMPI: true},
			"publish 0 dead | say rank 0 (pid 100 on h) exited with status 7 in MPI_Abort; the " +
				"other one is told and goes on."},
		{2 * ms, finalized(1, 0), "publish 1 exited | finish 7"},
	})
}

// Programs that do not use MPI are waited for, whatever one of them does.
func TestNotMPI(t *testing.T) {
	run(t, Config{Procs: 3}, []step{
		{1 * ms, plain(0, 3),
			"publish 0 exited | say rank 0 (pid 100 on h) exited with status 3; exit status 3. " +
				"| watchjoin"},
		{2 * ms, plain(1, 4), "publish 1 exited"},
		{3 * ms, plain(2, 0), "publish 2 exited | finish 3"},
	})
	// the other process turns out to use MPI: it would wait for ever
	run(t, Config{Procs: 2}, []step{
		{1 * ms, plain(0, 3),
			"publish 0 exited | say rank 0 (pid 100 on h) exited with status 3; exit status 3. " +
				"| watchjoin"},
		{2 * ms, Joined{},
			"say rank 0 (pid 100 on h) exited with status 3 without calling MPI_Init, but " +
				"others have called MPI_Init; the job is ended with exit status 3. | send 15"},
		{3 * ms, killed(1, 15), "finish 3"},
	})
	run(t, Config{Procs: 2}, []step{ // the same with status 0
		{1 * ms, plain(0, 0), "publish 0 exited | watchjoin"},
		{2 * ms, Joined{},
			"say rank 0 (pid 100 on h) exited with status 0 without calling MPI_Init, but " +
				"others have called MPI_Init; the job is ended with exit status 1. | send 15"},
		{3 * ms, killed(1, 15), "finish 1"},
	})
	run(t, Config{Procs: 2}, []step{ // known at once
		{1 * ms, Ended{Proc: 0, Wait: Wait{Signal: 9}, OtherMPI: true},
			"say rank 0 (pid 100 on h) was killed by signal 9 (SIGKILL) before MPI_Init; the " +
				"job is ended with exit status 137. (To let the others go on: an error handler " +
				"that returns, or --with-ft.) | send 15"},
	})
}

func TestSignals(t *testing.T) {
	run(t, Config{Procs: 1}, []step{
		{1 * ms, Signalled{10}, "send 10"},
		{2 * ms, Signalled{SIGINT}, "send 2"},
		{3 * ms, Signalled{SIGINT}, ""}, // still the first
		{2*ms + SameSignal, Signalled{SIGINT}, "send 9"},
		{300 * ms, Signalled{SIGINT}, ""}, // nothing is harder than SIGKILL
		{400 * ms, killed(0, 9), "finish 130"},
	})
	run(t, Config{Procs: 1}, []step{
		{0, Signalled{SIGTERM}, "send 15"},
		{GraceSignal - ms, Tick{}, ""},
		{GraceSignal, Tick{}, "send 9"},
		{GraceSignal + GiveUp, Tick{},
			"say 1 processes of the job cannot be ended: they are held in the kernel | finish 143"},
	})
}

func TestTimeout(t *testing.T) {
	run(t, Config{Procs: 1, Timeout: 2 * time.Second}, []step{
		{1999 * ms, Tick{}, ""},
		{2000 * ms, Tick{},
			"where | say the job ran longer than --timeout=2 s and was ended; exit status 124 | " +
				"send 15"},
		{2010 * ms, killed(0, 15), "finish 124"},
	})
}

// With a report the job is ended when that is printed, or does not come.
func TestTimeoutWithReport(t *testing.T) {
	over := "say the job ran longer than --timeout=2 s and was ended; exit status 124 | send 15"
	run(t, Config{Procs: 1, Timeout: 2 * time.Second, Report: true}, []step{
		{2000 * ms, Tick{}, "report"},
		{2050 * ms, Tick{}, ""},
		{2100 * ms, Reported{}, over},
		{2110 * ms, killed(0, 15), "finish 124"},
	})
	run(t, Config{Procs: 1, Timeout: 2 * time.Second, Report: true}, []step{
		{2000 * ms, Tick{}, "report"},
		{2000*ms + ReportLimit, Tick{}, over},
		{2100*ms + ReportLimit, Reported{}, ""},
	})
}

func TestHangAfter(t *testing.T) {
	run(t, Config{Procs: 1, HangAfter: 4 * time.Second}, []step{
		{3999 * ms, Tick{}, ""},
		{4000 * ms, Tick{}, "look"},
		{4010 * ms, Tick{}, ""},
		{4020 * ms, Looked{Waited: time.Second, Hangs: true}, ""}, // not for long
		{5020 * ms, Tick{}, "look"},
		{5030 * ms, Looked{Waited: 4 * time.Second}, "report"},
		{6030 * ms, Tick{}, "look"},
		{6040 * ms, Looked{Waited: 5 * time.Second}, ""}, // reported already
		{7040 * ms, Tick{}, "look"},
		{7050 * ms, Looked{Waited: time.Second}, ""},
		{8050 * ms, Tick{}, "look"},
		{8060 * ms, Looked{Waited: 4 * time.Second, Hangs: true}, "report"},
		{8070 * ms, Reported{}, "say the job hangs and was ended; exit status 124 | send 15"},
		{8080 * ms, killed(0, 15), "finish 124"},
	})
}

func TestFrontLost(t *testing.T) {
	run(t, Config{Procs: 1}, []step{{0, FrontLost{}, "send 15"}, {GraceFailure, Tick{}, "send 9"},
		{GraceFailure, killed(0, 9), "finish 137"}})
	run(t, Config{Procs: 1, Detach: true}, []step{{0, FrontLost{}, ""},
		{ms, finalized(0, 0), "publish 0 exited | finish 0"}})
	run(t, Config{Procs: 1}, []step{{0, Signalled{SIGTERM}, "send 15"}, {0, FrontLost{}, ""},
		{GraceFailure, Tick{}, "send 9"}})
}

func TestStartFails(t *testing.T) {
	m := New(Config{Procs: 3, Host: "h"})
	m.Step(Started{Proc: 0, Pid: 100}, 0)
	if got := text(m.Step(NotStarted{1, "no more processes", 1},
		0)); got != "say no more processes | send 15" {
		t.Error(got)
	}
	if !m.Ending() || m.Alive() != 1 {
		t.Errorf("ending %v, alive %d", m.Ending(), m.Alive())
	}
	if got := text(m.Step(killed(0, 15), ms)); got != "finish 1" {
		t.Error(got)
	}
}

// For any events in any order: the job finishes exactly once, not before the last process has ended
// (or was abandoned), and after an end has begun every process gets SIGKILL in time.
func TestAnyOrder(t *testing.T) {
	for seed := range 3000 {
		r := rand.New(rand.NewSource(int64(seed)))
		cfg := Config{Procs: 1 + r.Intn(4), OnDeath: OnDeath(r.Intn(3)), Detach: r.Intn(2) == 0,
			Timeout: time.Duration(r.Intn(3)) * time.Second}
		m, alive, now, finished, gaveUp := New(cfg), map[int]bool{}, time.Duration(0), false, false
		take := func(actions []Action) {
			for _, a := range actions {
				if s, ok := a.(Say); ok && strings.Contains(s.Text, "cannot be ended") {
					gaveUp = true
				}
				if f, ok := a.(Finish); ok {
					if finished || len(alive) > 0 && !gaveUp || f.Status < 0 || f.Status > 255 {
						t.Fatalf("seed %d: finish %d with %d alive, finished %v", seed, f.Status,
							len(alive), finished)
					}
					finished = true
				}
			}
		}
		for i := range cfg.Procs {
			alive[i] = true
			take(m.Step(Started{Proc: i, Pid: 100 + i}, 0))
		}
		take(m.Step(AllStarted{}, 0))
		for n := 0; len(alive) > 0; n++ {
			if now += time.Duration(r.Intn(100)) * ms; n > 1000 {
				t.Fatalf("seed %d: no end", seed)
			}
			switch k := r.Intn(12); {
			case k < 3:
				take(m.Step(Tick{}, now))
			case k == 3:
				take(m.Step(Joined{}, now))
			case k == 4:
				take(m.Step(Signalled{[]int{SIGINT, SIGTERM, 10}[r.Intn(3)]}, now))
			case k == 5:
				take(m.Step(FrontLost{}, now))
			default:
				for p := range alive {
					delete(alive, p)
					take(m.Step(Ended{Proc: p, Owner: Owner(r.Intn(4)),
						Wait: Wait{Code: r.Intn(2), Signal: r.Intn(2) * 9}, Returns: r.Intn(2) == 0,
						OtherMPI: r.Intn(2) == 0, Aborted: r.Intn(9) == 0, Code: r.Intn(300)}, now))
					break
				}
			}
		}
		if !finished {
			t.Fatalf("seed %d: nothing lives and the job is not finished", seed)
		}
	}
}

// MPI_Abort on a communicator of some processes ends those on other hosts, which are known only to
// its own host's agent. Their deaths are handled as any other.
func TestAbortOfSomeElsewhere(t *testing.T) {
	e := Ended{Proc: 0, Owner: OwnerAborted, Wait: Wait{Code: 7}, OtherMPI: true, Returns: true,
		Others: []int{2, 3}}
	run(t, Config{Procs: 4},
		[]step{{1 * ms, e,
			"publish 0 dead | say rank 0 (pid 100 on h) exited with status 7 in MPI_Abort; the " +
				"other 3 are told and go on. | send 9 to [2 3]"}})
	e.Returns = false // then all are ended anyhow
	run(t, Config{Procs: 4},
		[]step{{1 * ms, e,
			"say rank 0 (pid 100 on h) exited with status 7 in MPI_Abort; the job is ended with " +
				"exit status 7. | send 15"}})
}

// Processes that a launcher has ended because of the first death are named with it: the order is
// not known.
func TestEndedTogether(t *testing.T) {
	e := Ended{Proc: 0, Owner: OwnerInit, Wait: Wait{Unknown: true}, OtherMPI: true,
		Also: []int{2, 7, -1}}
	run(t, Config{Procs: 3, OnDeath: Kill}, []step{
		{1 * ms, e,
			"say rank 0 (pid 100 on h) has ended without calling MPI_Finalize, and at about the " +
				"same time rank 2 (pid 102 on h); the job is ended with exit status 1. | send 15"},
	})
}

// Messages about a spawned process name the host that it was on.
func TestSpawnedElsewhere(t *testing.T) {
	run(t, Config{Procs: 1}, []step{
		{1 * ms, Spawned{Proc: 1, Pid: 7, Name: "rank 0 of spawned world 1", Host: "far"}, ""},
		{2 * ms, Ended{Proc: 1, Owner: OwnerInit, Wait: Wait{Signal: 9}, OtherMPI: true,
			Returns: true},
			"publish 1 dead | say rank 0 of spawned world 1 (pid 7 on far) was killed by signal " +
				"9 (SIGKILL); the other one is told and goes on."},
	})
}
