package harness

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Two jobs, whoever has started them, find each other and part (MPI-5.0, 11.9): by programs of tests/hosts/testdata.

// A Meeting is of two jobs of two ranks or more. Each function is the command that starts a program with its arguments as one of them, with variables that its launcher hands on.
type Meeting struct {
	Accepts, Connects func(env []string, words ...string) Command
	Dir               string // that both jobs see
	Server            string // file of a name service, where the jobs share no host
}

// meetingLimit is for two jobs to meet.
const meetingLimit = time.Minute

// both runs the two at a time.
func both(t *testing.T, accepts, connects Command) (x, y Outcome) {
	t.Helper()
	mark := Mark(t)
	var wait sync.WaitGroup
	for _, j := range []struct {
		o *Outcome
		c Command
	}{{&x, accepts}, {&y, connects}} {
		j.c.Limit, j.c.Env = meetingLimit, append(j.c.Env, mark)
		wait.Go(func() { *j.o = Run(t, j.c) })
	}
	wait.Wait()
	NothingLeft(t, mark, 20*time.Second)
	return x, y
}

// Run has them meet at a port and by a name, with messages, collectives and one-sided communication, and each of them die while they talk.
func (m *Meeting) Run(t *testing.T) {
	source := func(name string) string {
		return Compile(t, "meet/"+name, []string{filepath.Join(Root(), "tests/hosts/testdata", name+".c")})
	}
	ports, names := source("ports"), source("names")
	file := func(t *testing.T) string {
		t.Helper()
		dir, err := os.MkdirTemp(m.Dir, "meet-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // it goes with the folder
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "port")
	}
	t.Run("port", func(t *testing.T) {
		f := file(t)
		x, y := both(t, m.Accepts(nil, ports, "accept", f, "3", "-"), m.Connects(nil, ports, "connect", f, "3", "-"))
		if x.Status != 0 || y.Status != 0 || x.Late || y.Late || !strings.HasPrefix(x.Stdout, "accept: 3 times;") || !strings.HasPrefix(y.Stdout, "connect: 3 times;") {
			t.Errorf("the job that accepts:\n%s\nthe one that connects:\n%s", x.Text(), y.Text())
		}
	})
	survives := regexp.MustCompile(`(?m)^(MPI_ERR_PORT|MPIX_ERR_PROC_FAILED|MPIX_ERR_REVOKED) goes on$`)
	t.Run("who accepts dies", func(t *testing.T) {
		f := file(t)
		x, y := both(t, m.Accepts(nil, ports, "accept", f, "2", "die", "3"), m.Connects(nil, ports, "connect", f, "2", "lives", "60"))
		if x.Status == 0 || x.Late || y.Status != 0 || y.Late || !survives.MatchString(y.Stdout) {
			t.Errorf("the job that accepts:\n%s\nthe one that connects:\n%s", x.Text(), y.Text())
		}
	})
	t.Run("who connects dies", func(t *testing.T) {
		f := file(t)
		x, y := both(t, m.Accepts(nil, ports, "accept", f, "2", "lives", "60"), m.Connects(nil, ports, "connect", f, "2", "die", "4"))
		if y.Status == 0 || y.Late || x.Status != 0 || x.Late || !survives.MatchString(x.Stdout) {
			t.Errorf("the job that accepts:\n%s\nthe one that connects:\n%s", x.Text(), y.Text())
		}
	})
	// By the variable that names the service for the job, and by the info key.
	t.Run("name", func(t *testing.T) { m.byName(t, names, file(t), true) })
	if m.Server != "" {
		t.Run("name by the info key", func(t *testing.T) { m.byName(t, names, file(t), false) })
	}
}

// byName has them meet by a name. The name is taken back at the end.
func (m *Meeting) byName(t *testing.T, program, ready string, variable bool) {
	t.Helper()
	var env, key []string
	if m.Server != "" && variable {
		env = []string{"SPX_NAME_SERVER=" + m.Server}
	} else if m.Server != "" {
		key = []string{m.Server}
	}
	mark := Mark(t)
	service := filepath.Base(filepath.Dir(ready))
	keeps := m.Accepts(env, append([]string{program, "keep", service, ready, "1"}, key...)...)
	finds := m.Connects(env, append([]string{program, "find", service, "4711"}, key...)...)
	keeps.Limit, finds.Limit = meetingLimit, meetingLimit
	keeps.Env, finds.Env = append(keeps.Env, mark), append(finds.Env, mark)
	var x, y Outcome
	var wait sync.WaitGroup
	wait.Go(func() { x = Run(t, keeps) })
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) { // until it is published
		if _, err := os.Stat(ready); err == nil {
			y = Run(t, finds)
			break
		}
		if time.Since(began) > Patience(30*time.Second) {
			break
		}
	}
	os.WriteFile(ready+".end", nil, 0o666) //nolint:errcheck // the job ends at its limit then
	wait.Wait()
	NothingLeft(t, mark, 20*time.Second)
	wants := func(o Outcome, lines ...string) {
		for _, line := range lines {
			if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, line+"\n") {
				t.Errorf("no %q\nthe job that publishes:\n%s\nthe one that looks up:\n%s", line, x.Text(), y.Text())
			}
		}
	}
	wants(x, "published: MPI_SUCCESS ", "received 4711", "taken back: MPI_SUCCESS ")
	wants(y, "found: MPI_SUCCESS ", "connected: MPI_SUCCESS ")
}

// ServeNames runs a name service on a host (spxctl names serve) until it is ended, or the test. on is what runs a command there; the answer is the line that it prints.
func ServeNames(t testing.TB, on []string, file string) (line string) {
	t.Helper()
	var stderr bytes.Buffer
	words := append(on[:len(on):len(on)], filepath.Join(Build(t), "bin/spxctl"), "names", "serve", file)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second // what runs it may leave it to the end of its host
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() }) //nolint:errcheck // it may have ended
	if line, err = bufio.NewReader(out).ReadString('\n'); !strings.Contains(line, "names are served at ") {
		t.Fatalf("%q, %v\n%s", line, err, &stderr)
	}
	return line
}
