package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Cache is the folder of what is fetched and kept between runs and trees: $SPX_CONFORMANCE, else /var/cache/spx-conformance for
// root, else the user's cache.
func Cache(t testing.TB) string {
	t.Helper()
	dir, err := CacheFolder()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// CacheFolder is Cache for programs.
func CacheFolder() (string, error) {
	if cache := os.Getenv("SPX_CONFORMANCE"); cache != "" {
		return cache, nil
	}
	if os.Geteuid() == 0 {
		return "/var/cache/spx-conformance", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "spx-conformance"), err
}

// Source returns the original tarball of a Debian source package. It is fetched once, into the cache.
func Source(t testing.TB, pkg, version string) string {
	t.Helper()
	tarball, err := source(t, pkg, version)
	if err != nil {
		t.Fatal(err)
	}
	return tarball
}

func source(t testing.TB, pkg, version string) (tarball string, err error) {
	out, err := exec.Command(filepath.Join(Root(), "scripts/debian-source"), pkg, version, filepath.Join(Cache(t), "src")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w\n%s", pkg, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Unpack unpacks a tarball into dir, where its folder is made anew.
func Unpack(t testing.TB, tarball, dir, folder string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "xf", tarball, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
}

// Tool is a command of somebody else's build or test system: it runs with our compilers, launcher and library first in their paths, and without
// what our own make passes down. Its output goes to a file if Log names one.
type Tool struct {
	Dir   string
	Env   []string
	Limit time.Duration // 0: 10 minutes
	Log   string
}

// Run runs a command, in a process group of its own that is ended at the time limit, and before go test's own -timeout ends the test. It returns
// all output and whether the command succeeded in time.
func (o Tool) Run(t testing.TB, args ...string) (string, bool) {
	t.Helper()
	o.Limit = within(t, o.Limit)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = o.Dir
	cmd.Env = append(without(os.Environ(), "MAKE", "MFLAGS", "CGO_", "PATH="), "PATH="+filepath.Join(Build(t), "bin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+filepath.Join(Build(t), "lib"), "SPX_BUILD="+Build(t))
	cmd.Env = append(cmd.Env, o.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cmd.Err == nil && !strings.Contains(args[0], "/") { // found in our folder first, also when this process would find another
		if ours := filepath.Join(Build(t), "bin", args[0]); exists(ours) {
			cmd.Path = ours
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	group := -cmd.Process.Pid
	force := time.AfterFunc(o.Limit+toEnd/2, func() { syscall.Kill(group, syscall.SIGKILL) })
	late := time.AfterFunc(o.Limit, func() { syscall.Kill(group, syscall.SIGTERM) }) // a compiler removes what is half written
	err := cmd.Wait()
	force.Stop()
	text := out.String()
	if !late.Stop() {
		text += "\n(ended after " + o.Limit.String() + ")\n"
		err = os.ErrDeadlineExceeded
	}
	if o.Log != "" {
		if err := os.WriteFile(o.Log, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return text, err == nil
}

const toEnd = 10 * time.Second // from the limit of a command to the end of the test, at least

// within shortens a limit to what go test's -timeout leaves.
func within(t testing.TB, limit time.Duration) time.Duration {
	if limit == 0 {
		limit = 10 * time.Minute
	}
	if t, ok := t.(*testing.T); ok {
		if end, ok := t.Deadline(); ok {
			limit = min(limit, time.Until(end)-toEnd)
		}
	}
	return limit
}

// Must is Run for a command that may not fail.
func (o Tool) Must(t testing.TB, args ...string) string {
	t.Helper()
	text, ok := o.Run(t, args...)
	if !ok {
		t.Fatalf("cd %s; %s: failed\n%s", o.Dir, strings.Join(args, " "), text[max(0, len(text)-3000):])
	}
	return text
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
