package follow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"libspx/ft/replica"
	"libspx/launch/job"
)

// A mirror is what the machine is whose events were written down, also one that takes over what
// another mirror was; events of agents that decide nothing, and what is no event, change nothing.
func TestMirror(t *testing.T) {
	cfg := job.Config{Host: "a", Procs: 3, OnDeath: job.Continue, Detach: true, Timeout: time.Hour}
	machine, mirror := job.New(cfg), NewMirror(cfg, 0)
	var at time.Duration
	apply := func(m *Mirror, origin int, data []byte) {
		m.Apply(replica.Entry{Origin: origin, At: int64(time.Minute), Data: data})
	}
	happens := func(e job.Event) {
		at += 7 * time.Millisecond
		machine.Step(e, at)
		apply(mirror, 0, Note(e, at))
	}
	for i := range 3 {
		happens(job.Started{Proc: i, Pid: 100 + i, Host: "b"})
	}
	happens(job.AllStarted{})
	happens(job.Ended{Proc: 1, Owner: job.OwnerInit, Wait: job.Wait{Signal: job.SIGKILL},
		OtherMPI: true})
	before := mirror.Digest()
	apply(mirror, 2, Note(job.Signalled{Signal: job.SIGTERM}, at))
	apply(mirror, 0, nil)
	apply(mirror, 0, []byte{5})
	apply(mirror, 0, []byte("\x05Nonsense {}"))
	apply(mirror, 0, Note(job.Ended{Proc: 9}, at))
	if mirror.Digest() != before {
		t.Error("what cannot have happened has changed the mirror")
	}
	if before != machine.Digest() {
		t.Errorf("(-machine +mirror)\n%s", cmp.Diff(string(machine.Save()),
			string(mirror.Machine.Save())))
	}

	late := NewMirror(cfg, 0)
	late.Load(mirror.Save(), replica.Mark{})
	if late.Err != nil || late.Events != mirror.Events || late.Digest() != before {
		t.Errorf("taken over: %d events of %d, error %v", late.Events, mirror.Events, late.Err)
	}
	mirror = late
	// its time counts: what is killed later follows from it
	happens(job.Signalled{Signal: job.SIGTERM})
	at += time.Minute
	happens(job.Tick{})
	if string(machine.Save()) != string(mirror.Machine.Save()) {
		t.Errorf("(-machine +mirror)\n%s", cmp.Diff(string(machine.Save()),
			string(mirror.Machine.Save())))
	}
	for _, saved := range [][]byte{nil, {7}, []byte("\x07{"), {0xff}} {
		bad := NewMirror(cfg, 0)
		if bad.Load(saved, replica.Mark{}); bad.Err == nil {
			t.Errorf("%q was taken over", saved)
		}
	}
}
