package pmi

import (
	"fmt"
	"strconv"
)

// Place is where a process stands in its job.
type Place struct {
	FD   int // the socket to the server
	Rank int
	Size int
	Job  string // the launcher's name for the job, "" if it has none
}

// Find looks for a PMI-1 server in the environment, as getenv answers for it. ok is false where there is none: the process is alone.
// It is an error if a launcher says that there are several processes, and no server tells them from each other: each would believe
// that it is alone.
func Find(getenv func(string) string) (p Place, ok bool, err error) {
	fd := getenv("PMI_FD")
	if fd == "" {
		if n, _ := strconv.Atoi(getenv("SLURM_STEP_NUM_TASKS")); n > 1 && getenv("PMIX_RANK") == "" {
			return p, false, fmt.Errorf("srun has started %d processes, but gives them no way to find each other (SLURM_MPI_TYPE=%s): use srun --mpi=pmi2", n, getenv("SLURM_MPI_TYPE"))
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
			return p, false, fmt.Errorf("the launcher set PMI_FD=%s and %s=%q, which is no number from %d on", fd, v.name, getenv(v.name), v.least)
		}
		*v.value = n
	}
	if p.Rank >= p.Size {
		return p, false, fmt.Errorf("the launcher set PMI_RANK=%d and PMI_SIZE=%d: a rank is less than the size", p.Rank, p.Size)
	}
	return p, true, nil
}
