package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// servesNames runs a name service on a host until it is ended, or the test.
func (b *bed) servesNames(t *testing.T, host int, file string) {
	t.Helper()
	if line := harness.ServeNames(t, b.On(host), file); !strings.Contains(line, " 10.77.0.") {
		t.Fatalf("%q", line)
	}
}

// dies kills what serves names on a host.
func (b *bed) dies(t *testing.T, host int) {
	t.Helper()
	pids := b.findOn(host, "spxctl")
	if len(pids) != 1 {
		t.Fatalf("%d processes serve names", len(pids))
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); len(b.findOn(host, "spxctl")) > 0; time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > harness.Patience(10*time.Second) {
			t.Fatal("it does not end")
		}
	}
}

// keeper is a job that has published a name.
type keeper struct {
	t    *testing.T
	file string
	done sync.WaitGroup
	out  harness.Outcome
}

// keepsName starts a job that publishes a name, and returns when it has.
func (b *bed) keepsName(t *testing.T, c harness.Command, file string) *keeper {
	t.Helper()
	k := &keeper{t: t, file: file}
	c.Limit = 2 * time.Minute
	k.done.Go(func() { k.out = harness.Run(t, c) })
	t.Cleanup(func() { k.ends() })
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return k
		}
		if time.Since(began) > harness.Patience(30*time.Second) {
			k.ends()
			t.Fatalf("it has published nothing\n%s", k.out.Text())
		}
	}
}

// ends has the job end.
func (k *keeper) ends() harness.Outcome {
	os.WriteFile(k.file+".end", nil, 0o666) //nolint:errcheck // the job ends at its limit then
	k.done.Wait()
	return k.out
}

// Two jobs that share no host find each other by a name (MPI-5.0, 11.9.4) that one has published, if both are started with the file of a name service, which runs on yet another host. That dies, and comes again: it has the name again,
// since the job that has it says so. While it is gone a lookup fails after a while, and says what to do. A name is one job's alone; it ends when it is taken back.
func TestNamesBetweenJobs(t *testing.T) {
	b := newBed(t, 5)
	names, dir := program(t, "names"), b.Dir()
	file, ready := filepath.Join(dir, "server"), filepath.Join(dir, "ready")
	others := func(server bool, args ...string) harness.Outcome {
		t.Helper()
		options := []string{}
		if server {
			options = []string{"--name-server", file}
		}
		c := b.spxrunOn(3, []int{3, 4}, append(append(options, names), args...)...)
		c.Limit = time.Minute
		return harness.Run(t, c)
	}
	finds := func(what string, server bool, want ...string) {
		t.Helper()
		o := others(server, "find", "ocean", "4711")
		for _, w := range want {
			if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, w) {
				t.Errorf("%s: no %q\n%s", what, w, o.Text())
			}
		}
	}
	if o := others(true, "find", "ocean", "1"); o.Status == 0 || !strings.Contains(o.Stderr, "spxctl names serve "+file) {
		t.Errorf("there is no file\n%s", o.Text())
	}
	if o := others(false, "find", "ocean", "1", file); o.Status != 0 || !strings.Contains(o.Stdout, "found: MPI_ERR_INFO_VALUE ") || !strings.Contains(o.Stdout, "name_server: open "+file) || !strings.Contains(o.Stdout, "(spxctl names serve "+file+")") {
		t.Errorf("the info key names no file\n%s", o.Text())
	}
	b.servesNames(t, 5, file)
	finds("before", true, "found: MPI_ERR_NAME", `service "ocean" is not published: not by this job, nor by another one on this host, nor by one that uses the name service at 10.77.0.5:`)

	c := b.spxrunOn(1, []int{1, 2}, "--name-server", file, names, "keep", "ocean", ready, "2")
	k := b.keepsName(t, c, ready)
	finds("there", true, "found: MPI_SUCCESS", "connected: MPI_SUCCESS")
	finds("without the service", false, "found: MPI_ERR_NAME", "when both are started with --name-server (spxctl names serve)")
	if o := others(true, "claim", "ocean"); !strings.Contains(o.Stdout, "published: MPI_ERR_SERVICE") || !strings.Contains(o.Stdout, `service "ocean" is published already, by job `) || strings.Contains(o.Stdout, "#") {
		t.Errorf("a name that another job has\n%s", o.Text())
	}
	if text := b.ctlOn(t, 4, "names", "list", file); !strings.Contains(text, `"ocean"  job `) || strings.Contains(text, "#") {
		t.Error(text)
	}
	b.dies(t, 5)
	finds("while it is gone", true, "found: MPI_ERR_NAME", "the name service at 10.77.0.5:", "does not answer", "has it ended (spxctl names serve "+file+")")
	b.servesNames(t, 5, file)
	finds("it has come again", true, "found: MPI_SUCCESS", "connected: MPI_SUCCESS")
	o := k.ends()
	if o.Status != 0 || o.Late || o.Stdout != "published: MPI_SUCCESS \nreceived 4711\nreceived 4711\ntaken back: MPI_SUCCESS \n" {
		t.Errorf("%s", o.Text())
	}
	for _, line := range []string{"published names of this job are not found by jobs on other hosts any more", "has the published names of this job again"} {
		if strings.Count(o.Stderr, line) != 1 {
			t.Errorf("not one line %q\n%s", line, o.Text())
		}
	}
	finds("after", true, "found: MPI_ERR_NAME")
}

