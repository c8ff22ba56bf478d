package agent

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/output"
	"libspx/shm"
)

// twoHosts is an agent of a job with rank 0 on host 0, rank 1 on host 1 and rank 2 on host 2, none
// of them started; and host 1.
func twoHosts(t testing.TB, self int) (*agent, *remoteHost) {
	segment, err := shm.Create(3, 3, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { segment.Close() })
	a := newAgent(&control.Job{Programs: []control.Program{{Procs: 3, Argv: []string{"a"}}},
		Hosts: []string{"h", "k", "l"}, Where: []int{0, 1, 2}}, nil)
	a.segment, a.self = segment, self
	for host := range 3 {
		a.ranks = append(a.ranks, rank{pidfd: -1, host: host})
	}
	null, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.err, err = output.New(null, false, false); err != nil {
		t.Fatal(err)
	}
	a.out = a.err
	t.Cleanup(func() {
		<-a.err.Drain()
		unix.Close(null)
	})
	if self > 0 {
		up := &uplink{window: newWindow()}
		a.up, a.machine = up, up
		return a, nil
	}
	a.machine = job.New(job.Config{Host: "h", Procs: 3})
	for n := 1; n < 3; n++ {
		a.others = append(a.others, &remoteHost{number: n, name: a.spec.Hosts[n],
			window: newWindow()})
	}
	return a, a.others[0]
}

// events are what a broken agent of another host may say.
func events() []job.Event {
	out := []job.Event{job.AllStarted{}, job.Joined{}, job.Signalled{Signal: -7},
		job.Signalled{Signal: 15}, job.NotStarted{Proc: -1, Status: 256},
		job.Publish{Proc: 1, Dead: true}, job.Finish{}, job.Say{}, 7, "x", nil}
	for _, proc := range []int{-1, 0, 1, 2, 3, 1 << 40} {
		out = append(out, job.Started{Proc: proc, Pid: -1}, job.Started{Proc: proc, Pid: 1},
			job.Spawned{Proc: proc, Pid: 1}, job.Ended{Proc: proc, Owner: job.OwnerAborted,
				Spawning: true, Others: []int{-1, 2, 77}},
			job.Ended{Proc: proc, Owner: job.OwnerInit, Returns: true},
			job.Ended{Proc: proc, Wait: job.Wait{Code: 256, Signal: -3}, Owner: 99},
			job.Ended{Proc: proc, Aborted: true, Code: 1 << 33, Connected: []int{-1, 77},
				Spawning: true})
	}
	return out
}

// Whatever another host's agent says of its processes, and however often: this one lives, and the
// job ends when its processes have.
func TestNonsenseFromAnotherHost(t *testing.T) {
	for i, first := range events() {
		for k, second := range events() {
			t.Run(fmt.Sprint(i, ",", k), func(t *testing.T) {
				a, h := twoHosts(t, 0)
				started := []job.Event{job.Started{Proc: 1, Pid: 1}, first, second, first,
					job.Ended{Proc: 1, Owner: job.OwnerFinalized}}
				for _, e := range started {
					a.heard(h, &control.Message{Event: e})
				}
				if a.ranks[0].alive || a.ranks[2].alive || a.ranks[1].alive {
					t.Errorf("a process lives, by the word of another host: %+v", a.ranks)
				}
				a.heard(a.others[1], &control.Message{Event: job.AllStarted{}})
				a.heard(h, &control.Message{Event: job.AllStarted{}})
				a.made = true
				a.allMade()
				for _, j := range append([]*judgement{}, a.judging...) {
					for _, h := range a.others {
						a.answered(h, &control.Facts{Survey: j.number})
					}
				}
				if !a.done && !a.machine.Ending() {
					t.Error("the job goes on without processes")
				}
			})
		}
	}
}

// A host that is lost between the order to start its processes and the report that they run is lost
// with its processes, which may have been in MPI. Without the order, the job cannot start.
func TestLostWhileItStarts(t *testing.T) {
	for _, begins := range []bool{true, false} {
		a, h := twoHosts(t, 0)
		a.step(job.Started{Proc: 0, Pid: 1})
		a.ranks[0].alive, a.ranks[0].begun = true, true
		h.begins = begins
		for _, h := range a.others[1:] {
			a.heard(h, &control.Message{Event: job.Started{Proc: 2, Pid: 1}})
			a.heard(h, &control.Message{Event: job.AllStarted{}})
		}
		a.made = true
		a.loseHosts([]*remoteHost{h}, "its agent has ended", job.FaultHost)
		if h.made != begins || a.ranks[1].begun != begins || a.ranks[1].alive {
			t.Errorf("told: %v: %+v, made: %v", begins, a.ranks[1], h.made)
		}
		if status := a.machine.(*job.Machine).Status(); !begins && status != job.StatusFailed ||
			begins && status == job.StatusFailed {
			t.Errorf("told: %v: exit status %d", begins, status)
		}
	}
}

