package control

import (
	"slices"
	"strings"
	"testing"

	"libspx/cluster/layout"
)

func TestAttach(t *testing.T) {
	l := func() *layout.Layout {
		return &layout.Layout{Version: 1, System: "s",
			Clusters: []layout.Cluster{{Name: "a", World: 0, Procs: layout.Procs{0, 1}},
				{Name: "b", World: 1, Procs: layout.Procs{2, 4}, Standbys: layout.Procs{5}}},
			IOPs: []layout.IOP{{Proc: 3, World: 2, In: []int{0}, Out: []int{1}}},
		}
	}
	job := func(procs ...int) *Job {
		j := &Job{}
		for _, n := range procs {
			j.Programs = append(j.Programs, Program{Procs: n, Argv: []string{"x"},
				Env: []string{"A=1", layout.Variable + "=old"}})
		}
		return j
	}
	j := job(2, 1, 1, 1, 1)
	if err := Attach(j, l()); err != nil {
		t.Fatal(err)
	}
	for k, want := range []uint32{0, 1, 2, 1, 1} {
		p := j.Programs[k]
		if p.World != want || len(p.Env) != 2 || p.Env[0] != "A=1" ||
			!slices.ContainsFunc(p.Env,
				func(kv string) bool { return strings.HasPrefix(kv, layout.Variable+"={") }) {
			t.Errorf("program %d: world %d, %q", k, p.World, p.Env)
		}
	}
	for want, wrong := range map[string]struct {
		j *Job
		l func(*layout.Layout)
	}{
		"different worlds":               {job(3, 1, 1, 1), func(*layout.Layout) {}},
		"process 6 is not in the layout": {job(2, 1, 1, 1, 1, 1), func(*layout.Layout) {}},
		"the programs have 4": {job(2, 1, 1), func(l *layout.Layout) {
			l.Clusters[1].Standbys = nil
			l.IOPs[0].Proc = 5
			l.Clusters[1].Procs = layout.Procs{2, 3}
		}},
		"stands behind standby": {job(2, 1, 1, 1, 1), func(l *layout.Layout) {
			l.Clusters[1].Procs, l.Clusters[1].Standbys = layout.Procs{2, 5}, layout.Procs{4}
		}},
		"stands before": {job(2, 1, 1, 1, 1),
			func(l *layout.Layout) { l.Clusters[1].Procs = layout.Procs{4, 2} }},
	} {
		layout := l()
		wrong.l(layout)
		if err := Attach(wrong.j, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
