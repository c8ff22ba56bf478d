package hosts

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/tests/harness"
)

// greet is this program as another program at a port: it says what mail servers say, until its input ends.
func greet() error {
	l, err := net.Listen("tcp", ":7")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "220 mail.example ESMTP ready, and in no hurry at all to hear who is there or what they want\r\n")
			go func() {
				io.Copy(io.Discard, c) //nolint:errcheck // the caller's end
				c.Close()
			}()
		}
	}()
	fmt.Println("greeting")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end counts
	return nil
}

// greeter is such a program on a host of the bed.
func (b *bed) greeter(n int) {
	b.t.Helper()
	words := b.On(n, b.Self(), "greet")
	cmd := exec.Command(words[0], words[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		in.Close()
		cmd.Wait() //nolint:errcheck // it has been told
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "greeting\n" {
		b.t.Fatalf("%q, %v", line, err)
	}
}

// firewall gives hosts rules of nftables.
func (b *bed) firewall(rules string, hosts ...int) {
	b.t.Helper()
	harness.Need(b.t, "launchers", "nft")
	for _, n := range hosts {
		cmd := exec.Command("ip", "netns", "exec", b.host(n), "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.t.Skipf("nft has no such rules here: %v\n%s", err, out)
		}
	}
}

// saysUntil starts a job and waits until its standard error has a line of that pattern; then the job is ended.
func (b *bed) saysUntil(pattern string, env []string, args ...string) {
	b.t.Helper()
	c := b.spxrun(args...)
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	var all text
	cmd.Env, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), c.Env...), env...), &all, &all
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // it is ended by this test
		close(ended)
	}()
	for limit := harness.After(60 * time.Second); all.count(pattern) == 0; {
		select {
		case <-limit:
			b.t.Errorf("nobody says %q\n%s", pattern, all.text())
		case <-ended:
			if all.count(pattern) == 0 {
				b.t.Errorf("the job has ended and nobody has said %q\n%s", pattern, all.text())
			}
			return
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	unix.Kill(-cmd.Process.Pid, unix.SIGTERM) //nolint:errcheck // it has ended then
	select {
	case <-ended:
	case <-harness.After(30 * time.Second):
		b.t.Errorf("the job does not end by SIGTERM")
		unix.Kill(-cmd.Process.Pid, unix.SIGKILL) //nolint:errcheck // as above
		<-ended
	}
}

// Two ranks that cannot reach each other: the message names both, their hosts and addresses, what the system has said, the likely cause, what to do, and the other network that both hosts are in.
func TestUnreached(t *testing.T) {
	table := "table ip t { chain in { type filter hook input priority 0; ip saddr 10.78.0.0/24 tcp dport 1-65535 %s; }; }"
	redirect := "table ip t { chain in { type nat hook prerouting priority -100; iifname data0 tcp dport 1024-65535 redirect to :7; }; }"
	other := `; all hosts of the job are also in 10\.77\.0\.0/24 \(eth0, 10 Mbit/s\), which --iface 10\.77\.0\.0/24 would take$`
	pairs := program(t, "pairs")
	for _, c := range []struct {
		name string
		make func(b *bed)
		says string
	}{
		{"reset", func(b *bed) { b.firewall(fmt.Sprintf(table, "reject with tcp reset"), 2) }, `connection refused; nobody listens there, or a firewall rejects it: .*` + other},
		{"prohibited", func(b *bed) { b.firewall(fmt.Sprintf(table, "reject with icmp type admin-prohibited"), 2) }, `no route to host; .*a firewall on the way rejects it: .*` + other},
		{"dropped", func(b *bed) { b.firewall(fmt.Sprintf(table, "drop"), 2) }, `i/o timeout; something drops the packets: a firewall .*` + other},
		{"stranger", func(b *bed) { b.greeter(1); b.greeter(2); b.firewall(redirect, 1, 2) }, `; another program listens there: .*`},
		{"prohibit", func(b *bed) { b.ipOn("1", "route", "add", "prohibit", "10.78.0.2/32") }, `permission denied; a rule of this host forbids it .*` + other},
		{"blackhole", func(b *bed) { b.ipOn("1", "route", "add", "blackhole", "10.78.0.2/32") }, `invalid argument; a route of this host throws such packets away .*` + other},
		{"unreachable", func(b *bed) { b.ipOn("1", "route", "add", "unreachable", "10.78.0.2/32") }, `no route to host; no route leads there.*` + other},
		{"unplugged", func(b *bed) { b.ipOn("sw", "link", "set", "data2", "nomaster") }, `(no route to host; no route leads there, the host does not answer in its network|i/o timeout; something drops the packets).*` + other},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTwo(t, 2)
			c.make(b)
			t.Parallel() // each waits for 10 s until somebody complains
			pattern := fmt.Sprintf(`^libspx: rank 0 of world 0: rank 1 of world 0 \(process 1\) on host %s cannot be reached at 10\.78\.0\.2:\d+ from %s \(10\.78\.0\.1\): .*%s`, b.host(2), b.host(1), c.says)
			b.saysUntil(pattern, []string{"SPX_HEARTBEAT=0"}, "-host", b.list(1, 1), "-n", "2", pairs)
		})
	}
}

// More processes than ports: who starts the job is told, and so is who spawns, whose job goes on.
func TestPortsExhausted(t *testing.T) {
	b, spawn := newBed(t, 2), program(t, "spawn")
	c := b.spxrun("-host", b.list(2, 4), "-n", "2", "-ppn", "1", spawn, "0", "3", "fails", b.host(2)+":3", spawn)
	c.Env = append(c.Env, "SPX_PORTS=50010-50012")
	o := harness.Run(t, c)
	check(t, o, 0, []string{"parent 0: MPI_ERR_SPAWN, 3 codes", "parent 1: MPI_ERR_SPAWN, 3 codes"}, "host "+b.host(2), "none of the 3 ports of SPX_PORTS=50010-50012 is free")
	c = b.spxrun("-host", b.list(1, 4), "-n", "5", program(t, "where"))
	c.Env = append(c.Env, "SPX_PORTS=50010-50012")
	check(t, harness.Run(t, c), 1, nil, "host "+b.host(2)+": rank ", "none of the 3 ports of SPX_PORTS=50010-50012 is free")
}
