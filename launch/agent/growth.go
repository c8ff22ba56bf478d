package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"libspx/core/mpierr"
	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/shm"
)

// Hosts that are added to the running job, and idle ones that are removed (docs/malleability.md,
// "Hosts"). The deciding agent starts the agent of a new host as those of the first ones, and adds
// it between two spawned worlds: the new one gets the list of hosts and processes, the others the
// address of its heartbeats. From then on it is a host like any other, with the next number, which
// is not given again.

// inviteLimit is how long the agent of a new host may take until it is ready.
const inviteLimit = 30 * time.Second

// mostHosts is how many a job may have had.
const mostHosts = 1 << 16

// growth is what the agent that decides knows of hosts that come and go.
type growth struct {
	additions []*addition
	now       *remoteHost // the host that is being added, of the first of them
	// hosts whose agents were started, and that are not the job's yet: they are arriving, or have
	// failed
	callers   []*remoteHost
	unplanted bool // some have come that the tree of the system's masters does not know yet
}

// addition is a request to add a list of hosts. They are added one after another.
type addition struct {
	ask      *question
	list     []hosts.Host // to come
	slots    int          // of the one that is being added
	done     []string
	failures []string

	come  *arrival         // it has come by itself, to run a cluster
	index int              // then: of the host that is being added, in the cluster
	at    map[string][]int // and: where its parts are to run, in that count, by their names
	lead  *remoteHost      // and: the host of its spxrun, when it is one of the job's
}

// giveUp: of the hosts of a cluster all come, or none.
func (d *addition) giveUp(failure string) {
	d.failures = append(d.failures, failure)
	if d.come != nil {
		d.list = nil
	}
}

// removal is a request to remove a list of hosts.
type removal struct {
	ask  *question
	open int // that have not gone yet
}

// unanswered: a new host had its time.
type unanswered struct{ from *remoteHost }

// changeHosts answers questions about the job's hosts.
func (a *agent) changeHosts(q *question) {
	if q.Kind == service.Hosts && a.sequence != nil {
		a.callRoll(func(all map[int]*control.Copy) {
			list := a.jobHosts()
			a.describeCopies(list, all)
			q.reply(hostMessage(list))
		})
		return
	}
	if q.Kind == service.Hosts {
		q.reply(a.hostList())
		return
	}
	if err := a.fixedHosts(); err != nil {
		q.reply(refuse(mpierr.UnsupportedOperation, "%v", err))
		return
	}
	list, err := hosts.List(strings.Split(q.Text, ","), nil)
	if err != nil {
		q.reply(refuse(mpierr.Arg, "%s", strings.TrimPrefix(err.Error(), "-host: ")))
		return
	}
	if q.Kind == service.RemoveHosts {
		a.removeHosts(q, list)
		return
	}
	a.growth.additions = append(a.growth.additions, &addition{ask: q, list: list})
	if len(a.growth.additions) == 1 {
		a.nextHost()
	}
}

// fixedHosts is why this job's hosts cannot change; nil: they can.
func (a *agent) fixedHosts() error {
	switch {
	case a.machine.Ending():
		return errEnding
	case a.joined != nil:
		return fmt.Errorf("job %016x was started by another launcher, whose hosts are its hosts",
			a.jobNumber())
	case len(a.spec.Parts) > 0 && a.spec.Join != nil:
		return fmt.Errorf(
			"job %016x is a system of clusters that are started one by one: hosts come to it "+
				"with their clusters (spxrun --system FILE --cluster NAME)", a.jobNumber())
	case len(a.spec.Parts) > 0 && a.places.pairs != nil:
		return fmt.Errorf(
			"job %016x is a system on several networks that not all of its hosts are in, and "+
				"which of them a new one is in is found out when it begins", a.jobNumber())
	case !a.several():
		return fmt.Errorf(
			"job %016x was started on one host, whose processes do not listen for others; start "+
				"it with spxrun --more-hosts, or on several hosts", a.jobNumber())
	}
	return nil
}

// hostList describes the hosts.
func (a *agent) hostList() *service.Message { return hostMessage(a.jobHosts()) }

