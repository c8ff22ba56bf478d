package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What must be true at the end.

// A Report is what came of a plan.
type Report struct {
	Files  map[string]string // of the folder of the programs
	Said   string            // by the system
	Status int               // of spxrun; -1: not known
	HostOf func(int) string
	Early  bool // the system has ended while it started
}

// A stream is what one process has sent as one rank.
type stream struct{ cluster, rank, generation int }

// An end is what a process has said at its end.
type end struct {
	life                      int
	sent                      map[stream]int // how many
	failed                    bool
	maybe                     []int
	came                      map[stream][][2]int
	again, late, torn, broken int
	lost                      int
	over                      bool // that is what it was when MPI_Finalize was over
}

// Judge lists what is not as it must be: m is the system after all that has happened to it.
func Judge(m *Model, r *Report) (wrong []string) {
	j := judge{m: m, r: r, ends: map[Rank]*end{}, seen: map[Rank][]map[stream]int{}}
	if m.MayEnd && r.Early {
		if r.Status == 0 || !strings.Contains(r.Said, "was killed by signal 9 (SIGKILL)") {
			return []string{fmt.Sprintf("the system has ended while it started, with status %d, and does not say why", r.Status)}
		}
		return nil
	}
	j.read()
	j.standing()
	j.told()
	j.messages()
	if !m.Ended {
		for _, o := range m.Origins() {
			for _, to := range m.plan.targets(o.Cluster) {
				j.complete(o, to)
			}
			j.counted(o)
		}
	}
	return j.wrong
}

type judge struct {
	m     *Model
	r     *Report
	ends  map[Rank]*end             // of the last process that was a rank
	seen  map[Rank][]map[stream]int // how far others were when a process without what the one before had came to be a rank
	wrong []string
}

func (j *judge) complain(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

func (j *judge) read() {
	for _, name := range slices.Sorted(maps.Keys(j.r.Files)) {
		var rank Rank
		var life int
		if n, _ := fmt.Sscanf(name, "end.%d.%d.%d", &rank.Cluster, &rank.Rank, &life); n == 3 {
			e, was := parseEnd(j.r.Files[name], rank), j.ends[rank]
			if was == nil || was.life < life {
				e.life = life
				j.ends[rank] = e
			}
			if was != nil && rank.Cluster < len(j.m.Clusters) && j.m.Clusters[rank.Cluster].Came { // who was told to leave has said, too, what it had got
				for s, spans := range was.came {
					e.came[s] = append(e.came[s], spans...)
				}
				j.ends[rank].came = e.came
			}
		}
		if n, _ := fmt.Sscanf(name, "seen.%d.%d.%d", &rank.Cluster, &rank.Rank, &life); n == 3 && (life > 0 || j.m.Clusters[rank.Cluster].early) && !(j.m.Clusters[rank.Cluster].Came && !j.m.Clusters[rank.Cluster].Renewed) {
			j.seen[rank] = append(j.seen[rank], parseSeen(j.r.Files[name]))
		}
	}
}

func parseEnd(text string, rank Rank) *end {
	e := &end{sent: map[stream]int{}, came: map[stream][][2]int{}}
	said := 0
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		var generation, n, class int
		if k, _ := fmt.Sscanf(line, "sent %d %d %d", &generation, &n, &class); k == 3 {
			e.sent[stream{rank.Cluster, rank.Rank, generation}], e.failed = n, class != 0
			for _, w := range words[4:] {
				var x int
				fmt.Sscan(w, &x) //nolint:errcheck // the program writes numbers
				e.maybe = append(e.maybe, x)
			}
		}
		var s stream
		if k, _ := fmt.Sscanf(line, "from %d %d %d", &s.cluster, &s.rank, &s.generation); k == 3 {
			for _, w := range words[4:] {
				var span [2]int
				fmt.Sscanf(w, "%d-%d", &span[0], &span[1]) //nolint:errcheck // likewise
				e.came[s] = append(e.came[s], span)
			}
		}
		fmt.Sscanf(line, "bad %d %d %d %d", &e.again, &e.late, &e.torn, &e.broken) //nolint:errcheck // another line
		if k, _ := fmt.Sscanf(line, "lost %d", &e.lost); k == 1 {
			said++
			e.over = said > 1
		}
	}
	return e
}

func parseSeen(text string) map[stream]int {
	out := map[stream]int{}
	for _, line := range strings.Split(text, "\n") {
		var s stream
		var n int
		if k, _ := fmt.Sscanf(line, "%d %d %d %d", &s.cluster, &s.rank, &s.generation, &n); k == 4 {
			out[s] = n
		}
	}
	return out
}

