package sim

import (
	"fmt"
	"math/rand/v2"

	"libspx/cluster/msglog"
)

// How standbys get the message logs of ranks (cluster/msglog) while any of them may be killed
// between any two looks of a standby, and another process may get the pid of one that has ended.

// Logs is one simulated cluster at its beginning. Kills is how many of its processes are killed at
// most.
type Logs struct {
	Ranks, Standbys, Kills int
	Seed                   uint64
	Defect                 LogsDefect
}

// LogsDefect is what the shell around the machine does wrong.
type LogsDefect struct {
	NoRuns bool // what was opened by a pid is taken for the log of its rank, whatever has become of that
	Hasty  bool // a rank goes on without the standbys
	Counts bool // it counts how many have its log, whether they live or not
}

// keeper is a rank or a standby.
type keeper struct {
	pid         int
	log         int  // what it has under its descriptor: 1 + its rank; 0: nothing yet
	dead, noted bool // its agent has seen that, and its pid may be another's
	begun       bool
	has         []bool // of a rank: by standby, what is noted in its log
	number      int    // of a standby
	w           *logs
	m           *msglog.Standby
	files       []int // of a standby: what it has opened
	err         error
}

type logs struct {
	Logs
	rnd *rand.Rand
	all []*keeper // ranks first
	pid map[int]*keeper
}

// meanwhile may kill a process, have that noted, or give its pid to another one with a file of its
// own.
func (w *logs) meanwhile() {
	p := w.all[w.rnd.IntN(len(w.all))]
	switch k := w.rnd.IntN(12); {
	case k == 0 && !p.dead && w.Kills > 0:
		p.dead = true
		w.Kills--
	case k < 4 && p.dead && !p.noted:
		p.noted = true
		w.pid[p.pid] = &keeper{log: 1000}
	}
}

func (s *keeper) See(rank int) msglog.Seen {
	s.w.meanwhile()
	r := s.w.all[rank]
	return msglog.Seen{Descriptor: uint32(r.log), Left: r.noted, PID: r.pid}
}

func (s *keeper) Open(_ int, as msglog.Seen) (int, error) {
	s.w.meanwhile()
	p := s.w.pid[as.PID]
	if p.dead || p.log == 0 {
		return 0, msglog.ErrGone
	}
	s.files = append(s.files, p.log)
	return len(s.files) - 1, nil
}

func (s *keeper) Runs(rank int) bool {
	s.w.meanwhile()
	return !s.w.all[rank].noted || s.w.Defect.NoRuns
}

func (s *keeper) Close(int) {}

func (s *keeper) Tell(rank, fd int) error {
	if s.files[fd] == 1+rank {
		s.w.all[rank].has[s.number] = true
	}
	return nil
}

// RunLogs runs a cluster until none of its processes can do anything more. The error is the first
// rule that was broken: a rank has gone on and a living standby has not its log, a process waits
// for ever, or a standby has failed although all ranks live.
func RunLogs(l Logs) error {
	w := &logs{Logs: l, rnd: rand.New(rand.NewPCG(l.Seed, 3)), pid: map[int]*keeper{}}
	for i := range l.Ranks + l.Standbys {
		p := &keeper{pid: 100 + i, w: w, number: i - l.Ranks, has: make([]bool, l.Standbys)}
		if i >= l.Ranks {
			p.m = msglog.NewStandby(p, l.Ranks)
		}
		w.all = append(w.all, p)
		w.pid[p.pid] = p
	}
	for range 400 {
		w.meanwhile()
		i := w.rnd.IntN(len(w.all))
		p := w.all[i]
		switch {
		case p.dead || p.begun || p.err != nil:
		case i >= l.Ranks:
			p.begun, p.err = p.m.Look()
		case p.log == 0:
			p.log = 1 + i
		default:
			if err := w.begin(i); err != nil {
				return err
			}
		}
	}
	return w.check()
}

func (w *logs) mayBegin(has, left []bool) bool {
	have, lives := 0, 0
	for s := range has {
		if has[s] {
			have++
		}
		if !left[s] {
			lives++
		}
	}
	return w.Defect.Hasty || w.Defect.Counts && have >= lives || msglog.MayBegin(has, left)
}

// begin lets a rank go on if it may.
func (w *logs) begin(rank int) error {
	var left []bool
	for _, s := range w.all[w.Ranks:] {
		left = append(left, s.noted || s.err != nil)
	}
	if !w.mayBegin(w.all[rank].has, left) {
		return nil
	}
	w.all[rank].begun = true
	for i, s := range w.all[w.Ranks:] {
		if s.noted || s.err != nil {
			continue
		}
		if fd := s.m.Held()[rank]; fd == msglog.None || s.files[fd] != 1+rank {
			return fmt.Errorf("rank %d goes on, and standby %d has not its log", rank, i)
		}
	}
	return nil
}

func (w *logs) check() error {
	died := false
	for _, r := range w.all[:w.Ranks] {
		died = died || r.dead
	}
	for i, p := range w.all {
		switch {
		case p.dead || p.noted:
		case p.err != nil && !died:
			return fmt.Errorf("process %d: %w, and all ranks live", i, p.err)
		case p.err == nil && !p.begun && !w.awaits(i):
			return fmt.Errorf("process %d waits for ever", i)
		}
	}
	for i, s := range w.all[w.Ranks:] {
		for rank := range w.Ranks {
			if fd := s.m.Held()[rank]; !s.dead && fd != msglog.None && s.files[fd] != 1+rank {
				return fmt.Errorf("standby %d takes another file for the log of rank %d", i, rank)
			}
		}
	}
	return nil
}

// awaits: what process i waits for is still to be noted.
func (w *logs) awaits(i int) bool {
	for _, p := range w.all {
		if p.dead && !p.noted {
			return true
		}
	}
	return false
}
