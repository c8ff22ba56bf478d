package agent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"libspx/launch/cpus"
	"libspx/launch/process"
	"libspx/shm"
)

// Which processors ranks are bound to, and what those have in common.

// bind gives process i its processors.
func (a *agent) bind(i int, s *process.Spec) {
	if len(a.domains) > 0 {
		s.CPUs = a.domains[i%len(a.domains)]
	}
}

// shareOut finds what --bind-to shares out among the ranks, or what another launcher may have bound
// them to; without either nothing is looked at.
func (a *agent) shareOut() {
	binds := a.spec.Bind != "" && a.spec.Bind != "none"
	if !binds && a.joined == nil {
		return
	}
	allowed, err := cpus.Allowed()
	if err != nil {
		if binds {
			text := fmt.Sprintf("--bind-to %s has no effect: %v", a.spec.Bind, err)
			a.sayOnce(text, text)
		}
		return
	}
	a.processors = cpus.Read("/", allowed)
	a.domains = cpus.Domains(a.processors, a.spec.Bind)
}

// near is what the processors share that process i will be bound to, if it is of this host.
func (a *agent) near(i, host int) shm.Near {
	if len(a.domains) == 0 || host != a.self {
		return shm.Near{}
	}
	return nearOf(a.processors, a.domains[i%len(a.domains)])
}

// nearJoined is the same for a process that another launcher has started, and perhaps bound.
func (a *agent) nearJoined(pid int) shm.Near {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return shm.Near{}
	}
	var of []int
	for _, c := range a.processors {
		if set.IsSet(c.Number) {
			of = append(of, c.Number)
		}
	}
	if len(of) == len(a.processors) || len(of) < set.Count() {
		return shm.Near{}
	}
	return nearOf(a.processors, of)
}

func nearOf(all []cpus.CPU, of []int) shm.Near {
	node, cache := cpus.Near(all, of)
	return shm.Near{Node: node, Cache: cache}
}