// killed is the status of who was killed.
const killed = 128 + 9

// standing: the system has ended, or not, and the clusters live that must.
func (j *judge) standing() {
	if j.m.Ended {
		if j.r.Status == 0 {
			j.complain("the system has to end with a status, and has 0")
		}
		if !strings.Contains(j.r.Said, " and with it the system") {
			j.complain("it is not said why the system ends")
		}
		return
	}
	if j.r.Status > 0 && !(j.m.Leaving && j.r.Status == killed) {
		j.complain("exit status %d", j.r.Status)
	}
	if !j.m.decider && !strings.Contains(j.r.Said, "has ended, exit status 0\n") && !(j.m.Leaving && strings.Contains(j.r.Said, fmt.Sprintf("has ended, exit status %d\n", killed))) {
		j.complain("the host that decides has not said that all ended well")
	}
	for c, k := range j.m.Clusters {
		for rank := range j.m.plan.Clusters[c].Ranks {
			if j.ends[Rank{c, rank}] == nil && !k.Gone && !slices.Contains(k.Dead, rank) {
				j.complain("rank %d of cluster %d has not come to its end", rank, c)
			}
		}
		if text := fmt.Sprintf("cluster %s is gone; the others go on.", Name(c)); k.Gone != strings.Contains(j.r.Said, text) {
			j.complain("cluster %d has to be gone: %v; that is not what is said", c, k.Gone)
		}
		if n := strings.Count(j.r.Said, fmt.Sprintf("cluster %s is started again (", Name(c))); n != k.again && !(n == k.again+1 && j.m.tooEarly(c)) {
			j.complain("cluster %d has to be started again %d times; it is said %d times", c, k.again, n)
		}
	}
}

// told: what was done has been said, and nothing that was not.
func (j *judge) told() {
	for h := 1; h <= j.m.plan.Hosts; h++ {
		said := SaysLost(j.r.Said, j.r.HostOf(h))
		n := slices.Index(j.m.Lost, h)
		if n < 0 && said {
			j.complain("it is said that host %d is lost", h)
		}
		if n >= 0 && j.m.Said[n] && !said && !j.m.Ended {
			j.complain("it is not said that host %d is lost", h)
		}
	}
	if n := strings.Count(j.r.Said, "was killed by signal 9 (SIGKILL)"); n < j.m.Deaths {
		j.complain("%d processes were killed, and %d deaths are said", j.m.Deaths, n)
	}
}

// SaysLost: the system says that a host is lost.
func SaysLost(text, host string) bool {
	return strings.Contains(text, "host "+host+" is lost") || strings.Contains(text, "in the place of host "+host+", which is lost")
}

// messages: none is damaged, none comes twice, and they are in order, where that is promised.
func (j *judge) messages() {
	for _, r := range slices.SortedFunc(maps.Keys(j.ends), compare) {
		e := j.ends[r]
		own, above := j.m.Clusters[r.Cluster].Renewed, false
		before, _ := j.m.plan.Before(r.Cluster)
		for _, c := range before {
			above = above || c != r.Cluster && j.m.plan.Clusters[c].Role == Pass && j.m.Clusters[c].Renewed
		}
		if e.torn > 0 {
			j.complain("rank %d of cluster %d: %d messages are damaged", r.Rank, r.Cluster, e.torn)
		}
		if e.broken > 0 && j.m.plan.Messages == "kept" {
			j.complain("rank %d of cluster %d: %d receives have failed", r.Rank, r.Cluster, e.broken)
		}
		if e.again > 0 && !above { // who hands on may get again what the one before has handed on
			j.complain("rank %d of cluster %d: %d messages came again", r.Rank, r.Cluster, e.again)
		}
		if e.late > 0 && !above && !own && !j.m.Slow && !j.inherits(r.Cluster) {
			j.complain("rank %d of cluster %d: %d messages came out of turn", r.Rank, r.Cluster, e.late)
		}
	}
}

// inherits: a cluster may get, late, what another one that it shares messages with has not taken.
func (j *judge) inherits(c int) bool {
	return slices.ContainsFunc(j.m.plan.Links, func(l Link) bool {
		return l.One && slices.Contains(l.To, c) && slices.ContainsFunc(l.To, func(o int) bool { return o != c && (j.m.Clusters[o].Gone || j.m.Clusters[o].Renewed) })
	})
}

