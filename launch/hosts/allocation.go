package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// An Allocation is what a batch system has given the job within which this process runs.
type Allocation struct {
	System string // the batch system, for messages
	Hosts  []Host // with slots
	// its name for this host, where that may be another than the host's own; else ""
	Here string
	// a command that starts a shell's line on one of them, as in control.Job; nil: ssh
	Rsh []string
}

// Has reports whether all of list are hosts of the allocation.
func (a *Allocation) Has(list []Host) bool {
	return !slices.ContainsFunc(list, func(h Host) bool {
		return h.Name != a.Here && !slices.ContainsFunc(a.Hosts,
			func(own Host) bool { return own.Name == h.Name })
	})
}

// host files of launchers that the Kubernetes MPI Operator writes one for, and names in the
// environment.
var operatorFiles = []string{"HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE",
	"PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile"}

// Allocated looks for a batch system's allocation in the environment, given by getenv; read is
// os.ReadFile. It supports Slurm, PBS and Torque, LSF, SGE and the Kubernetes MPI Operator. nil:
// there is none. The error names what cannot be parsed.
func Allocated(getenv func(string) string, read func(string) ([]byte, error)) (*Allocation, error) {
	if getenv("SLURM_JOB_ID") != "" && slurmNodes(getenv) != "" {
		return slurm(getenv)
	}
	for _, s := range []struct {
		system, file string
		parse        func(text, file string) ([]Host, error)
		rsh          []string
	}{
		{"PBS", "PBS_NODEFILE", oneSlotPerLine, nil},
		{"LSF", "LSB_DJOB_HOSTFILE", oneSlotPerLine, nil},
		{"SGE", "PE_HOSTFILE", secondIsSlots, sgeRsh},
	} {
		if name := getenv(s.file); name != "" {
			return fromFile(s.system, name, s.parse, s.rsh, read)
		}
	}
	if text := getenv("LSB_MCPU_HOSTS"); text != "" {
		return lsf(text)
	}
	for _, variable := range operatorFiles {
		name := getenv(variable)
		if name == "" {
			continue
		}
		a, err := fromFile(variable, name, Parse, nil, read)
		if errors.Is(err, fs.ErrNotExist) {
			continue // left over from elsewhere
		}
		return a, err
	}
	return nil, nil
}

func fromFile(system, name string, parse func(text, file string) ([]Host, error), rsh []string,
	read func(string) ([]byte, error)) (*Allocation, error) {
	data, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("%s: the list of hosts: %w", system, err)
	}
	list, err := parse(string(data), name)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %s names no host", system, name)
	}
	return &Allocation{System: system, Hosts: list, Rsh: rsh}, nil
}

// oneSlotPerLine reads a file with a line for every slot.
func oneSlotPerLine(text, file string) ([]Host, error) {
	var out []Host
	for _, name := range strings.Fields(text) {
		out = append(out, Host{name, 1, file})
	}
	return out, nil
}

// secondIsSlots reads lines of a host, its slots, and more.
func secondIsSlots(text, file string) ([]Host, error) {
	var out []Host
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("%s, line %d: %q is not a host and its slots", file, n+1, line)
		}
		k, err := slots(words[1])
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %v", file, n+1, err)
		}
		out = append(out, Host{words[0], k, file})
	}
	return out, nil
}

// lsf reads pairs of a host and its slots.
func lsf(text string) (*Allocation, error) {
	words, a := strings.Fields(text), &Allocation{System: "LSF"}
	for i := 0; i < len(words); i += 2 {
		if i+1 == len(words) {
			return nil, fmt.Errorf("LSB_MCPU_HOSTS=%q: the last host has no number of slots", text)
		}
		k, err := slots(words[i+1])
		if err != nil {
			return nil, fmt.Errorf("LSB_MCPU_HOSTS=%q: %v", text, err)
		}
		a.Hosts = append(a.Hosts, Host{words[i], k, "LSB_MCPU_HOSTS"})
	}
	return a, nil
}

// sgeRsh starts a line on a host of the job.
var sgeRsh = []string{"qrsh", "-inherit", "-V"}

// ---- Slurm

func slurmNodes(getenv func(string) string) string {
	if list := getenv("SLURM_JOB_NODELIST"); list != "" {
		return list
	}
	return getenv("SLURM_NODELIST")
}

// slurmRsh starts a line on a node within the allocation, beside whatever else runs there. Bytes
// pass as they are.
var slurmRsh = []string{"srun", "--nodes=1", "--ntasks=1", "--nodelist=" + HostWord, "--overlap",
	"--mpi=none", "--kill-on-bad-exit=0", "--unbuffered",
	"--quiet", "/bin/sh", "-c"}

