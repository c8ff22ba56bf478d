package attack

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// Other processes of this host: those of another user, which must get nowhere, and those of the same user that behave badly towards an agent.

// stranger is the number of a user that owns nothing.
const stranger = 65534

// asStranger runs something on a thread that belongs to another user, which is not used for anything else any more.
func asStranger(t *testing.T, do func()) {
	t.Helper()
	if err := <-besideStranger(t, do); err != nil {
		t.Fatal(err)
	}
}

// besideStranger begins to run do as another user; the channel has the error of becoming that user, or is closed at the end.
func besideStranger(t *testing.T, do func()) <-chan error {
	t.Helper()
	needStranger(t)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, stranger, stranger, stranger)
		if errno != 0 {
			done <- fmt.Errorf("setresuid: %w", errno)
			return
		}
		do()
		close(done)
	}()
	return done
}

func needStranger(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("another user needs root")
	}
}

// localJob starts a job on this host, and returns the number under which its agent is called, too.
func localJob(t *testing.T) (p *process, list []target, counters string, job uint64) {
	t.Helper()
	program := harness.Compile(t, "attack/target", []string{"testdata/target.c"})
	s := scene{job: harness.Command{Args: harness.Spxrun(t, "2", program), Env: []string{"SPX_TRANSPORTS=tcp"}}}
	s.job.Args = slices.Clone(s.job.Args)
	p, list, counters = s.beginWith(t, 2)
	return p, list, counters, binary.LittleEndian.Uint64(list[0].job[:8])
}

// describe asks a job's agent about it, and takes no answer in time for none.
func describe(t *testing.T, job uint64) {
	t.Helper()
	conn, err := service.Dial(job)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	late := harness.AfterFunc(20*time.Second, conn.Hang)
	defer late.Stop()
	if err := conn.Send(&service.Message{Kind: service.Describe, FD: -1}); err != nil {
		t.Error(err)
		return
	}
	if m, err := conn.Receive(); err != nil || m.Class != 0 {
		t.Errorf("the agent does not answer: %+v, %v", m, err)
	}
}

func agentOf(t *testing.T, job uint64) int {
	t.Helper()
	conn, err := service.Dial(job)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pid, _, err := conn.Peer()
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// raw is a socket that is connected with an agent, without its protocol.
func raw(job uint64) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, &unix.SockaddrUnix{Name: service.Address(job)}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Clients of an agent that do not read, that say half of something, that are too many, and each process of a job stopped for a moment: the agent answers others all
// the time, and the job computes what it should.
func TestBadClients(t *testing.T) {
	p, list, counters, job := localJob(t)
	t.Run("answers unread", func(t *testing.T) {
		fd, err := raw(job)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		question := (&service.Message{Kind: service.Describe, FD: -1}).Encode()
		limit := time.Now().Add(10 * time.Second)
		for n := 0; n < 20000 && time.Now().Before(limit); { // far more answers than a socket holds
			switch _, err := unix.SendmsgN(fd, question, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err {
			case nil:
				n++
			case unix.EAGAIN:
				unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 100) //nolint:errcheck // tried again
			default: // it has been dropped
				n = 20000
			}
		}
		describe(t, job)
		p.exchange()
	})
	t.Run("half questions", func(t *testing.T) {
		question := (&service.Message{Kind: service.Describe, FD: -1}).Encode()
		huge := []byte{0, 0, 0, 4, byte(service.Describe)} // 64 MiB are to come
		for i := range 60 {
			fd, err := raw(job)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			text := question[:1+i%(len(question)-1)]
			if i%2 == 0 {
				text = huge
			}
			if _, err := unix.Write(fd, text); err != nil {
				t.Fatal(err)
			}
		}
		describe(t, job)
		p.exchange()
	})
	t.Run("no descriptors", func(t *testing.T) {
		agent := agentOf(t, job)
		var old unix.Rlimit
		if err := unix.Prlimit(agent, unix.RLIMIT_NOFILE, nil, &old); err != nil {
			t.Fatal(err)
		}
		few := unix.Rlimit{Cur: 100, Max: old.Max}
		if err := unix.Prlimit(agent, unix.RLIMIT_NOFILE, &few, nil); err != nil {
			t.Fatal(err)
		}
		defer unix.Prlimit(agent, unix.RLIMIT_NOFILE, &old, nil) //nolint:errcheck // it was possible above
		var open []int
		for range 150 {
			fd, err := raw(job)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, fd)
		}
		until(t, "connections to the agent as many as it may have", func() bool {
			files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", agent))
			return len(files) >= int(few.Cur)-2
		})
		p.exchange()
		for _, fd := range open {
			unix.Close(fd)
		}
		describe(t, job)
		p.exchange()
	})
	t.Run("stopped", func(t *testing.T) {
		for _, pid := range []int{p.cmd.Process.Pid, agentOf(t, job), list[0].pid, list[1].pid} {
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			until(t, "stop of a process", func() bool {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return strings.Contains(string(text), ") T ")
			})
			unix.Kill(pid, unix.SIGCONT) //nolint:errcheck // it is there
			describe(t, job)
			p.exchange()
		}
	})
	p.finish(counters)
}

