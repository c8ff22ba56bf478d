package tool

import "math"

// Performance variables (MPI-5.0, section 16.3.7). The process counts all the time: a variable is a
// view of one of its counters.

// Class is the class of a performance variable: MPI_T_PVAR_CLASS_*.
type Class int

// The classes that there are.
const (
	ClassState     Class = 1
	ClassLevel     Class = 2
	ClassHigh      Class = 5
	ClassCounter   Class = 7
	ClassAggregate Class = 8
	ClassTimer     Class = 9
)

// Counter is what a process counts: most are members of spx_counters (layout.h).
type Counter int

// The counters. Those in the first group are also counted for each communicator.
const (
	Sent Counter = iota
	SentBytes
	Received
	ReceivedBytes

	Unexpected
	UnexpectedBytes
	Announced
	Gets
	GotBytes
	Streams
	StreamedBytes
	Connections
	Rings
	NetOpen
	NetOpened
	NetEvicted
	NetRelayed
	NetAgain
	NetForwarded
	NetForwardedBytes
	NetDirect
	NetZerocopy
	NetZerocopyCopied
	NetStreams
	NetFurther
	NetBursts
	FabricPairs
	FabricReceived
	FabricRefused
	Yields
	Sleeps
	SleepNs
	Wakeups

	UnexpectedLength // messages that wait for their receive now
	PostedLength     // receives that wait for their message now
	Lost             // messages that were kept for other clusters, and that no process has taken
	LostBytes
	RefusedStrangers // calls over the network: spx_refused
	RefusedVersion
	RefusedOld
	RefusedKeyless
	RefusedSlow
	Entries  // calls from C into the engine
	Failures // processes that have failed, of the process's knowledge or of a communicator

	Counters // how many there are; those beyond are choices: ChoiceCounter
)

// Variable is a performance variable.
type Variable struct {
	Entry
	Class   Class
	Level   int // MPI_T_VERBOSITY_*
	Bind    int // BindNothing or BindComm
	Counter Counter
}

// isLevel: the variable is continuous and read-only, and all others can be started, stopped, and
// reset.
func (v *Variable) isLevel() bool { return v.Class == ClassLevel || v.isState() }
func (v *Variable) isState() bool { return v.Class == ClassState }

// A timer counts nanoseconds and is read in seconds.
func (v *Variable) datatype() Datatype {
	if v.isState() {
		return Int
	}
	if v.Class == ClassTimer {
		return Double
	}
	return UnsignedLongLong
}

// bits are how a count is stored in the caller's buffer.
func (v *Variable) bits(n uint64) uint64 {
	if v.Class == ClassTimer {
		return math.Float64bits(float64(n) / 1e9)
	}
	return n
}

// count is what is stored in the caller's buffer, as a count; false: a time that cannot be.
func (v *Variable) count(bits uint64) (uint64, bool) {
	if v.Class != ClassTimer {
		return bits, true
	}
	ns := math.Float64frombits(bits) * 1e9
	if !(ns >= 0 && ns < 1<<63) {
		return 0, false
	}
	return uint64(ns), true
}