// HostWord stands for the name of the host in a Rsh. Where no word has it, the name comes behind
// all of them.
const HostWord = "%h"

func slurm(getenv func(string) string) (*Allocation, error) {
	names, err := expandNodes(slurmNodes(getenv))
	if err != nil {
		return nil, fmt.Errorf("Slurm's list of nodes: %w", err)
	}
	variable := "SLURM_TASKS_PER_NODE"
	if getenv("SLURM_NTASKS") == "" && getenv("SLURM_NTASKS_PER_NODE") == "" &&
		getenv("SLURM_JOB_CPUS_PER_NODE") != "" {
		variable = "SLURM_JOB_CPUS_PER_NODE" // no number of tasks was requested
	}
	each, err := repeated(getenv(variable), len(names))
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w", variable, getenv(variable), err)
	}
	a := &Allocation{System: "Slurm", Rsh: slurmRsh, Here: getenv("SLURMD_NODENAME")}
	for i, name := range names {
		if name == a.Here {
			name = "localhost" // Slurm's names of nodes need not be those of the hosts
		}
		a.Hosts = append(a.Hosts, Host{name, each[i], variable})
	}
	return a, nil
}

// repeated reads counts of n nodes: 2(x3),1 is 2, 2, 2, 1. Without text they are all 1.
func repeated(text string, n int) ([]int, error) {
	var out []int
	for _, word := range strings.Split(text, ",") {
		if text == "" {
			break
		}
		count, times, many := strings.Cut(word, "(x")
		k, err := slots(count)
		if err != nil {
			return nil, err
		}
		of := 1
		if many {
			if of, err = slots(strings.TrimSuffix(times, ")")); err != nil {
				return nil, err
			}
		}
		if of > n-len(out) {
			return nil, fmt.Errorf("more counts than the %d nodes", n)
		}
		for range of {
			out = append(out, k)
		}
	}
	for text == "" && len(out) < n {
		out = append(out, 1)
	}
	if len(out) != n {
		return nil, fmt.Errorf("%d counts for %d nodes", len(out), n)
	}
	return out, nil
}

// maxNodes bounds a list of nodes.
const maxNodes = 1 << 16

// expandNodes writes out Slurm's form of a list of names: n[0-2,5],rack[01-02]b[1,2],login.
func expandNodes(list string) ([]string, error) {
	var out []string
	for list != "" {
		end := endOfItem(list)
		names, err := expandItem(list[:end])
		if err != nil {
			return nil, err
		}
		if out = append(out, names...); len(out) > maxNodes {
			return nil, fmt.Errorf("more than %d nodes", maxNodes)
		}
		list = strings.TrimPrefix(list[end:], ",")
	}
	if len(out) == 0 {
		return nil, errors.New("it is empty")
	}
	return out, nil
}

// endOfItem is the place of the first comma that is not between brackets.
func endOfItem(list string) int {
	depth := 0
	for i, c := range list {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(list)
}

// expandItem writes out one item, which may have several pairs of brackets.
func expandItem(item string) ([]string, error) {
	head, rest, has := strings.Cut(item, "[")
	if !has {
		if item == "" || strings.ContainsAny(item, "] \t\n") {
			return nil, fmt.Errorf("%q is not a name of a node", item)
		}
		return []string{item}, nil
	}
	inner, tail, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fmt.Errorf("%q: a bracket is not closed", item)
	}
	ends := []string{""}
	if tail != "" {
		var err error
		if ends, err = expandItem(tail); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, r := range strings.Split(inner, ",") {
		numbers, err := expandRange(r)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		if len(out)+len(numbers)*len(ends) > maxNodes {
			return nil, fmt.Errorf("more than %d nodes", maxNodes)
		}
		for _, n := range numbers {
			for _, end := range ends {
				out = append(out, head+n+end)
			}
		}
	}
	return out, nil
}

// expandRange writes out 07 or 07-12, with the zeros in front.
func expandRange(r string) ([]string, error) {
	low, high, has := strings.Cut(r, "-")
	if !has {
		high = low
	}
	from, err := strconv.ParseUint(low, 10, 32)
	to, err2 := strconv.ParseUint(high, 10, 32)
	if err != nil || err2 != nil || to < from || to-from >= maxNodes {
		return nil, fmt.Errorf("%q is not a number, nor a range of numbers", r)
	}
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprintf("%0*d", len(low), n))
	}
	return out, nil
}
