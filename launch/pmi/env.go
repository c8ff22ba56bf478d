package pmi

import (
	"fmt"
	"net"
	"strconv"
)

// Place is where a process stands in its job.
type Place struct {
	FD   int // the socket to the server; -1 if it is to be called first (Call)
	Rank int
	Size int    // 0 before Call
	Job  string // the launcher's name for the job, "" if it has none
	Port string // host:port at which the server is called, where no socket is inherited
}

// Find looks for a PMI-1 server in the environment, given by getenv. ok is false where there is
// none: the process is alone, or has been started by a launcher of another kind. It is an error if
// a launcher announces several processes, but no way to find each other: each would assume that it
// is alone.
func Find(getenv func(string) string) (p Place, ok bool, err error) {
	fd := getenv("PMI_FD")
	if port := getenv("PMI_PORT"); fd == "" && port != "" {
		return findPort(port, getenv)
	}
	if fd == "" {
		if getenv("PMIX_RANK") != "" {
			return p, false, nil
		}
		number := func(name string) int {
			n, _ := strconv.Atoi(getenv(name))
			return n
		}
		if n := number("SLURM_STEP_NUM_TASKS"); n > 1 {
			return p, false, fmt.Errorf(
				"srun has started this process as one of %d, but gives them no way to find each "+
					"other (SLURM_MPI_TYPE=%s); use srun --mpi=pmi2 (or pmix), or start the "+
					"program with spxrun (or mpiexec, mpirun) of libspx in the allocation", n,
				getenv("SLURM_MPI_TYPE"))
		}
		if n := number("PMI_SIZE"); n > 1 {
			return p, false, fmt.Errorf(
				"a launcher has started this process as one of %d (PMI_SIZE), but offers no "+
					"PMI-1 by which they could find each other: PMI_FD is not set", n)
		}
		if n := number("OMPI_COMM_WORLD_SIZE"); n > 1 {
			return p, false, fmt.Errorf(
				"Open MPI's mpirun has started this process as one of %d, without PMIx by which "+
					"they could find each other; start the program with spxrun (or mpiexec, "+
					"mpirun) of libspx", n)
		}
		return p, false, nil
	}
	p.Job = getenv("PMI_JOBID")
	for _, v := range []struct {
		name  string
		value *int
		least int
	}{{"PMI_FD", &p.FD, 0}, {"PMI_SIZE", &p.Size, 1}, {"PMI_RANK", &p.Rank, 0}} {
		n, err := strconv.Atoi(getenv(v.name))
		if err != nil || n < v.least {
			return p, false, fmt.Errorf(
				"the launcher set PMI_FD=%s and %s=%q, which is no number from %d on", fd, v.name,
				getenv(v.name), v.least)
		}
		*v.value = n
	}
	if p.Rank >= p.Size {
		return p, false, fmt.Errorf(
			"the launcher set PMI_RANK=%d and PMI_SIZE=%d: a rank is less than the size", p.Rank,
			p.Size)
	}
	return p, true, nil
}

// findPort is for launchers that give the address to call (PMI_PORT) and the caller's number
// (PMI_ID), as Hydra does with -pmi-port.
func findPort(port string, getenv func(string) string) (Place, bool, error) {
	p := Place{FD: -1, Port: port, Job: getenv("PMI_JOBID")}
	if host, number, err := net.SplitHostPort(port); err != nil || host == "" || number == "" {
		return Place{}, false, fmt.Errorf("the launcher set PMI_PORT=%s, which is not host:port",
			port)
	}
	var err error
	if p.Rank, err = strconv.Atoi(getenv("PMI_ID")); err != nil || p.Rank < 0 {
		return Place{}, false, fmt.Errorf(
			"the launcher set PMI_PORT=%s and PMI_ID=%q, which is no number from 0 on", port,
			getenv("PMI_ID"))
	}
	return p, true, nil
}
