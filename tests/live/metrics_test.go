package live

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"libspx/tests/harness"
)

// scrape reads metrics as Prometheus does, by its own parser.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	client := http.Client{Timeout: limit}
	answer, err := client.Get(address)
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return families
}

// value is that of the metric with this label; the one without labels, if name is empty. -1: there is none.
func value(families map[string]*dto.MetricFamily, family, name, label string) float64 {
	for _, m := range families[family].GetMetric() {
		found := name == ""
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == name && l.GetValue() == label
		}
		if found {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

// conventions of Prometheus: https://prometheus.io/docs/practices/naming/
var metricName = regexp.MustCompile(`^libspx_[a-z_]+$`)

func TestMetrics(t *testing.T) {
	const messages, bytes = 1000, 4096
	j := talk(t, "4", []string{"--metrics", "0"}, "count", fmt.Sprint(messages), fmt.Sprint(bytes))
	address := j.address(t)
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Errorf("metrics are at %s, not on the loopback interface", address)
	}
	var f map[string]*dto.MetricFamily
	until(t, "three ranks that wait in the barrier, as a scrape has it", func() bool {
		f = scrape(t, address)
		return value(f, "libspx_up", "", "") == 1 && value(f, "libspx_processes", "state", "waiting") == 3
	})
	for _, c := range []struct {
		family, name, label string
		want                float64
	}{
		{"libspx_messages_sent_total", "rank", "0", messages},
		{"libspx_sent_bytes_total", "rank", "2", messages * bytes},
		{"libspx_messages_received_total", "rank", "1", messages},
		{"libspx_received_bytes_total", "rank", "3", messages * bytes},
		{"libspx_messages_received_total", "rank", "0", 0},
		{"libspx_collectives_total", "rank", "1", 1},
		{"libspx_job_info", "mpi_job", j.number, 1},
		{"libspx_processes", "state", "dead", 0},
		{"libspx_failures_noticed_total", "rank", "1", 0},
	} {
		if got := value(f, c.family, c.name, c.label); got != c.want {
			t.Errorf("%s{%s=%q} is %g, want %g", c.family, c.name, c.label, got, c.want)
		}
	}
	for name, family := range f {
		if !metricName.MatchString(name) || family.GetHelp() == "" {
			t.Errorf("%s (%q) is not as Prometheus' conventions have it", name, family.GetHelp())
		}
		if counter := family.GetType() == dto.MetricType_COUNTER; counter != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %v", name, family.GetType())
		}
	}
	before := value(f, "libspx_wait_seconds_total", "rank", "1")
	until(t, "time that passes for a rank that waits", func() bool {
		return value(scrape(t, address), "libspx_wait_seconds_total", "rank", "1") > before+0.05
	})
	j.stdin.Close()
	if err := j.cmd.Wait(); err != nil {
		t.Errorf("spxrun: %v", err)
	}
	if conn, err := net.DialTimeout("tcp", strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/metrics"), time.Second); err == nil {
		conn.Close()
		t.Error("the metrics are still served when the job has ended")
	}
}

// address is where the metrics are, as spxrun says.
func (j *job) address(t *testing.T) string {
	t.Helper()
	late := harness.After(limit)
	for {
		select {
		case line, open := <-j.lines:
			if _, address, found := strings.Cut(line, "spxrun: metrics are at "); found {
				return address
			}
			if !open {
				t.Fatal("spxrun has ended without saying where the metrics are")
			}
		case <-late:
			t.Fatalf("spxrun does not say where the metrics are\nto repeat: go test ./tests/live -run '%s$'", t.Name())
		}
	}
}

// An address that cannot be had is said before anything runs.
func TestMetricsAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	for word, says := range map[string]string{taken: "--metrics: .*address already in use", "none": `"none"`, "127.0.0.1:70000": "70000"} {
		o := harness.Run(t, harness.Command{Args: []string{filepath.Join(harness.Build(t), "bin/spxrun"), "--metrics", word, "-n", "1", "echo", "ran"}})
		if o.Status == 0 || strings.Contains(o.Stdout, "ran") || !regexp.MustCompile(says).MatchString(o.Stderr) {
			t.Errorf("--metrics %s: status %d\n%s", word, o.Status, o.Text())
		}
	}
}
