// Package fresh makes machines that are new: roots of a minimal Debian, unpacked into a folder, in which commands run with processes, mounts, a hostname and shared memory of their
// own. It must not leave anything mounted or running: all of that belongs to namespaces, which end with their first process, and that one with the process that started it.
package fresh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"libspx/tests/harness"
)

// A root has Go there, and Home is the home of its user.
const GoRoot, Home = "/usr/local/go", "/root"

// Base is a kind of root: a release of Debian, and packages beside the smallest system.
type Base struct {
	Suite   string   // "": that of this machine, or else Debian 12's
	Mirror  string   // "": that of this machine
	Include []string // packages
}

// Unpack makes the folder root a root of this kind. The first time it takes debootstrap, which needs root and the network; what it has made is kept in the cache.
func (b Base) Unpack(root string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("a fresh root needs root")
	}
	if b.Suite == "" {
		b.Suite = Suite()
	}
	if b.Mirror == "" {
		b.Mirror = Mirror()
	}
	cache, err := harness.CacheFolder()
	if err != nil {
		return err
	}
	kept := filepath.Join(cache, "roots", strings.Join(append([]string{b.Suite}, b.Include...), "+")+".tar")
	if err := os.MkdirAll(filepath.Dir(kept), 0o777); err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(kept+".lock", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(kept); err == nil {
		return run("tar", "-x", "-f", kept, "-C", root)
	}
	// Mounts are made in a namespace of their own: nothing is left mounted, whatever ends.
	if err := run("unshare", "-m", "debootstrap", "--variant=minbase", "--include="+strings.Join(b.Include, ","), b.Suite, root, b.Mirror); err != nil {
		return err
	}
	if err := run("tar", "-c", "-f", kept+".new", "-C", root, "."); err != nil {
		return err
	}
	return os.Rename(kept+".new", kept)
}

func run(words ...string) error {
	runtime.LockOSThread() // what is started ends with its thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out[max(0, len(out)-2000):])
	}
	return nil
}

// Suite is the release of this machine, or else Debian 12's.
func Suite() string {
	text, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok && strings.Contains(string(text), "\nID=debian") {
			return name
		}
	}
	return "bookworm"
}

var debianSources = []string{"/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"}

// Mirror is where this machine gets its packages.
func Mirror() string {
	for _, file := range debianSources {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) >= 2 && (f[0] == "URIs:" || f[0] == "deb") && !strings.Contains(f[1], "security") && strings.HasPrefix(f[1], "http") {
				return f[1]
			}
		}
	}
	return "http://deb.debian.org/debian"
}

// certificates are those that this machine trusts, which may stand behind a proxy of its own.
const certificates = Home + "/certificates"

// Connect gives a root what leads to the network from here: names, Debian's lists, proxies, certificates. It returns the environment of commands there, which has nothing else of
// this machine's.
func Connect(root string) (env []string, err error) {
	put := func(name string, text []byte) {
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, 0o644)
		}
	}
	for from, to := range map[string]string{"/etc/resolv.conf": "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt": certificates,
		debianSources[0]: debianSources[0], debianSources[1]: debianSources[1]} {
		if text, err := os.ReadFile(from); err == nil {
			put(to, text)
		} else if from == to {
			os.Remove(filepath.Join(root, to)) //nolint:errcheck // there may be none
		}
	}
	put("/etc/hostname", []byte("fresh\n"))
	put("/etc/hosts", []byte("127.0.0.1 localhost fresh\n::1 localhost\n"))
	if settings, _ := exec.Command("apt-config", "dump").Output(); err == nil {
		var proxies strings.Builder
		for line := range strings.Lines(string(settings)) {
			if name, value, _ := strings.Cut(line, " "); strings.HasPrefix(name, "Acquire::") && strings.Contains(name, "::Proxy") && strings.TrimSpace(value) != `"";` {
				proxies.WriteString(line)
			}
		}
		put("/etc/apt/apt.conf.d/90proxies", []byte(proxies.String()))
	}
	env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + Home, "LC_ALL=C", "SSL_CERT_FILE=" + certificates}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "GOFLAGS"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOPROXY", "GONOSUMDB", "GOPRIVATE"} {
		if v, _ := exec.Command("go", "env", name).Output(); len(strings.TrimSpace(string(v))) > 0 {
			env = append(env, name+"="+strings.TrimSpace(string(v)))
		}
	}
	return env, err
}

// enter makes the folder $1 the root of the namespaces that it runs in, with devices of its own; pairs of a folder of this machine and one there follow up to "--", then the command.
const enter = `set -e
root=$1
shift
mount --bind "$root" "$root"
mkdir -p "$root"/proc "$root"/sys "$root"/dev "$root"/run
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs run "$root/run"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir "$root"/dev/pts "$root"/dev/shm "$root"/dev/mqueue "$root"/run/lock
for i in null zero full random urandom tty; do
  : >"$root/dev/$i"
  mount --bind "/dev/$i" "$root/dev/$i"
done
if [ -e /dev/net/tun ]; then # which comes with the first that opens it
  mkdir "$root/dev/net"
  : >"$root/dev/net/tun"
  mount --bind /dev/net/tun "$root/dev/net/tun"
fi
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t mqueue mqueue "$root/dev/mqueue"
ln -s pts/ptmx "$root/dev/ptmx"
for i in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do ln -s "/proc/self/${i#*:}" "$root/dev/${i%:*}"; done
while [ "$1" != -- ]; do
  mkdir -p "$root/$2"
  mount --bind "$1" "$root/$2"
  shift 2
done
shift
hostname fresh
cd "$root"
pivot_root . mnt
cd /
umount -l /mnt
exec "$@"`

// Words are the command that runs another in a root, which is over, with all its processes, when the process of the first is. Folders of this machine are shown there: from, to.
func Words(root string, folders [][2]string, words ...string) []string {
	args := []string{"unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "bash", "-c", enter, "bash", root}
	for _, f := range folders {
		args = append(args, f[0], f[1])
	}
	return append(append(args, "--"), words...)
}

// Go is the folder of this machine's Go, and where a root has it.
func Go() [2]string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if from := strings.TrimSpace(string(out)); err == nil && from != "" {
		return [2]string{from, GoRoot}
	}
	return [2]string{GoRoot, GoRoot}
}