// until waits for something.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatalf("no %s", what)
		}
	}
}

// abstract are the abstract names of sockets on this host that begin so.
func abstract(prefix string) (names []string) {
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "@"+prefix); ok {
			names = append(names, prefix+name)
		}
	}
	return names
}

// A process of another user on the host of a job: it gets no answer of the agent, no memory, no descriptor of a process, and nothing that it sends to the
// sockets that it can see disturbs the job.
func TestOtherUser(t *testing.T) {
	needStranger(t)
	p, list, counters, job := localJob(t)
	agent := agentOf(t, job)
	var bells []string
	until(t, "socket spx-bell-... of each process", func() bool {
		bells = abstract("spx-bell-")
		return len(bells) >= len(list)
	})
	asStranger(t, func() {
		fd, err := raw(job)
		if err != nil {
			t.Error(err)
			return
		}
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20})                       //nolint:errcheck // it is a socket
		unix.SendmsgN(fd, (&service.Message{Kind: service.Describe, FD: -1}).Encode(), nil, nil, unix.MSG_NOSIGNAL) //nolint:errcheck // it may have hung up
		if n, err := unix.Read(fd, make([]byte, 100)); n > 0 || err == unix.EAGAIN {
			t.Errorf("the agent answers another user with %d bytes (%v)", n, err)
		}
		unix.Close(fd)
		for _, pid := range []int{p.cmd.Process.Pid, agent, list[0].pid} {
			for _, file := range []string{"mem", "environ", "fd/62", "fd/60", "maps"} {
				if fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", pid, file), unix.O_RDONLY, 0); err == nil {
					if n, _ := unix.Read(fd, make([]byte, 1)); n > 0 || file[:2] == "fd" {
						t.Errorf("another user opens %s of process %d", file, pid)
					}
					unix.Close(fd)
				}
			}
			if err := unix.Kill(pid, 0); err == nil {
				t.Errorf("another user can signal process %d", pid)
			}
		}
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		if n, err := unix.ProcessVMReadv(list[0].pid, local, []unix.RemoteIovec{{Base: 4096, Len: 8}}, 0); err != unix.EPERM {
			t.Errorf("process_vm_readv by another user: %d, %v", n, err)
		}
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(s)
		for i := range 2000 {
			for _, name := range bells {
				unix.Sendto(s, make([]byte, i%300), unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: "@" + name}) //nolint:errcheck // a full queue is what is wanted
			}
		}
	})
	p.exchange()
	p.finish(counters)
}