// complete: all that was promised of what a rank has sent has come to some clusters together.
func (j *judge) complete(o Rank, to []int) {
	var ranks []Rank
	for _, r := range j.m.reach(o) {
		if slices.Contains(to, r.Cluster) {
			ranks = append(ranks, r)
		}
	}
	from := j.ends[o]
	if len(ranks) == 0 || from == nil || !j.m.Free(o.Cluster) {
		return
	}
	var clusters []int
	since := map[stream]int{}
	for _, c := range to {
		before, links := j.m.plan.Before(c)
		clusters = append(clusters, before...)
		for _, l := range links {
			if j.m.Links[l].Lossy {
				return
			}
		}
		if len(to) > 1 && j.m.Clusters[c].Gone { // what it had taken is lost with it; and what was on its way to it, unless messages are kept
			text, noted := j.r.Files[GoneFile(c)]
			if !noted || j.m.plan.Messages == "fast" {
				return
			}
			for s, n := range parseSeen(text) {
				since[s] = max(since[s], n)
			}
		}
	}
	for _, k := range clusters { // what was on its way to a process that has died is lost, until who brings it has heard of the death
		if j.m.plan.Messages == "fast" && k != o.Cluster && j.m.Clusters[k].Renewed {
			return
		}
	}
	for rank, list := range j.seen {
		if !slices.Contains(clusters, rank.Cluster) || j.m.plan.Clusters[rank.Cluster].Role == Send {
			continue
		}
		for _, seen := range list {
			for s, n := range seen {
				since[s] = max(since[s], n)
			}
		}
	}
	for s, sent := range from.sent {
		if from.failed {
			j.complain("a send of rank %d of cluster %d has failed", o.Rank, o.Cluster)
		}
		have := j.have(s, sent, ranks)
		missing, twice, first := 0, 0, -1
		for n := range have {
			if n >= since[s] && have[n] == 0 && !slices.Contains(from.maybe, n) {
				missing++
				if first < 0 {
					first = n
				}
			}
			if have[n] > 1 {
				twice++
			}
		}
		if missing > 0 {
			j.complain("of the %d messages of rank %d of cluster %d (%d), from %d on, %d have not come to cluster %v; the first is %d", sent, o.Rank, o.Cluster, s.generation, since[s], missing, numbers(to), first)
		}
		if twice > 0 {
			j.complain("%d messages of rank %d of cluster %d have come to two ranks of cluster %v", twice, o.Rank, o.Cluster, numbers(to))
		}
	}
}

func numbers(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

// GoneFile has how far those that send were when a cluster had gone.
func GoneFile(c int) string { return fmt.Sprintf("gone.%d", c) }

// have is to how many of some ranks each message of a stream has come.
func (j *judge) have(s stream, sent int, to []Rank) []int {
	have := make([]int, sent)
	for _, r := range sorted(slices.Clone(to)) {
		if j.ends[r] == nil {
			continue
		}
		for _, span := range j.ends[r].came[s] {
			for n := span[0]; n <= span[1] && n < sent; n++ {
				have[n]++
			}
		}
	}
	return have
}

// counted: a link is gone, with messages that were kept for it: who has sent them has counted them, and that is said.
func (j *judge) counted(o Rank) {
	p := j.m.plan
	k := slices.IndexFunc(p.Links, func(l Link) bool { return slices.Contains(l.From, o.Cluster) })
	from := j.ends[o]
	if k < 0 || from == nil || from.life > 0 || j.m.Leaving && !from.over || !j.m.Links[k].Gone || p.Messages != "kept" || len(p.Links[k].To) != 1 {
		return
	}
	c := p.Links[k].To[0]
	if to := &j.m.Clusters[c]; to.Gone || to.Renewed || len(to.Dead) > 0 {
		return
	}
	var all []Rank
	for r := range p.Clusters[c].Ranks {
		all = append(all, Rank{c, r})
	}
	for s, sent := range from.sent {
		missing := 0
		for n, times := range j.have(s, sent, all) {
			if times == 0 && !slices.Contains(from.maybe, n) {
				missing++
			}
		}
		if missing > from.lost {
			j.complain("%d messages of rank %d of cluster %d were lost with link %d, and it has counted %d", missing, o.Rank, o.Cluster, k, from.lost)
		}
		if missing > 0 && !strings.Contains(j.r.Said, "messages to another cluster are lost") {
			j.complain("%d messages of rank %d of cluster %d were lost with link %d, and that is not said", missing, o.Rank, o.Cluster, k)
		}
	}
}
