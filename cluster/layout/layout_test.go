package layout

import (
	"reflect"
	"strings"
	"testing"
)

// radar is three clusters in a row with two links of two IOPs and one.
func radar() *Layout {
	return &Layout{
		Version: 1, System: "radar",
		Clusters: []Cluster{
			{Name: "in", World: 0, Procs: Procs{0, 1}},
			{Name: "doppler", World: 1, Procs: Procs{2, 3, 4, 5}, Standbys: Procs{9}},
			{Name: "detect", World: 2, Procs: Procs{6}},
		},
		Links: []Link{
			{Name: "in-doppler", From: []int{0}, To: []int{1}, Choice: "weighted"},
			{Name: "doppler-detect", From: []int{1}, To: []int{2}},
		},
		IOPs: []IOP{
			{Proc: 7, World: 3, Links: []int{0}, In: []int{0}, Out: []int{1}},
			{Proc: 8, World: 4, Links: []int{0}, In: []int{0}, Out: []int{1}, Weight: 3},
			{Proc: 10, World: 5, Links: []int{1}, In: []int{1}, Out: []int{2}},
		},
	}
}

func TestTextAndBack(t *testing.T) {
	text, err := radar().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `"procs":"2-5"`) {
		t.Errorf("ranges are written out: %s", text)
	}
	l, err := Decode(text)
	if err != nil || !reflect.DeepEqual(l, radar()) {
		t.Fatalf("%v\n%+v", err, l)
	}
}

func TestWhoIsWho(t *testing.T) {
	l := radar()
	for _, c := range []struct {
		proc        int
		role        Role
		index, rank int
	}{{1, Compute, 0, 1}, {5, Compute, 1, 3}, {9, Standby, 1, 0}, {8, IO, 1, 0},
		{11, Stranger, -1, -1}} {
		if role, index, rank := l.Find(c.proc); role != c.role || index != c.index ||
			rank != c.rank {
			t.Errorf("process %d: %v %d %d", c.proc, role, index, rank)
		}
	}
	if got := l.Outbound(0); !reflect.DeepEqual(got, []int{0, 1}) {
		t.Errorf("outlets of cluster 0: %v", got)
	}
	if got := l.Inbound(2); !reflect.DeepEqual(got, []int{2}) {
		t.Errorf("inlets of cluster 2: %v", got)
	}
	if l.Inbound(0) != nil || l.Cluster("detect") != 2 || l.Cluster("x") != -1 ||
		l.ChoiceFor(1, 0) != "weighted" || l.ChoiceFor(2, 1) != "" {
		t.Error("inlets, names, choices")
	}
	l.IOPs[0].Gone = true
	if got := l.Outbound(0); !reflect.DeepEqual(got, []int{1}) {
		t.Errorf("outlets without the first IOP: %v", got)
	}
}

func TestMistakes(t *testing.T) {
	for want, spoil := range map[string]func(*Layout){
		"version is 0":       func(l *Layout) { l.Version = 0 },
		"name of the system": func(l *Layout) { l.System = "a b" },
		"0 clusters":         func(l *Layout) { l.Clusters = nil },
		"two clusters in":    func(l *Layout) { l.Clusters[1].Name = "in" },
		"has 0 compute":      func(l *Layout) { l.Clusters[2].Procs = nil },
		"same world, 1":      func(l *Layout) { l.IOPs[0].World = 1 },
		"process 6 belongs to cluster detect and": func(l *Layout) { l.IOPs[2].Proc = 6 },
		"process 9 belongs to cluster doppler and": func(
			l *Layout) {
			l.Clusters[2].Procs = Procs{9}
		},
		"belongs to no cluster": func(l *Layout) {
			l.IOPs[2].In,
				l.IOPs[2].Out = nil, nil
		},
		"belongs to link 2":                    func(l *Layout) { l.IOPs[2].Links = []int{2} },
		"receives from cluster in, which none": func(l *Layout) { l.IOPs[2].In = []int{0} },
		"sends to cluster 3; there are 3":      func(l *Layout) { l.IOPs[2].Out = []int{3} },
		"cluster in twice": func(
			l *Layout) {
			l.Links[0].From = []int{0, 0}
		},
		"joins nothing": func(l *Layout) {
			l.Links[1].From,
				l.Links[1].To = nil, nil
		},
		"two links in-doppler": func(
			l *Layout) {
			l.Links[1].Name = "in-doppler"
		},
		"9 growths of a system":   func(l *Layout) { l.Growths = 9 },
		"came with growth 1 of 0": func(l *Layout) { l.Clusters[0].Since = 1 },
		"IOP 0 came with growth 2 of 1": func(l *Layout) {
			l.Growths,
				l.IOPs[0].Since = 1, 2
		},
		"has the weight -1": func(l *Layout) { l.IOPs[0].Weight = -1 },
	} {
		l := radar()
		spoil(l)
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	l := radar()
	l.Clusters[0].Procs = nil
	for i := range 40000 {
		l.Clusters[0].Procs = append(l.Clusters[0].Procs, 100+2*i)
	}
	if _, err := l.Encode(); err == nil || !strings.Contains(err.Error(), "are possible") {
		t.Errorf("too long: %v", err)
	}
	for _, text := range []string{"", "{",
		`{"version":1,"system":"s","clusters":[{"name":"a","procs":"3-1"}]}`,
		`{"version":1,"system":"s","clusters":[{"name":"a","procs":"0-99999999"}]}`} {
		if _, err := Decode(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestFollows(t *testing.T) {
	next := func(change func(*Layout)) error {
		l := radar()
		l.Version = 2
		change(l)
		return l.Follows(radar())
	}
	if err := next(func(l *Layout) {
		l.Clusters[0].Gone = true
		l.Growths = 1
		l.Clusters = append(l.Clusters, Cluster{Name: "more", World: 9, Procs: Procs{20}, Since: 1})
	}); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Layout){
		"version":                  func(l *Layout) { l.Version = 1 },
		"system":                   func(l *Layout) { l.System = "other" },
		"fewer":                    func(l *Layout) { l.IOPs = l.IOPs[:2] },
		"renamed":                  func(l *Layout) { l.Clusters[1].Name = "y" },
		"links":                    func(l *Layout) { l.Links[0].Name = "y" },
		"another growth":           func(l *Layout) { l.Growths, l.Clusters[0].Since = 1, 1 },
		"an IOP of another growth": func(l *Layout) { l.Growths, l.IOPs[0].Since = 1, 1 },
		"new, and of old": func(l *Layout) {
			l.IOPs = append(l.IOPs, IOP{Proc: 20, World: 9, Links: []int{0}, In: []int{0},
				Out: []int{1}})
		},
	} {
		if next(change) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	text, _ := radar().Encode()
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Decode(text)
		if err != nil {
			return
		}
		if again, err := l.Encode(); err == nil {
			if m, err := Decode(again); err != nil || !reflect.DeepEqual(l.Clusters, m.Clusters) {
				t.Errorf("%v: %s becomes %s", err, text, again)
			}
		}
	})
}
