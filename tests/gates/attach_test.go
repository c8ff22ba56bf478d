package gates

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Clients that take spxrun's place: go test ./tests/gates -run TestAttach

// A clientOf is spxrun --attach.
type clientOf struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   io.ReadCloser
	said  bytes.Buffer // standard error
	begun []byte       // what was read of its output
}

// attach begins one.
func attach(t *testing.T, args ...string) *clientOf {
	t.Helper()
	c := &clientOf{t: t, cmd: exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), append(args[:len(args)-1:len(args)-1], "--attach", args[len(args)-1])...)}
	c.cmd.Stderr = &c.said
	var err error
	if c.out, err = c.cmd.StdoutPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := harness.AfterFunc(time.Minute, func() { c.cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	t.Cleanup(func() {
		late.Stop()
		c.cmd.Process.Kill() //nolint:errcheck // it has ended then
		c.cmd.Wait()         //nolint:errcheck // likewise
	})
	return c
}

// reads waits until it has printed a text.
func (c *clientOf) reads(text string) {
	c.t.Helper()
	b := make([]byte, 64<<10)
	for !bytes.Contains(c.begun, []byte(text)) {
		n, err := c.out.Read(b)
		if c.begun = append(c.begun, b[:n]...); err != nil {
			c.t.Fatalf("no %q in\n%s\nstandard error:\n%s", text, c.begun, &c.said)
		}
	}
}

// ends checks all that it has printed, and its exit status; a negative one is a signal's number.
func (c *clientOf) ends(printed string, status int) {
	c.t.Helper()
	rest, _ := io.ReadAll(c.out)
	c.cmd.Wait() //nolint:errcheck // its status is looked at
	got := c.cmd.ProcessState.ExitCode()
	if w := c.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		got = -int(w.Signal())
	}
	if all := string(append(c.begun, rest...)); all != printed || got != status {
		c.t.Errorf("printed %q, want %q; exit status %d, want %d\nstandard error:\n%s", all, printed, got, status, &c.said)
	}
}

// lines makes a pipe with a name for lines to the job, of which the test holds both ends.
func lines(t *testing.T) (name string, say func(line string)) {
	name = pipe(t)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return name, func(line string) { fmt.Fprintln(f, line) } //nolint:errcheck // it is this process's own
}

// echoes prints each line that it gets, until one is a number, which becomes its exit status.
const echoes = `trap 'echo USR1' USR1; echo begun; exec 3<"$0"; while :; do read line <&3 || { [ -e "$0" ] || exit 1; continue; }; case $line in [0-9]*) exit $line;; esac; echo "$line"; done`

// Clients of a detached job: each prints what was written since the one before was there; several at once print the same; signals that would end spxrun's job end them alone, others are handed on.
func TestAttachDetached(t *testing.T) {
	fifo, say := lines(t)
	d, o := detach(t, nil, "-n", "1", "sh", "-c", echoes, fifo)
	d.runs(o)
	first := attach(t, d.name)
	first.reads("begun\n")
	say("one")
	first.reads("one\n")
	first.cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // seen below
	first.ends("begun\none\n", 130)
	if want := "job " + d.name + " goes on; spxrun --attach " + d.name; !strings.Contains(first.said.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, &first.said)
	}
	say("two")
	second := attach(t, d.name[:6])
	second.reads("two\n")
	whole := attach(t, "--since", "start", d.name)
	whole.reads("two\n")
	say("three")
	second.reads("three\n")
	whole.cmd.Process.Signal(syscall.SIGUSR1) //nolint:errcheck // seen below
	second.reads("USR1\n")
	second.cmd.Process.Kill() //nolint:errcheck // seen below
	second.ends("two\nthree\nUSR1\n", -9)
	say("7")
	whole.ends("begun\none\ntwo\nthree\nUSR1\n"+exited(t, waitFor(t, d.out, "exited with status 7")), 7)
	d.ends("exit status 7\n")
	gone := attach(t, d.name)
	gone.ends("", 1)
}

// A client that is ended by a signal as soon as it has printed something leaves the next one to begin right after that.
func TestAttachOneAfterTheOther(t *testing.T) {
	fifo, say := lines(t)
	d, o := detach(t, nil, "-n", "1", "sh", "-c", echoes, fifo)
	d.runs(o)
	line := "begun\n"
	for k := range 40 {
		c := attach(t, d.name)
		c.reads(line)
		c.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // seen below
		c.ends(line, 143)
		line = fmt.Sprintf("line %d\n", k)
		say(strings.TrimSuffix(line, "\n"))
	}
	last := attach(t, d.name)
	last.reads(line)
	say("7")
	last.ends(line+exited(t, waitFor(t, d.out, "exited with status 7")), 7)
	d.ends("exit status 7\n")
}

// exited is what the job's file says of the exit status of its rank.
func exited(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte("spxrun: rank 0 "))
	if at < 0 {
		t.Fatalf("no word of the rank in\n%s", text)
	}
	line, _, _ := bytes.Cut(text[at:], []byte("\n"))
	return string(line) + "\n"
}

