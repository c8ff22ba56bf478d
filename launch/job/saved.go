package job

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The state of a machine, as text: another one continues from there. The fields are those of
// Machine, process, part and budget.

type savedMachine struct {
	Procs   []savedProcess
	Started bool
	Alive   int

	Status    int
	Death     int
	Succeeded bool
	Early     string

	EndText  string
	ReportBy time.Duration
	Looking  bool
	LookAt   time.Duration
	Told     bool

	Ending   bool
	SignalAt time.Duration
	Hurried  bool
	Deadline time.Duration
	Stage    int
	Finished bool

	Now        time.Duration
	Parts      []savedPart
	Added      []Part
	Coming     int
	ServeUntil time.Duration
}

type savedProcess struct {
	Pid        int
	Host       string
	Alive      bool
	Name       string
	EndedByJob bool
	Hangs      bool
	Ended      bool
	Part       int
}

type savedPart struct {
	Alive    int
	Status   int
	Stopping bool
	Deadline time.Duration
	Restarts int
	Whole    []time.Duration // spent of that budget; the rest of it is of Config
	Ranks    []time.Duration
	Again    bool
	Begun    bool
	Coming   int
	Fresh    bool
	Crowds   bool
	Gone     bool
	Away     bool
	Leaving  bool
	Lost     []int
	Done     bool
	Standbys []int
	Replaced int
	Started  []int
	Waking   int
	Making   bool
	Renewed  bool
	Hosts    []int
	Crew     Crew
	Departs  bool
	DepartBy time.Duration
	Patience time.Duration
	ForGood  bool
	Exit     int
	Death    int

	Asked    string
	AskUntil time.Duration
	What     Treatment
}

// Save is what the machine is.
func (m *Machine) Save() []byte { return m.saved(m.now) }

// Digest stands for what the machine is: two with the same one decide the same from here on. When
// its last event came is no part of that.
func (m *Machine) Digest() [sha256.Size]byte { return sha256.Sum256(m.saved(0)) }

func (m *Machine) saved(now time.Duration) []byte {
	s := savedMachine{nil, m.started, m.alive, m.status, m.death, m.succeeded, m.early, m.endText,
		m.reportBy, m.looking, m.lookAt, m.told,
		m.ending, m.signalAt, m.hurried, m.deadline, m.stage, m.finished, now, nil, m.added,
		m.coming, m.serveUntil}
	for _, p := range m.procs {
		s.Procs = append(s.Procs, savedProcess{p.pid, p.host, p.alive, p.name, p.endedByJob,
			p.hangs,
			p.ended, p.part})
	}
	for _, p := range m.parts {
		s.Parts = append(s.Parts, savedPart{p.alive, p.status, p.stopping, p.deadline, p.restarts,
			p.whole.spent, p.ranks.spent, p.again, p.begun, p.coming, p.fresh, p.crowds, p.gone,
			p.away, p.leaving, p.lost, p.done,
			p.standbys, p.replaced, p.started, p.waking, p.making, p.renewed, p.hosts, p.crew,
			p.departs, p.departBy, p.patience, p.forGood, p.exit, p.death, p.asked, p.askUntil,
			p.what})
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // of numbers, texts and lists of these
	}
	return b
}

var errNoMachine = errors.New("job: this is not what a machine of this job was")

// Resume makes a machine that continues where another one of the same job was saved.
func Resume(cfg Config, saved []byte) (*Machine, error) {
	var s savedMachine
	if err := json.Unmarshal(saved, &s); err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoMachine, err)
	}
	m := New(cfg)
	if len(s.Added) > 0 && !m.Accepts(Grown{s.Added}) {
		return nil, errNoMachine
	}
	m.grown(Grown{s.Added})
	if len(s.Parts) != len(m.parts) || len(s.Procs) < len(m.procs) || len(s.Procs) > MostProcs {
		return nil, errNoMachine
	}
	m.started, m.alive, m.status, m.death, m.succeeded, m.early = s.Started, 0, s.Status, s.Death,
		s.Succeeded, s.Early
	m.endText, m.reportBy, m.looking, m.lookAt, m.told = s.EndText, s.ReportBy, s.Looking, s.LookAt,
		s.Told
	m.ending, m.signalAt, m.hurried, m.deadline, m.stage, m.finished = s.Ending, s.SignalAt,
		s.Hurried, s.Deadline, s.Stage, s.Finished
	m.now, m.coming, m.serveUntil = s.Now, s.Coming, s.ServeUntil
	m.procs = nil
	for _, p := range s.Procs {
		if p.Part < 0 || p.Part > len(m.parts) {
			return nil, errNoMachine
		}
		if p.Alive {
			m.alive++
		}
		m.procs = append(m.procs, process{p.Pid, p.Host, p.Alive, p.Name, p.EndedByJob, p.Hangs,
			p.Ended, p.Part})
	}
	for k, o := range s.Parts {
		p := &m.parts[k]
		p.alive, p.status, p.stopping, p.deadline, p.restarts = o.Alive, o.Status, o.Stopping,
			o.Deadline, o.Restarts
		p.whole.spent, p.ranks.spent = o.Whole, o.Ranks
		p.again, p.begun, p.coming, p.fresh, p.crowds, p.gone, p.away, p.leaving, p.lost,
			p.done = o.Again, o.Begun, o.Coming, o.Fresh, o.Crowds, o.Gone, o.Away, o.Leaving,
			o.Lost, o.Done
		p.standbys, p.replaced, p.started, p.waking = o.Standbys, o.Replaced, o.Started, o.Waking
		p.making, p.renewed, p.hosts, p.crew = o.Making, o.Renewed, o.Hosts, o.Crew
		p.departs, p.departBy, p.patience, p.forGood = o.Departs, o.DepartBy, o.Patience, o.ForGood
		p.exit, p.death = o.Exit, o.Death
		p.asked, p.askUntil, p.what = o.Asked, o.AskUntil, o.What
	}
	if m.alive != s.Alive || slices.ContainsFunc(m.parts, func(p part) bool {
		return !m.areProcs(p.standbys) || !m.areProcs(p.crew.Procs) || !m.areProcs(p.crew.Standbys)
	}) {
		return nil, errNoMachine
	}
	return m, nil
}
