package live

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"libspx/cluster/layout"
	"libspx/core/diagnose"
	"libspx/launch/service"
)

func proc(n int, host string, state diagnose.State, at float64, sent uint64,
	waited float64) diagnose.Proc {
	return diagnose.Proc{Proc: n, Rank: n, Host: host, Pid: 100 + n, State: state,
		Traffic: diagnose.Traffic{At: at, Life: 1, Sent: sent, SentBytes: 100 * sent,
			Waited: waited}}
}

func looks() (before, now *Look) {
	before = &Look{At: time.Unix(100, 0), About: service.About{Job: "ab"}, Procs: []diagnose.Proc{
		proc(0, "node10", diagnose.Running, 5, 1000, 1), proc(1, "node2", diagnose.Running, 50, 0,
			0), proc(2, "node2", diagnose.Running, 50, 7, 0)}}
	now = &Look{At: time.Unix(102, 0), About: before.About, Procs: []diagnose.Proc{
		proc(0, "node10", diagnose.Running, 7, 3000, 1.5), proc(1, "node2", diagnose.Waiting, 52, 0,
			9), proc(2, "node2", diagnose.Dead, 52, 7, 0),
		proc(3, "node2", diagnose.Starting, 52, 0, 0)}}
	now.Procs[1].Waits = []diagnose.Wait{{Call: "MPI_Recv", For: 125}}
	now.Procs[2].End = "killed by signal 9 (killed)"
	return before, now
}

// Rates go by the clock of each host, and are unknown for a process that was not there before or is
// gone.
func TestRates(t *testing.T) {
	rows := Rows(looks())
	if r := rows[0].Rates; r.Sent != 1000 || r.SentBytes != 100000 || r.Wait != 0.25 {
		t.Errorf("rank 0: %+v", r)
	}
	if r := rows[1].Rates; r.Sent != 0 || r.Wait != 1 {
		t.Errorf("rank 1, whose threads have waited more than the time: %+v", r)
	}
	if rows[2].Rates.Wait != -1 || rows[3].Rates.Wait != -1 {
		t.Errorf("ranks 2 and 3: %+v %+v", rows[2].Rates, rows[3].Rates)
	}
	before, now := looks()
	now.Procs[0].Traffic.Life, now.Procs[0].Traffic.Sent = 2, 5
	if r := Rows(before, now)[0].Rates; r.Wait != -1 || r.Sent != 0 {
		t.Errorf("another process has its number: %+v", r)
	}
}

func order(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteByte(byte('0' + r.Rank))
	}
	return b.String()
}

func TestSort(t *testing.T) {
	for key, want := range map[string]string{"host": "1230", "rank": "0123", "state": "2130",
		"messages": "0123", "wait": "1023", "failures": "0123"} {
		rows := Rows(looks())
		if Sort(rows, key, false); order(rows) != want {
			t.Errorf("%s: %s, want %s", key, order(rows), want)
		}
		was := order(rows)
		Sort(rows, key, true)
		if back := order(rows); strings.Compare(back,
			string([]byte{was[3], was[2], was[1], was[0]})) != 0 {
			t.Errorf("%s reversed: %s", key, back)
		}
	}
}

func TestFilter(t *testing.T) {
	for filter, want := range map[string]string{"": "0123", "node2": "123", "node2 dead": "2",
		"r1": "1", "r1-2": "12", "recv": "1", "NODE10": "0", "r": "013", "nothing": ""} {
		if got := order(Filter(Rows(looks()), filter)); got != want {
			t.Errorf("%q: %s, want %s", filter, got, want)
		}
	}
}

