package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// A limit of a row is a number of times one of the machine's bare limits ("handover 8"), or a constant in microseconds.
type limit struct {
	times float64
	name  string // "": times is microseconds
}

func (l limit) String() string {
	switch {
	case l.name == "":
		return fmt.Sprintf("%g us of work", l.times)
	case l.times == 1:
		return l.name
	}
	return fmt.Sprintf("%.3g x %s", l.times, l.name)
}

// of is the limit in a round, in microseconds; NaN if it was not measured.
func (l limit) of(bare map[string]float64) float64 {
	if l.name == "" {
		return l.times
	}
	us, ok := bare[l.name]
	if !ok {
		return math.NaN()
	}
	return l.times * us
}

// limitRules: the first expression that matches "name bytes" says what no implementation can do without. The function gets
// the row's bytes, the ranks, and the processors that they have, at most one each. false: there is no such limit.
var limitRules = []struct {
	rows *regexp.Regexp
	what func(bytes int, ranks, cpus float64) (limit, bool)
}{
	{regexp.MustCompile(`^overlap`), func(int, float64, float64) (limit, bool) { return limit{100, ""}, true }},
	{regexp.MustCompile(`^(pingpong|anysource|persistent|multiple-\w+) `), func(bytes int, _, _ float64) (limit, bool) { return one("handover", bytes), true }},
	{regexp.MustCompile(`^curve `), func(bytes int, ranks, cpus float64) (limit, bool) {
		if ranks == 2 {
			return one("handover", bytes), true
		}
		return limit{ranks / 2 / cpus, fmt.Sprint("memcpy2 ", bytes)}, true
	}},
	{regexp.MustCompile(`^(window|pairs|bothways) (8|64|1024|8192)$`), func(bytes int, ranks, cpus float64) (limit, bool) {
		return limit{ranks / cpus, fmt.Sprint("stream ", bytes)}, true
	}},
	{regexp.MustCompile(`^(window|pairs) `), copies(func(p float64) float64 { return p / 2 })},
	{regexp.MustCompile(`^bothways `), copies(func(p float64) float64 { return p })},
	{regexp.MustCompile(`^exchange \d{1,4}$`), func(bytes int, ranks, cpus float64) (limit, bool) {
		return one("handover", bytes), ranks <= cpus
	}},
	{regexp.MustCompile(`^exchange `), copies(func(p float64) float64 { return p })},
	{regexp.MustCompile(`^(send|pack|unpack)-(\w+) `), nil}, // see limitOf
	{regexp.MustCompile(`^(barrier|ibarrier|put-fence|i?allreduce|allreduce_init|allgatherv?|i?alltoallv?) \d{1,4}$`), func(int, float64, float64) (limit, bool) {
		return limit{1, "meet 0"}, true
	}},
	{regexp.MustCompile(`^(i?bcast|reduce|gatherv?|scatterv?|scan) \d{1,4}$`), func(bytes int, ranks, cpus float64) (limit, bool) {
		return one("stream", bytes), ranks <= cpus
	}},
	{regexp.MustCompile(`^bcast `), copies(func(p float64) float64 { return p - 1 })},
	{regexp.MustCompile(`^(gatherv?|scatterv?|scan) `), copies(func(p float64) float64 { return p })},
	{regexp.MustCompile(`^(allgatherv?|i?alltoallv?) `), copies(func(p float64) float64 { return p * p })},
	{regexp.MustCompile(`^reduce `), copies(func(p float64) float64 { return p - 1 })},
	{regexp.MustCompile(`^(i?allreduce|allreduce_init) `), copies(func(p float64) float64 { return 2*p - 1 })},
	{regexp.MustCompile(`^reduce_scatter \d{5,}$`), copies(func(p float64) float64 { return p * (p - 1) })},
	{regexp.MustCompile(`^neighbor_alltoall `), copies(func(p float64) float64 { return 4 * p })},
	{regexp.MustCompile(`^(put|get|accumulate|put-strided) \d{4,}$`), func(bytes int, ranks, cpus float64) (limit, bool) {
		if ranks == 2 {
			return one("memcpy", bytes), true
		}
		return limit{ranks / cpus, fmt.Sprint("memcpy2 ", bytes)}, true
	}},
	{regexp.MustCompile(`^file-write`), func(bytes int, _, _ float64) (limit, bool) { return one("crowd-pwrite", bytes), true }},
	{regexp.MustCompile(`^file-read`), func(bytes int, _, _ float64) (limit, bool) { return one("crowd-pread", bytes), true }},
}

