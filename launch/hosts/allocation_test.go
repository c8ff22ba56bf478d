package hosts

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allocation is Allocated with these variables and files.
func allocation(env map[string]string, files map[string]string) (*Allocation, error) {
	return Allocated(func(name string) string { return env[name] },
		func(name string) ([]byte, error) {
			text, ok := files[name]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return []byte(text), nil
		})
}

func TestAllocated(t *testing.T) {
	for name, c := range map[string]struct {
		env, files map[string]string
		want       string
	}{
		"none": {nil, nil, ""},
		"Slurm, tasks": {map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-1],m3",
			"SLURM_NTASKS": "7", "SLURM_TASKS_PER_NODE": "3(x2),1",
			"SLURM_JOB_CPUS_PER_NODE": "8(x3)", "SLURMD_NODENAME": "n0"}, nil,
			"Slurm localhost:3 n1:3 m3:1"},
		"Slurm, whole nodes": {map[string]string{"SLURM_JOB_ID": "7", "SLURM_NODELIST": "n[08-10]",
			"SLURM_TASKS_PER_NODE": "1(x3)", "SLURM_JOB_CPUS_PER_NODE": "8,4(x2)"}, nil,
			"Slurm n08:8 n09:4 n10:4"},
		"Slurm, nothing said": {map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a"},
			nil, "Slurm a:1"},
		"PBS": {map[string]string{"PBS_NODEFILE": "/f"},
			map[string]string{"/f": "a\na\nb\n"}, "PBS a:1 a:1 b:1"},
		"LSF, file": {map[string]string{"LSB_DJOB_HOSTFILE": "/f",
			"LSB_MCPU_HOSTS": "x 1"}, map[string]string{"/f": "a\nb"}, "LSF a:1 b:1"},
		"LSF, variable": {map[string]string{"LSB_MCPU_HOSTS": "a 4 b 2"}, nil, "LSF a:4 b:2"},
		"SGE": {map[string]string{"PE_HOSTFILE": "/f"},
			map[string]string{"/f": "a 2 all.q@a UNDEFINED\nb 1 all.q@b <NULL>\n"}, "SGE a:2 b:1"},
		"Operator": {map[string]string{"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile"},
			map[string]string{"/etc/mpi/hostfile": "w-0.w slots=2\nw-1.w slots=2\n"},
			"OMPI_MCA_orte_default_hostfile w-0.w:2 w-1.w:2"},
		"left over": {map[string]string{"HYDRA_HOST_FILE": "/gone"}, nil, ""},
	} {
		a, err := allocation(c.env, c.files)
		got := ""
		if a != nil {
			got = a.System
			for _, h := range a.Hosts {
				got += fmt.Sprintf(" %s:%d", h.Name, h.Slots)
			}
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestAllocationMistakes(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-"},
			"a bracket is not closed"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[3-1]"},
			`"3-1" is not a number, nor a range`},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-999999]"},
			"nor a range"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a[0-999]b[0-999]"},
			"more than 65536 nodes"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": ",,"}, "is not a name"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b",
			"SLURM_TASKS_PER_NODE": "2(x3)"}, "more counts than the 2 nodes"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b",
			"SLURM_TASKS_PER_NODE": "2"}, "1 counts for 2 nodes"},
		{map[string]string{"PBS_NODEFILE": "/gone"}, "PBS: the list of hosts: open /gone"},
		{map[string]string{"LSB_MCPU_HOSTS": "a 4 b"}, "the last host has no number"},
	} {
		if _, err := allocation(c.env, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.env, err, c.want)
		}
	}
}

func TestHas(t *testing.T) {
	a := &Allocation{Hosts: []Host{{"a", 2, ""}, {"b", 2, ""}}}
	if !a.Has([]Host{{"b", 1, "-host"}}) || a.Has([]Host{{"a", 1, "-host"}, {"c", 1, "-host"}}) {
		t.Error("hosts of the allocation are not told from others")
	}
}

func TestExpandNodes(t *testing.T) {
	got, err := expandNodes("n[0-2,5],rack[01-02]b[1,2],login")
	want := []string{"n0", "n1", "n2", "n5", "rack01b1", "rack01b2", "rack02b1", "rack02b2",
		"login"}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

// Any list of nodes and of counts is understood, or an error.
func FuzzExpandNodes(f *testing.F) {
	f.Add("n[0-2,5],rack[01-02]b[1,2],login", "2(x3),1")
	f.Add("a[", "(x")
	f.Add("[1]]", "3(x0)")
	f.Fuzz(func(t *testing.T, list, counts string) {
		names, err := expandNodes(list)
		if err != nil {
			return
		}
		for _, name := range names {
			if name == "" || strings.ContainsAny(name, "[], ") {
				t.Errorf("%q gives %q", list, name)
			}
		}
		if each, err := repeated(counts, len(names)); err == nil && len(each) != len(names) {
			t.Errorf("%q: %d counts for %d nodes", counts, len(each), len(names))
		}
	})
}
