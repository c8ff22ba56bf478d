package agent

import (
	"os"
	"regexp"
	"testing"

	"libspx/launch/control"
	"libspx/launch/inspect"
	"libspx/shm"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRanges(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "3": {3}, "0-2": {0, 1, 2},
		"0,2-3,7": {0, 2, 3, 7}} {
		if got := ranges(list); got != want {
			t.Errorf("%v: %q", list, got)
		}
	}
}

// The numbers of MPI functions that the library uses mean the same to the agent.
func TestCallNames(t *testing.T) {
	data, err := os.ReadFile("../../capi/boundary/zz_functions.c")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^ +"(\w+)",`).FindAllStringSubmatch(string(data), -1)
	if len(names) < 600 {
		t.Fatalf("only %d names in the table of the library", len(names))
	}
	for i, n := range names {
		if got := inspect.CallName(uint32(i + 1)); got != n[1] {
			t.Fatalf("function %d is %s to the library and %q to the agent", i+1, n[1], got)
		}
	}
	if inspect.CallName(0) != "" || inspect.CallName(1<<30) != "" {
		t.Error("numbers of no function have names")
	}
}

func TestEnvironment(t *testing.T) {
	segment, err := shm.Create(3, 3, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	segment.SetJobID([16]byte{0xab, 15: 1})
	a := &agent{segment: segment, ranks: []rank{{program: 0}, {program: 1, in: 1},
		{program: 1, in: 2}}, spec: &control.Job{InitialErrhandler: "mpi_errors_return",
		Programs: []control.Program{{Procs: 1, Env: []string{"A=0"}},
			{Procs: 2, Env: []string{"B=1", "SPX_RANK=9"}}}}}
	env := newEnvironment(a)
	// as the C library sees it after the kernel: here only the last of each counts
	last := func(list []string) map[string]string {
		out := map[string]string{}
		for _, kv := range list {
			for i := range kv {
				if kv[i] == '=' {
					out[kv[:i]] = kv[i+1:]
					break
				}
			}
		}
		return out
	}
	want := map[string]string{"B": "1", "SPX_FD": "62", "SPX_PROC": "2", "SPX_RANK": "2",
		"SPX_SIZE": "3", "SPX_JOB": "ab000000000000000000000000000001",
		"SPX_LOCAL_RANK": "2", "SPX_LOCAL_SIZE": "3", "SPX_APPNUM": "1", "SPX_MAXPROCS": "2",
		"SPX_INITIAL_ERRHANDLER": "mpi_errors_return",
		"OMPI_COMM_WORLD_RANK":   "2", "OMPI_COMM_WORLD_SIZE": "3",
		"OMPI_COMM_WORLD_LOCAL_RANK": "2",
		"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}
	got := last(env.of(2))
	if got["SPX_AGENT"] == "" {
		t.Error("SPX_AGENT is missing")
	}
	delete(got, "SPX_AGENT")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if other := last(env.of(0)); other["SPX_RANK"] != "0" || other["A"] != "0" ||
		other["SPX_APPNUM"] != "0" {
		t.Errorf("rank 0: %v", other)
	}
}

// Numbers that are reserved go to no file that is opened later; who has one already keeps it.
func TestReserve(t *testing.T) {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	taken, free := null+20, null+21
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	if err := unix.Dup3(p[1], taken, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	unix.Close(p[1])
	reserve(taken, free)
	if _, err := unix.Write(taken, []byte{1}); err != nil {
		t.Errorf("the pipe has lost its number: %v", err)
	}
	if flags, err := unix.FcntlInt(uintptr(free), unix.F_GETFD, 0); err != nil ||
		flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor %d: flags %#x, %v", free, flags, err)
	}
	if err := unix.Dup3(p[0], free, unix.O_CLOEXEC); err != nil { // what a process inherits
		t.Fatal(err)
	}
	vacate(free)
	var opened []int
	for range 30 {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if fd == free || fd == taken {
			t.Errorf("descriptor %d was given out", fd)
		}
		opened = append(opened, fd)
	}
	for _, fd := range append(opened, taken, free) {
		unix.Close(fd)
	}
}