// A table never is wider than the screen, whatever the screen, and keeps what matters most.
func TestTableFits(t *testing.T) {
	before, now := looks()
	now.Procs[0].Host = strings.Repeat("long", 10) + "\x1b[31m"
	rows := Rows(before, now)
	for width := 74; width < 200; width++ {
		table := RankTable(rows[1:], width)
		for _, line := range append(table.Lines, table.Head) {
			if len([]rune(line)) > width {
				t.Errorf("width %d: %q has %d", width, line, len([]rune(line)))
			}
		}
		for _, head := range []string{"RANK", "HOST", "STATE", "MSG/s", "WAIT", "FAIL"} {
			if !strings.Contains(table.Head, head) {
				t.Errorf("width %d: no %s in %q", width, head, table.Head)
			}
		}
	}
	if text := strings.Join(RankTable(rows, 0).Lines, "\n"); strings.Contains(text, "\x1b") {
		t.Errorf("what a terminal takes for a command comes from a host's name: %q", text)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 9.99: "10", 999.4: "999",
		999.6: "1.0k", 12345: "12.3k", 999499: "999k", 999501: "1.0M", 2e9: "2.0G", 1e30: "many"} {
		if got := Number(v); got != want || len(got) > 5 {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.0s", 9.96: "10s", 99: "99s", 125: "2m",
		7200: "2h", 3600 * 30: "30h", 86400 * 9: "9d"} {
		if got := Duration(v); got != want {
			t.Errorf("%g s: %s, want %s", v, got, want)
		}
	}
}

// A system: the processes of each cluster, and the messages held by I/O processes.
func TestParts(t *testing.T) {
	l := &layout.Layout{Version: 1, System: "s",
		Clusters: []layout.Cluster{{Name: "a", World: 0, Procs: layout.Procs{0}},
			{Name: "b", World: 1, Procs: layout.Procs{1, 2}}},
		Links: []layout.Link{{Name: "a-b", From: []int{0}, To: []int{1}}},
		IOPs:  []layout.IOP{{Proc: 3, World: 2, Links: []int{0}}}}
	before, now := looks()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	now.About.System = &service.System{Layout: text,
		Parts: []service.Part{{Name: "a", State: "running", Alive: 1},
			{Name: "b", State: "degraded", Alive: 1, Restarts: 2}, {Name: "iop", Alive: 1}}}
	now.Layout = l
	now.Procs[3].Traffic.HeldBytes, now.Procs[3].Traffic.HeldMessages = 1000, 3
	v := Picture(now, Rows(before, now))
	if len(v.Clusters) != 2 || v.Clusters[1].Dead != 1 || v.Clusters[1].Ranks != 2 ||
		v.Clusters[1].State != "degraded" || v.Clusters[0].Rates.Sent != 1000 {
		t.Errorf("clusters: %+v", v.Clusters)
	}
	if len(v.Links) != 1 || v.Links[0].Alive != 1 || v.Links[0].Held != 1000 ||
		v.Links[0].HeldCount != 3 || v.Links[0].From[0] != "a" || v.Links[0].To[0] != "b" {
		t.Errorf("links: %+v", v.Links)
	}
	if table := LinkTable(v.Links, 80); !strings.Contains(table.Lines[0], "a -> b") {
		t.Errorf("%q", table.Lines)
	}
}

func texts(list []Event) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.Kind + ": " + e.Text + "\n")
	}
	return b.String()
}

// Changes are reported once: deaths, ends, replaced processes; not earlier ones.
func TestChanges(t *testing.T) {
	before, now := looks()
	got := texts(Changes(before, now))
	if want := "death: rank 2 has died: pid 102 on node2, killed by signal 9 (killed)\nstart: " +
		"there is one more process\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if again := texts(Changes(now, now)); again != "" {
		t.Errorf("told again: %s", again)
	}
	if first := texts(Changes(nil,
		now)); first != "death: rank 2 has died: pid 102 on node2, killed by signal 9 (killed)\n" {
		t.Errorf("at the first look: %s", first)
	}
	_, then := looks()
	then.Procs[2] = proc(2, "node2", diagnose.Running, 53, 0, 0)
	then.Procs[2].Traffic.Life, then.Procs[2].Pid = 2, 500
	if got := texts(Changes(now,
		then)); got != "start: rank 2: another process has its place, pid 500 on node2\n" {
		t.Errorf("another process: %s", got)
	}
}

// A standby that has become a rank has taken its place.
func TestTakeover(t *testing.T) {
	before, now := looks()
	for i := range 2 {
		for _, l := range []*Look{before, now} {
			l.Procs[i].Part, l.Procs[i].Rank = "cluster a", i
		}
	}
	before.Procs[1].Standby, before.Procs[1].Rank = true, 0
	want := "takeover: standby 0 of cluster a takes the place of rank 1 of cluster a: pid 101 " +
		"on node"
	if got := texts(Changes(before, now)); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// For a system the changes of its clusters are reported, by their names.
func TestChangesOfClusters(t *testing.T) {
	l := &layout.Layout{Version: 1, System: "s",
		Clusters: []layout.Cluster{{Name: "a", Procs: layout.Procs{0, 1, 2, 3}}}}
	before, now := looks()
	before.Layout, now.Layout = l, l
	before.About.System = &service.System{Parts: []service.Part{{Name: "a", State: "running"}}}
	now.About.System = &service.System{Parts: []service.Part{{Name: "a", State: "degraded",
		Restarts: 1}}}
	if got := texts(Changes(before, now)); !strings.Contains(got,
		"death: rank 2 of cluster a has died") ||
		!strings.Contains(got, "cluster: cluster a is degraded and has been started again\n") {
		t.Errorf("%s", got)
	}
}
