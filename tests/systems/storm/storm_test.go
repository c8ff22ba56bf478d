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
		m.Begin()
		for _, f := range p.Early {
			seen["early "+f.What]++
			if !m.ApplyEarly(f) {
				t.Fatalf("seed %d: %v has no outcome while it starts\n%v", seed, f, p)
			}
		}
		for _, g := range p.Groups {
			m.Begin()
			for _, f := range g.Faults {
				seen[f.What]++
				if !m.Apply(f) {
					t.Fatalf("seed %d: %v has no outcome\n%v", seed, f, p)
				}
			}
			if m.losses > 1 {
				seen["two hosts"]++
			}
		}
		m.Begin()
		for _, f := range p.Last {
			seen["last "+f.What]++
			if !m.ApplyLast(f) {
				t.Fatalf("seed %d: %v has no outcome at the end\n%v", seed, f, p)
			}
		}
		for _, l := range p.Links {
			seen[fmt.Sprintf("one %v", l.One)]++
			seen["route "+l.Route]++
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
		seen[fmt.Sprintf("apart %v", p.Apart)]++
		seen[fmt.Sprintf("two networks %v", p.TwoNetworks)]++
		if len(m.Lost) > 0 {
			seen["lost"]++
		}
		if text := p.Text(func(h int) string { return fmt.Sprint("h", h) }, "program", "folder"); !strings.Contains(text, "[[link]]") {
			t.Fatal(text)
		}
	}
	for _, what := range []string{KillRank, KillStandby, KillIOP, KillMaster, KillAgent, KillHost, StopAgent, Unplug, Blink, BlinkAll, Pause, Stand, HangRank, HangIOP, PauseIOP,
		Transparent, Notified, Told, Plain, "copies", "messages kept", "messages fast", "two networks true", "lost", "gone true", "again 1", "again 2", "ended true", "whole stop", "whole degrade", "whole restart",
		"one true", "two hosts", KillRun, Detach, "apart true", "early " + KillRank, "early " + KillIOP, "last " + KillRank, "last " + KillIOP, "last " + KillMaster,
		"route " + Same, "route " + Tag, "route " + Spread, "route " + Demand} {
		if seen[what] < 10 {
			t.Errorf("%s: %d times", what, seen[what])
		}
	}
	t.Log(seen)
}

// What is dealt out to all ranks of a cluster comes to each of them, in its sender's order; to some of them, where any may be chosen; and behind them in no order.
func TestRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		orders        string // of the clusters
		arriving      [][]Rank
	}{
		"same":             {Same, Same, "sender sender", [][]Rank{{{1, 0}}, {{2, 0}}}},
		"spread":           {Spread, Same, "sender none", [][]Rank{{{1, 0}}, {{1, 1}}, {{2, 0}}, {{2, 1}}}},
		"spread behind it": {Same, Spread, "sender sender", [][]Rank{{{1, 0}}, {{2, 0}}, {{2, 1}}}},
		"demand":           {Demand, Same, "sender none", [][]Rank{{{1, 0}, {1, 1}}, {{2, 0}, {2, 1}}}},
		"demand behind it": {Same, Demand, "sender sender", [][]Rank{{{1, 0}}, {{2, 0}, {2, 1}}}},
		"tag":              {Tag, Same, "tag tag", [][]Rank{{{1, 0}}, {{1, 1}}, {{2, 0}}, {{2, 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Hosts: 1, Clusters: []Cluster{{Role: Send, Ranks: 1}, {Role: Pass, Ranks: 2}, {Role: Take, Ranks: 2}}, Links: []Link{
				{From: []int{0}, To: []int{1}, IOPs: 1, Choice: "tag", Route: c.first}, {From: []int{1}, To: []int{2}, IOPs: 1, Choice: "tag", Route: c.second}}}
			if got := p.Order(1) + " " + p.Order(2); got != c.orders {
				t.Errorf("in order comes: %s", got)
			}
			if got := NewModel(p).Arriving(); !reflect.DeepEqual(got, c.arriving) {
				t.Errorf("messages have to come to %v", got)
			}
		})
	}
}

