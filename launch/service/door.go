package service

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"libspx/shm"
)

// A door is the way of a job's processes to their own agent: a socket that they reach by a
// descriptor, which they inherit (EnvDoor). Abstract names are those of a network namespace, so a
// process that a container or a wrapper has put into another one does not find its agent by them;
// and of several agents of a job on one host, as of clusters that are started one by one, one alone
// has the name.

// OpenDoor makes a socket to listen on, and the descriptor that leads to it. Its file is gone
// already: nothing is left when the agent ends.
func OpenDoor() (listener, door int, err error) {
	dir, err := os.MkdirTemp("", "spx-door-")
	if err != nil {
		return -1, -1, fmt.Errorf("the agent's door: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agent")
	if listener, err = listen(&unix.SockaddrUnix{Name: file}); err != nil {
		return -1, -1, fmt.Errorf("the agent's door %s: %w", file, err)
	}
	if door, err = unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		unix.Close(listener)
		return -1, -1, fmt.Errorf("the agent's door %s: %w", file, err)
	}
	return listener, door, nil
}

// JobOf is the number of a job by its id of 32 digits, as EnvJob has it.
func JobOf(id string) (number uint64, ok bool) {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != 16 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// throughDoor connects to the agent of the job that the environment tells of, if it is this one: by
// the inherited descriptor or, if a wrapper has closed that, by the agent's. In a pid namespace of
// this process's own the agent's number may be that of another process, which may be an agent too:
// only one that has the job's memory file is believed.
func throughDoor(job uint64) (fd int, ok bool) {
	door, err := strconv.Atoi(os.Getenv(EnvDoor))
	if number, known := JobOf(os.Getenv(EnvJob)); err != nil || !known || number != job {
		return -1, false
	}
	// else it is the program's
	if flags, err := unix.FcntlInt(uintptr(door), unix.F_GETFL, 0); err == nil &&
		flags&unix.O_PATH != 0 {
		if fd, ok := connectDoor("self", door); ok {
			return fd, true
		}
	}
	return doorOf(os.Getenv(EnvAgent), door, job)
}

// doorOf connects by the door of a process, if that is the job's agent.
func doorOf(pid string, door int, job uint64) (fd int, ok bool) {
	if !hasMemory(pid, os.Getenv(EnvFD), job) {
		return -1, false
	}
	return connectDoor(pid, door)
}

func connectDoor(pid string, door int) (fd int, ok bool) {
	fd, err := connect(&unix.SockaddrUnix{Name: fmt.Sprintf("/proc/%s/fd/%d", pid, door)})
	return fd, err == nil
}

// hasMemory reports whether a process has the job's memory file under this number.
func hasMemory(pid, fd string, job uint64) bool {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%s/fd/%s", pid, fd),
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	id, ok := shm.IDOf(file)
	return ok && binary.LittleEndian.Uint64(id[:]) == job
}