// A client that does not read holds up neither the job nor one that does, and the agent keeps nothing for it.
func TestAttachUnread(t *testing.T) {
	const bytesOfJob = 48 << 20
	fifo, end := pipe(t), pipe(t) // two: who writes into the first may have it open yet when the job comes to wait for its end
	d, o := detach(t, nil, "-n", "1", "sh", "-c", fmt.Sprintf(`read line <"$0"; head -c %d /dev/zero | tr '\0' '\n'; read line <"$1"`, bytesOfJob), fifo, end)
	d.runs(o)
	unread, reader := attach(t, "--since", "start", d.name), attach(t, "--since", "start", d.name) // either may be there first
	letGo(t, fifo)
	if n, err := io.CopyN(io.Discard, reader.out, bytesOfJob); err != nil {
		t.Fatalf("%d bytes, %v\n%s", n, err, &reader.said)
	}
	for _, pid := range agents(0, d.mark) {
		if kB := memory(t, pid); kB > bytesOfJob>>11 {
			t.Errorf("the agent has %d kB", kB)
		}
	}
	letGo(t, end)
	reader.ends("", 0)
	d.ends("exit status 0\n")
	if n, err := io.Copy(io.Discard, unread.out); n != bytesOfJob || err != nil {
		t.Errorf("what was not read at first: %d bytes, %v", n, err)
	}
	unread.ends("", 0)
}

// memory is what a process has of it, in kB.
func memory(t *testing.T, pid int) (kB int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nRssAnon:")
	fmt.Sscan(rest, &kB) //nolint:errcheck // 0 then
	if kB == 0 {
		t.Errorf("process %d tells nothing of its memory", pid)
	}
	return kB
}

// The spxrun of a job that outlives it is killed, with or without who reads its output: a client has its place. While spxrun is there, it has not.
func TestAttachLost(t *testing.T) {
	for i := range 4 {
		closed, system := i%2 == 1, i >= 2
		t.Run(fmt.Sprintf("closed=%v,system=%v", closed, system), func(t *testing.T) {
			fifo, say := lines(t)
			mark, dir := harness.Mark(t), t.TempDir()
			job := []string{"--with-ft", "-n", "1", "sh", "-c", echoes, fifo}
			if system {
				job = []string{"--system", filepath.Join(dir, "system.toml")}
				text := fmt.Sprintf("[[cluster]]\nname = \"only\"\nprogram = \"sh\"\nargs = [\"-c\", %q, %q]\nranks = 1\n", echoes, fifo)
				if err := os.WriteFile(job[1], []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), job...)
			cmd.Env, cmd.Dir, cmd.Stdout = append(os.Environ(), mark), dir, w
			err = cmd.Start()
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait() //nolint:errcheck // it was killed
			read(t, r, "begun\n")
			name := nameOf(t, fifo)
			early := attach(t, name)
			early.ends("", 1)
			if want := fmt.Sprintf("has its spxrun (process %d on host ", cmd.Process.Pid); !strings.Contains(early.said.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, &early.said)
			}
			cmd.Process.Kill() //nolint:errcheck // seen below
			if closed {
				r.Close()
			}
			say("one")
			if !closed {
				read(t, r, "one\n") // as before
			}
			file := waitFor(t, filepath.Join(dir, "spx-"+name+".out"), "goes on without it")
			if closed {
				waitFor(t, file, "one\n") // there was no other place
			}
			c := attach(t, name)
			c.reads("goes on without it")
			say("two")
			c.reads("two\n")
			say("3")
			text, _, _ := bytes.Cut(c.begun, []byte("two\n"))
			c.ends(string(text)+"two\n"+exited(t, waitFor(t, file, "exited with status 3")), 3)
			harness.NothingLeft(t, mark, 20*time.Second)
			if text, _ := os.ReadFile(file); !bytes.HasSuffix(text, []byte("spxrun: job "+name+" has ended, exit status 3\n")) {
				t.Errorf("the last line of\n%s", text)
			}
		})
	}
}

// waitFor waits until a file has a text.
func waitFor(t *testing.T, file, text string) string {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if got, _ := os.ReadFile(file); bytes.Contains(got, []byte(text)) {
			return file
		} else if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatalf("no %q in\n%s", text, got)
		}
	}
}

// read reads until a text has come.
func read(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var got []byte
	for b := make([]byte, 4096); !bytes.Contains(got, []byte(text)); {
		n, err := r.Read(b)
		if got = append(got, b[:n]...); err != nil {
			t.Fatalf("no %q in %q: %v", text, got, err)
		}
	}
}

// nameOf is the job whose program's arguments have a word.
func nameOf(t *testing.T, word string) string {
	t.Helper()
	o := harness.Run(t, harness.Command{Args: []string{filepath.Join(harness.Build(t), "bin/spxctl"), "jobs"}})
	for line := range strings.Lines(o.Stdout) {
		if strings.Contains(line, word) {
			return line[:16]
		}
	}
	t.Fatalf("no job with %s\n%s", word, o.Text())
	return ""
}