// jobHosts are the hosts of the job, by number.
func (a *agent) jobHosts() []service.Host {
	names, load := a.spec.Hosts, a.load()
	if len(names) == 0 {
		names = []string{a.host}
	}
	list := []service.Host{}
	for n, name := range names {
		h := service.Host{Name: name, Procs: load[n]}
		if n < len(a.spec.Slots) {
			h.Slots = a.spec.Slots[n]
		}
		if i := slices.IndexFunc(a.others,
			func(h *remoteHost) bool { return h.number == n }); i >= 0 {
			switch {
			case a.others[i].removed:
				h.State = "removed"
			case a.others[i].gone:
				h.State = "lost"
			}
		}
		list = append(list, h)
	}
	return list
}

// hostMessage is the answer that lists hosts.
func hostMessage(list []service.Host) *service.Message {
	text, err := json.Marshal(list)
	if err != nil {
		return refuse(mpierr.Intern, "%v", err)
	}
	return &service.Message{Text: string(text), FD: -1}
}

// nextHost begins to add the next requested host, until one has to be waited for.
func (a *agent) nextHost() {
	g := &a.growth
	for len(g.additions) > 0 && g.now == nil {
		d := g.additions[0]
		if len(d.list) == 0 {
			if g.additions = g.additions[1:]; g.unplanted {
				a.buildTree()
			}
			d.ask.reply(a.added(d))
			continue
		}
		host := d.list[0]
		d.list = d.list[1:]
		if err := a.invite(d, host); err != nil {
			d.giveUp(fmt.Sprintf("host %s: %v", host.Name, err))
		}
	}
}

// added is the answer to a request for hosts.
func (a *agent) added(d *addition) *service.Message {
	if len(d.failures) == 0 {
		return a.hostList()
	}
	text := strings.Join(d.failures, "; ")
	if len(d.done) > 0 {
		text += "; added: " + strings.Join(d.done, ", ")
	}
	return refuse(mpierr.Other, "%s", text)
}

// invite starts the agent of a new host.
func (a *agent) invite(d *addition, host hosts.Host) error {
	switch {
	case d.come != nil && d.index > 0:
		return a.admitMember(d, host)
	case d.come != nil:
		return a.admitCluster(d, host)
	}
	if err := a.fixedHosts(); err != nil {
		return err
	}
	d.slots = max(host.Slots, 1)
	for n := range a.spec.Hosts {
		switch {
		case !a.isCalled(n, host.Name) || a.isLost(n):
		case n == 0 && a.spec.Slots[0] == 0: // spxrun was not to use its own
			a.spec.Slots = slices.Clone(a.spec.Slots)
			a.spec.Slots[0] = d.slots
			d.done = append(d.done, host.Name)
			return nil
		default:
			return fmt.Errorf("it is one of the job's hosts already")
		}
	}
	if strings.HasPrefix(host.Name, "-") || len(a.spec.Hosts) >= mostHosts {
		return fmt.Errorf("no name of a host, or one more than the %d that a job may have",
			mostHosts)
	}
	h := newRemoteHost(len(a.spec.Hosts), host.Name)
	h.joining = d
	a.send(h)
	a.growth.now, a.growth.callers = h, append(a.growth.callers, h)
	a.limitJoin(h)
	return nil
}

// limitJoin gives a host its time to join.
func (a *agent) limitJoin(h *remoteHost) {
	time.AfterFunc(inviteLimit, func() { a.inbox.put(unanswered{h}) })
}

func (a *agent) unanswered(h *remoteHost) {
	if a.growth.now == h && !h.ready {
		a.cannotJoin(h, fmt.Sprintf("its agent has not answered for %v", inviteLimit))
	}
}

// cannotJoin gives up a host that was to be added, or takes note of its end.
func (a *agent) cannotJoin(h *remoteHost, why string) {
	g := &a.growth
	h.hangUp()
	h.box.close()
	select {
	case <-h.ended:
		g.callers = slices.DeleteFunc(g.callers, func(c *remoteHost) bool { return c == h })
	default:
	}
	if g.now == h {
		g.now = nil
		h.joining.giveUp(fmt.Sprintf("host %s: %s", h.name, why))
		a.nextHost()
	}
}

// mayJoin: the agent of a new host is ready.
func (a *agent) mayJoin(h *remoteHost) {
	switch {
	case a.growth.now != h:
	case a.machine.Ending():
		a.cannotJoin(h, errEnding.Error())
	case len(a.spawnings) == 0:
		a.joinNow()
	}
}

