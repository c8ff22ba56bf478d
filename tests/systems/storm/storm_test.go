package storm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A seed is a plan, always the same; among some hundred of them each kind of fault, cluster and policy comes, and each is a system file that can be.
func TestDraw(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(2000) {
		p := Draw(seed)
		if !reflect.DeepEqual(p, Draw(seed)) {
			t.Fatalf("seed %d makes two plans", seed)
		}
		m := NewModel(p)
		for _, g := range p.Groups {
			m.Begin()
			for _, f := range g.Faults {
				seen[f.What]++
				if !m.Apply(f) {
					t.Fatalf("seed %d: %v has no outcome\n%v", seed, f, p)
				}
			}
		}
		seen[fmt.Sprintf("ended %v", m.Ended)]++
		for i, c := range p.Clusters {
			seen[c.Kind]++
			seen["whole "+c.Whole]++
			seen[fmt.Sprintf("gone %v", m.Clusters[i].Gone)]++
			seen[fmt.Sprintf("again %d", m.Clusters[i].again)]++
			if c.Copies {
				seen["copies"]++
			}
		}
		seen["messages "+p.Messages]++
		seen[fmt.Sprintf("two networks %v", p.TwoNetworks)]++
		if len(m.Lost) > 0 {
			seen["lost"]++
		}
		if text := p.Text(func(h int) string { return fmt.Sprint("h", h) }, "program", "folder"); !strings.Contains(text, "[[link]]") {
			t.Fatal(text)
		}
	}
	for _, what := range []string{KillRank, KillStandby, KillIOP, KillMaster, KillAgent, KillHost, StopAgent, Unplug, Blink, BlinkAll, Pause, Stand, HangRank, HangIOP, PauseIOP,
		Transparent, Notified, Told, Plain, "copies", "messages kept", "messages fast", "two networks true", "lost", "gone true", "again 1", "again 2", "ended true", "whole stop", "whole degrade", "whole restart"} {
		if seen[what] < 10 {
			t.Errorf("%s: %d times", what, seen[what])
		}
	}
	t.Log(seen)
}

// quiet is a plan of two clusters, and a report in which all has come.
func quiet(change func(*Plan)) (*Model, *Report) {
	p := &Plan{Hosts: 1, Messages: "kept", Clusters: []Cluster{
		{Role: Send, Kind: Transparent, Ranks: 1, Standbys: 1, Home: 1, Other: 1, Process: "replace", Whole: "stop", IOP: "restart"},
		{Role: Take, Kind: Notified, Ranks: 2, Standbys: 2, Home: 1, Other: 1, Process: "replace", Whole: "degrade", IOP: "restart"},
	}, Links: []Link{{From: []int{0}, To: []int{1}, IOPs: 1, Hosts: []int{1}, Choice: "tag", Route: "tag"}}}
	if change != nil {
		change(p)
	}
	r := &Report{Files: map[string]string{
		"end.0.0.0": "sent 0 10 0\nbad 0 0 0 0\nlost 0\n",
		"end.1.0.0": "from 0 0 0 0-3 8-8\nbad 0 0 0 0\nlost 0\n",
		"end.1.1.0": "from 0 0 0 4-7 9-9\nbad 0 0 0 0\nlost 0\n",
	}, HostOf: func(h int) string { return fmt.Sprint("h", h) }}
	return NewModel(p), r
}

