// Package msglog decides how the message log of a rank (its last commit, and what it has received
// since: MPI/SPx, M+N redundancy) comes to the processes that may have to take the rank over, and
// when the rank may go on from MPI_Init: not before a death of its own could be made good.
//
// A log is a file in the memory of its rank, which the standbys of the cluster open as well
// (Standby, Rank), or it stays with the rank, and another process keeps a copy (Copied; package
// copies has which one). It is pure: tables and the results of system calls in, steps out.
// capi/replay.go carries them out; what is written into a log, and compared, is C
// (dataplane/clusters/replay_core.c).
package msglog

import "errors"

// Seen is what a standby sees of a rank in the table of processes.
type Seen struct {
	Elsewhere  bool   // it is on another host
	Descriptor uint32 // 1 + the descriptor of its log; 0: it has none yet
	Left       bool   // it has ended, however
	PID        int    // 0: it is in another pid namespace
}

// Errors of a standby that cannot get a log, and of a rank that cannot have a copy of its own.
var (
	ErrElsewhere = errors.New(
		"transparent takeover: a standby is on another host than the ranks of its cluster; it " +
			"needs their memory")
	ErrNamespace = errors.New(
		"transparent takeover: a standby is in another pid namespace than the ranks of its " +
			"cluster; it needs their descriptors")
	ErrLeftEarly = errors.New(
		"a rank has ended before MPI_Init was over in all processes of its cluster")
	ErrNoKeeper = errors.New(
		"transparent takeover, copies: of the processes of this cluster no other one lives that " +
			"could keep a copy of what this one has")
)

// ErrGone is what Source.Open returns when the process, or its descriptor, is not there.
var ErrGone = errors.New("msglog: the process is not there")

// A Source is where a standby gets the logs of the ranks from. None of its functions waits.
type Source interface {
	See(rank int) Seen
	// Open opens the log of a rank as it was seen, by its pid. ErrGone: see there.
	Open(rank int, as Seen) (fd int, err error)
	// Runs reports whether the process of the rank has not ended: until then its pid is not reused.
	Runs(rank int) bool
	Close(fd int)
	// Tell records in the log of a rank, which is open as fd, that this standby has it, and wakes
	// the rank.
	Tell(rank, fd int) error
}

// A Standby opens the logs of all ranks. A standby that has arrived waits for no other one.
type Standby struct {
	src  Source
	held []int
}

// None stands in Held for a log that is not open yet.
const None = -1

// NewStandby begins with none of the logs of so many ranks.
func NewStandby(src Source, ranks int) *Standby {
	s := &Standby{src: src, held: make([]int, ranks)}
	for r := range s.held {
		s.held[r] = None
	}
	return s
}

// Inherited is a standby that has all logs from its agent: it was started when ranks had died.
func Inherited(src Source, held []int) *Standby { return &Standby{src: src, held: held} }

// Held are the descriptors of the logs, by rank.
func (s *Standby) Held() []int { return s.held }

// Look opens the available logs, and reports whether all logs are open. It is called again when
// something may have changed. An error, one of this package's or of Source.Open: some log will
// never be.
func (s *Standby) Look() (all bool, err error) {
	all = true
	for r, fd := range s.held {
		if fd != None {
			continue
		}
		if err := s.open(r); err != nil {
			return false, err
		}
		all = all && s.held[r] != None
	}
	return all, nil
}

func (s *Standby) open(rank int) error {
	as := s.src.See(rank)
	switch {
	case as.Elsewhere:
		return ErrElsewhere
	case as.Descriptor == 0:
		return early(as.Left)
	case as.PID == 0:
		return ErrNamespace
	}
	fd, err := s.src.Open(rank, as)
	switch {
	case errors.Is(err, ErrGone):
		return early(s.src.See(rank).Left) // soon
	case err != nil:
		return err
	case !s.src.Runs(rank): // what was opened may be another process's
		s.src.Close(fd)
		return ErrLeftEarly
	}
	s.held[rank] = fd
	return s.src.Tell(rank, fd)
}

// early is the error for a log that is not there: a rank that has left will have none.
func early(left bool) error {
	if left {
		return ErrLeftEarly
	}
	return nil
}

// Keep gives a standby that has taken a rank over its log, and closes the other logs.
func (s *Standby) Keep(rank int) (fd int) {
	for r, fd := range s.held {
		if r != rank && fd != None {
			s.src.Close(fd)
		}
	}
	fd = s.held[rank]
	s.held = nil
	return fd
}

// MayBegin reports whether a rank may go on from MPI_Init: by standby, has: it has the log, left:
// it has ended. A rank that dies before all standbys have its log that live is not replaced. The
// number of holders does not suffice: one of them may have ended.
func MayBegin(has, left []bool) bool {
	for s := range has {
		if !has[s] && !left[s] {
			return false
		}
	}
	return true
}

// A Keeping is the copy of this rank's log. Choose may choose another keeper.
type Keeping interface {
	Wants() bool // its keeper is to be chosen
	Choose() error
	Kept() bool // some process is its keeper
	Has() bool  // that has all that this rank has had so far
}

// Copied reports whether the first copy of a rank's log is there: all processes of the cluster rely
// on it when MPI_Init is over. It is called again until it is.
func Copied(k Keeping) (bool, error) {
	if k.Wants() {
		if err := k.Choose(); err != nil {
			return false, err
		}
	}
	if !k.Kept() {
		return false, ErrNoKeeper
	}
	return k.Has(), nil
}