// Where messages are not kept, those of one sender that went by an I/O process that died may be received
// behind those that went by another one. Between one sender, one I/O process and one receiver they are in order.
func TestOrderOfFastMessages(t *testing.T) {
	for name, c := range map[string]struct {
		messages string
		iops     int
		fault    string
		want     string
	}{
		"kept":                  {"kept", 2, KillIOP, "sender"},
		"fast":                  {"fast", 2, KillIOP, "none"},
		"fast, a silent host":   {"fast", 2, Blink, "none"},
		"fast, a rank dies":     {"fast", 2, KillRank, "sender"},
		"fast, one I/O process": {"fast", 1, KillIOP, "sender"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Hosts: 1, Messages: c.messages, Groups: []Group{{Faults: []Fault{{What: c.fault}}}},
				Clusters: []Cluster{{Role: Send, Ranks: 1}, {Role: Take, Ranks: 1}},
				Links:    []Link{{From: []int{0}, To: []int{1}, IOPs: c.iops, Choice: "key", Route: Same}}}
			if got := p.Order(1); got != c.want {
				t.Errorf("in order comes: %s, want %s", got, c.want)
			}
		})
	}
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

// A link gives each message to one of two clusters: together they have all of it, and nothing twice. What one that is gone had taken went with it; the other one has all that was sent since.
func TestJudgeDealt(t *testing.T) {
	gone := Fault{What: KillRank, Cluster: 2}
	for name, c := range map[string]struct {
		gone  bool
		relay bool // one dies
		files map[string]string
		wants string
	}{
		"all":                   {},
		"missing":               {files: map[string]string{"end.2.0.0": "from 0 0 0 5-8\n"}, wants: "1 have not come to cluster 1 2; the first is 9"},
		"twice":                 {files: map[string]string{"end.2.0.0": "from 0 0 0 4-9\n"}, wants: "1 messages of rank 0 of cluster 0 have come to two ranks of cluster 1 2"},
		"one is gone":           {gone: true, files: map[string]string{"end.1.0.0": "from 0 0 0 0-4 7-9\n", "end.2.0.0": "", "gone.2": "0 0 0 7\n"}},
		"what came since":       {gone: true, files: map[string]string{"end.1.0.0": "from 0 0 0 0-4 8-9\n", "end.2.0.0": "", "gone.2": "0 0 0 7\n"}, wants: "from 7 on, 1 have not come"},
		"twice, by two relays":  {relay: true, files: map[string]string{"end.2.0.0": "from 0 0 0 4-9\n"}, wants: "1 messages of rank 0 of cluster 0 have come to two ranks of cluster 1 2"},
		"one dies, one missing": {relay: true, files: map[string]string{"end.2.0.0": "from 0 0 0 5-8\n"}, wants: "1 have not come"},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := quiet(func(p *Plan) {
				p.Clusters[1].Ranks = 1
				p.Clusters = append(p.Clusters, Cluster{Role: Take, Kind: Plain, Ranks: 1, Home: 1, Other: 1, Process: "stop", Whole: "degrade"})
				p.Links[0].To, p.Links[0].One = []int{1, 2}, true
			})
			delete(r.Files, "end.1.1.0")
			r.Files["end.1.0.0"], r.Files["end.2.0.0"] = "from 0 0 0 0-4\n", "from 0 0 0 5-9\n"
			if got := m.Arriving(); len(got) != 1 || len(got[0]) != 2 {
				t.Errorf("messages have to come to %v", got)
			}
			m.Begin()
			if c.gone {
				r.Said = "rank 0 of cluster c2 (pid 7 on h1) was killed by signal 9 (SIGKILL); cluster c2 stops.\ncluster c2 is gone; the others go on.\n"
				if !m.Apply(gone) {
					t.Fatal("it has no outcome")
				}
			}
			if c.relay {
				r.Said = "rank 0 of I/O process l0.iop0 (pid 7 on h1) was killed by signal 9 (SIGKILL)"
				if !m.Apply(Fault{What: KillIOP}) {
					t.Fatal("it has no outcome")
				}
			}
			for name, text := range c.files {
				if r.Files[name] = text; text == "" {
					delete(r.Files, name)
				}
			}
			wrong := Judge(m, r)
			if c.wants == "" && len(wrong) > 0 || c.wants != "" && !strings.Contains(strings.Join(wrong, "\n"), c.wants) {
				t.Errorf("%q; wanted: %q", wrong, c.wants)
			}
		})
	}
}

