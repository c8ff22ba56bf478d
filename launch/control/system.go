package control

import (
	"fmt"
	"strings"

	"libspx/cluster/layout"
)

// Attach makes a job start as the system of clusters that l describes: it gives every program its
// world, and the layout to all. The processes of a program, which are counted through all programs,
// must be those of one cluster, standbys behind the others, or one IOP.
func Attach(j *Job, l *layout.Layout) error {
	for i := range l.Clusters {
		if c := &l.Clusters[i]; !c.Gone && len(c.Procs) > 0 {
			c.Lead = uint32(c.Procs[0]) + 1 // the first processes are numbered as they are started
		}
	}
	text, err := l.Encode()
	if err != nil {
		return err
	}
	first := 0
	for k := range j.Programs {
		p := &j.Programs[k]
		for i := first; i < first+p.Procs; i++ {
			world, err := worldOf(l, i)
			if err != nil {
				return fmt.Errorf("program %d (%s): %w", k, p.Argv[0], err)
			}
			if i > first && world != p.World {
				return fmt.Errorf(
					"program %d (%s): its processes %d and %d are in different worlds; make "+
						"them two programs", k, p.Argv[0], first, i)
			}
			p.World = world
		}
		first += p.Procs
		p.Env = setVariable(p.Env, layout.Variable, text)
	}
	return complete(l, first)
}

func worldOf(l *layout.Layout, proc int) (uint32, error) {
	switch role, index, rank := l.Find(proc); role {
	case layout.Compute, layout.Standby:
		return l.Clusters[index].World, nil
	case layout.IO:
		return l.IOPs[index].World, nil
	default:
		return 0, fmt.Errorf("process %d is not in the layout (%d, %d)", proc, index, rank)
	}
}

// complete returns an error for processes of the layout that no program has, or that are not in the
// order of their ranks.
func complete(l *layout.Layout, n int) error {
	for _, c := range l.Clusters {
		for r, p := range c.Procs {
			if !c.Gone && p >= n {
				return fmt.Errorf("rank %d of cluster %s is process %d; the programs have %d", r,
					c.Name, p, n)
			}
			if !c.Gone && len(c.Standbys) > 0 && p > c.Standbys[0] {
				return fmt.Errorf("cluster %s: process %d of rank %d stands behind standby %d",
					c.Name, p, r, c.Standbys[0])
			}
			if !c.Gone && r > 0 && p < c.Procs[r-1] {
				return fmt.Errorf(
					"cluster %s: process %d of rank %d stands before that of the rank before",
					c.Name, p, r)
			}
		}
	}
	for i, p := range l.IOPs {
		if !p.Gone && p.Proc >= n {
			return fmt.Errorf("IOP %d is process %d; the programs have %d", i, p.Proc, n)
		}
	}
	return nil
}

func setVariable(env []string, name, value string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return append(out, name+"="+value)
}
