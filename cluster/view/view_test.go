package view

import (
	"reflect"
	"slices"
	"testing"

	"libspx/cluster/choice"
	"libspx/cluster/layout"
	"libspx/core/mpierr"
)

// radar is three clusters in a row: two IOPs between the first two, one behind them, one that joins
// all of them and has no links, and a cluster that has no link.
func radar() *layout.Layout {
	return &layout.Layout{
		Version: 1, System: "radar",
		Clusters: []layout.Cluster{
			{Name: "in", World: 0, Procs: layout.Procs{0, 1}},
			{Name: "doppler", World: 1, Procs: layout.Procs{2, 3, 4, 5}, Heals: true,
				Dead: layout.Procs{3, 5}, Standbys: layout.Procs{9}},
			{Name: "detect", World: 2, Procs: layout.Procs{6}},
			{Name: "alone", World: 6, Procs: layout.Procs{12}},
		},
		Links: []layout.Link{
			{Name: "in-doppler", From: []int{0}, To: []int{1}, Choice: "weighted"},
			{Name: "doppler-detect", From: []int{1}, To: []int{2}},
		},
		IOPs: []layout.IOP{
			{Proc: 7, World: 3, Links: []int{0}, In: []int{0}, Out: []int{1}},
			{Proc: 8, World: 4, Links: []int{0}, In: []int{0}, Out: []int{1}, Weight: 3},
			{Proc: 10, World: 5, Links: []int{1}, In: []int{1}, Out: []int{2}, Heals: true},
			{Proc: 11, World: 7, In: []int{0, 1}, Out: []int{1, 2}},
		},
	}
}

