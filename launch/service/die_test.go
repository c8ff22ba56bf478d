package service

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor of the connection of a process that calls DieWithPeer
const envDies = "SERVICE_TEST_DIES"

func TestMain(m *testing.M) {
	if os.Getenv(envDies) != "" {
		c := NewConn(3)
		if _, err := c.Receive(); err != nil {
			os.Exit(2)
		}
		if err := c.DieWithPeer(); err != nil {
			os.Exit(3)
		}
		for { // the word for each message that has come
			m, err := c.Receive()
			if err != nil || c.Send(m) != nil {
				time.Sleep(time.Hour) // the kernel ends it
			}
		}
	}
	os.Exit(m.Run())
}

// What the agent has sent, or sends later, does not end a process that is to die with it; the end
// of the agent does, also when it has not read the descriptor that it is to hold, and when it ends
// before that is sent.
func TestDieWithPeer(t *testing.T) {
	for _, c := range []struct {
		name       string
		read, wait bool
	}{{"read", true, false}, {"not read", false, true}, {"at any time", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			agent, theirs := NewConn(pair[0]), os.NewFile(uintptr(pair[1]), "connection")
			cmd := exec.Command(os.Args[0])
			cmd.Env, cmd.ExtraFiles = append(os.Environ(), envDies+"=1"), []*os.File{theirs}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			// it may have ended
			late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck
			send := func() {
				if err := agent.Send(&Message{Kind: Layout, FD: -1}); err != nil {
					t.Error(err)
				}
			}
			send()
			var held Held
			for i := 0; c.read && i < 100; i++ {
				send()
				m, err := agent.Receive()
				for err == nil && held.Take(m) {
					m, err = agent.Receive()
				}
				if err != nil || m.Kind != Layout {
					t.Errorf("after %d messages: %v", i, err)
					break
				}
			}
			for n := 0; c.wait && n == 0; { // until the descriptor is on its way
				n, _ = unix.Poll([]unix.PollFd{{Fd: int32(agent.FD()), Events: unix.POLLIN}}, -1)
			}
			if c.read && held == 0 {
				t.Error("there is nothing to be held")
			}
			agent.Close()
			held.Close()
			cmd.Wait() //nolint:errcheck // by a signal
			w := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !w.Signaled() || w.Signal() != syscall.SIGKILL || !late.Stop() {
				t.Errorf("%v", cmd.ProcessState)
			}
		})
	}
}

func TestHeld(t *testing.T) {
	var first, second [2]int
	for _, p := range []*[2]int{&first, &second} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(p[0])
	}
	var h Held
	if h.Take(&Message{Kind: Layout, FD: -1}) || !h.Take(&Message{Kind: Hold, FD: -1}) || h != 0 {
		t.Error(
			"messages of other kinds are not for it, and one without a descriptor changes nothing")
	}
	h.Take(&Message{Kind: Hold, FD: first[1]})
	h.Take(&Message{Kind: Hold, FD: second[1]})
	if hungUp(first[0]) || !hungUp(second[0]) {
		t.Error("the first descriptor is to be held, a second one not")
	}
	h.Close()
	if !hungUp(first[0]) {
		t.Error("it is still held")
	}
}
