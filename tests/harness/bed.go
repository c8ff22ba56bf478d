package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// HostsScript is scripts/hosts.
func HostsScript() string { return filepath.Join(Root(), "scripts/hosts") }

// A Bed is a set of hosts of scripts/hosts, numbered from 1, which go with the test, or with its process. They share no processes, no /tmp and no /dev/shm, with each other or with the test:
// what hosts and the test are both to see belongs into a folder of
// its TempDir (of a subtest: Dir).
type Bed struct {
	t    testing.TB
	self string
	Name string // the beginning of the hosts' names
	N    int
}

var beds int // so far

// NewBed makes n hosts: words are those of scripts/hosts before the name (preset: up), and behind it. kind is a letter for the names. The test is skipped where hosts cannot be made.
// Env is added to the script's environment.
func NewBed(t testing.TB, kind string, n int, words func(name string) []string, env ...string) *Bed {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("hosts of scripts/hosts need root")
	}
	Need(t, "test", "ip")
	beds++
	b := &Bed{t: t, N: n, Name: fmt.Sprintf("%s%xx%d-", kind, os.Getpid()%0x1000000, beds)} // never the name of one before: what clears that away may be at it yet
	args := []string{"up", b.Name, strconv.Itoa(n)}
	if words != nil {
		args = words(b.Name)
	}
	cmd := exec.Command(HostsScript(), args...)
	cmd.Env = append(HostsEnv(t), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("hosts cannot be made here: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(HostsScript(), "down", b.Name).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return b
}

// HostsEnv is the environment for what makes hosts: they end with this process, and see, beside the repository, the folder of the build, if it is elsewhere, and all that TempDir makes for
// this test.
func HostsEnv(t testing.TB) []string {
	t.Helper()
	return append(os.Environ(), fmt.Sprintf("HOSTS_OWNER=%d", os.Getpid()), "HOSTS_SHARED="+strings.Join(shared(t), ":"))
}

func shared(t testing.TB) []string {
	list := []string{Build(t), filepath.Dir(t.TempDir()), Root()}
	if more := os.Getenv("HOSTS_SHARED"); more != "" {
		list = append(list, strings.Split(more, ":")...)
	}
	return list
}

// SharedDir makes a folder beside the build's test programs, which all hosts see, whoever has made them: as TempDir, where the bed is that of another test or of a script.
func SharedDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Build(t), "tests")
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		dir, err = os.MkdirTemp(dir, "shared-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // what is left is in the folder of the build
	return dir
}

// Host is the name of one of them.
func (b *Bed) Host(i int) string { return fmt.Sprintf("%s%d", b.Name, i) }

// On is the command line that runs a command on one of them.
func (b *Bed) On(i int, words ...string) []string {
	return append([]string{HostsScript(), "on", b.Host(i)}, words...)
}

// Dir makes a folder that the hosts and the test see, where TempDir is that of a subtest, which they do not.
func (b *Bed) Dir() string { return b.t.TempDir() }

// Self is this test's program, as the hosts see it: go test makes it in /tmp.
func (b *Bed) Self() string {
	b.t.Helper()
	if b.self != "" {
		return b.self
	}
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	b.self = filepath.Join(b.Dir(), filepath.Base(self))
	if out, err := exec.Command("cp", self, b.self).CombinedOutput(); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return b.self
}

// init is the number of the init of a host, here; 0: there is no such host.
func (b *Bed) init(i int) int {
	text, _ := os.ReadFile(filepath.Join("/run/spx-hosts", b.Name, b.Host(i)+".pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// Pids are the processes on a host, beside its init, by their numbers here. A host that has none is empty.
func (b *Bed) Pids(i int) (out []int) {
	return PidsOn(b.init(i))
}

// PidsOn are the processes that see each other with a given one, without it.
func PidsOn(init int) (out []int) {
	space, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", init))
	if init == 0 || err != nil {
		return nil
	}
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		at, err := os.Stat(dir + "/ns/pid")
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err == nil && os.SameFile(at, space) && pid != init {
			out = append(out, pid)
		}
	}
	return out
}

// Proc is /proc of a host.
func (b *Bed) Proc(i int) string { return b.Root(i) + "/proc" }

// Root is the root folder as a host sees it.
func (b *Bed) Root(i int) string { return fmt.Sprintf("/proc/%d/root", b.init(i)) }

// Outside is the number that a process of a host has here; 0: there is none.
func (b *Bed) Outside(i, pid int) int {
	for _, p := range b.Pids(i) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
		for line := range bytes.Lines(status) {
			words := strings.Fields(string(line))
			if len(words) > 1 && words[0] == "NSpid:" && words[len(words)-1] == strconv.Itoa(pid) {
				return p
			}
		}
	}
	return 0
}

// Left are the files in /tmp and /dev/shm of the hosts, beside what they share.
func (b *Bed) Left() (names []string) {
	known := shared(b.t)
	for i := range b.N {
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			list, _ := os.ReadDir(b.Root(i+1) + dir)
			for _, e := range list {
				file := filepath.Join(dir, e.Name())
				isShared := func(folder string) bool { return strings.HasPrefix(folder+"/", file+"/") }
				if !slices.ContainsFunc(known, isShared) {
					names = append(names, b.Host(i+1)+":"+file)
				}
			}
		}
	}
	return names
}
