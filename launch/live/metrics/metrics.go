// Package metrics exports the state of a running job to Prometheus (docs/live.md). Names and units
// follow its conventions: counters end in _total, times are seconds, sizes bytes. It owns the
// names; a scrape is a look at the job (launch/live), and only values that must not decrease are
// kept between two.
package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"libspx/core/diagnose"
	"libspx/launch/live"
)

// Path is where metrics are, by convention.
const Path = "/metrics"

var ofProcess = []string{"proc", "world", "rank", "host", "cluster"}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("libspx_"+name, help, labels, nil)
}

var (
	up   = desc("up", "Whether the job has answered: 1, or 0.")
	info = desc("job_info",
		"The job: its number, its first program, and its system of clusters, if it is one.",
		"mpi_job", "program", "system")
	processes  = desc("processes", "Processes of the job in a state.", "state")
	waitingFor = desc("process_blocked_seconds",
		"How long the process has been in the MPI call in which it waits; 0: it does not.",
		ofProcess...)
	clusterProc = desc("cluster_processes", "Processes of a cluster that live.", "cluster")
	clusterIs   = desc("cluster_state", "1 for the state that a cluster is in.", "cluster", "state")
	restarts    = desc("cluster_restarts_total", "How often a cluster was started again.",
		"cluster")
	linkProc  = desc("link_io_processes", "I/O processes of a link that live.", "link")
	heldCount = desc("link_held_messages",
		"Messages that the I/O processes of a link hold, as they say.", "link")
	heldBytes = desc("link_held_bytes",
		"Bytes that the I/O processes of a link hold, as they say.", "link")
)

// perProcess are the numbers that each process counts.
var perProcess = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(t *diagnose.Traffic) float64
}{
	{desc("messages_sent_total", "Messages sent, those of collectives included.", ofProcess...),
		prometheus.CounterValue, func(t *diagnose.Traffic) float64 { return float64(t.Sent) }},
	{desc("messages_received_total", "Messages received.", ofProcess...), prometheus.CounterValue,
		func(t *diagnose.Traffic) float64 { return float64(t.Received) }},
	{desc("sent_bytes_total", "Bytes in the messages sent.", ofProcess...), prometheus.CounterValue,
		func(t *diagnose.Traffic) float64 { return float64(t.SentBytes) }},
	{desc("received_bytes_total", "Bytes in the messages received.", ofProcess...),
		prometheus.CounterValue, func(t *diagnose.Traffic) float64 {
			return float64(
				t.ReceivedBytes)
		}},
	{desc("collectives_total", "Collective operations begun.", ofProcess...),
		prometheus.CounterValue, func(t *diagnose.Traffic) float64 {
			return float64(
				t.Collectives)
		}},
	{desc("sleeps_total", "Times that the process has slept in an MPI call.", ofProcess...),
		prometheus.CounterValue, func(t *diagnose.Traffic) float64 { return float64(t.Sleeps) }},
	{desc("unexpected_messages_total", "Messages that came before their receive.", ofProcess...),
		prometheus.CounterValue, func(t *diagnose.Traffic) float64 {
			return float64(
				t.Unexpected)
		}},
	{desc("unexpected_bytes_total", "Bytes copied aside because their receive had not been posted.",
		ofProcess...), prometheus.CounterValue,
		func(t *diagnose.Traffic) float64 { return float64(t.UnexpectedBytes) }},
	{desc("failures_noticed_total", "Processes whose failure this process has noticed.",
		ofProcess...), prometheus.CounterValue,
		func(t *diagnose.Traffic) float64 { return float64(t.Failures) }},
	{desc("frames_resent_total", "Frames that were sent again over a new connection.",
		ofProcess...), prometheus.CounterValue,
		func(t *diagnose.Traffic) float64 { return float64(t.SentAgain) }},
	{desc("peers", "Processes that this process has sent to.", ofProcess...), prometheus.GaugeValue,
		func(t *diagnose.Traffic) float64 { return float64(t.Peers) }},
	{desc("connections", "Open connections to processes of other hosts.", ofProcess...),
		prometheus.GaugeValue, func(t *diagnose.Traffic) float64 { return float64(t.Connections) }},
}