// joinNow makes a new host that is ready one of the job's.
func (a *agent) joinNow() {
	g := &a.growth
	h := g.now
	if h == nil || !h.ready || a.machine.Ending() {
		return
	}
	d := h.joining
	g.now, h.joining = nil, nil
	g.callers = slices.DeleteFunc(g.callers, func(c *remoteHost) bool { return c == h })
	h.made = true // there are none of its own so far
	a.spec.Hosts, a.spec.Slots = append(slices.Clone(a.spec.Hosts), h.name),
		append(slices.Clone(a.spec.Slots), d.slots)
	h.box.put(&control.Message{Present: a.present(h.number)})
	more := &control.Hosts{Names: a.spec.Hosts, Slots: a.spec.Slots}
	if a.beats != nil {
		b := *a.beats
		b.At = append(slices.Clone(b.At), h.beat)
		a.growTree(&b, h)
		a.beats = &b
		a.beating.hasGrown(a.beatsFor(a.self, &b).At, b.Tree)
		h.box.put(&control.Message{Beats: a.beatsFor(h.number, &b)})
	}
	for _, o := range a.others {
		if !o.gone {
			to := *more
			if a.beats != nil {
				to.At, to.Tree = a.beatsFor(o.number, a.beats).At, a.beats.Tree
			}
			o.box.put(&control.Message{Hosts: &to})
		}
	}
	a.others = append(a.others, h)
	a.tellMesh()
	if len(a.spec.Parts) > 0 && d.come == nil {
		h.box.put(&control.Message{Layout: a.layoutText()})
		// until all of the list have come: masters are elected anew in each tree
		a.growth.unplanted = true
	}
	if a.beats == nil {
		a.beginBeats()
	}
	if a.spec.Verbose {
		a.say(fmt.Sprintf("host %s was added, for %d processes", h.name, d.slots))
	}
	d.done = append(d.done, h.name)
	if d.come != nil {
		a.externalJoined(d, h)
	}
	a.nextHost()
}

// present lists, for a new host, the processes that are there and that have been, with the
// addresses at which it calls them. Processes that are about to be made count as there, as for the
// hosts of the beginning.
func (a *agent) present(to int) (list []control.Entry) {
	for i := range a.ranks {
		r := &a.ranks[i]
		state := a.segment.AgentState(i)
		spare := a.isSpare(i) && !r.called
		if state == shm.AgentEmpty && i < a.firstWorld() && !spare {
			state = shm.AgentStarted
		}
		if r.external || state == shm.AgentEmpty && !spare {
			continue
		}
		m := a.segment.Member(i)
		at, known := a.listens[i]
		if !known {
			at, _ = a.segment.Address(i)
		}
		list = append(list, control.Entry{Proc: i, Host: r.host, World: m.World, Rank: m.Rank,
			Serial: m.Serial, Life: a.segment.Incarnation(i),
			State: state, Status: a.segment.ExitStatus(i), Order: a.segment.Order(i),
			At: a.seen(to, r.host, at), Part: r.part, Start: r.life, Away: r.away, Spare: r.spare})
	}
	return list
}

// enterPresent enters the processes of such a list.
func (a *agent) enterPresent(list []control.Entry) {
	for _, e := range list {
		if e.Proc < 0 || e.Proc >= a.segment.MaxProcs() || e.Host < 0 ||
			e.Host >= len(a.spec.Hosts) || e.Host == a.self {
			a.say(fmt.Sprintf("host %s: process %d of host %d cannot be", a.host, e.Proc, e.Host))
			continue
		}
		if err := a.segment.AddProc(e.Proc, shm.Member{World: e.World, Rank: e.Rank,
			Serial: e.Serial, Host: uint32(e.Host), Life: e.Life}); err != nil {
			a.step(job.NotStarted{Text: err.Error() + a.onHost(), Status: job.StatusFailed})
			return
		}
		r := a.rank(e.Proc)
		*r = rank{pidfd: -1, host: e.Host, world: e.World, in: int(e.Rank), spawned: e.World > 0 &&
			e.Part == 0, life: e.Start, away: e.Away, spare: e.Spare, called: e.Order > 0}
		if k := slices.IndexFunc(a.spec.Programs,
			func(p control.Program) bool { return p.World == e.World }); k > 0 &&
			e.Proc < a.firstWorld() {
			r.program = k
		}
		if e.Part > 0 && e.Part <= len(a.spec.Parts) {
			r.part = e.Part
		}
		a.segment.SetOrder(e.Proc, e.Order)
		a.seesNumber(e.Proc, e.Serial, e.Life)
		a.worlds = max(a.worlds, e.World)
		a.meet([]control.Address{{Proc: e.Proc, At: e.At}})
		switch e.State {
		case shm.AgentDead:
			a.segment.MarkDead(e.Proc, syscall.WaitStatus(e.Status))
		case shm.AgentExited:
			a.segment.MarkExited(e.Proc, syscall.WaitStatus(e.Status))
		}
	}
}