// A job that ends without taking its names back has them no more, at once: its agent says so. And the agent that decides next when a host is lost holds the names of the processes that are left.
func TestNamesOutliveAndEnd(t *testing.T) {
	b := newBed(t, 5)
	names, dir := program(t, "names"), b.Dir()
	file := filepath.Join(dir, "server")
	b.servesNames(t, 5, file)
	find := func() harness.Outcome {
		c := b.spxrunOn(4, []int{4}, "--more-hosts", "--name-server", file, names, "find", "ocean", "4711")
		c.Limit = time.Minute
		return harness.Run(t, c)
	}
	c := b.spxrunOn(1, []int{1, 2}, "--name-server", file, names, "claim", "ocean")
	if o := harness.Run(t, c); o.Status != 0 || o.Stdout != "published: MPI_SUCCESS \n" {
		t.Fatal(o.Text())
	}
	if o := find(); !strings.Contains(o.Stdout, "found: MPI_ERR_NAME") {
		t.Errorf("the job has ended\n%s", o.Text())
	}

	ready := filepath.Join(dir, "ready")
	r := b.startsLeft(t, b.spxrunOver(b.remotely(3), "--with-ft", "-host", b.list(1, 1, 1), "-n", "3", names, "keep", "ocean", ready, "2", file)) // by the info key: the next agent is to know it, too
	r.reads("published: MPI_SUCCESS")
	if o := find(); !strings.Contains(o.Stdout, "connected: MPI_SUCCESS") {
		t.Fatalf("%s\n%s", o.Text(), r.text())
	}
	r.decides(1)
	b.kill(t, 1)
	r.reads(`decides about job [0-9a-f]{16} now`)
	r.decides(2, 1)
	for began := time.Now(); ; { // until the agent that decides now has said its names
		o := find()
		if strings.Contains(o.Stdout, "connected: MPI_SUCCESS") {
			break
		}
		if !strings.Contains(o.Stdout, "MPI_ERR_PORT") || time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatalf("%s\n%s", o.Text(), r.text())
		}
	}
	r.reads(`(?s)received 4711.*received 4711`)
	if err := os.WriteFile(ready+".end", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.reads("taken back: MPI_SUCCESS")
	if o := find(); !strings.Contains(o.Stdout, "found: MPI_ERR_NAME") {
		t.Errorf("it was taken back\n%s", o.Text())
	}
}