var variables = append([]Variable{
	{Entry{"spx_messages_sent", "messages",
		"messages sent by this process, those of collectives included"},
		ClassCounter, UserBasic, BindNothing, Sent},
	{Entry{"spx_bytes_sent", "messages", "bytes in the messages sent"},
		ClassAggregate, UserBasic, BindNothing, SentBytes},
	{Entry{"spx_messages_received", "messages", "messages received by this process"},
		ClassCounter, UserBasic, BindNothing, Received},
	{Entry{"spx_bytes_received", "messages", "bytes in the messages received"},
		ClassAggregate, UserBasic, BindNothing, ReceivedBytes},
	{Entry{"spx_comm_messages_sent", "messages", "messages sent on a communicator"},
		ClassCounter, UserBasic, BindComm, Sent},
	{Entry{"spx_comm_bytes_sent", "messages", "bytes in the messages sent on a communicator"},
		ClassAggregate, UserBasic, BindComm, SentBytes},
	{Entry{"spx_comm_messages_received", "messages", "messages received on a communicator"},
		ClassCounter, UserBasic, BindComm, Received},
	{Entry{"spx_comm_bytes_received", "messages",
		"bytes in the messages received on a communicator"},
		ClassAggregate, UserBasic, BindComm, ReceivedBytes},
	{Entry{"spx_unexpected_messages", "matching", "messages that came before their receive"},
		ClassCounter, UserBasic, BindNothing, Unexpected},
	{Entry{"spx_unexpected_bytes", "matching",
		"bytes copied aside because their receive had not been posted"},
		ClassAggregate, UserBasic, BindNothing, UnexpectedBytes},
	{Entry{"spx_unexpected_length", "matching", "messages that wait for their receive now"},
		ClassLevel, UserBasic, BindNothing, UnexpectedLength},
	{Entry{"spx_unexpected_length_high", "matching",
		"the most messages that have waited for their receive at once"},
		ClassHigh, UserBasic, BindNothing, UnexpectedLength},
	{Entry{"spx_posted_length", "matching", "receives that wait for their message now"},
		ClassLevel, UserBasic, BindNothing, PostedLength},
	{Entry{"spx_messages_announced", "transfer",
		"messages sent that were announced first, being large or without credit"},
		ClassCounter, TunerDetail, BindNothing, Announced},
	{Entry{"spx_gets", "transfer",
		"messages that this process has read out of their sender's memory"},
		ClassCounter, TunerDetail, BindNothing, Gets},
	{Entry{"spx_bytes_got", "transfer", "bytes read out of senders' memory"},
		ClassAggregate, TunerDetail, BindNothing, GotBytes},
	{Entry{"spx_streams", "transfer", "messages sent as a stream of pieces, copied twice"},
		ClassCounter, TunerDetail, BindNothing, Streams},
	{Entry{"spx_bytes_streamed", "transfer", "bytes in streamed messages"},
		ClassAggregate, TunerDetail, BindNothing, StreamedBytes},
	{Entry{"spx_connections", "transfer", "processes that this one has sent to"},
		ClassCounter, UserBasic, BindNothing, Connections},
	{Entry{"spx_connections_open", "transfer", "connections over the network that are open now"},
		ClassLevel, UserBasic, BindNothing, NetOpen},
	{Entry{"spx_connections_opened", "transfer", "connections over the network that were made"},
		ClassCounter, UserBasic, BindNothing, NetOpened},
	{Entry{"spx_connections_evicted", "transfer",
		"connections that were closed because others were wanted"},
		ClassCounter, UserBasic, BindNothing, NetEvicted},
	{Entry{"spx_frames_relayed", "transfer",
		"frames of messages of this process that others have sent on"},
		ClassCounter, TunerDetail, BindNothing, NetRelayed},
	{Entry{"spx_frames_again", "transfer", "times that what others were to send on was sent again"},
		ClassCounter, TunerDetail, BindNothing, NetAgain},
	{Entry{"spx_frames_forwarded", "transfer",
		"frames of other processes that this one has sent on"},
		ClassCounter, TunerDetail, BindNothing, NetForwarded},
	{Entry{"spx_bytes_forwarded", "transfer", "bytes of other processes that this one has sent on"},
		ClassAggregate, TunerDetail, BindNothing, NetForwardedBytes},
	{Entry{"spx_bytes_direct", "transfer",
		"bytes written to sockets straight from the buffers of messages"},
		ClassAggregate, TunerDetail, BindNothing, NetDirect},
	{Entry{"spx_bytes_zerocopy", "transfer",
		"of these, bytes that the kernel was told to send out of the buffers (SPX_ZEROCOPY)"},
		ClassAggregate, TunerDetail, BindNothing, NetZerocopy},
	{Entry{"spx_bytes_zerocopy_copied", "transfer",
		"of these, bytes that the kernel has copied all the same"},
		ClassAggregate, TunerDetail, BindNothing, NetZerocopyCopied},
	{Entry{"spx_streams_opened", "transfer",
		"further streams that this process has made for its long messages (SPX_STREAMS)"},
		ClassCounter, UserBasic, BindNothing, NetStreams},
	{Entry{"spx_bytes_further", "transfer",
		"bytes of messages that this process has written to further streams"},
		ClassCounter, UserBasic, BindNothing, NetFurther},
	{Entry{"spx_bursts", "transfer",
		"times that short messages in a row to a process of the same host began to go by fewer " +
			"segments (TCP)"}, ClassCounter, TunerDetail, BindNothing, NetBursts},
	{Entry{"spx_fabric_pairs", "transfer",
		"processes with which this one has come to communicate over libfabric"},
		ClassCounter, UserBasic, BindNothing, FabricPairs},
	{Entry{"spx_fabric_received", "transfer",
		"messages of libfabric that have arrived; each carries some of a pair's bytes"},
		ClassCounter, TunerDetail, BindNothing, FabricReceived},
	{Entry{"spx_fabric_refused", "transfer",
		"messages of libfabric that were dropped: of no process of the job, or late"},
		ClassCounter, TunerDetail, BindNothing, FabricRefused},
	{Entry{"spx_messages_lost", "transfer",
		"messages to other clusters that were kept, and that no process was left to take"},
		ClassCounter, TunerDetail, BindNothing, Lost},
	{Entry{"spx_bytes_lost", "transfer", "the same in bytes"},
		ClassCounter, TunerDetail, BindNothing, LostBytes},
	{Entry{"spx_refused_strangers", "transfer",
		"calls over the network that were refused: not of this job, or not of this protocol"},
		ClassCounter, TunerDetail, BindNothing, RefusedStrangers},
	{Entry{"spx_refused_version", "transfer",
		"calls over the network that were refused: of another version of the handshake"},
		ClassCounter, TunerDetail, BindNothing, RefusedVersion},
	{Entry{"spx_refused_old", "transfer",
		"calls over the network that were refused: of or for an earlier or later process of that " +
			"number"}, ClassCounter, TunerDetail, BindNothing, RefusedOld},
	{Entry{"spx_refused_keyless", "transfer",
		"calls over the network that were refused: without the key of the job"},
		ClassCounter, TunerDetail, BindNothing, RefusedKeyless},
	{Entry{"spx_refused_slow", "transfer",
		"calls over the network that were given up: too slow, or too many at a time"},
		ClassCounter, TunerDetail, BindNothing, RefusedSlow},
	{Entry{"spx_rings_opened", "transfer", "rings that this process has opened to send through"},
		ClassCounter, TunerDetail, BindNothing, Rings},
	{Entry{"spx_yields", "waiting",
		"times that this process gave its processor to others while it waited"},
		ClassCounter, TunerDetail, BindNothing, Yields},
	{Entry{"spx_sleeps", "waiting", "times that this process slept while it waited"},
		ClassCounter, TunerDetail, BindNothing, Sleeps},
	{Entry{"spx_sleep_time", "waiting", "seconds that this process has slept while it waited"},
		ClassTimer, UserBasic, BindNothing, SleepNs},
	{Entry{"spx_wakeups", "waiting",
		"times that this process has woken another, or a thread of its own"},
		ClassCounter, TunerDetail, BindNothing, Wakeups},
	{Entry{"spx_engine_entries", "engine", "calls from C into the engine"},
		ClassCounter, MpidevBasic, BindNothing, Entries},
	{Entry{"spx_failures", "failures", "processes whose failure this process has noticed"},
		ClassLevel, UserBasic, BindNothing, Failures},
	{Entry{"spx_comm_failures", "failures",
		"processes of a communicator whose failure this process has noticed"},
		ClassLevel, UserBasic, BindComm, Failures},
}, choiceVariables()...)

