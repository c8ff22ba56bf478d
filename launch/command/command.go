// Package command reads the command line of spxrun (also mpiexec and mpirun): MPI-5.0, 11.5
// "Portable MPI Process Startup", and the spellings that users of MPICH (Hydra) and Open MPI have
// in their scripts.
//
// It owns the table of options, from which the parser and --help are both made, and turns words
// into a Job. It starts nothing, opens nothing but a -configfile, and does not examine hosts or
// programs.
package command

import "time"

// A Job is the content of the command line.
type Job struct {
	Programs  []Program // in the order of the command line; the index is MPI_APPNUM
	Hosts     []string  // entries of -host and its like, as written: NAME or NAME:SLOTS
	HostFiles []string  // files of -hostfile and its like
	PerHost   int       // -ppn: ranks in a row on each host; 0: its slots
	Rsh       []string  // --rsh: the command that reaches other hosts, in words; nil: ssh
	Fanout    string    // --fanout: how many agents one agent starts; empty: not given
	// --prefix: where libspx is installed on other hosts; empty: where it is here
	Prefix     string
	Probe      bool   // --probe: measure the network between the hosts, where it is not known
	NameServer string // --name-server: the file of a name service
	// --more-hosts: hosts may be added while the job runs, also when there is only one
	MoreHosts bool
	Iface     string // --iface: the interface or network that hosts talk over; empty: chosen

	Tag bool // -l: every line of output starts with [rank]
	// --output: a file per rank and stream there; empty: spxrun's own output
	OutputDir string
	Timeout   time.Duration // --timeout; 0: none
	Report    bool          // --report-on-timeout
	Metrics   string        // --metrics: ADDRESS:PORT; empty: none
	HangAfter time.Duration // --hang-after; 0: never
	Bind      Bind          // --bind-to
	Universe  int           // --usize; 0: not given
	// --system: a system file, which names the programs; empty: the command line does
	System  string
	Cluster string // --cluster
	// --join: where the system runs to which the cluster is attached; empty: as in the system file
	Join    string
	Env     []string // with --system: what its programs inherit
	Layout  string   // --layout: a file; empty: the programs are one world
	OnDeath OnDeath  // --on-death
	// -disable-auto-cleanup: deaths of which survivors are notified count in the exit status
	CountDeaths bool
	WithFT      bool   // --with-ft
	Detach      bool   // --detach
	Attach      string // --attach: a job; empty: one is started
	Since       string // --since, with --attach: start or last
	Stdin       Stdin  // --stdin

	Cores       string // --cores: a directory; empty: core files are left alone
	Trace       string // --trace: file of the timeline; empty: none
	TraceLimit  int    // --trace-limit: bytes of every process; 0: not given
	Profile     bool   // --profile
	ProfileJSON string // --profile-json: a file; empty: none

	// -initial-errhandler, a predefined info value of MPI-5.0, 11.5, or empty
	InitialErrhandler string
	Verbose           bool
	Help, Version     bool     // requested: nothing is to be started
	Gdb               []int    // --gdb: ranks that a debugger is started for
	Notes             []string // remarks for the user: options without effect
}

// A Program is one section of the command line between colons.
type Program struct {
	Procs int      // -n; 0 when it was not given
	Argv  []string // the program as written, and its arguments
	Dir   string   // -wdir; empty: spxrun's working directory
	Path  string   // -path: where the program is looked for, before PATH
	Env   []string // the whole environment, NAME=VALUE
}

// Bind is what each rank's processors are restricted to.
type Bind string

// Values of --bind-to.
const (
	BindNone     Bind = "none"
	BindCore     Bind = "core"
	BindHWThread Bind = "hwthread"
	BindSocket   Bind = "socket"
	BindNUMA     Bind = "numa"
)

// OnDeath is what a rank's death means for the job.
type OnDeath string

// Values of --on-death.
const (
	DeathAuto     OnDeath = "auto"     // the job ends, unless a survivor's error handler returns
	DeathKill     OnDeath = "kill"     // the job ends
	DeathContinue OnDeath = "continue" // the survivors are notified, and continue
)

// Stdin names the receiver of spxrun's standard input; the other ranks read an empty file.
type Stdin struct {
	All  bool
	Rank int // -1: none; ignored with All
}

// An Error is a mistake on the command line: what is wrong and what to do, for one line after
// "spxrun: ".
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }
