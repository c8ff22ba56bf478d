package service

import (
	"encoding/hex"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"libspx/shm"
)

// A process without the inherited descriptor asks the process whose number the environment has, but
// only if that has the memory file of the job: in another pid namespace the number is another
// process's, which may be the agent of another job.
func TestDoorOfTheNumberAlone(t *testing.T) {
	listener, door, err := OpenDoor()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	agent := os.Getpid() // plays the process that has that number
	segment, err := shm.Create(1, 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	other, err := shm.Create(1, 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	id := segment.JobID()
	job, ok := JobOf(hex.EncodeToString(id[:]))
	if !ok {
		t.Fatal("no job")
	}
	for what, c := range map[string]struct {
		fd   int
		want bool
	}{
		"the job's memory file":   {int(segment.File().Fd()), true},
		"that of another job":     {int(other.File().Fd()), false},
		"a pipe without a writer": {pipe[0], false},
		"nothing":                 {1 << 20, false},
	} {
		if got := hasMemory(strconv.Itoa(agent), strconv.Itoa(c.fd), job); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	t.Setenv(EnvJob, hex.EncodeToString(id[:]))
	t.Setenv(EnvAgent, strconv.Itoa(agent))
	for fd, want := range map[int]bool{int(segment.File().Fd()): true,
		int(other.File().Fd()): false} {
		t.Setenv(EnvFD, strconv.Itoa(fd))
		t.Setenv(EnvDoor, strconv.Itoa(door))
		conn, ok := doorOf(strconv.Itoa(agent), door, job)
		if ok != want {
			t.Errorf("memory file %d: connected: %v", fd, ok)
		}
		if ok {
			unix.Close(conn)
		}
	}
}
