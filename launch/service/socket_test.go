package service

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// served makes a job's socket, and returns both ends of a connection with it.
func served(t *testing.T) (client, agent *Conn) {
	t.Helper()
	job := rand.Uint64()
	l, err := Listen(job)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	if client, err = Dial(job); err != nil {
		t.Fatal(err)
	}
	if agent, err = Take(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		agent.Close()
	})
	return client, agent
}

// within fails if something is not done in time.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s takes longer than 20 s", what)
	}
}

// An agent does not wait for a client that does not read. When it reads after all it gets
// everything in order; and one that leaves too much is dropped.
func TestSendDoesNotWait(t *testing.T) {
	client, agent := served(t)
	const n = 40
	text := strings.Repeat("x", 100<<10)
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	within(t, "to send what is not read", func() {
		for i := range n {
			m := &Message{Kind: Lookup, Number: uint64(i), Text: text, FD: -1}
			if i == n-1 {
				m.FD = pipe[1]
			}
			if err := agent.Send(m); err != nil {
				t.Error(err)
			}
		}
	})
	unix.Close(pipe[1]) // it is on its way
	agent.Close()       // what was sent still arrives
	within(t, "to read it", func() {
		for i := range n {
			m, err := client.Receive()
			if err != nil || m.Number != uint64(i) || m.Text != text || (m.FD >= 0) != (i == n-1) {
				t.Fatalf("message %d: %v", i, err)
			}
			if m.FD >= 0 {
				if _, err := unix.Write(m.FD, []byte("through")); err != nil {
					t.Error(err)
				}
				unix.Close(m.FD)
			}
		}
		if _, err := client.Receive(); err == nil {
			t.Error("more comes than was sent")
		}
	})
	got := make([]byte, 10)
	if k, err := unix.Read(pipe[0], got); err != nil || string(got[:k]) != "through" {
		t.Errorf("%q, %v", got[:k], err)
	}
	unix.Close(pipe[0])
}

func TestUnreadIsDropped(t *testing.T) {
	client, agent := served(t)
	text := strings.Repeat("x", 1<<20)
	within(t, "to drop it", func() {
		for range 2 * mostQueued >> 20 {
			if err := agent.Send(&Message{Kind: Lookup, Text: text, FD: -1}); err == errUnread {
				return
			} else if err != nil {
				t.Error(err)
			}
		}
		t.Errorf("%d bytes wait for a client that reads nothing", 2*mostQueued)
	})
	within(t, "to hang up", func() {
		for {
			if _, err := client.Receive(); err != nil {
				return
			}
		}
	})
	if err := agent.Send(&Message{Kind: Lookup, FD: -1}); err == nil {
		t.Error("it is sent more")
	}
}

// A process that has no descriptor left for another connection takes it when there is one again.
// settleFiles has files of earlier tests that nothing refers to closed now, and none until the test
// has ended: their numbers would become free in its middle.
func settleFiles(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, done)
	for waits := true; waits; {
		runtime.GC()
		select {
		case <-done:
			waits = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	was := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(was) })
}

func TestTakeWithoutDescriptors(t *testing.T) {
	job := rand.Uint64()
	l, err := Listen(job)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	client, err := Dial(job)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	settleFiles(t)
	least, err := unix.Dup(l) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(least)
	none := old
	none.Cur = uint64(least)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	var held []int // a number below may have become free meanwhile
	for fd, err := unix.Dup(l); err == nil; fd, err = unix.Dup(l) {
		held = append(held, fd)
	}
	restore := func() {
		unix.Setrlimit(unix.RLIMIT_NOFILE, &old) //nolint:errcheck // it was possible before
		for _, fd := range held {
			unix.Close(fd)
		}
		held = nil
	}
	defer restore()
	type taken struct {
		conn *Conn
		err  error
	}
	result := make(chan taken, 1)
	go func() {
		conn, err := Take(l)
		result <- taken{conn, err}
	}()
	select {
	case r := <-result:
		restore()
		t.Fatalf("without descriptors: %v, %v", r.conn, r.err)
	case <-time.After(20 * time.Millisecond): // it tries again and again
	}
	restore()
	within(t, "to take the connection", func() {
		r := <-result
		if r.err != nil {
			t.Error(r.err)
			return
		}
		r.conn.Close()
	})
}

// Descriptors that were not asked for are closed, and a message that announces much takes no memory
// before it comes.
func TestStrayDescriptors(t *testing.T) {
	client, agent := served(t)
	before := descriptors(t)
	b := (&Message{Kind: Lookup, FD: -1}).Encode()
	if _, err := unix.SendmsgN(client.FD(), b[:6], unix.UnixRights(0, 1, 2), nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.SendmsgN(client.FD(), b[6:], unix.UnixRights(0, 1), nil, 0); err != nil {
		t.Fatal(err)
	}
	m, err := agent.Receive()
	if err != nil {
		t.Fatal(err)
	}
	if m.FD >= 0 {
		unix.Close(m.FD)
	}
	if now := descriptors(t); now != before {
		t.Errorf("%d descriptors, %d before", now, before)
	}

	if _, err := unix.SendmsgN(client.FD(),
		append(binary.LittleEndian.AppendUint32(nil, maxMessage), 1, 2, 3), unix.UnixRights(0), nil,
		0); err != nil {
		t.Fatal(err)
	}
	client.Hang()
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	if _, err := agent.Receive(); err == nil {
		t.Error("three bytes are a message")
	}
	runtime.ReadMemStats(&end)
	if got := end.TotalAlloc - start.TotalAlloc; got > maxMessage/8 {
		t.Errorf("%d bytes were allocated for three", got)
	}
	if now := descriptors(t); now != before {
		t.Errorf("after a broken message: %d descriptors, %d before", now, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A long message comes whole, in whatever pieces.
func TestLongMessage(t *testing.T) {
	client, agent := served(t)
	m := &Message{Kind: Lookup, Text: string(bytes.Repeat([]byte("0123456789"), 300000)),
		Slots: slices.Repeat([]uint32{7}, 1000), FD: -1}
	go client.Send(m) //nolint:errcheck // what is received counts
	within(t, "a long message", func() {
		got, err := agent.Receive()
		if err != nil || got.Text != m.Text || len(got.Slots) != 1000 {
			t.Errorf("%v", err)
		}
	})
}

// A socket of another user that has the name of a job's agent is not taken for it, and gets
// nothing.
func TestAnotherUsersSocket(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another user needs root")
	}
	job := rand.Uint64()
	made := make(chan int)
	go func() {
		// for good: the thread is another user's, and ends with this goroutine
		runtime.LockOSThread()
		l := -1
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534,
			65534); errno == 0 {
			l, _ = Listen(job) // -1 if that fails
		}
		made <- l
	}()
	l := <-made
	if l < 0 {
		t.Fatal("there is no other user's socket")
	}
	defer unix.Close(l)
	if conn, err := Dial(job); err == nil ||
		!strings.Contains(err.Error(), "another user's socket") {
		t.Errorf("%v, %v", conn, err)
	}
	fd, _, err := unix.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if n, err := unix.Read(fd, make([]byte, 100)); n != 0 || err != nil {
		t.Errorf("it was sent %d bytes (%v)", n, err)
	}
}