func viewOf(t *testing.T, l *layout.Layout, proc int, policy string) *View {
	t.Helper()
	role, index, _ := l.Find(proc)
	v, err := Of(l, role, index, policy)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCompute(t *testing.T) {
	l := radar()
	v := viewOf(t, l, 1, "")
	if v.Cluster != 0 || !slices.Equal(v.Outs, []int{0, 1, 3}) || len(v.Ins) != 0 ||
		v.Worlds != nil || v.Ways != nil || v.Count() != 1 {
		t.Errorf("%+v", v)
	}
	want := []IOP{{7, HealsNo}, {8, HealsNo}, {10, HealsDead}, {11, HealsNo}}
	if !slices.Equal(v.IOPs, want) {
		t.Errorf("IOPs %v, want %v", v.IOPs, want)
	}
	if !v.Policy.Weighted || len(v.Plan.Slots) != 5 { // 1, 3 and 1: that of the link
		t.Errorf("%+v %+v", v.Policy, v.Plan)
	}
	if v = viewOf(t, l, 1, "tag"); v.Plan.Mode != choice.Tag { // that of the user comes first
		t.Errorf("%+v", v.Plan)
	}
	if v = viewOf(t, l, 9, ""); v.Cluster != 1 || !slices.Equal(v.Ins, []int{0, 1, 3}) {
		t.Errorf("a standby sees %+v", v) // as its cluster does
	}
	v, err := Of(l, layout.Compute, 0, "fastest")
	if v != nil || mpierr.ClassOf(err) != mpierr.Arg {
		t.Errorf("a policy that there is not: %v", err)
	}
}

// What belongs to a cluster that leaves is away for all other processes, and as usual for its own.
func TestLeaving(t *testing.T) {
	l := radar()
	l.Clusters[1].Leaving, l.IOPs[2].Leaving, l.IOPs[0].Gone = true, true, true
	if v := viewOf(t, l, 0, ""); v.IOPs[2].Heals != Away || v.IOPs[0].Proc != None ||
		slices.Contains(v.Outs, 0) {
		t.Errorf("from outside: %+v", v)
	}
	if v := viewOf(t, l, 2, ""); v.IOPs[2].Heals != HealsNo {
		t.Errorf("from within: %+v", v.IOPs)
	}
	v := viewOf(t, l, 10, "")
	if from, to := v.Worlds[0], v.Worlds[1]; from.Heals != HealsNo || from.Closing ||
		to.Heals != HealsNo || !to.Closing {
		t.Errorf("an IOP that leaves with its cluster: %+v", v.Worlds)
	}
	if v = viewOf(t, l, 11, ""); v.Worlds[1].Heals != Away || v.Worlds[1].Closing {
		t.Errorf("an IOP that stays: %+v", v.Worlds)
	}
}

func TestIOP(t *testing.T) {
	l := radar()
	v := viewOf(t, l, 7, "")
	if v.Cluster != None || v.Count() != 2 || len(v.Plan.Slots) != 0 {
		t.Errorf("%+v", v)
	}
	if want := []Way{{1, 0, 2}, {None, 0, 2}, {1, None, 0}}; !slices.Equal(v.Ways, want) {
		t.Errorf("ways %v, want %v", v.Ways, want)
	}
	want := []string{KeyCluster, "doppler", KeyIndex, "1", KeyDirection, "out", KeyHeals, "true",
		KeyDead, "1,3", KeyTo, ""}
	if got := v.Worlds[1].Hints; !slices.Equal(got, want) {
		t.Errorf("hints %q, want %q", got, want)
	}
	if got := v.Worlds[0].Hints[11]; got != "1" {
		t.Errorf("what cluster in sends is for the worlds %q", got)
	}

	v = viewOf(t, l, 11, "")
	var clusters []int
	for _, w := range v.Worlds {
		clusters = append(clusters, w.Cluster)
	}
	if !slices.Equal(clusters, []int{0, 1, 2}) {
		t.Errorf("worlds of clusters %v: those that it receives from come first", clusters)
	}
	ways := []Way{{Several, AnyCluster, 4}, {None, 0, 2}, {1, 1, 4}, {2, None, 0}}
	if !slices.Equal(v.Ways, ways) {
		t.Errorf("ways %v, want %v", v.Ways, ways)
	}
	for i, want := range []string{"1,2", "2", ""} { // without links: all but the cluster itself
		if got := v.Worlds[i].Hints[11]; got != want {
			t.Errorf("what world %d sends is for the worlds %q, want %q", i, got, want)
		}
	}
	if got := v.Worlds[1].Hints[5]; got != "both" {
		t.Errorf("direction %q", got)
	}

	l.Links[0].Gone = true
	if got := viewOf(t, l, 7, "").Worlds[0].Hints[11]; got != "" {
		t.Errorf("over a link that has ended, messages are for %q", got)
	}
}

func TestRefuse(t *testing.T) {
	l := radar()
	in, alone := viewOf(t, l, 0, ""), viewOf(t, l, 12, "")
	one, all := viewOf(t, l, 7, ""), viewOf(t, l, 11, "")
	for _, c := range []struct {
		v     *View
		q     Question
		class mpierr.Class
		text  string
	}{
		{nil, Question{Send: true, Arg: "dest"}, mpierr.Rank, "dest = MPISP_CLUSTER_OUT: this " +
			"job is no system of clusters, which spxrun --system starts (docs/systems.md)"},
		{nil, Question{Arg: "source"}, mpierr.Rank, "source = MPISP_CLUSTER_IN: this job is no " +
			"system of clusters, which spxrun --system starts (docs/systems.md)"},
		{in, Question{Send: true, Arg: "dest"}, mpierr.Rank,
			"dest = MPISP_CLUSTER_OUT: only " +
				"MPI_COMM_WORLD and its duplicates lead to other clusters"},
		{in, Question{Arg: "source", World: true}, mpierr.Rank,
			"source = MPISP_CLUSTER_IN: no link leads to this cluster"},
		{alone, Question{Send: true, Arg: "dest", World: true}, mpierr.Rank,
			"dest = MPISP_CLUSTER_OUT: no link leads away from this cluster"},
		{in, Question{Send: true, Arg: "dest", World: true}, mpierr.ProcFailed,
			"dest = MPISP_CLUSTER_OUT: all I/O " +
				"processes that receive from this cluster have ended"},
		{all, Question{Send: true, Arg: "dest"}, mpierr.Comm, "this I/O process sends to 2 " +
			"clusters: MPISP_Bind says to which, or MPISP_World_get gives its world"},
		{one, Question{Send: true, Arg: "dest", Rank: 1, Way: 1}, mpierr.Rank,
			"dest = 1: this I/O process does not send to that cluster"},
		{one, Question{Send: true, Arg: "dest", Rank: 4, Way: 2}, mpierr.Rank,
			"dest = 4 is no rank of the cluster that messages go to (size 4)"},
		{one, Question{Send: true, Arg: "dest", Rank: -9}, mpierr.Rank,
			"dest = -9 is no rank of the cluster that messages go to (size 4)"},
		{one, Question{Arg: "source", Rank: 1, Way: 2}, mpierr.Rank,
			"source = 1: this I/O process does not receive from that cluster"},
		{all, Question{Arg: "source", Rank: 7}, mpierr.Rank,
			"source = 7 is no rank of the cluster that messages come from (size 4)"},
		{&View{Cluster: None, Ways: ways(nil)}, Question{Arg: "source", Rank: 7}, mpierr.Rank,
			"source = 7: this I/O process does not receive from any cluster"},
	} {
		err := c.v.Refuse(c.q)
		if mpierr.ClassOf(err) != c.class || err.Error() != c.text {
			t.Errorf("%+v: class %d, %q; want %d, %q", c.q, mpierr.ClassOf(err), err, c.class,
				c.text)
		}
	}
}

func TestCheckIndex(t *testing.T) {
	v := viewOf(t, radar(), 11, "")
	if err := v.CheckIndex(2); err != nil {
		t.Error(err)
	}
	const text = "index = 3; this process is a member of 3 worlds, from 0"
	if err := v.CheckIndex(3); mpierr.ClassOf(err) != mpierr.Arg || err.Error() != text {
		t.Error(err)
	}
	const one = "index = 1; this process is a member of 1 world, from 0"
	if err := (*View)(nil).CheckIndex(1); err == nil || err.Error() != one {
		t.Error(err)
	}
	if err := (*View)(nil).CheckIndex(0); err != nil {
		t.Error(err)
	}
}

// Participants keep their numbers when more are attached.
func TestParticipants(t *testing.T) {
	l := radar()
	l.Clusters[1].Replays = true
	before := ParticipantsOf(l, layout.Compute, 0)
	if !Keeps(l) || !Transparent(l) || Keeps(radar()) {
		t.Error("messages are kept where ranks are taken over transparently")
	}
	if !slices.Equal(before.First, []int{0, 2, 6, 7}) || !slices.Equal(before.IOPs,
		[]int{8, 9, 10, 11}) {
		t.Errorf("%+v", before)
	}
	for n, want := range map[int]Participant{1: {1, false, true, None}, 2: {2, true, false, None},
		3: {3, false, false, None}, 6: {6, false, true, None}, 9: {8, false, false, 1}} {
		if before.List[n] != want {
			t.Errorf("participant %d is %+v, want %+v", n, before.List[n], want)
		}
	}
	for _, c := range []struct{ proc, me, first int }{{4, 4, 2}, {9, 0, 2}, {10, 10, 0}} {
		if me, first := before.Me(l.Find(c.proc)); me != c.me || first != c.first {
			t.Errorf("process %d: participant %d, first %d", c.proc, me, first)
		}
	}

	l.Growths = 1
	l.Clusters = append(l.Clusters, layout.Cluster{Name: "late", World: 8,
		Procs: layout.Procs{13}, Since: 1})
	l.IOPs = append(l.IOPs, layout.IOP{Proc: 14, World: 9, In: []int{0}, Out: []int{4}, Since: 1})
	after := ParticipantsOf(l, layout.Compute, 0)
	if len(after.List) != len(before.List)+2 || after.First[4] != 12 || after.IOPs[4] != 13 ||
		!reflect.DeepEqual(after.List[:12], before.List) {
		t.Errorf("after one more cluster: %+v", after)
	}

	l.Clusters[1].Leaving, l.IOPs[2].Leaving = true, true
	if p := ParticipantsOf(l, layout.IO, 2); p.List[2].Heals || p.List[6].Apart {
		t.Errorf("an IOP that leaves with its cluster: %+v", p.List)
	}
	if p := ParticipantsOf(l, layout.IO, 0); !p.List[2].Heals {
		t.Errorf("an IOP that stays: %+v", p.List)
	}
	l.Clusters[1].Gone = true
	if p := ParticipantsOf(l, layout.IO, 0); p.List[2].Heals {
		t.Error("a cluster that has ended heals")
	}
}