// What happens while a system starts or ends has outcomes of its own: it may end for a rank that has come too early to be taken over, and the status of who was leaving may be that of all; nothing else is let pass.
func TestJudgeEnds(t *testing.T) {
	killed := "rank 0 of cluster c0 (pid 7 on h1) was killed by signal 9 (SIGKILL); a standby takes its place.\n"
	again := "cluster c0 is started again (1 of at most 40 times).\n"
	dies := Fault{What: KillRank}
	for name, c := range map[string]struct {
		early, last bool
		status      int
		ended       bool
		said, wants string
		whole       string // what is done when the cluster cannot go on; as it was: empty
	}{
		"its cluster begins again":     {early: true, said: killed + again, whole: "restart"},
		"without that policy":          {early: true, said: killed + again, whole: "stop", wants: "started again 0 times; it is said 1 times"},
		"twice":                        {early: true, said: killed + again + again, whole: "restart", wants: "it is said 2 times"},
		"later":                        {said: killed + again, whole: "restart", wants: "it is said 1 times"},
		"taken over in time":           {early: true, said: killed},
		"it ends, and says why":        {early: true, ended: true, status: 137, said: killed},
		"it ends, and does not":        {early: true, ended: true, status: 1, wants: "does not say why"},
		"it ends well, without a rank": {early: true, ended: true, said: killed, wants: "with status 0"},
		"who leaves is taken over":     {last: true, said: killed},
		"who has left was killed":      {last: true, status: 137},
		"another status":               {last: true, status: 1, wants: "exit status 1"},
		"nobody was leaving":           {status: 137, wants: "exit status 137"},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := quiet(func(p *Plan) {
				if c.whole != "" {
					p.Clusters[0].Whole = c.whole
				}
			})
			m.Begin()
			if c.early && !m.ApplyEarly(dies) || c.last && !m.ApplyLast(dies) {
				t.Fatal("it has no outcome")
			}
			r.Said, r.Status, r.Early = c.said, c.status, c.ended
			wrong := Judge(m, r)
			if c.wants == "" && len(wrong) > 0 || c.wants != "" && !strings.Contains(strings.Join(wrong, "\n"), c.wants) {
				t.Errorf("%q; wanted: %q", wrong, c.wants)
			}
		})
	}
}

// A rank that dies while its cluster starts is taken over, or all of the cluster is started again: what comes then is another thing
// in each case.
func TestModelOfEarlyDeaths(t *testing.T) {
	for _, said := range []string{"", "cluster c1 is started again (1 of at most 40 times)."} {
		m, _ := quiet(func(p *Plan) {
			p.Clusters[1].Kind, p.Clusters[1].Whole, p.Clusters[1].Standbys = Transparent, "restart", 1
		})
		dies := Fault{What: KillRank, Cluster: 1}
		m.Begin()
		if !m.ApplyEarly(dies) {
			t.Fatal("it has no outcome")
		}
		if m.CameAnew(said) != (said != "") {
			t.Fatalf("%q: it came anew, or did not", said)
		}
		again := m.Again(1)
		m.Begin()
		if !m.Has(dies) || !m.Apply(dies) {
			t.Fatalf("%q: the second death has no outcome", said)
		}
		if restarted := m.Again(1) > again; restarted != (said == "") {
			t.Errorf("%q: started again for the second death: %v", said, restarted)
		}
	}
}

