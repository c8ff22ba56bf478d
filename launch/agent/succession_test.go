package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Which jobs go on at another host.
func TestSucceeds(t *testing.T) {
	good := func() *control.Job {
		return &control.Job{WithFT: true, OnDeath: "continue", Hosts: []string{"a", "b", "c"},
			Programs: beatJob("").Programs}
	}
	system := good()
	system.WithFT, system.OnDeath, system.Parts = false, "auto", make([]job.Part, 1)
	detached := good()
	detached.WithFT, detached.OnDeath, detached.Detached = false, "auto", true
	one := *system
	one.Join, one.Hosts = &control.Join{}, one.Hosts[:1]
	if !Succeeds(good()) || !Succeeds(system) || !Succeeds(detached) || !Succeeds(&one) {
		t.Error(
			"a job with --with-ft or --detach on three hosts, a system, or a cluster to which " +
				"others come, does not")
	}
	for what, change := range map[string]func(*control.Job){
		"on two hosts":    func(j *control.Job) { j.Hosts = j.Hosts[:2] },
		"with a debugger": func(j *control.Job) { j.Hold = true },
	} {
		j := *system
		if change(&j); Succeeds(&j) {
			t.Errorf("a system, %s: it does", what)
		}
	}
	for what, change := range map[string]func(*control.Job){
		"two hosts":         func(j *control.Job) { j.Hosts = j.Hosts[:2] },
		"without --with-ft": func(j *control.Job) { j.WithFT = false },
		"deaths end it":     func(j *control.Job) { j.OnDeath = "kill" },
		"a trace":           func(j *control.Job) { j.Trace = "x" },
		"a debugger":        func(j *control.Job) { j.Hold = true },
		"partition": func(j *control.Job) {
			j.Programs = beatJob(
				"SPX_PARTITION=launcher").Programs
		},
	} {
		j := good()
		if change(j); Succeeds(j) {
			t.Errorf("%s: it does", what)
		}
	}
}

// A host that was called says how its processes are, whatever that is: an end that was not heard of
// counts, a process that it does not name has ended, and one that counts as dead has to.
func TestStandings(t *testing.T) {
	a, h := twoHosts(t, 0)
	h.led, h.made = true, true
	h.box.more.L = &h.box.mu // as if it were sent
	for i := range 3 {
		a.ranks[i].host = 1
		a.ranks[i].alive, a.ranks[i].begun = true, true
		a.step(job.Started{Proc: i, Pid: 10 + i})
	}
	a.step(job.Ended{Proc: 2, Owner: job.OwnerFinalized})
	a.ranks[2].alive = false // the others have been told
	h.box.empty()
	a.succession.inherited, a.succession.ends = true, []job.Publish{{Proc: 2, Dead: true}}
	// has been spawned, which the machine has not heard of
	a.ranks = append(a.ranks, rank{pidfd: -1, host: 1})
	a.heard(h, &control.Message{Stand: &control.Stand{Procs: []control.Standing{{Proc: -1},
		{Proc: 1 << 40, End: &job.Ended{}}, {Proc: 2, Pid: 12}, {Proc: 2, Pid: 12},
		{Proc: 3, Pid: 13},
		{Proc: 0, End: &job.Ended{Proc: 1, Owner: job.OwnerFinalized, Wait: job.Wait{Code: 3}}}}}})
	a.heard(h, &control.Message{Stand: &control.Stand{}}) // once
	for _, j := range append([]*judgement{}, a.judging...) {
		for _, o := range a.others {
			a.answered(o, &control.Facts{Survey: j.number})
		}
	}
	if a.ranks[0].alive || a.ranks[1].alive || !a.ranks[2].alive || !a.ranks[3].alive || !h.ready {
		t.Errorf("%+v", a.ranks)
	}
	said := h.box.empty()
	for _, m := range said { // who lives is not said to be dead on its own host
		if act, ok := m.Action.(job.Publish); ok && act.Proc > 1 {
			t.Errorf("%+v", act)
		}
	}
	for _, i := range []int{2, 3} {
		a.heard(h, &control.Message{Event: job.Ended{Proc: i, Wait: job.Wait{Signal: job.SIGKILL}}})
	}
	if m := a.machine.(*job.Machine); m.Alive() != 0 || m.Status() != 3 {
		t.Errorf("%d live, exit status %d", m.Alive(), m.Status())
	}
	published, disowned, ended := false, false, 0
	for _, m := range append(said, h.box.empty()...) {
		switch act := m.Action.(type) {
		case job.Publish:
			published = published || act.Proc == 2 && act.Dead
			disowned = disowned || act.Proc == 3 && act.Dead
		case job.SendTo:
			if len(act.Procs) == 2 && act.Procs[0] == 2 && act.Procs[1] == 3 &&
				act.Signal == job.SIGKILL {
				ended++
			}
		}
	}
	if !published || !disowned || ended != 1 {
		t.Errorf("told of the deaths: %v, %v; the processes are ended %d times", published,
			disowned, ended)
	}
}

// Output whose reader is lost goes to a file: what was to be sent, what comes later, and of a job
// for which no file was wanted no more than there is room for.
func TestKeptOutput(t *testing.T) {
	up := &uplink{window: newWindow()}
	up.box.more.L = &up.box.mu
	if !up.pass(1, []byte("first\n")) {
		t.Fatal("it is not to be sent")
	}
	up.box.put(&control.Message{Copies: 1})
	name := filepath.Join(t.TempDir(), service.OutputName(0xabc))
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	up.kept.use(file, len("first\nlater\n")+3)
	up.window.close()
	up.flush()
	if !up.pass(2, []byte("later\n")) || !up.pass(1, []byte("too much\n")) ||
		!up.pass(1, []byte("x")) {
		t.Error("its writer is to wait")
	}
	text, _ := os.ReadFile(name)
	if got := string(text); !strings.HasPrefix(got, "first\nlater\nspxrun: there is more output") ||
		strings.Count(got, "\n") != 3 {
		t.Errorf("%q", got)
	}
	if name = filepath.Base(name); name != "spx-0000000000000abc.out" {
		t.Errorf("the file is called %s", name)
	}
	lost := &uplink{window: newWindow()}
	if lost.window.close(); lost.pass(1, []byte("x")) {
		t.Error("it is taken")
	}
}

// The box keeps what is put in while there is no connection, and sends over the next one.
func TestPausedBox(t *testing.T) {
	up := &uplink{window: newWindow()}
	up.box.more.L = &up.box.mu
	up.box.pause()
	up.pass(1, []byte("text"))
	up.box.put(&control.Message{Copies: 7})
	list := outputOnly(up.box.empty())
	if len(list) != 1 || string(list[0].Output.Text) != "text" || len(up.box.empty()) != 0 {
		t.Errorf("%+v", list)
	}
}
