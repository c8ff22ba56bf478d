package hosts

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

	"libspx/tests/harness"
)

// Jobs over OpenSSH: a server on each host, and the client with the options that spxrun gives it.

// secured is a bed whose hosts have servers.
type secured struct {
	*bed
	dir    string
	client string // ssh
	limit  int    // s for a job's start
}

// overSSH has servers run on hosts 2 and up.
func overSSH(t *testing.T, n int) *secured {
	t.Helper()
	client, server := harness.OpenSSH(t)
	s := &secured{newBed(t, n), t.TempDir(), client, 60}
	for _, name := range []string{"user", "stranger"} {
		s.key(name)
	}
	var known strings.Builder
	for i := 2; i <= n; i++ {
		name := s.host(i)
		public := s.key(name)
		fmt.Fprintf(&known, "%s %s\n", name, public)
		s.write(name+".conf", "ListenAddress 0.0.0.0", "Port 22", "HostKey DIR/"+name, "AuthorizedKeysFile DIR/user.pub", "StrictModes no", "PidFile none", "PermitRootLogin yes",
			"AuthenticationMethods publickey", "SetEnv PATH=DIR/bin:/usr/bin:/bin")
		s.write(name+".run", harness.SSHDScript(server, "DIR/"+name+".conf", "DIR")...)
		s.serve(i)
	}
	s.write("known", strings.TrimSpace(known.String()))
	return s
}

