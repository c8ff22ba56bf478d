package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/launch/control"
)

// A rank of another host counts before word of its start has come, and not after that of its end.
// One of this host counts while it lives.
func TestLoad(t *testing.T) {
	a := newAgent(&control.Job{Hosts: []string{"front", "b", "c"}, Slots: []int{0, 2, 2},
		Programs: []control.Program{{Procs: 4}}}, nil)
	a.ranks = []rank{{host: 1}, {host: 1, begun: true}, {host: 2, begun: true, alive: true},
		{host: 0}, {host: 2}, {host: 2, alive: true, begun: true}}
	if d := cmp.Diff([]int{0, 1, 2}, a.load()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Where processes go: a list counts; else free slots, then the fewest processes for the slots. Host
// 0 is in no list, and host 3 is lost.
func TestPlacer(t *testing.T) {
	a := newAgent(&control.Job{Hosts: []string{"front", "b.example", "c", "lost"},
		Slots: []int{0, 2, 4, 8}}, nil)
	h := &remoteHost{number: 2}
	a.others = []*remoteHost{{number: 1}, h, {number: 3, gone: true}}
	for _, c := range []struct {
		list string
		load []int
		want []int
	}{
		{"", []int{0, 1, 0, 0}, []int{1, 2, 2, 2, 2, 1, 2, 2}},
		{"", []int{0, 9, 4, 0}, []int{2, 2, 2, 2, 2, 2, 2, 2}},
		{"b:2,c", []int{0, 9, 9, 0}, []int{1, 1, 2, 1, 1, 2, 1, 1}},
		{"localhost", []int{0, 0, 0, 0}, []int{2, 2, 2, 2, 2, 2, 2, 2}},
		{"127.0.0.1, b.example", []int{0, 0, 0, 0}, []int{2, 1, 2, 1, 2, 1, 2, 1}},
	} {
		next, err := a.placer(c.list, &remote{from: h}, c.load)
		if err != nil {
			t.Errorf("%q: %v", c.list, err)
			continue
		}
		var got []int
		for range c.want {
			got = append(got, next())
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q on %v: (-want +got)\n%s", c.list, c.load, d)
		}
	}
	for list, says := range map[string]string{
		"nobody": "none of this job's hosts (front, b.example, c, lost)",
		"lost":   "host lost is lost",
		"c:x":    "not a number of slots",
		",":      "names no host",
	} {
		if _, err := a.placer(list, &remote{from: h}, make([]int, 4)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", list, err)
		}
	}
}