func variable(i int) *Variable {
	if i < 0 || i >= len(variables) {
		return nil
	}
	return &variables[i]
}

// PvarNum is MPI_T_pvar_get_num.
func (s *State) PvarNum(num *int32) Code { return needInt(num, len(variables)) }

// PvarInfo is MPI_T_pvar_get_info. MPI_T_pvar_readreset ("atomic") applies to all variables that
// can be reset.
func (s *State) PvarInfo(i int, name Text, verbosity, class *int32, datatype *Datatype,
	enum *Handle, desc Text,
	bind, readonly, continuous, atomic *int32) Code {
	v := variable(i)
	if v == nil {
		return InvalidIndex
	}
	name.put(v.Name)
	desc.put(v.Description)
	putInt(verbosity, v.Level)
	putInt(class, int(v.Class))
	put(datatype, v.datatype())
	put(enum, s.enumOfPvar(v))
	putInt(bind, v.Bind)
	putInt(readonly, flag(v.isLevel()))
	putInt(continuous, flag(v.isLevel()))
	putInt(atomic, flag(!v.isLevel()))
	return Success
}

// PvarIndex is MPI_T_pvar_get_index: names are of one class each.
func (s *State) PvarIndex(name *string, class int, index *int32) Code {
	return indexOf(name, index, len(variables), func(i int) bool {
		return variables[i].Name == *name && variables[i].Class == Class(class)
	})
}
