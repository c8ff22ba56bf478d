package harness

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// OpenSSH finds the client, which is installed if need be, and a server as words of a shell's command: the system's, or Debian's package of it, unpacked. Skips the test where neither can be had.
func OpenSSH(t testing.TB) (client, server string) {
	t.Helper()
	Need(t, "launchers", "ssh", "ssh-keygen")
	client, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	server = "/usr/sbin/sshd"
	if _, err := os.Stat(server); err == nil {
		return client, server
	}
	root := Debian(t, "openssh-server")
	return client, "env LD_LIBRARY_PATH=" + Libraries(root) + " " + filepath.Join(root, "usr/sbin/sshd")
}

// SSHDScript is a shell's script that becomes server, with the file config, in a mount namespace of its own. There it has the account and the folder that its package makes when it is
// installed, and root's home is home: what a shell reads first in the system's may take seconds. Beside config a folder is made, a copy of /etc with these accounts: were /etc/passwd
// alone another file there, it would be the system's again as soon as a package that is installed meanwhile adds a user, since the kernel drops a mount on a file that is replaced.
func SSHDScript(server, config, home string) []string {
	etc := config + ".etc"
	return []string{
		"set -e",
		"cp -a /etc " + etc + " || test -s " + etc + "/passwd", // others may come and go meanwhile
		`sed 's|^\(root:[^:]*:[^:]*:[^:]*:[^:]*:\)[^:]*|\1` + home + `|' /etc/passwd >` + etc + "/passwd",
		"grep -q ^sshd: " + etc + "/passwd || echo sshd:x:65534:65534::/run/sshd:/usr/sbin/nologin >>" + etc + "/passwd",
		"mount --bind " + etc + " /etc", "mount -t tmpfs none /run", "mkdir -m 755 /run/sshd",
		"exec " + server + " -D -e -f " + config,
	}
}

// The test's own OpenSSH server, on the loopback interface, with a key of its own, until the test ends; its host is called "there". It returns a folder with a program ssh that
// reaches it under any name, without a question. Skips the test where there can be none.
func SSHD(t testing.TB) (bin string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("an ssh server that lets users in needs root, to have an account for its own processes")
	}
	client, server := OpenSSH(t)
	dir := t.TempDir()
	for _, name := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	port := FreePort(t)
	bin = filepath.Join(dir, "bin")
	write := func(name string, mode os.FileMode, lines ...string) {
		os.MkdirAll(bin, 0o777) //nolint:errcheck // WriteFile tells
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "DIR", dir)), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("server", 0o666, "ListenAddress 127.0.0.1", fmt.Sprint("Port ", port), "HostKey DIR/host", "AuthorizedKeysFile DIR/user.pub", "StrictModes no", "PidFile none",
		"PermitRootLogin yes", "AuthenticationMethods publickey")
	write("client", 0o666, "Host *", "HostName 127.0.0.1", fmt.Sprint("Port ", port), "IdentityFile DIR/user", "IdentitiesOnly yes", "UserKnownHostsFile DIR/known",
		"StrictHostKeyChecking accept-new", "BatchMode yes", "LogLevel ERROR")
	write("bin/ssh", 0o777, "#!/bin/sh", `exec `+client+` -F DIR/client "$@"`)
	write("run", 0o666, append([]string{"hostname there"}, SSHDScript(server, "DIR/server", "DIR")...)...)
	cmd := exec.Command("unshare", "-mu", "sh", filepath.Join(dir, "run"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		cmd.Wait()                                      //nolint:errcheck // it was killed
	})
	late := time.AfterFunc(20*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) //nolint:errcheck // it may have ended
	defer late.Stop()
	var all []string
	for s := bufio.NewScanner(said); s.Scan(); all = append(all, s.Text()) {
		if strings.HasPrefix(s.Text(), "Server listening on") {
			go func() {
				for s.Scan() { // it must not wait for a reader
				}
			}()
			return bin
		}
	}
	t.Skipf("the ssh server does not start here:\n%s", strings.Join(all, "\n"))
	return ""
}