// What is not as it was promised is complained of, and nothing else.
func TestJudge(t *testing.T) {
	killed := "rank 1 of cluster c1 (pid 7 on h1) was killed by signal 9 (SIGKILL); a standby takes its place.\n"
	dies := Fault{What: KillRank, Cluster: 1, Rank: 1}
	for name, c := range map[string]struct {
		fault *Fault
		plan  func(*Plan)
		said  string
		files map[string]string
		wants string // a part of the complaint; empty: there is none
	}{
		"all":                        {},
		"one is missing":             {files: map[string]string{"end.1.1.0": "from 0 0 0 4-7\n"}, wants: "1 have not come to cluster 1; the first is 9"},
		"one perhaps was sent":       {files: map[string]string{"end.0.0.0": "sent 0 10 0 9\n", "end.1.1.0": "from 0 0 0 4-7\n"}},
		"twice":                      {files: map[string]string{"end.1.1.0": "from 0 0 0 3-7 9-9\n"}, wants: "have come to two ranks"},
		"again":                      {files: map[string]string{"end.1.1.0": "from 0 0 0 4-7 9-9\nbad 1 0 0 0\n"}, wants: "came again"},
		"late":                       {files: map[string]string{"end.1.1.0": "from 0 0 0 4-7 9-9\nbad 0 1 0 0\n"}, wants: "out of turn"},
		"damaged":                    {files: map[string]string{"end.1.1.0": "from 0 0 0 4-7 9-9\nbad 0 0 1 0\n"}, wants: "damaged"},
		"a send has failed":          {files: map[string]string{"end.0.0.0": "sent 0 10 75\n"}, wants: "has failed"},
		"no end":                     {files: map[string]string{"end.1.1.0": ""}, wants: "have not come"},
		"a host that is there":       {said: "host h1 is lost, with its processes: x", wants: "it is said that host 1 is lost"},
		"a cluster that is there":    {said: "cluster c1 is gone; the others go on.", wants: "cluster 1 has to be gone: false"},
		"what the dead one had":      {fault: &dies, said: killed, files: map[string]string{"end.1.1.1": "from 0 0 0 7-7 9-9\n", "seen.1.1.1": "0 0 0 7\n"}},
		"what came since":            {fault: &dies, said: killed, files: map[string]string{"end.1.1.1": "from 0 0 0 9-9\n", "seen.1.1.1": "0 0 0 7\n"}, wants: "from 7 on, 1 have not come"},
		"a death that is not said":   {fault: &dies, files: map[string]string{"end.1.1.1": "from 0 0 0 7-7 9-9\n", "seen.1.1.1": "0 0 0 7\n"}, wants: "0 deaths are said"},
		"the system goes on":         {fault: &dies, said: killed, plan: func(p *Plan) { p.Clusters[1].Process, p.Clusters[1].Whole = "stop", "stop" }, wants: "the system has to end"},
		"nobody is left for it":      {fault: &dies, said: killed, plan: func(p *Plan) { p.Clusters[1].Process = "stop" }, wants: "cluster 1 has to be gone: true"},
		"a link is gone":             {fault: &Fault{What: KillIOP}, said: killed + "messages to another cluster are lost: x", plan: func(p *Plan) { p.Clusters[0].IOP = "degrade" }, files: map[string]string{"end.0.0.0": "sent 0 10 75\nlost 1\n", "end.1.1.0": "from 0 0 0 4-7\n"}},
		"a loss that is not counted": {fault: &Fault{What: KillIOP}, said: killed + "messages to another cluster are lost: x", plan: func(p *Plan) { p.Clusters[0].IOP = "degrade" }, files: map[string]string{"end.0.0.0": "sent 0 10 75\nlost 1\n", "end.1.1.0": "from 0 0 0 4-6\n"}, wants: "it has counted 1"},
		"a loss that is not said":    {fault: &Fault{What: KillIOP}, said: killed, plan: func(p *Plan) { p.Clusters[0].IOP = "degrade" }, files: map[string]string{"end.0.0.0": "sent 0 10 75\nlost 1\n", "end.1.1.0": "from 0 0 0 4-7\n"}, wants: "that is not said"},
		"fast, and the relay dies":   {fault: &Fault{What: KillIOP}, said: killed, plan: func(p *Plan) { p.Messages = "fast" }, files: map[string]string{"end.1.1.0": "from 0 0 0 4-6\n"}},
		"kept, and the relay dies":   {fault: &Fault{What: KillIOP}, said: killed, files: map[string]string{"end.1.1.0": "from 0 0 0 4-7\n"}, wants: "1 have not come"},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := quiet(c.plan)
			m.Begin()
			if c.fault != nil && !m.Apply(*c.fault) {
				t.Fatalf("%v has no outcome", *c.fault)
			}
			r.Said = c.said
			for name, text := range c.files {
				r.Files[name] = text
			}
			wrong := Judge(m, r)
			if c.wants == "" && len(wrong) > 0 || c.wants != "" && !strings.Contains(strings.Join(wrong, "\n"), c.wants) {
				t.Errorf("%q; wanted: %q", wrong, c.wants)
			}
		})
	}
}
