package follow

import (
	"testing"
	"time"

	"libspx/ft/replica"
	"libspx/launch/job"
)

// fresh is a mirror of a job of three processes that have been made, and the entries so far.
func fresh(t *testing.T) (m *Mirror, apply func(origin int, data []byte)) {
	t.Helper()
	m = NewMirror(job.Config{Host: "a", Procs: 3, OnDeath: job.Continue, Detach: true}, 0)
	apply = func(origin int, data []byte) { m.Apply(replica.Entry{Origin: origin, Data: data}) }
	for i := range 3 {
		apply(0, Note(job.Started{Proc: i, Pid: 100 + i}, time.Second))
	}
	return m, apply
}

func death(i int) job.Event {
	return job.Ended{Proc: i, Owner: job.OwnerInit, Wait: job.Wait{Signal: job.SIGKILL},
		OtherMPI: true}
}

// From a claim on, the events of its agent count and no others; a claim that comes too late, or of
// who decides, changes nothing. What is to be published stays known, also to a mirror that takes it
// over.
func TestClaims(t *testing.T) {
	m, apply := fresh(t)
	apply(0, Note(job.AllStarted{}, time.Second))
	apply(0, Note(death(2), 2*time.Second))
	apply(0, Claim(0)) // it decides
	apply(2, Claim(1))
	apply(2, append(Claim(0), 0))
	if m.Decider != 0 || m.Era != 0 {
		t.Fatalf("agent %d decides in era %d", m.Decider, m.Era)
	}
	apply(1, Claim(0))
	apply(2, Claim(0))
	if m.Decider != 1 || m.Era != 1 {
		t.Fatalf("agent %d decides in era %d", m.Decider, m.Era)
	}
	before := m.Digest()
	apply(0, Note(job.Signalled{Signal: job.SIGTERM}, 3*time.Second))
	if m.Digest() != before {
		t.Error("the agent that has decided before is still heard")
	}
	again := NewMirror(job.Config{Host: "a", Procs: 3, OnDeath: job.Continue, Detach: true}, 0)
	if again.Load(m.Save(), replica.Mark{}); again.Err != nil || again.Decider != 1 ||
		again.Era != 1 || len(again.Ends()) != 1 || again.Ends()[0].Proc != 2 ||
		!again.Ends()[0].Dead {
		t.Errorf("taken over: agent %d in era %d, ends %+v, error %v", again.Decider, again.Era,
			again.Ends(), again.Err)
	}
	apply(1, Note(death(0), 4*time.Second))
	machine, err := m.Inherit()
	if err != nil || machine.Alive() != 1 || machine.Now() != 4*time.Second ||
		!machine.Procs()[1].Alive || machine.Procs()[0].Alive || machine.Procs()[1].Pid != 101 {
		t.Errorf("%d live at %v, error %v", machine.Alive(), machine.Now(), err)
	}
	// with the number of one that has died
	apply(1, Note(job.Spawned{Proc: 2, Pid: 7}, 5*time.Second))
	if len(m.Ends()) != 1 || m.Ends()[0].Proc != 0 {
		t.Errorf("%+v", m.Ends())
	}
	for _, saved := range [][]byte{{1, 2}, {1, 2, 3, 9}, {1, 2, 3, 2, '[', ']'},
		{1, 2, 3, 1, '{'}} {
		if again.Err = nil; true {
			again.Load(saved, replica.Mark{})
		}
		if again.Err == nil {
			t.Errorf("%v was taken over", saved)
		}
	}
}

// An agent claims the office when it leads the sequence and the one that decides is lost, once, and
// not as long as the job begins; it decides when its claim stands there.
func TestOfficeIsClaimed(t *testing.T) {
	m, apply := fresh(t)
	o := NewOffice(m, 1, 8)
	if o.Lose(0); o.Tick(true) != Nothing {
		t.Error("the office of a job that begins is claimed")
	}
	apply(0, Note(job.AllStarted{}, time.Second))
	if o.Tick(false) != Nothing || o.Tick(true) != Claims || o.Tick(true) != Nothing {
		t.Error("it is claimed once, by who leads")
	}
	if o.Look() != Nothing {
		t.Error("the claim is not there yet")
	}
	apply(1, o.Claim())
	if o.Look() != Decides || o.Look() != Nothing || !o.Settled() || o.Era() != 1 {
		t.Error("it does not decide")
	}
	if o.Called(1) || !func() bool { o.Noted(); return !o.Settled() }() {
		t.Error("it is settled before its event is applied")
	}
	apply(1, Note(death(0), time.Minute))
	if !o.Settled() {
		t.Error("it is not settled")
	}
	apply(2, Claim(1))
	if o.Look() != Leaves || o.Look() != Nothing || o.Settled() || o.Expel() != Nothing {
		t.Error("it decides although another one does")
	}
}