// A process of another user takes names before those of a job can: it knows the job's number as soon as there is an agent.
func TestNamesTaken(t *testing.T) {
	needStranger(t)
	program := harness.Compile(t, "attack/hello", []string{"testdata/hello.c"})
	// The wrapper says the job's number before MPI_Init, and waits.
	p := start(t, harness.Command{Args: harness.Spxrun(t, "1", "/bin/sh", "-c", `echo "$SPX_JOB"; read go; exec "$0"`, program), Env: []string{"SPX_TRANSPORTS=tcp"}})
	id, err := hex.DecodeString(p.line())
	if err != nil || len(id) != 16 {
		t.Fatalf("%x, %v", id, err)
	}
	number := binary.LittleEndian.Uint64(id)
	var taken []int
	asStranger(t, func() {
		for i := range 8 {
			for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
				for _, name := range []string{"@spx-%016x-%d", "@spx-bell-%016x-%d", "@spx-bell-%016x%d"} {
					fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
					if err == nil {
						err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf(name, number, i)})
					}
					if err != nil {
						t.Error(err)
					}
					taken = append(taken, fd)
				}
			}
		}
	})
	fmt.Fprintln(p.in, "go")
	if line := p.line(); line != "0 of 1" {
		t.Errorf("the job says %q", line)
	}
	for _, fd := range taken {
		unix.Close(fd)
	}
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A process of another user has the name of an agent: nothing is sent there, and nothing that it says is shown.
func TestFalseAgent(t *testing.T) {
	needStranger(t)
	job := rand.Uint64()
	about, err := json.Marshal(service.About{Job: fmt.Sprintf("%016x", job), Procs: 7, Program: "\x1b]0;taken\a\x1b[2Jharmless"})
	if err != nil {
		t.Fatal(err)
	}
	ready, heard := make(chan struct{}), make(chan int, 100)
	ended := besideStranger(t, func() {
		l, err := service.Listen(job)
		close(ready)
		if err != nil {
			t.Error(err)
			return
		}
		for {
			fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
			if err != nil {
				return
			}
			n, _ := unix.Read(fd, make([]byte, 1000))
			heard <- n
			answer := service.Message{Kind: service.Describe, Text: string(about), FD: -1}
			unix.SendmsgN(fd, answer.Encode(), nil, nil, unix.MSG_NOSIGNAL) //nolint:errcheck // it may have hung up
			unix.Close(fd)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	if conn, err := service.Dial(job); err == nil {
		conn.Send(&service.Message{Kind: service.Spawn, Programs: []service.Program{{Argv: []string{"x"}, Env: []string{"SECRET=1"}}}, FD: -1}) //nolint:errcheck // what is heard counts
		conn.Close()
		t.Error("an agent of another user is taken for the job's")
	} else if !strings.Contains(err.Error(), "another user's socket") {
		t.Error(err)
	}
	if n := <-heard; n != 0 {
		t.Errorf("another user was sent %d bytes", n)
	}
	for _, args := range [][]string{{"jobs"}, {"jobs", "-l"}, {"jobs", "--json"}} {
		o := harness.Run(t, harness.Command{Args: append([]string{filepath.Join(harness.Build(t), "bin/spxctl")}, args...)})
		if o.Status != 0 || strings.Contains(o.Stdout, "harmless") || strings.Contains(o.Stdout, "\x1b") {
			t.Errorf("spxctl %v, status %d: %q", args, o.Status, o.Stdout)
		}
	}
}

// A job's own program may have a name with commands to a terminal in it.
func TestTerminalCommands(t *testing.T) {
	dir := t.TempDir()
	program := harness.Compile(t, "attack/hello", []string{"testdata/hello.c"})
	name := filepath.Join(dir, "a\x1b]0;title\a\x1b[2Jz")
	if err := os.Symlink(program, name); err != nil {
		t.Fatal(err)
	}
	p := start(t, harness.Command{Args: harness.Spxrun(t, "1", name, "stay")})
	if line := p.line(); line != "0 of 1" {
		t.Fatalf("%q", line)
	}
	for _, args := range [][]string{{"jobs", "-l"}, {"ps", "."}, {"top", "--once", "."}} {
		cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxctl"), args...)
		out, _ := cmd.CombinedOutput() // its status does not count: there may be more than one job here
		if strings.Contains(string(out), "\x1b]0;") || strings.Contains(string(out), "\a") || strings.Contains(string(out), "\x1b[2Jz") {
			t.Errorf("spxctl %v: %q", args, out)
		}
	}
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A program with more rights than its user does not do what that user's variables say.
func TestSetIDProgram(t *testing.T) {
	needStranger(t)
	dir, err := os.MkdirTemp("", "spx-set-id-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	lib := filepath.Join(dir, "lib") // the loader takes no folder from the environment for such a program, and the build's may be closed to others
	program := harness.Compile(t, "attack/set-id", []string{"testdata/hello.c"}, "-Wl,-rpath,"+lib, "-Wl,--disable-new-dtags")
	libraries, err := filepath.Glob(filepath.Join(harness.Build(t), "lib/lib*.so*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range libraries {
		copyFile(t, f, filepath.Join(lib, filepath.Base(f)), 0o755)
	}
	own := filepath.Join(dir, "program")
	copyFile(t, program, own, 0o755)
	traces := filepath.Join(dir, "traces")
	if err := os.Mkdir(traces, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, lib, traces} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		mode os.FileMode
		made bool
	}{{0o755, true}, {0o755 | os.ModeSetuid, false}} {
		if err := os.Chmod(own, c.mode); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(own)
		cmd.Dir = dir
		cmd.Env = []string{"SPX_TRACE=" + traces, "SPX_TRACE_ROOM=1000", "PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=" + lib}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "0 of 1\n" {
			t.Fatalf("mode %v: %v, %q", c.mode, err, out)
		}
		files, err := os.ReadDir(traces)
		if err != nil || (len(files) > 0) != c.made {
			t.Errorf("mode %v: %d files where SPX_TRACE says (%v)", c.mode, len(files), err)
		}
		for _, f := range files {
			os.Remove(filepath.Join(traces, f.Name())) //nolint:errcheck // the next comparison would tell
		}
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
