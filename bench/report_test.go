package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestLimitOf(t *testing.T) {
	for _, c := range []struct {
		row        string
		ranks      int
		want       string
		processors int
	}{
		{"pingpong 8", 2, "handover 8", 2},
		{"send-vector8 960", 2, "loop-vector8 960", 2},
		{"barrier 0", 16, "meet 0", 2},
		{"allgather 65536", 16, "128 x memcpy2 65536", 2},
		{"allgather 65536", 16, "16 x memcpy2 65536", 64},
		{"bcast 8", 16, "", 2},
		{"overlap 65536", 2, "100 us of work", 2},
		{"jacobi 0", 2, "", 2},
		{"put 65536", 2, "memcpy 65536", 2},
		{"put 65536", 16, "crowd 65536", 2},
		{"put 65536", 16, "memcpy2 65536", 16},
		{"alltoall 65536", 16, "16 x crowd 65536", 2},
		{"file-write_all 65536", 4, "crowd-pwrite 65536", 2},
	} {
		l, ok := limitOf(c.row, c.ranks, c.processors)
		if ok != (c.want != "") || (ok && l.String() != c.want) {
			t.Errorf("limit of %s with %d ranks = %v, %v, want %q", c.row, c.ranks, l, ok, c.want)
		}
	}
}

func TestExpression(t *testing.T) {
	re := regexp.MustCompile(expression([]string{"put 8", "barrier 0"}))
	for row, want := range map[string]bool{"put 8": true, "put 80": false, "ibarrier 0": false, "barrier 0": true} {
		if re.MatchString(row) != want {
			t.Errorf("%s: matched %v", row, !want)
		}
	}
}

// Verdicts of rows that are at the bar, at the better peer, and above; the better peer is the one with the lower median, not the luckier one of a round.
func TestVerdicts(t *testing.T) {
	r := &result{Impls: []string{"spx", "mpich", "openmpi"}, Processors: 2, Dropped: map[string]int{}}
	for i := range 6 {
		a, b := 10.0, 20.0
		if i == 5 {
			b = 1
		}
		r.Rounds = append(r.Rounds, round{Set: "2", Ranks: 2, US: map[string]map[string]float64{
			"pingpong 8":   {"spx": 7.9, "mpich": a, "openmpi": b},
			"pingpong 64":  {"spx": 9, "mpich": a, "openmpi": b},
			"pingpong 512": {"spx": 11, "mpich": a, "openmpi": b},
			"exchange 64":  {"spx": 9.1, "mpich": a, "openmpi": b},
			"handover 8":   {"bare": 1}, "handover 64": {"bare": 8}, "handover 512": {"bare": 10},
		}})
	}
	for row, want := range map[string]string{"pingpong 8": atBar, "pingpong 64": atBar, "pingpong 512": atBar, "exchange 64": atBar} {
		if got := r.judge("2", row).verdict; got != want {
			t.Errorf("%s: %s, want %s", row, got, want)
		}
	}
	for i := range r.Rounds {
		r.Rounds[i].US["handover 64"]["bare"] = 1
		r.Rounds[i].US["handover 512"]["bare"] = 1
	}
	for row, want := range map[string]string{"pingpong 8": atBar, "pingpong 64": atPeer, "pingpong 512": above} {
		if got := r.judge("2", row).verdict; got != want {
			t.Errorf("%s: %s, want %s", row, got, want)
		}
	}
	if s := r.summary(); !strings.Contains(s, "| 2 | 4 | 1 | 2 | 1 |") || !strings.Contains(s, "| 2 | pingpong 512 | 1.10 (1.10-1.10) |") {
		t.Errorf("summary:\n%s", s)
	}
	data, err := r.encode()
	if err != nil || strings.Count(string(data), "\n{\"Set\"") != 6 {
		t.Errorf("encode: %v\n%s", err, data)
	}
}

// A row that is slower the second time only is told of, with both ratios.
func TestTwice(t *testing.T) {
	measured := func(us float64) *result {
		r := &result{Impls: []string{"spx", "mpich", "openmpi"}, Processors: 2, Dropped: map[string]int{}}
		for range 6 {
			r.Rounds = append(r.Rounds, round{Set: "2", Ranks: 2, US: map[string]map[string]float64{
				"exchange 8": {"spx": us, "mpich": 10, "openmpi": 20}, "jacobi 0": {"spx": 1, "mpich": 10, "openmpi": 20},
			}})
		}
		return r
	}
	r, dir := measured(7), t.TempDir()
	if err := measured(12).save(dir + "/second"); err != nil {
		t.Fatal(err)
	}
	if err := r.besides(dir); err != nil {
		t.Fatal(err)
	}
	s := r.markdown(true)
	for _, want := range []string{
		"| 2 | 2 | 2 | 0 | 0 |\n| 2, again | 2 | 1 | 0 | 1 |\n",
		"| 2 | exchange 8 | 0.700 (0.700-0.700) | 1.20 (1.20-1.20) |\n",
		"| bar | 1.20 (1.20-1.20) | **above** | 1 of 2 |\n",
		"| bar | 0.100 (0.100-0.100) | bar |  |\n",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if err := r.besides(t.TempDir()); err != nil || r.second != nil {
		t.Errorf("without a second measurement: %v, %v", r.second, err)
	}
}

// Over TCP, messages between two ranks are compared with sockets, and nothing is compared with memory.
func TestLimitsOverTCP(t *testing.T) {
	r := &result{TCP: true, Processors: 2}
	for _, c := range []struct {
		row   string
		ranks int
		want  string
	}{{"pingpong 8", 2, "socket-pingpong 8"}, {"window 65536", 2, "socket-stream 65536"}, {"bothways 1024", 2, "socket-both 1024"}, {"bothways 1024", 4, ""}, {"barrier 0", 2, ""}} {
		l, ok := r.limitOf(c.row, c.ranks)
		if ok != (c.want != "") || ok && l.name != c.want {
			t.Errorf("%s, %d ranks: %v, %v; want %q", c.row, c.ranks, l, ok, c.want)
		}
	}
}
