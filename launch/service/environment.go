package service

import "strings"

// Names of the environment variables by which a rank finds its job; docs/starting.md says what they
// hold.
const (
	EnvFD         = "SPX_FD"
	EnvGate       = "SPX_GATE"
	EnvDoor       = "SPX_DOOR"
	EnvAgent      = "SPX_AGENT"
	EnvProc       = "SPX_PROC"
	EnvRank       = "SPX_RANK"
	EnvSize       = "SPX_SIZE"
	EnvJob        = "SPX_JOB"
	EnvLocalRank  = "SPX_LOCAL_RANK"
	EnvLocalSize  = "SPX_LOCAL_SIZE"
	EnvAppnum     = "SPX_APPNUM"
	EnvMaxprocs   = "SPX_MAXPROCS"
	EnvErrhandler = "SPX_INITIAL_ERRHANDLER"
	EnvParent     = "SPX_PARENT"
	EnvListen     = "SPX_LISTEN"
	EnvMsgLogs    = "SPX_MSGLOGS"
	EnvNetworks   = "SPX_NETWORKS"
)

// AgentName is what the agent is called in the list of processes.
const AgentName = "spx-agent"

// MasterName is what the master of a host, a child of its agent, is called there.
const MasterName = "spx-master"

// AdoptWord is the argument of an agent that is started by a process without a launcher, for what
// that cannot do alone: spawning, ports, names. The process sends Adopt over the agent's descriptor
// 3; the answer is empty.
const AdoptWord = "adopt"

// JoinWord is the argument of an agent that is started by a process of a job of another launcher,
// the first on its host. Its descriptor 3 is the socket on which the processes of the host Join.
const JoinWord = "join"

// Names of the environment variables by which the user sets what spxrun has options for, in jobs of
// other launchers. The first process of a host, or of the job, decides.
const (
	EnvIface = "SPX_IFACE" // --iface
	// LOW-HIGH: the ports on which processes listen, also in jobs of spxrun's
	EnvPorts     = "SPX_PORTS"
	EnvOnDeath   = "SPX_ON_DEATH"  // --on-death
	EnvHeartbeat = "SPX_HEARTBEAT" // milliseconds between the heartbeats of hosts
	// milliseconds of silence after which a host is given up
	EnvHeartbeatLimit = "SPX_HEARTBEAT_LIMIT"
	// milliseconds after which an agent that does not answer spxrun is given up
	EnvAgentLimit = "SPX_AGENT_LIMIT"
	// majority, launcher: who goes on when a network is cut in two
	EnvPartition = "SPX_PARTITION"
	// file of the key of a system whose clusters are started one by one
	EnvSystemKey  = "SPX_SYSTEM_KEY"
	EnvNameServer = "SPX_NAME_SERVER" // --name-server
	EnvMoreHosts  = "SPX_MORE_HOSTS"  // 1: --more-hosts
	EnvFanout     = "SPX_FANOUT"      // --fanout
	// seconds for the agent of another host to answer spxrun's
	EnvStartLimit = "SPX_START_LIMIT"
	// seconds that processes wait in MPI_Init for the others of the job
	EnvJoinTimeout = "SPX_JOIN_TIMEOUT"
)

// IsPlace reports whether a variable describes the place of one process in its job, or in that of
// an enclosing launcher. spxrun does not forward such variables, and MPI_Comm_spawn does not send
// them: for other processes they would be wrong, and keys of a launcher are for its own processes
// alone.
func IsPlace(name string) bool {
	switch name {
	case EnvFD, EnvGate, EnvDoor, EnvAgent, EnvProc, EnvRank, EnvSize, EnvJob, EnvLocalRank,
		EnvLocalSize, EnvAppnum, EnvMaxprocs,
		EnvErrhandler, EnvParent, EnvListen, EnvMsgLogs, EnvNetworks, "SPX_SYSTEM_LAYOUT",
		"MPI_LOCALRANKID", "MPI_LOCALNRANKS":
		return true
	}
	return strings.HasPrefix(name, "PMI_") || strings.HasPrefix(name, "PMI2_") ||
		strings.HasPrefix(name, "PMIX_") ||
		strings.HasPrefix(name, "OMPI_COMM_WORLD_")
}
