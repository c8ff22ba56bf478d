// Package trace reads what the processes of a job have written down of their MPI calls and messages
// (capi/abi/trace.c), and what the agents have noted of the job, and makes of it a timeline in
// Chrome's trace format, which ui.perfetto.dev and chrome://tracing show, and sums: spxrun --trace
// and --profile (docs/tracing.md).
//
// It runs when the job is over, in whatever way it has ended. It changes nothing in the files that
// it reads, and trusts them no further than that: a process may have died while it wrote.
//
//go:generate go run ../../shm/layoutgen ../../capi/dataplane/base/trace_file.h zz_layout.go trace
package trace

// Names of environment variables that make a process trace.
const (
	EnvDir  = "SPX_TRACE"      // directory of the files
	EnvRoom = "SPX_TRACE_ROOM" // records that each file holds
)

// RecordBytes is what a record takes.
const RecordBytes = traceRecordBytes

// DefaultLimit is how many bytes of records are kept of every process.
const DefaultLimit = 32 << 20

// A Job is the data about a finished job, except the timeline: it is in the file of the timeline,
// and is written by --profile-json.
type Job struct {
	Command  []string `json:"command,omitempty"`
	Seconds  float64  `json:"seconds"` // from the first MPI_Init to the last end
	Hosts    []Host   `json:"hosts"`
	Ranks    []Rank   `json:"ranks"`
	Sites    []Site   `json:"sites"`
	Messages int      `json:"messages"` // that are arrows
	// records of messages without the other side's: dropped there, or never received
	Lost int `json:"unmatched"`
}

// A Host is one of the job's. Its clock is ahead of that of the first host by Offset, give or take
// Error.
type Host struct {
	Name   string  `json:"name"`
	Offset float64 `json:"clock_offset_seconds"`
	Error  float64 `json:"clock_error_seconds"`
	Drift  float64 `json:"clock_drift"` // seconds a second
}

// A Rank is a process of the job.
type Rank struct {
	Name    string `json:"name"`
	Proc    int    `json:"process"` // its number in the job
	Rank    int    `json:"rank"`
	World   int    `json:"world"`
	Host    int    `json:"host"` // index in Hosts
	Pid     int    `json:"pid"`
	Program string `json:"program"`
	// MPI_Init was entered: seconds from the beginning of the trace
	Began float64 `json:"began"`
	// MPI_Finalize was left, or the process has ended, or the last known time
	Ended   float64 `json:"ended"`
	End     string  `json:"end,omitempty"` // how it has ended, if not well
	MPI     float64 `json:"mpi_seconds"`   // in MPI calls, all threads together
	Records uint64  `json:"records"`       // written
	// of them: not there any more, older than what is
	Dropped uint64   `json:"records_dropped"`
	Calls   []Cost   `json:"calls"` // by place, the most expensive first
	Sent    []Volume `json:"sent"`  // by receiver
	// messages sent: of no byte, of 1, of 2 to 3, of 4 to 7 ...
	Sizes []uint64 `json:"message_sizes"`
	// seconds by kind of wait, of what the records have
	Waits map[string]float64 `json:"waits,omitempty"`
	Got   uint64             `json:"received"`       // messages
	Bytes uint64             `json:"received_bytes"` //
	maps  string             // as /proc/PID/maps
}

// A Site is a place in the program that calls a function of MPI.
type Site struct {
	Call     string `json:"call"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Object   string `json:"object,omitempty"`
	PC       uint64 `json:"pc"`
}

// A Cost is what the calls of a rank from one place have cost.
type Cost struct {
	Site     int     `json:"site"` // index in Job.Sites
	Calls    uint64  `json:"calls"`
	Errors   uint32  `json:"errors,omitempty"`
	Seconds  float64 `json:"seconds"`
	Max      float64 `json:"max_seconds"`
	Min      float64 `json:"min_seconds"`
	Bytes    uint64  `json:"bytes"` // given to calls that send, as far as their arguments show
	BytesMax uint64  `json:"max_bytes"`
}

// A Volume is what was sent to a process.
type Volume struct {
	To       int    `json:"to"` // its number in the job
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Kinds of waits, the keys of Rank.Waits.
const (
	LateSender   = "late sender"        // in a receive, until the message was sent
	LateReceiver = "late receiver"      // in a send, until the receive was posted
	AtBarrier    = "wait at barrier"    // until the last has come
	AtCollective = "wait at collective" // the same, of other collectives in which all need all
)