var waited = desc("wait_seconds_total",
	"Time in which the process has waited in MPI calls, of all its threads.", ofProcess...)

// states are the values of the label state.
var states = map[diagnose.State]string{diagnose.Starting: "starting", diagnose.Running: "running",
	diagnose.Waiting: "waiting", diagnose.Stopped: "stopped",
	diagnose.Finalized: "finalized", diagnose.Ended: "ended", diagnose.Dead: "dead",
	diagnose.Silent: "unknown"}

// Collector makes metrics of a job on request.
type Collector struct {
	take func() (*live.Look, error)

	mu sync.Mutex
	// the longest so far: looks may differ by the moment of a sleep's end; guarded by mu
	waits map[life]float64
}

type life struct {
	proc int
	life uint32
}

// New is a collector of the job that take looks at.
func New(take func() (*live.Look, error)) *Collector {
	return &Collector{take: take, waits: map[life]float64{}}
}

// Describe names all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{up, info, processes, waitingFor, waited, clusterProc,
		clusterIs, restarts, linkProc, heldCount, heldBytes} {
		ch <- d
	}
	for i := range perProcess {
		ch <- perProcess[i].desc
	}
}

// Collect takes a look at the job.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	look, err := c.take()
	if err != nil {
		gauge(up, 0)
		return
	}
	gauge(up, 1)
	system := ""
	if look.Layout != nil {
		system = look.Layout.System
	}
	gauge(info, 1, look.About.Job, valid(look.About.Program), system)
	rows := live.Rows(nil, look)
	count := map[diagnose.State]int{}
	for i := range rows {
		count[rows[i].State]++
		c.process(ch, &look.Procs[i], &rows[i])
	}
	for state, name := range states {
		gauge(processes, float64(count[state]), name)
	}
	for _, k := range live.Clusters(look, rows) {
		gauge(clusterProc, float64(k.Alive), k.Name)
		gauge(clusterIs, 1, k.Name, k.State)
		ch <- prometheus.MustNewConstMetric(restarts, prometheus.CounterValue, float64(k.Restarts),
			k.Name)
	}
	for _, k := range live.Links(look, rows) {
		gauge(linkProc, float64(k.Alive), k.Name)
		gauge(heldCount, float64(k.HeldCount), k.Name)
		gauge(heldBytes, float64(k.Held), k.Name)
	}
}

func (c *Collector) process(ch chan<- prometheus.Metric, p *diagnose.Proc, r *live.Row) {
	if p.Traffic.At == 0 { // its host does not answer
		return
	}
	labels := []string{strconv.Itoa(p.Proc), strconv.Itoa(p.World), strconv.Itoa(p.Rank),
		valid(p.Host), r.Cluster}
	for i := range perProcess {
		m := &perProcess[i]
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(&p.Traffic), labels...)
	}
	ch <- prometheus.MustNewConstMetric(waitingFor, prometheus.GaugeValue, r.For, labels...)
	ch <- prometheus.MustNewConstMetric(waited, prometheus.CounterValue, c.longest(p), labels...)
}

func (c *Collector) longest(p *diagnose.Proc) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := life{p.Proc, p.Traffic.Life}
	c.waits[who] = max(c.waits[who], p.Traffic.Waited)
	return c.waits[who]
}

// valid is a text as a label may have it.
func valid(s string) string { return strings.ToValidUTF8(s, "?") }

// Limits on scrapes.
const (
	atOnce = 4
	limit  = 15 * time.Second
)

// Handler answers scrapes.
func Handler(take func() (*live.Look, error)) http.Handler {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(take))
	return promhttp.HandlerFor(registry,
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: atOnce,
			Timeout: limit})
}