// Clusters that were started one by one: one that has left and come again has, with what it had said when it left, all of it; one whose spxrun was lost has what came since; the loss of the first one has no outcome here.
func TestJudgeApart(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		files map[string]string
		wants string
		never bool
	}{
		"it comes again":              {fault: Fault{What: Detach, Cluster: 1}, files: map[string]string{"end.1.0.1": "from 0 0 0 9-9\n", "end.1.1.1": "", "seen.1.0.1": "0 0 0 9\n"}},
		"something is lost":           {fault: Fault{What: Detach, Cluster: 1}, files: map[string]string{"end.1.0.1": "", "end.1.1.1": "", "seen.1.0.1": "0 0 0 10\n"}, wants: "1 have not come to cluster 1; the first is 9"},
		"what came since it was lost": {fault: Fault{What: KillRun, Cluster: 1}, files: map[string]string{"end.1.0.1": "", "end.1.1.1": "from 0 0 0 9-9\n", "seen.1.0.1": "0 0 0 9\n"}},
		"and something is missing":    {fault: Fault{What: KillRun, Cluster: 1}, files: map[string]string{"end.1.0.1": "", "end.1.1.1": "", "seen.1.0.1": "0 0 0 9\n"}, wants: "from 9 on, 1 have not come"},
		"the one that leads":          {fault: Fault{What: KillRun}, never: true},
		"who sends does not leave":    {fault: Fault{What: Detach}, never: true},
		"who has brought no way":      {fault: Fault{What: Detach, Cluster: 2}, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := quiet(func(p *Plan) {
				p.Apart, p.Clusters[1].Whole = true, "restart"
				if c.fault.Cluster == 2 {
					p.Clusters, p.Links[0].To = append(p.Clusters, Cluster{Role: Take, Kind: Plain, Ranks: 1, Home: 1, Other: 1, Process: "stop", Whole: "degrade"}), []int{1, 2}
				}
			})
			m.Begin()
			if m.Apply(c.fault) == c.never {
				t.Fatalf("it has an outcome: %v", !c.never)
			}
			if c.never {
				return
			}
			r.Files["end.1.0.0"], r.Files["end.1.1.0"] = "from 0 0 0 0-3 8-8\n", "from 0 0 0 4-7\n"
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

// When the last way to a cluster is gone it may have ended before anything else can happen to it, and those who get what it hands on, and the I/O processes between them.
func TestCutOff(t *testing.T) {
	for what, f := range map[string]Fault{
		"a rank":         {What: KillRank, Cluster: 1},
		"all of them":    {What: Stand, Cluster: 1, ForMS: 100},
		"a standby":      {What: KillStandby, Cluster: 1},
		"an I/O process": {What: KillIOP, Link: 1},
		"one that hangs": {What: HangIOP, Link: 1},
		"the next rank":  {What: KillRank, Cluster: 2},
	} {
		for _, gone := range []bool{false, true} {
			m, _ := quiet(func(p *Plan) {
				if gone {
					p.Clusters[0].IOP = "degrade"
				}
				p.Clusters[1].Role, p.Clusters[1].IOP, p.Clusters[1].IOPHang = Pass, "degrade", "degrade"
				p.Clusters = append(p.Clusters, Cluster{Role: Take, Kind: Notified, Ranks: 2, Standbys: 2, Home: 1, Other: 1, Process: "replace", Whole: "degrade", IOP: "restart"})
				p.Links = append(p.Links, Link{From: []int{1}, To: []int{2}, IOPs: 3, Hosts: []int{1}, Choice: "tag", Route: "tag"})
			})
			m.Begin()
			if !m.Apply(Fault{What: KillIOP}) {
				t.Fatal("the death of the I/O process has no outcome")
			}
			if m.Apply(f) == gone {
				t.Errorf("%s: it has an outcome, gone %v", what, gone)
			}
		}
	}
}

// Two hosts may be lost at a time where most of those that there were are left, and no cluster is hit by both.
func TestTwoHostsLost(t *testing.T) {
	for name, c := range map[string]struct {
		hosts int
		lost  [2]int
		other int // of the cluster on the fourth host
		ok    bool
	}{
		"three of five are left":     {5, [2]int{5, 4}, 1, true},
		"two of four are":            {4, [2]int{3, 4}, 1, false},
		"the same one":               {5, [2]int{5, 5}, 1, false},
		"ranks and then standbys":    {5, [2]int{4, 5}, 5, false},
		"with the one that decides":  {5, [2]int{1, 5}, 2, true},
		"the one that decides later": {5, [2]int{5, 1}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Hosts: c.hosts, Messages: "kept", Links: []Link{{From: []int{0}, To: []int{1}, IOPs: 1, Hosts: []int{2}}}}
			for i, role := range []string{Send, Take, Take, Take, Take}[:c.hosts] {
				p.Clusters = append(p.Clusters, Cluster{Role: role, Kind: Notified, Ranks: 1, Standbys: 2, Home: i + 1, Other: 3, Process: "replace", Host: "replace", Whole: "stop"})
			}
			p.Clusters[3].Other = c.other
			m := NewModel(p)
			m.Begin()
			if !m.Apply(Fault{What: KillAgent, Host: c.lost[0]}) {
				t.Fatal("the first one has no outcome")
			}
			if got := m.Apply(Fault{What: KillHost, Host: c.lost[1]}); got != c.ok || got && (len(m.Lost) != 2 || m.Ended) {
				t.Errorf("the second one has an outcome: %v; lost: %v", got, m.Lost)
			}
		})
	}
}

// An I/O process is started again as often as the policy of its cluster allows: no plan has more deaths of it.
func TestRestartsOfIOPs(t *testing.T) {
	of := Cluster{Kind: Notified, Role: Send, Ranks: 1, Home: 1, Other: 1, Process: "restart", Restarts: 3, Whole: "stop", IOP: "restart"}
	m := NewModel(&Plan{Hosts: 1, Messages: "kept", Clusters: []Cluster{of, {Kind: Plain, Role: Take, Ranks: 1, Home: 1, Other: 1}}, Links: []Link{{From: []int{0}, To: []int{1}, IOPs: 1, Hosts: []int{1}}}})
	for n := 1; n <= 4; n++ {
		m.Begin()
		if drawn := m.Apply(Fault{What: KillIOP}); drawn != (n <= 3) {
			t.Errorf("death %d of an I/O process that may be started again 3 times: drawn %v", n, drawn)
		}
	}
}