// takeHosts takes note of hosts that were added, on one that decides nothing.
func (a *agent) takeHosts(m *control.Hosts) {
	if len(m.Names) < len(a.spec.Hosts) || len(m.Slots) != len(m.Names) {
		return
	}
	a.spec.Hosts, a.spec.Slots = m.Names, m.Slots
	if a.beats != nil && len(m.At) == len(m.Names) {
		b := *a.beats
		b.At, b.Tree = m.At, m.Tree
		a.beats = &b
	}
	if a.beating != nil && a.beating.machine != nil && len(m.At) == len(m.Names) {
		a.beating.hasGrown(m.At, m.Tree)
	}
}

// removeHosts sends idle hosts away, all of a list or none.
func (a *agent) removeHosts(q *question, list []hosts.Host) {
	var leaving []*remoteHost
	for _, host := range list {
		h, err := a.idle(host.Name)
		if err != nil {
			q.reply(refuse(mpierr.Arg, "host %s: %v", host.Name, err))
			return
		}
		if !slices.Contains(leaving, h) {
			leaving = append(leaving, h)
		}
	}
	r := &removal{ask: q, open: len(leaving)}
	a.spec.Slots = slices.Clone(a.spec.Slots)
	for _, h := range leaving {
		h.gone, h.removed, h.leaving = true, true, r
		h.fate = "it was removed"
		a.spec.Slots[h.number] = 0
		for _, j := range slices.Clone(a.judging) {
			a.answered(h, &control.Facts{Survey: j.number})
		}
		h.box.put(&control.Message{Action: job.Finish{}})
		h.box.close()
		go func() {
			select {
			case <-h.ended:
			case <-time.After(dismissLimit):
				h.hangUp()
			}
		}()
	}
	a.tellMesh()
}

// idle is a host of the job on which nothing runs, and nothing is about to.
func (a *agent) idle(name string) (*remoteHost, error) {
	i := slices.IndexFunc(a.others, func(h *remoteHost) bool {
		return !h.gone &&
			a.isCalled(h.number, name)
	})
	switch {
	case i < 0 && a.isCalled(0, name):
		return nil, fmt.Errorf("it is the one on which spxrun was started, and stays")
	case i < 0:
		return nil, fmt.Errorf("it is none of the job's hosts now")
	}
	h := a.others[i]
	if n := a.load()[h.number]; n > 0 {
		return nil, fmt.Errorf("%d processes of the job run there", n)
	}
	if below := h.holds(); below != "" {
		return nil, fmt.Errorf(
			"it carries the connection with host %s, and maybe more, whose agents it has "+
				"started: remove these first, or start the job with --fanout 0", below)
	}
	for _, s := range a.spawnings {
		if slices.ContainsFunc(s.members,
			func(m control.Member) bool { return m.Host == h.number }) {
			return nil, fmt.Errorf("processes are about to be started there")
		}
	}
	return h, nil
}

// hasLeft: the agent of a host that was removed has ended.
func (a *agent) hasLeft(h *remoteHost) {
	a.treeLost(h)
	if h.votes {
		h.votes = false
		a.tellMesh()
	}
	if h.leaving == nil && !h.isExternal() {
		return
	}
	if a.beating != nil && a.beating.machine != nil {
		a.beating.hasGone(h.number, detect.OutClosed)
	}
	a.forgetAskers(h)
	if h.leaving == nil {
		return
	}
	if h.leaving.open--; h.leaving.open == 0 && !a.dismissed {
		h.leaving.ask.reply(a.hostList())
	}
	h.leaving = nil
}

// endGrowth gives up what was begun.
func (a *agent) endGrowth() {
	for _, h := range a.growth.callers {
		h.hangUp()
		h.box.close()
	}
	for _, d := range a.growth.additions {
		d.ask.reply(refuse(mpierr.Other, "%v", errEnding))
	}
	a.growth = growth{}
}
