package agent

import (
	"slices"
	"strings"
	"time"

	"libspx/cluster/layout"
	"libspx/cluster/manage"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// The management tree of a system (package cluster/manage): every agent of the system's hosts has a
// machine of it, in a process of its own (master.go), for which this is the shell. Agents other
// than that of spxrun's host reach that one alone, which forwards their messages to each other.
//
// The agent that starts processes builds the tree, and reports which agents are gone for certain.
// When a cluster cannot continue it notifies the agents of its hosts; they report that to their
// master, with the counts of living processes, that one to the system's master, which decides; and
// its decision comes back in the next view.

// Times of the tree: where there is one agent, it is always the master.
const (
	treeBeat  = 100 * time.Millisecond
	treeLimit = 400 * time.Millisecond
	aloneBeat = 10 * time.Second
	// silence, and what ends then, is handled by the heartbeats (heartbeat.go)
	never = int64(1) << 50
)

// tree is an agent's part.
type tree struct {
	epoch  uint32 // 0: the job is no system, or it has not begun
	cfg    manage.Config
	past   manage.Past    // what the machine has promised and reported
	dirty  bool           // what runs here has changed
	counts []manage.Count // what was reported of that to the machine, by cluster
	left   []int          // agents that have ended for certain
	failed map[int]uint32 // parts that cannot go on, with the start of them

	master *keptMaster    // nil: there is none now
	again  time.Time      // then: when one is started
	deaths int            // of young ones, in turn
	over   bool           // there is to be none any more
	pids   map[int]int    // of the agent that starts processes: those of masters, by host
	fallen map[int]uint64 // and: up to which term the system's master was one that has died

	// of the agent that starts processes, by part from 1
	lives map[int]uint32 // the latest start
	asked map[int]uint32 // starts about which the system's master is to decide
}

// A fate is how a process has ended, as a system counts it.
type fate int

const (
	fateNone fate = iota
	fateDone
	fateLost
)

// treeDecided: the system's master has decided.
type treeDecided struct{ e job.Judged }

// build makes the tree, or rebuilds it when hosts have been added, and sends it to all agents.
func (a *agent) buildTree() {
	if len(a.spec.Parts) == 0 {
		return
	}
	a.growth.unplanted = false
	t := &a.tree
	if t.lives == nil {
		t.lives, t.asked, t.failed = map[int]uint32{}, map[int]uint32{}, map[int]uint32{}
		for i := range a.spec.Parts {
			if !a.spec.Parts[i].Away {
				t.lives[i+1] = 1
			}
		}
	}
	var view manage.View
	if len(t.past.View.Clusters) > 0 {
		view = t.past.View
		view.Clusters = slices.Clone(view.Clusters)
		for k, part := range a.clusterParts() {
			if k == len(view.Clusters) { // it has been added since
				view.Clusters = append(view.Clusters, manage.ClusterView{Life: 1, Master: -1})
			}
			if c := &view.Clusters[k]; t.lives[part] > c.Life || a.homeOf(part) != nil &&
				c.State == manage.Dead && t.lives[part] == c.Life {
				*c = manage.ClusterView{Life: t.lives[part], Master: -1}
			}
		}
	}
	t.epoch++
	cfg := a.planTree()
	for _, h := range a.others {
		if !h.gone {
			own := cfg
			own.Self = h.number
			h.box.put(&control.Message{Tree: &control.Tree{Epoch: t.epoch, Config: own,
				View: view}})
		}
	}
	a.grow(&control.Tree{Epoch: t.epoch, Config: cfg, View: view})
	for part, life := range t.asked { // those of whom the last tree has not decided
		a.tellFailed(part, life)
	}
}

// planTree makes the tree's configuration.
func (a *agent) planTree() manage.Config {
	n := max(1, len(a.spec.Hosts))
	root := a.self
	pace := a.pace()
	cfg := manage.Config{Self: root, BeatMS: pace * treeBeat.Milliseconds(),
		LimitMS: pace * treeLimit.Milliseconds(), SilentMS: never, Agents: make([]manage.Agent, n)}
	if n == 1 {
		cfg.BeatMS, cfg.LimitMS = aloneBeat.Milliseconds(), 4*aloneBeat.Milliseconds()
	}
	// it knows of all, so it is the last to be burdened with more; without one to come after it the
	// system ends with it
	cfg.Agents[root].Last = true
	for i, list := range a.networksOf(n) {
		cfg.Agents[i].Networks = list
	}
	ranks, iops := make([][]int, len(a.spec.Parts)), make([][]int, len(a.spec.Parts))
	for i := range a.spec.Parts {
		list, to := a.hostsOfPart(i+1), &ranks[i]
		if p := &a.spec.Parts[i]; p.Serves && p.With > 0 {
			to = &iops[p.With-1]
		}
		for _, h := range list {
			cfg.Agents[h].IOP = cfg.Agents[h].IOP || a.spec.Parts[i].Serves
			if !slices.Contains(*to, h) {
				*to = append(*to, h)
			}
		}
	}
	for i := range a.spec.Parts {
		p := &a.spec.Parts[i]
		if p.Serves {
			continue
		}
		c := manage.Cluster{Name: strings.TrimPrefix(p.Name, "cluster "), Want: p.Ranks,
			Degrade: true, Told: true, Restarts: manage.Unbounded}
		c.OnDeath = map[job.Treatment]manage.Treatment{job.Stop: manage.StopSystem,
			job.Restart: manage.RestartIt, job.Degrade: manage.GoOn}[p.Whole]
		ranks[i] = a.leadFirst(i+1, ranks[i])
		c.Agents = slices.Concat(ranks[i], slices.DeleteFunc(slices.Clone(iops[i]),
			func(h int) bool { return slices.Contains(ranks[i], h) }))
		// all its hosts are lost, and the masters are to hear of that
		if m, decides := a.machine.(*job.Machine); decides && len(c.Agents) == 0 && m.Asks(i+1) {
			c.Agents = []int{root}
		}
		c.Candidates = slices.Clone(c.Agents)
		if a.spec.IOPMasters && len(iops[i]) > 0 {
			c.Candidates = slices.Clone(iops[i])
		}
		slices.SortStableFunc(c.Candidates,
			func(x, y int) int { return boolInt(x == root) - boolInt(y == root) })
		cfg.Clusters = append(cfg.Clusters, c)
	}
	return cfg
}

// pace is the factor by which masters beat more slowly than usual. They do where the user allows
// hosts a longer silence (SPX_HEARTBEAT_LIMIT) and there are many hosts: all heartbeats of masters
// pass through the agent that decides, and where many hosts share processors masters would be
// elected again and again. A few hosts keep the usual pace, because a new master must wait until
// the promises made to the last one have run out.
func (a *agent) pace() int64 {
	if len(a.spec.Programs) == 0 || variableOf(a.spec.Programs[0].Env,
		service.EnvHeartbeatLimit) == "" {
		return 1
	}
	b, err := beatsOf(a.spec)
	if err != nil {
		return 1
	}
	return paceOf(len(a.spec.Hosts), b.Limit)
}

// paceOf is the pace for a number of hosts and the silence that each is allowed.
func paceOf(hosts int, silence time.Duration) int64 {
	return max(1, min(int64(silence/beatLimit), int64(hosts/usualHosts), slowestPace))
}

// usualHosts is how many hosts add 1 to the pace: chosen, not measured.
const usualHosts = 16

// slowestPace keeps the limit of masters below the time that there is for their decisions
// (job.AskLimit).
const slowestPace = int64(job.AskLimit * 2 / 3 / treeLimit)

// hostsOfPart are those that are there on which a part runs, or is to run.
func (a *agent) hostsOfPart(part int) (out []int) {
	if h := a.homeOf(part); h != nil && !h.gone {
		return a.externalsOf(h, part)
	}
	for i := range a.ranks {
		if r := &a.ranks[i]; r.part == part && !r.away && !slices.Contains(out, r.host) &&
			!a.isLost(r.host) {
			out = append(out, r.host)
		}
	}
	return out
}

// grow begins this agent's part of a tree.
func (a *agent) grow(p *control.Tree) {
	t := &a.tree
	if p.Epoch <= t.epoch && t.epoch > 0 && a.up != nil || p.Config.Self != a.self {
		return
	}
	if t.failed == nil {
		t.failed = map[int]uint32{}
	}
	t.epoch, t.cfg, t.left, t.past = p.Epoch, p.Config, nil,
		manage.Past{View: p.View, Top: p.View.Term}
	v := &t.past.View
	if len(v.Clusters) > 0 { // what was promised before has to run out
		t.past.Quiet = a.treeNow() + t.cfg.LimitMS
	}
	v.Master, v.Clusters = -1, slices.Clone(v.Clusters)
	for i := range v.Clusters {
		v.Clusters[i].Master = -1
	}
	switch past := t.past; {
	case t.master != nil:
		a.beginMaster(nil)
	case t.again.IsZero():
		a.startMaster(nil)
	default:
		a.startMaster(&past)
	}
}

func (a *agent) treeNow() int64 { return time.Since(a.began).Milliseconds() }

// sendTree forwards a message of this host's master to another one, and notes what it promises.
func (a *agent) sendTree(m *control.Managed) {
	t := &a.tree
	msg, err := manage.Decode(m.Text, &t.cfg)
	if err != nil {
		return
	}
	t.past.Sent(&msg, &t.cfg, a.treeNow())
	if h := a.company.numbered(msg.To); h != nil {
		h.box.put(&control.Message{Managed: m})
		return
	}
	if a.up != nil {
		a.up.box.put(&control.Message{Managed: m})
		return
	}
	a.handTo(msg.To, m)
}

// handTo hands a message to another host's agent.
func (a *agent) handTo(agent int, m *control.Managed) {
	for _, h := range a.others {
		if h.number == agent && !h.gone {
			h.box.put(&control.Message{Managed: m})
		}
	}
}

// hearTree handles a message of another agent of the tree. One of an earlier tree is ignored.
func (a *agent) hearTree(from *remoteHost, m *control.Managed) {
	t := &a.tree
	if t.epoch == 0 || m.Epoch != t.epoch || from != nil && from.gone {
		return
	}
	msg, err := manage.Decode(m.Text, &t.cfg)
	if err != nil || from != nil && msg.From != from.number {
		return // no agent of this system sends that
	}
	switch {
	case msg.To != a.self && a.up == nil:
		a.handTo(msg.To, m)
	case msg.To == a.self && t.master != nil:
		t.master.box.put(&control.Message{Managed: m})
	}
}

// tendTree does what is due: counts that have changed, and the master.
func (a *agent) tendTree() {
	t := &a.tree
	if t.epoch == 0 {
		return
	}
	a.tendMaster()
	if !t.dirty || t.master == nil {
		return
	}
	t.dirty = false
	l, err := layout.Decode(a.layoutText())
	if err != nil {
		return
	}
	for len(t.counts) < len(t.cfg.Clusters) { // more, when some have been added
		t.counts = append(t.counts, manage.Count{})
	}
	for k := range min(len(t.cfg.Clusters), len(l.Clusters)) {
		if n := a.countOf(a.partOfCluster(l, k), &l.Clusters[k]); n != t.counts[k] {
			t.counts[k] = n
			t.master.box.put(&control.Message{Counted: &manage.Counted{Cluster: k, Count: n}})
		}
	}
}

// countOf counts this host's processes of the latest start of a cluster, without standbys. A rank
// that was taken over is not lost.
func (a *agent) countOf(part int, c *layout.Cluster) (n manage.Count) {
	n.Life = a.tree.failed[part]
	mine := func(r *rank) bool {
		return r.part == part && r.host == a.self && !r.external && (r.alive || r.fate != fateNone)
	}
	for i := range a.ranks {
		if r := &a.ranks[i]; mine(r) {
			n.Life = max(n.Life, r.life)
		}
	}
	for i := range a.ranks {
		switch r := &a.ranks[i]; {
		case !mine(r) || r.life != n.Life || slices.Contains(c.Standbys, i):
		case r.alive:
			n.Alive++
		case r.fate == fateDone:
			n.Done++
		case slices.Contains(c.Procs, i):
			n.Lost++
		}
	}
	n.Failed = n.Life > 0 && a.tree.failed[part] == n.Life
	return n
}

// noteFate remembers, of a process of this host, what has happened to it.
func (a *agent) noteFate(e job.Event) {
	if a.tree.failed == nil && len(a.spec.Parts) == 0 {
		return
	}
	switch e := e.(type) {
	case job.Ended:
		if r := &a.ranks[e.Proc]; r.host == a.self && r.part > 0 {
			if r.fate = fateDone; e.Failed() {
				r.fate = fateLost
			}
		}
	case job.Started, job.Spawned, job.TookOver:
	default:
		return
	}
	a.tree.dirty = true
}

// ask wants to know of the system's master what is done about a cluster that cannot go on.
func (a *agent) ask(part int) {
	if a.tree.epoch == 0 {
		return // the machine goes by the system file when it has waited long enough
	}
	life := a.tree.lives[part]
	a.tree.asked[part] = life
	a.tellFailed(part, life)
	a.heedView(a.tree.past.View)
}

// tellFailed notifies the agents of a cluster that it cannot continue.
func (a *agent) tellFailed(part int, life uint32) {
	t := &a.tree
	for _, n := range t.cfg.Clusters[a.clusterOf(part)].Agents {
		if n == a.self {
			t.failed[part], t.dirty = life, true
			a.tendTree()
			continue
		}
		for _, h := range a.others {
			if h.number == n && !h.gone {
				h.box.put(&control.Message{Failed: &control.Failed{Part: part, Life: life}})
			}
		}
	}
}

// heedView looks for what the system's master has decided of what was asked.
func (a *agent) heedView(v manage.View) {
	t := &a.tree
	if len(v.Clusters) == 0 { // nothing was decided yet
		return
	}
	for part, life := range t.asked {
		k := a.clusterOf(part)
		// the view is from before it was added
		if k < 0 || k >= len(v.Clusters) || k >= len(t.cfg.Clusters) {
			continue
		}
		c := &v.Clusters[k]
		e := job.Judged{Part: part}
		switch {
		case v.Stopping:
			e.What = job.Stop
		case c.Life > life:
			e.What = job.Restart
			t.lives[part] = c.Life
		case c.State == manage.Dead && t.cfg.Clusters[k].OnDeath == manage.GoOn:
			e.What = job.Degrade
		default:
			continue
		}
		delete(t.asked, part)
		a.inbox.put(treeDecided{e}) // this may be in the middle of a step of the job's machine
	}
}

// treeLost notifies all agents that some have ended for certain. When all of them end, it is of no
// use.
func (a *agent) treeLost(hosts ...*remoteHost) {
	if a.tree.epoch == 0 || a.up != nil || a.dismissed {
		return
	}
	var left []int
	for _, h := range hosts {
		left = append(left, h.number)
	}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Left: left})
		}
	}
	for _, n := range left {
		a.hasLeftTree(n)
	}
}

// hasLeftTree: an agent has ended for certain.
func (a *agent) hasLeftTree(host int) {
	t := &a.tree
	if host < 0 || host >= len(t.cfg.Agents) {
		return
	}
	t.left = append(slices.Clone(t.left), host)
	if t.master != nil {
		t.master.box.put(&control.Message{Left: []int{host}})
	}
}

// obeyTree handles a message about the tree of the agent that starts processes; false: it is
// another kind of message.
func (a *agent) obeyTree(m *control.Message) bool {
	switch {
	case m.Tree != nil:
		a.grow(m.Tree)
	case m.Managed != nil:
		a.hearTree(nil, m.Managed)
	case m.Left != nil:
		for _, n := range m.Left {
			a.hasLeftTree(n)
		}
	case m.Failed != nil:
		if a.tree.failed != nil {
			a.tree.failed[m.Failed.Part], a.tree.dirty = m.Failed.Life, true
		}
	default:
		return false
	}
	return true
}

// masterName is the name of an agent of the tree; empty: there is none now.
func (a *agent) masterName(agent int) string {
	switch {
	case agent < 0 || a.isLost(agent):
		return ""
	case agent < len(a.spec.Hosts):
		return a.spec.Hosts[agent]
	}
	return a.host
}
