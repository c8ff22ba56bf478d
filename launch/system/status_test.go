package system

import (
	"strings"
	"testing"

	"libspx/cluster/config"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/service"
)

// A system as reported by its agent: the picture has the clusters with their states, and the I/O
// processes that live.
func TestStatus(t *testing.T) {
	text := "[failure]\nprocess='degrade'\ncluster='degrade'\n" +
		"[[cluster]]\nname='a'\nprogram='./a'\nranks=2\n" +
		"[[cluster]]\nname='b'\nprogram='./b'\nranks=1\n" +
		"[[link]]\nfrom='a'\nto='b'\niops=2\nbidirectional=true\n"
	s, err := config.Parse([]byte(text), "s")
	if err != nil {
		t.Fatal(err)
	}
	j := &control.Job{}
	plan, err := Make(j, s, "s.toml", "", nil, hosts.Names{Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	table, err := plan.Layout.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m := job.New(job.Config{Host: "h", Procs: 5, Parts: j.Parts})
	proc := 0
	for _, p := range j.Programs {
		for range p.Procs {
			m.Step(job.Started{Proc: proc, Pid: 100 + proc, Part: p.Part}, 0)
			proc++
		}
	}
	m.Step(job.AllStarted{}, 0)
	dead := job.Ended{Owner: job.OwnerInit, Wait: job.Wait{Signal: 9}}
	dead.Proc = 1
	m.Step(dead, 0)
	dead.Proc = 2
	m.Step(dead, 0)
	m.Step(job.Ended{Proc: 4, Owner: job.OwnerFinalized}, 0)
	about := &service.About{Job: "12", System: &service.System{Layout: []byte(table),
		Meets: "10.1.0.3:7400"}}
	for _, p := range m.Parts() {
		about.System.Parts = append(about.System.Parts, service.Part{Name: p.Name, Program: "./p",
			State: p.State, Alive: p.Alive, Restarts: p.Restarts})
	}
	status, err := StatusOf(about)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a: 2 ranks", "degraded, 1 alive", "b: 1 rank ", "gone, 0 alive",
		"<- a-b: 1 IOP, round-robin", "clusters are attached at 10.1.0.3:7400\n"} {
		if !strings.Contains(status.Text(), want) {
			t.Errorf("no %q in\n%s", want, status.Text())
		}
	}
	if d := status.Drawing(); !strings.Contains(d, colours["gone"]) ||
		!strings.Contains(d, "degraded, 1 alive") {
		t.Errorf("the drawing is\n%s", d)
	}
	about.Hosts, about.System.Master, about.System.Term, about.System.Version,
		about.System.MasterPid = 2, "h2", 3, 14, 77
	about.System.Parts[0].Master, about.System.Parts[0].MasterPid = "h1", 66
	if status, err = StatusOf(about); err != nil || !strings.Contains(status.Text(),
		"\nmaster: h2 (process 77, term 3, version 14)\nmaster of a: h1 (process 66)\n") ||
		!strings.Contains(status.Drawing(), "degraded, 1 alive, master h1") {
		t.Errorf("%v\n%s", err, status.Text())
	}
	if _, err := StatusOf(&service.About{Job: "12"}); err == nil {
		t.Error("any job is a system")
	}
}
