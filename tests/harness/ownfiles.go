package harness

import (
	"os"
	"os/exec"
	"testing"
)

// OwnFiles has a command see a directory of its own in the place of /tmp, by TMPDIR, and of /dev/shm, by a mount namespace: what it makes there is not mixed
// with the files of other jobs. made lists what is in both now. Where no namespace can be made /dev/shm is not looked at.
func OwnFiles(t testing.TB, c Command) (own Command, made func() []string) {
	t.Helper()
	dirs := []string{t.TempDir()}
	c.Env = append(append([]string(nil), c.Env...), "TMPDIR="+dirs[0])
	private := []string{"unshare", "-m"}
	if os.Geteuid() != 0 {
		private = []string{"unshare", "-Urm"}
	}
	if err := exec.Command(private[0], append(private[1:], "mount", "--bind", dirs[0], "/dev/shm")...).Run(); err == nil {
		dirs = append(dirs, t.TempDir())
		c.Args = append(append(private, "sh", "-c", `mount --bind "$0" /dev/shm && exec "$@"`, dirs[1]), c.Args...)
	} else {
		t.Logf("/dev/shm is not looked at: %v", err)
	}
	return c, func() (names []string) {
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
		}
		return names
	}
}
