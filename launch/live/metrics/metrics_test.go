package metrics

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"libspx/core/diagnose"
	"libspx/launch/live"
	"libspx/launch/service"
)

func proc(n int, waited float64) diagnose.Proc {
	return diagnose.Proc{Proc: n, Rank: n, Host: "h\xff", State: diagnose.Running,
		Traffic: diagnose.Traffic{At: 1, Life: 1, Sent: 5, Waited: waited}}
}

func get(t *testing.T, take func() (*live.Look, error)) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(take).ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// A job that does not answer is not an error of the scrape.
func TestDown(t *testing.T) {
	text := get(t, func() (*live.Look, error) { return nil, errors.New("gone") })
	if !strings.Contains(text, "\nlibspx_up 0\n") || strings.Contains(text, "libspx_processes") {
		t.Errorf("%s", text)
	}
}

// Two processes with the same rank (one has died, another has its place) are distinguished, and
// texts that are not UTF-8 do no harm.
func TestSameRank(t *testing.T) {
	a, b := proc(0, 1), proc(7, 1)
	b.Rank = 0
	text := get(t, func() (*live.Look, error) {
		return &live.Look{About: service.About{Job: "ab", Program: "p\xfe"},
			Procs: []diagnose.Proc{a, b, {Proc: 9, State: diagnose.Silent}}}, nil
	})
	for _, line := range []string{`libspx_messages_sent_total{cluster="",host="h?",proc="0",rank="0",world="0"} 5`, `libspx_messages_sent_total{cluster="",host="h?",proc="7",rank="0",world="0"} 5`,
		`libspx_processes{state="unknown"} 1`,
		`libspx_job_info{mpi_job="ab",program="p?",system=""} 1`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, `proc="9"`) {
		t.Error("numbers of a process of which nothing is known")
	}
}

// The time of waits never goes back for one process, and begins anew for the next one that has its
// number.
func TestWaitsGrow(t *testing.T) {
	c := New(nil)
	p := proc(0, 2)
	for _, step := range []struct {
		life         uint32
		waited, want float64
	}{{1, 2, 2}, {1, 1.9, 2}, {1, 3, 3}, {2, 0.5, 0.5}} {
		p.Traffic.Life, p.Traffic.Waited = step.life, step.waited
		if got := c.longest(&p); got != step.want {
			t.Errorf("life %d, %g s: %g, want %g", step.life, step.waited, got, step.want)
		}
	}
}

// The dashboard uses existing metrics only.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/grafana/libspx.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	all := make(chan *prometheus.Desc, 100)
	New(nil).Describe(all)
	close(all)
	named := regexp.MustCompile(`fqName: "(\w+)"`)
	for d := range all {
		there[named.FindStringSubmatch(d.String())[1]] = true
	}
	name := regexp.MustCompile(`libspx_\w+`)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			names := name.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%q asks for nothing of libspx", target.Expr)
			}
			for _, n := range names {
				if !there[n] {
					t.Errorf("%q asks for %s, which is not there", target.Expr, n)
				}
			}
		}
	}
	if len(board.Panels) < 10 {
		t.Errorf("only %d panels", len(board.Panels))
	}
}