// Who decides, and hears of one that has come to decide after it, before what it has written is
// applied or passed over, ends, and nothing that waits for that is done. What is said of itself or
// of one before it, or to one that does not decide, changes nothing.
func TestOfficeSuperseded(t *testing.T) {
	m, apply := fresh(t)
	apply(0, Note(job.AllStarted{}, time.Second))
	first, other := NewOffice(m, 0, 8), NewOffice(m, 1, 8)
	if first.Noted(); first.Superseded(0) != Nothing || !first.Settled() ||
		other.Superseded(1) != Nothing || other.Left() {
		t.Error("it ends by what is no news")
	}
	first.Noted()
	if first.Superseded(1) != Leaves || first.Superseded(2) != Nothing || first.Settled() ||
		!first.Left() || first.Tick(true) != Nothing {
		t.Error("it decides although another one does")
	}
}

// A host that was added when another agent had come to decide claims the office at once when that
// one is lost, as any other does.
func TestOfficeBeginsLate(t *testing.T) {
	m, apply := fresh(t)
	apply(0, Note(job.AllStarted{}, time.Second))
	apply(1, Claim(0))
	o := NewOffice(m, 2, 8)
	o.Begin(1)
	if o.Lose(0); o.Tick(true) != Nothing {
		t.Error("it claims the office for the loss of one that is no matter any more")
	}
	if o.Lose(1); o.Tick(true) != Claims {
		t.Error("it does not claim the office")
	}
}

// Who is not called in time ends, as does who decides when nothing that it writes is applied; who
// is called begins to wait anew.
func TestOfficeIsLeft(t *testing.T) {
	m, apply := fresh(t)
	apply(0, Note(job.AllStarted{}, time.Second))
	ticks := func(o *Office) (n int) {
		for n = 1; o.Tick(false) != Leaves; n++ {
			if n > 100 {
				t.Fatal("it does not end")
			}
		}
		return n
	}
	o := NewOffice(m, 2, 8)
	for range 20 {
		if o.Tick(true) != Nothing {
			t.Error("nothing is lost")
		}
	}
	o.Lose(0)
	o.Tick(false)
	if !o.Called(1) || o.Called(1) || o.Called(0) || o.Tick(false) != Nothing {
		t.Error("it is called once in an era")
	}
	o.Lose(0) // which is over
	for range 20 {
		if o.Tick(false) != Nothing {
			t.Error("nothing is lost")
		}
	}
	o.Lose(1)
	if n := ticks(o); n != 8 {
		t.Errorf("it has waited %d ticks", n)
	}
	first := NewOffice(m, 0, 8)
	for range int(m.Events) {
		first.Noted()
	}
	if !first.Settled() {
		t.Error("all is applied")
	}
	first.Noted()
	if n := ticks(first); n != 8 || first.Settled() || !first.Left() {
		t.Errorf("it has waited %d ticks", n)
	}
}

// The agent whose claim stands in the sequence is lost before it has called the others: another one
// claims what comes behind.
func TestClaimantIsLost(t *testing.T) {
	m, apply := fresh(t)
	apply(0, Note(job.AllStarted{}, time.Second))
	o := NewOffice(m, 2, 16)
	o.Lose(0)
	o.Tick(false)
	apply(1, Claim(0))
	n := 1
	for ; o.Tick(true) != Claims; n++ {
		if n > 100 {
			t.Fatal("it is not claimed")
		}
	}
	if n < 16/callShare {
		t.Errorf("it is claimed after %d ticks", n)
	}
	apply(2, o.Claim())
	if o.Look() != Decides || m.Era != 2 {
		t.Error("it does not decide")
	}
}