func TestNonsenseMessages(t *testing.T) {
	a, h := twoHosts(t, 0)
	far := netip.AddrPortFrom(netip.Addr{}, 7)
	for _, m := range []*control.Message{{}, {Signal: 9}, {Stopped: -1}, {Survey: -5},
		{Start: []control.Address{{Proc: -1}}},
		{Facts: &control.Facts{Survey: -1}}, {Facts: &control.Facts{Survey: 1 << 40}},
		{Copy: &control.Copy{Number: -1}}, {Copy: &control.Copy{Number: 1, Has: true}},
		{Mesh: &control.Mesh{}}, {Copies: 1}, {Sequence: []byte{1}}, {Lead: &control.Lead{Era: 5}},
		{Stand: &control.Stand{Procs: []control.Standing{{Proc: -1}}}}, {Job: &control.Job{}},
		{Action: job.Finish{}}, {Done: &control.Done{}},
		{Ready: &control.Ready{Addresses: []control.Address{{Proc: -1, At: far}, {Proc: 0, At: far},
			{Proc: 1, At: far}, {Proc: 9, At: far}}}}} {
		a.heard(h, m)
		a.heard(h, m)
	}
	if a.done || len(a.addresses) != 2 || a.addresses[0].Proc != 1 {
		t.Errorf("the addresses %+v", a.addresses)
	}
	for _, n := range []int{-1, 1 << 62, 1 << 62, -1 << 62} {
		h.window.allow(n)
	}
	if h.window.room != control.Window {
		t.Errorf("room for %d bytes", h.window.room)
	}
}

// What the deciding agent hands down is carried out or left aside.
func TestNonsenseFromAbove(t *testing.T) {
	a, _ := twoHosts(t, 1)
	for _, m := range []*control.Message{{}, {Action: 7}, {Action: job.Started{Proc: -1}},
		{Action: job.SendTo{Procs: []int{-1, 0, 1, 2, 3, 1 << 40}, Signal: -1}},
		{Action: job.Publish{Proc: -1}}, {Action: job.Publish{Proc: 1 << 40, Dead: true}},
		{Action: job.Publish{Proc: 2, Dead: true, Wait: job.Wait{Code: -1}}},
		{Action: job.Send{Signal: -1}}, {Survey: -1},
		{Start: []control.Address{{Proc: -1}, {Proc: 1}, {Proc: 2}, {Proc: 1 << 40}}}} {
		a.obey(m)
	}
	if !a.met || a.done {
		t.Error("the addresses have not been taken")
	}
	a.obey(&control.Message{Action: job.Finish{Status: 3}})
	if !a.done || a.status != 3 {
		t.Error("it does not end when it is told to")
	}
}

type stream struct{ *bytes.Buffer }

func (stream) Close() error { return nil }

// Any bytes, from another host's agent and from the one that decides.
func FuzzHeard(f *testing.F) {
	for _, e := range events() {
		s := stream{&bytes.Buffer{}}
		c := control.NewConn(s)
		if c.Send(&control.Message{Event: e}) == nil && c.Send(&control.Message{Action: e}) == nil {
			f.Add(s.Bytes())
		}
	}
	for _, m := range []*control.Message{
		{Inspected: &control.Inspected{Number: 1, Procs: []byte(`[{"proc":1},{"proc":-3}]`)}},
		{Branch: &control.Branch{Host: 7, Began: true, End: &control.BranchEnd{How: "x"}}},
		{Beats: &control.Beats{At: make([]netip.AddrPort, 3), Period: 1, Limit: 5}},
		{Hosts: &control.Hosts{Names: []string{"m"}, Slots: []int{1}}},
		{Present: []control.Entry{{Proc: 2, Host: 2}, {Proc: -1, Host: 9}}},
		{Made: &control.Made{Number: 5, Step: 1}},
		{Ready: &control.Ready{Addresses: []control.Address{{Proc: 1}, {Proc: 9}}}},
		{Managed: &control.Managed{Epoch: 1, Text: []byte{1, 2, 3}}},
		{Stand: &control.Stand{Procs: []control.Standing{{Proc: 1},
			{Proc: -1, End: &job.Ended{}}}}},
	} {
		s := stream{&bytes.Buffer{}}
		if err := control.NewConn(s).Send(m); err != nil {
			f.Fatal(err)
		}
		f.Add(s.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		above, h := twoHosts(t, 0)
		below, _ := twoHosts(t, 1)
		c := control.NewConn(stream{bytes.NewBuffer(b)})
		for {
			m, err := c.Receive()
			if err != nil {
				return
			}
			above.heard(h, m)
			if _, signals := m.Action.(job.Send); !signals {
				below.obey(m)
			}
		}
	})
}
