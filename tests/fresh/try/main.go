// Command try is a machine that is new: in a fresh root of a minimal Debian, with make and Go and nothing else, it clones the last commit and runs make demo and make test. It fails when
// one of them does.
//
//	make test-fresh                                        both (root, debootstrap, the network, some GB of disk)
//	make test-fresh TESTS="./tests/sge ./tests/hydra"      make demo, and these packages' tests
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"libspx/tests/fresh"
	"libspx/tests/harness"
)

const where = fresh.Home + "/libspx" // the clone, in the root

func main() {
	tests := flag.String("tests", "", "packages to test instead of all")
	logs := flag.String("logs", "build/fresh", "folder for the whole output")
	limit := flag.Duration("limit", 2*time.Hour, "time limit of each step")
	folder := flag.String("dir", "", "where the root is unpacked (default: the folder of temporary files)")
	flag.Parse()
	runtime.LockOSThread() // what is started ends with its thread
	dir, err := newFolder(*folder)
	if err == nil {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		err = machine{root: filepath.Join(dir, "root"), logs: *logs, limit: *limit, stop: stop}.all(*tests)
		os.RemoveAll(dir) //nolint:errcheck // as far as it goes
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-fresh:", err)
		os.Exit(1)
	}
}

// newFolder makes a folder whose lock this process holds, and removes those of others that have ended without doing so.
func newFolder(in string) (string, error) {
	if in == "" {
		in = os.TempDir()
	}
	old, _ := filepath.Glob(filepath.Join(in, "spx-fresh-*/lock"))
	for _, name := range old {
		if f, err := os.Open(name); err == nil {
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				os.RemoveAll(filepath.Dir(name)) //nolint:errcheck // as far as it goes
			}
			f.Close()
		}
	}
	dir, err := os.MkdirTemp(in, "spx-fresh-")
	if err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	held = f
	return dir, err
}

var held *os.File // until the end

// machine is the root and what is known of it.
type machine struct {
	root, logs string
	limit      time.Duration
	stop       chan os.Signal
	env        []string
	folders    [][2]string
}

func (m machine) all(tests string) error {
	if err := os.MkdirAll(m.logs, 0o777); err != nil {
		return err
	}
	begin := time.Now()
	if err := (fresh.Base{Include: []string{"make"}}).Unpack(m.root); err != nil {
		return err
	}
	commit, err := m.clone()
	if err == nil {
		m.env, err = fresh.Connect(m.root)
	}
	if err == nil {
		err = m.archives()
	}
	if err != nil {
		return err
	}
	fmt.Printf("a fresh root of Debian %s with make and Go, commit %s, %d processors: ready after %.0f s\n", fresh.Suite(), commit, runtime.NumCPU(), time.Since(begin).Seconds())
	second := "make test"
	if tests != "" {
		second = "make deps build && SPX_BUILD=$PWD/build go run ./internal/testsum " + tests
	}
	var failed []error
	for _, step := range []struct{ name, command string }{{"demo", "make demo"}, {"test", second}} {
		if err := m.step(step.name, step.command); err != nil {
			failed = append(failed, err)
		}
		if errors.Is(errors.Join(failed...), errStopped) {
			break
		}
	}
	return errors.Join(failed...)
}

// clone puts a clone of the last commit into the root.
func (m machine) clone() (commit string, err error) {
	to := m.root + where
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(string(head))
	for _, words := range [][]string{{"clone", "-q", "--no-local", "--no-checkout", ".", to}, {"-C", to, "checkout", "-q", "--detach", commit}} {
		if out, err := exec.Command("git", words...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", strings.Join(words, " "), err, out)
		}
	}
	return commit[:12], nil
}

// archives shows the packages that apt has fetched for an earlier root: a second run need not fetch them again.
func (m *machine) archives() error {
	cache, err := harness.CacheFolder()
	if err != nil {
		return err
	}
	archives := filepath.Join(cache, "roots/archives")
	m.folders = [][2]string{fresh.Go(), {archives, "/var/cache/apt/archives"}}
	return os.MkdirAll(filepath.Join(archives, "partial"), 0o755)
}

var errStopped = errors.New("stopped by a signal")

// step runs a command in the clone, to its end, and prints what it has to say at the end, and the time that it took.
func (m machine) step(name, command string) error {
	log := filepath.Join(m.logs, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	words := fresh.Words(m.root, m.folders, "/bin/bash", "--norc", "-c", "PATH=$PATH:"+fresh.GoRoot+"/bin\ncd "+where+"\n"+command)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = m.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	cut := func(why error) error {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
		return why
	}
	select {
	case err = <-ended:
	case <-m.stop:
		err = cut(errStopped)
	case <-time.After(m.limit):
		err = cut(fmt.Errorf("not done after %v", m.limit))
	}
	fmt.Printf("--- %s: %.0f s, of a processor %.0f s user and %.0f s system; all of its output: %s\n%s", command, time.Since(begin).Seconds(),
		cmd.ProcessState.UserTime().Seconds(), cmd.ProcessState.SystemTime().Seconds(), log, last(log, 25))
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// last are the last lines of a file.
func last(name string, n int) string {
	text, _ := os.ReadFile(name)
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
