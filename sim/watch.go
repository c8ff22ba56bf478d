package sim

import "libspx/ft/detect"

// The shell around the detector of silent hosts: the agents' machines, datagrams between them that may get lost, and what follows from
// what they say. Nobody beats any more when the last fault is long over, so that a run comes to its end.

// Times of the detector: shorter than in a real job, so that a schedule is short.
const (
	period      = Time(50)
	silence     = Time(300)
	mostSilence = 3 * silence // up to which the limit follows the silences that were seen
	before      = Time(200)   // the agents have heard each other when the job begins, at time 0
)

// QuietPeriods is the number of the detector's periods in a run in which nothing happens.
const QuietPeriods = int((before + 4*mostSilence) / period)

// quietAt is when the beats end.
func (j *Job) quietAt() Time {
	last := Time(0)
	for _, f := range j.Faults {
		last = max(last, f.At+f.For)
	}
	return last + 4*mostSilence
}

// startWatches lets the agents begin to beat.
func (r *jobRun) startWatches() {
	if len(r.agents) == 1 {
		return
	}
	r.Now = -before
	for _, a := range r.agents {
		cfg := detect.Config{Self: a.host, Hosts: len(r.agents), Period: detect.Time(period), Limit: detect.Time(silence), Most: detect.Time(mostSilence)}
		a.watch = detect.New(cfg, r.clock())
		a.wake = r.job.quietAt()
		r.beat(a, detect.Output{})
	}
}

// clock is the time of the detectors, which begins when they do.
func (r *jobRun) clock() detect.Time { return detect.Time(r.Now + before) }

// beat carries out what a detector asks for, and calls it again in time.
func (r *jobRun) beat(a *hostAgent, out detect.Output) {
	for _, s := range out.Sends {
		a.beats++
		r.out.Beats++
		f := r.fate(11, a.host, a.beats)
		if f%100 == 1 { // lost
			r.agents[s.To].missed = r.Now
			continue
		}
		from, to, number, data := a, r.agents[s.To], a.beats, s.Data
		r.After(1+Time(f>>8%mostDelay), func() {
			if r.side[from.host] == r.side[to.host] {
				r.awake(r.node(to.host), func() {
					r.heard(to, from, number, data)
				})
			}
		})
	}
	switch {
	case out.Split != nil:
		r.end("no side with host 0 has half of the hosts")
	case out.Fenced != detect.NotFenced:
		r.giveIn(a)
	}
	for _, h := range out.Lost {
		if since := r.Now - r.agents[h].word; since < Time(a.watch.Limit()) {
			r.violated("host %d is given up after a silence of %d us", h, since)
		}
		r.lose(h)
	}
	deadline := min(a.watch.Deadline(), detect.Time(a.wake+before)) // it may be never
	if at := max(Time(deadline)-before, r.Now); at < a.wake {
		a.wake = at
		r.After(at-r.Now, func() { r.tick(a, at) })
	}
}

// tick calls the detector at its deadline. An agent that stands still takes what has arrived first.
func (r *jobRun) tick(a *hostAgent, at Time) {
	switch until := r.paused[r.node(a.host)]; {
	case a.wake != at || !a.alive || r.Now >= r.job.quietAt():
	case until > r.Now:
		a.wake = until
		r.After(until-r.Now, func() { r.tick(a, until) })
	default:
		a.wake = r.job.quietAt()
		r.beat(a, a.watch.Tick(r.clock()))
	}
}

// heard is the arrival of a datagram.
func (r *jobRun) heard(a, from *hostAgent, number int, data []byte) {
	if r.Now >= r.job.quietAt() {
		return
	}
	a.heard++
	out, err := a.watch.Receive(from.host, data, r.clock())
	if err != nil {
		r.violated("host %d refuses what host %d says: %v", a.host, from.host, err)
		return
	}
	if a.host == 0 && number > from.said {
		from.word, from.said = r.Now, number
	}
	if len(out.Sends) > 0 {
		a.ticked = r.Now
	}
	r.beat(a, out)
}

// giveIn is the end of a host that has lost the others, or was given up by them.
func (r *jobRun) giveIn(a *hostAgent) {
	if r.job.Defect.NoFence {
		return
	}
	r.trace("host %d ends itself", a.host)
	r.After(Time(r.fate(12, a.host, 0)%uint64(fenceMax)), func() {
		r.endHost(a.host)
		a.alive = false
		r.Kill(r.node(a.host))
		r.connectionEnds(a.host)
	})
}

// connectionEnds lets host 0 notice the certain end of an agent, when a word of it can come through.
func (r *jobRun) connectionEnds(h int) {
	r.After(10+Time(r.fate(9, h, 0)%30), func() {
		if r.side[h] != r.side[0] {
			r.ends = append(r.ends, h)
			return
		}
		r.awake(r.node(0), func() {
			if r.Now < r.job.quietAt() {
				r.beat(r.agents[0], r.agents[0].watch.Gone(h, detect.OutClosed, r.clock()))
			}
			r.lose(h)
		})
	})
}