// key makes a key, and returns its public half.
func (s *secured) key(name string) string {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file).CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// write makes a file of the test's folder, which DIR stands for.
func (s *secured) write(name string, lines ...string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o777)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "DIR", s.dir)), 0o777)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// serve starts the server of a host, and waits until it listens.
func (s *secured) serve(n int) {
	s.t.Helper()
	words := s.On(n, "sh", filepath.Join(s.dir, s.host(n)+".run"))
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it has ended then
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	late := harness.AfterFunc(20*time.Second, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	defer late.Stop()
	from := bufio.NewScanner(said)
	for from.Scan() {
		if strings.HasPrefix(from.Text(), "Server listening on") {
			s.servers = append(s.servers, s.Pids(n)...)
			rest := make(chan string, 1)
			go func() { // it must not wait for a reader
				var all strings.Builder
				for from.Scan() {
					fmt.Fprintln(&all, from.Text())
				}
				rest <- all.String()
			}()
			s.t.Cleanup(func() {
				cmd.Process.Kill() //nolint:errcheck // it has ended then
				if !s.t.Failed() {
					return
				}
				select {
				case text := <-rest:
					s.t.Logf("the ssh server of host %d said\n%s", n, text)
				case <-time.After(5 * time.Second):
					s.t.Logf("the ssh server of host %d has not ended", n)
				}
			})
			return
		}
	}
	s.t.Skipf("the ssh server does not start here: %v", cmd.Wait())
}

// job runs a program by spxrun's own ssh command, with these lines in the client's file before those by which all works.
func (s *secured) job(config []string, args ...string) harness.Outcome {
	s.t.Helper()
	s.write("config", append(config, "Host *", "IdentityFile DIR/user", "IdentitiesOnly yes", "UserKnownHostsFile DIR/known", "GlobalKnownHostsFile none")...)
	for i := 2; i <= s.N; i++ {
		f, err := os.OpenFile(filepath.Join(s.dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(f, "Host %s\nHostName 10.77.0.%d\nHostKeyAlias %s\n", s.host(i), i, s.host(i))
		f.Close()
	}
	s.write("bin/ssh", "#!/bin/bash", `echo "$(hostname) ${@: -2:1}" >>DIR/calls`, "exec "+s.client+` -F DIR/config "$@"`)
	words := []string{script(), "on", s.host(1), filepath.Join(harness.Build(s.t), "bin/spxrun")}
	o := harness.Run(s.t, harness.Command{Args: append(words, args...), Env: []string{"SPX_SPIN=0", "SPX_RSH=", fmt.Sprint("SPX_START_LIMIT=", s.limit), "PATH=" + filepath.Join(s.dir, "bin") + ":" + os.Getenv("PATH")}})
	return o
}

// Three other hosts by ssh, as spxrun calls it by itself: the ranks reach each other, processes are spawned, MPI_Abort gives the status, and in a tree one of the
// hosts is reached by the ssh of another. Nothing is left.
func TestOverSSH(t *testing.T) {
	s := overSSH(t, 4)
	list := s.list(1, 1, 1, 1)
	check(t, s.job(nil, "-host", list, "-n", "4", program(t, "tree")), 0, right(4))
	check(t, s.job(nil, "-host", list, "-n", "4", program(t, "spawn"), "1", "3", s.host(2)+","+s.host(3)+":2"), 0, s.family([]int{1, 2, 3, 4}, []int{2, 3, 3}))
	check(t, s.job(nil, "-host", list, "-n", "4", program(t, "end"), "abort"), 7, nil, "MPI_Abort(MPI_COMM_WORLD, 7)")
	os.Remove(filepath.Join(s.dir, "calls"))
	check(t, s.job(nil, "--fanout", "2", "-host", list, "-n", "4", program(t, "tree")), 0, right(4))
	s.calledAs(t, filepath.Join(s.dir, "calls"), map[int]int{2: 1, 3: 2, 4: 1})
	s.nobody(t)
}

// nobody waits until the hosts are empty, but for the servers.
func (s *secured) nobody(t *testing.T) {
	t.Helper()
	until(t, "end of all", func() bool { return len(s.find("")) == 0 })
}

// What ssh cannot do is told in one line, with the host, ssh's word for it, and what to do; what does not pass is not tried again.
func TestSSHRefuses(t *testing.T) {
	s := overSSH(t, 2)
	s.limit = 8 // the system takes 3 s to find that no host has an address; what is tried again takes all of it
	there := s.host(2)
	strange := strings.Fields(s.key("other"))
	s.write("changed", there+" "+strange[0]+" "+strange[1])
	for _, c := range []struct {
		name, says string
		config     []string
		tries      bool
	}{
		{"key", "Permission denied (publickey).): it does not let this user in without a password: ssh-copy-id " + there, []string{"IdentityFile DIR/stranger"}, false},
		{"unknown", "Host key verification failed.): its host key is not known here: ssh " + there + " true", []string{"UserKnownHostsFile DIR/nobody"}, false},
		{"changed", "REMOTE HOST IDENTIFICATION HAS CHANGED!): its host key is not the one in known_hosts", []string{"UserKnownHostsFile DIR/changed"}, false},
		{"network", "Network is unreachable): no interface of this host leads to " + there, []string{"HostName 192.0.2.1"}, false},
		{"port", "Connection refused): nothing listens on its port for ssh", []string{"Port 9"}, true},
		{"host", "No route to host): no host answers there: is " + there + " on", []string{"HostName 10.77.0.99"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := append([]string{"Host " + there}, c.config...)
			if c.name == "key" { // the first one would do otherwise
				config = append(config, "IdentityAgent none")
				os.Rename(filepath.Join(s.dir, "user"), filepath.Join(s.dir, "kept"))       //nolint:errcheck // the job would run
				defer os.Rename(filepath.Join(s.dir, "kept"), filepath.Join(s.dir, "user")) //nolint:errcheck // the next case would fail
			}
			o := s.job(config, "-host", s.list(1, 1), "-n", "2", program(t, "tree"))
			check(t, o, 1, nil, "spxrun: host "+there+": it", c.says)
			if tries := strings.Contains(o.Stderr, "trying again in 1s (attempt 2 of 5)"); tries != c.tries {
				t.Errorf("it is tried again: %v\n%s", tries, o.Stderr)
			}
			if n := strings.Count(o.Stderr, "\n"); !c.tries && n != 1 {
				t.Errorf("%d lines, not one\n%s", n, o.Stderr)
			}
			s.nobody(t)
		})
	}
}