// crowdRules come before these where ranks outnumber processors: each rank's data then are cold when its turn comes, and what no
// implementation can do without is measured by so many processes, each with as much memory as a rank. times: so many such operations
// of all ranks are a call.
var crowdRules = []struct {
	rows  *regexp.Regexp
	name  string
	times func(ranks float64) float64
}{
	{regexp.MustCompile(`^(put|get|accumulate|put-strided) (4096|65536|1048576)$`), "crowd", times(1)},
	{regexp.MustCompile(`^(exchange|bothways) (65536|524288|1048576)$`), "crowd", times(1)},
	{regexp.MustCompile(`^pairs 65536$`), "crowd", times(0.5)},
	{regexp.MustCompile(`^neighbor_alltoall 65536$`), "crowd", times(4)},
	{regexp.MustCompile(`^alltoallv? 65536$`), "crowd", func(p float64) float64 { return p }},
}

func times(n float64) func(float64) float64 { return func(float64) float64 { return n } }

func one(name string, bytes int) limit { return limit{1, fmt.Sprint(name, " ", bytes)} }

// copies is the limit of moving a number of copies with all processors, at least one copy's time.
func copies(number func(ranks float64) float64) func(int, float64, float64) (limit, bool) {
	return func(bytes int, ranks, cpus float64) (limit, bool) {
		return limit{max(1, number(ranks)/cpus), fmt.Sprint("memcpy2 ", bytes)}, true
	}
}

// limitOf says which limit a row has with that many ranks on that many processors.
func limitOf(row string, ranks, processors int) (limit, bool) {
	name, bytes := splitRow(row)
	for _, r := range crowdRules {
		if ranks > processors && r.rows.MatchString(row) {
			return limit{r.times(float64(ranks)), fmt.Sprint(r.name, " ", bytes)}, true
		}
	}
	for _, r := range limitRules {
		switch {
		case !r.rows.MatchString(row):
		case r.what == nil:
			_, kind, _ := strings.Cut(name, "-")
			return one("loop-"+kind, bytes), true
		default:
			return r.what(bytes, float64(ranks), float64(min(ranks, processors)))
		}
	}
	return limit{}, false
}

// limitNames are the limits that the rows of a set need, as programs/limits.c takes them.
func limitNames(rows []string, ranks, processors int) (names []string) {
	seen := map[string]bool{}
	for _, row := range rows {
		l, ok := limitOf(row, ranks, processors)
		name, _ := splitRow(l.name)
		if ok && name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// copyLimits are the copies beside which pairs that get and stream are drawn: one at a time, or each processor one at a time.
func copyLimits(ranks, processors int) []limit {
	if ranks == 2 {
		return []limit{{1, "memcpy"}, {1, "cma"}}
	}
	times := max(1, float64(ranks)/2/float64(min(ranks, processors)))
	return []limit{{times, "memcpy2"}, {times, "cma2"}}
}

// socketLimits say what sockets alone take for a row over TCP between two ranks.
var socketLimits = map[string]string{"pingpong": "socket-pingpong", "window": "socket-stream", "bothways": "socket-both"}

func socketLimit(row string, ranks int) (limit, bool) {
	name, bytes := splitRow(row)
	socket, ok := socketLimits[name]
	return one(socket, bytes), ok && ranks == 2
}

// limitOf is the limit of a row in this measurement.
func (r *result) limitOf(row string, ranks int) (limit, bool) {
	if r.TCP {
		return socketLimit(row, ranks)
	}
	return limitOf(row, ranks, r.Processors)
}
