package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	rate   = "1gbit" // of each host's connection with the switch
	prefix = "spxlnk"
	enough = 60 // milliseconds of a figure
)

func host(i int) string { return prefix + strconv.Itoa(i) }

func address(i int) string { return "10.77.0." + strconv.Itoa(i) }

// hostsUp makes six hosts, which see this folder: of the two clusters, and of four I/O processes.
func hostsUp(dir string) error {
	hostsDown()
	up := exec.Command("scripts/hosts", "up", prefix, "6")
	up.Env = append(os.Environ(), "HOSTS_SHARED="+dir)
	if out, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/hosts: %w\n%s", err, out)
	}
	for i := 1; i <= 6; i++ { // both directions: what leaves the host, and what the switch hands to it
		for _, cmd := range [][]string{{"ip", "netns", "exec", host(i), "tc", "qdisc", "add", "dev", "eth0"},
			{"ip", "netns", "exec", prefix + "sw", "tc", "qdisc", "add", "dev", "port" + strconv.Itoa(i)}} {
			args := append(cmd[1:], "root", "tbf", "rate", rate, "burst", "256k", "latency", "20ms")
			if out, err := exec.Command(cmd[0], args...).CombinedOutput(); err != nil {
				hostsDown()
				return fmt.Errorf("tc: %w\n%s", err, out)
			}
		}
	}
	return nil
}

func hostsDown() { _ = exec.Command("scripts/hosts", "down", prefix).Run() } // none there, as a rule

// run measures one setting once.
func (o *options) run(r *results, s setting) error {
	what := "all"
	lines, err := o.start(s, what)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	name := s.String()
	if r.Figures[name] == nil {
		r.Figures[name] = map[string][]float64{}
	}
	for _, line := range lines {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return fmt.Errorf("%s: %q is no figure", s, line)
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil || v <= 0 {
			return fmt.Errorf("%s: %q is no figure", s, line)
		}
		r.Figures[name][line[:at]] = append(r.Figures[name][line[:at]], v)
	}
	r.Rounds[name]++
	return nil
}

func (o *options) start(s setting, what string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	if s.iops < 0 {
		return o.sockets(ctx, s)
	}
	args, err := o.arguments(s, what)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = os.Environ()
	if s.net != "shm" {
		cmd.Env = append(cmd.Env, "SPX_TRANSPORTS=tcp")
	}
	if s.net == "hosts" { // each process takes itself to be alone on its host, and would poll
		cmd.Env = append(cmd.Env, "SPX_SPIN=0", "SPX_YIELD=0")
	}
	return output(cmd, 16)
}

// output are the lines that a program prints: so many figures at least.
func output(cmd *exec.Cmd, least int) ([]string, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", cmd, err, out.String(), said.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < least {
		return nil, fmt.Errorf("%s: too few figures in %q", cmd, out.String())
	}
	return lines, nil
}

// arguments are the command line of a run with MPI.
func (o *options) arguments(s setting, what string) ([]string, error) {
	program, ms := filepath.Join(o.dir, "stream"), strconv.Itoa(enough)
	args := []string{filepath.Join(o.build, "bin/spxrun")}
	if s.net == "hosts" {
		scripts, err := filepath.Abs("scripts/hosts")
		if err != nil {
			return nil, err
		}
		args = append([]string{scripts, "on", host(1)}, append(args, "--rsh", scripts+" rsh")...)
	}
	if s.iops == 0 {
		if s.net == "hosts" {
			args = append(args, "-host", host(1)+","+host(2))
		}
		return append(args, "-n", "2", program, "direct", ms, what), nil
	}
	hosts := func(list ...string) string {
		if s.net != "hosts" {
			return ""
		}
		return fmt.Sprintf("hosts = [\"%s\"]\n", strings.Join(list, `", "`))
	}
	var between []string
	for i := range s.iops {
		between = append(between, host(3+i))
	}
	text := fmt.Sprintf("[[cluster]]\nname = \"first\"\nprogram = %q\nargs = [\"first\", %q, %q]\nranks = 1\n%s\n[[cluster]]\nname = \"second\"\nprogram = %[1]q\nargs = [\"second\", %[2]q, %[3]q]\nranks = 1\n%[5]s\n"+
		"[[link]]\nfrom = \"first\"\nto = \"second\"\niops = %[6]d\nbidirectional = true\n%[7]s", program, ms, what, hosts(host(1)), hosts(host(2)), s.iops, hosts(between...))
	file := filepath.Join(o.dir, fmt.Sprintf("%d.toml", s.iops))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return append(args, "--system", file), nil
}

/* ---- sockets alone ---------------------------------------------------------------------------------------------------- */

var sizes = []int{8, 64, 512, 4096, 32768, 262144, 1 << 20, 8 << 20}

// sockets measures a TCP connection: this program again, at both ends.
func (o *options) sockets(ctx context.Context, s setting) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	at := func(i int, args ...string) *exec.Cmd {
		if s.net != "hosts" {
			return exec.CommandContext(ctx, self, args...)
		}
		return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", host(i), self}, args...)...)
	}
	listen := "127.0.0.1:0"
	if s.net == "hosts" {
		listen = address(2) + ":0"
	}
	server := at(2, "-sockets-in", listen)
	pipe, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	where, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, server.Wait())
	}
	lines, err := output(at(1, "-sockets-out", strings.TrimSpace(where)), 16)
	return lines, errors.Join(err, server.Wait())
}

// An order says what follows on the connection: so many messages of so many bytes, each answered at once by itself or, at the end, by one byte.
type order struct{ Bytes, Messages, Bounce uint32 }

func socketsIn(listen string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, sizes[len(sizes)-1])
	for {
		var w order
		if err := binary.Read(c, binary.LittleEndian, &w); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for range w.Messages {
			if _, err := io.ReadFull(c, buf[:w.Bytes]); err != nil {
				return err
			}
			if w.Bounce != 0 {
				if _, err := c.Write(buf[:w.Bytes]); err != nil {
					return err
				}
			}
		}
		if _, err := c.Write(buf[:1]); err != nil {
			return err
		}
	}
}

func socketsOut(where string) error {
	c, err := net.Dial("tcp", where)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, sizes[len(sizes)-1])
	once := func(w order) (time.Duration, error) {
		began := time.Now()
		if err := binary.Write(c, binary.LittleEndian, w); err != nil {
			return 0, err
		}
		for range w.Messages {
			if _, err := c.Write(buf[:w.Bytes]); err != nil {
				return 0, err
			}
			if w.Bounce != 0 {
				if _, err := io.ReadFull(c, buf[:w.Bytes]); err != nil {
					return 0, err
				}
			}
		}
		_, err := io.ReadFull(c, buf[:1])
		return time.Since(began), err
	}
	for _, n := range sizes {
		for _, bounce := range []uint32{1, 0} {
			w := order{uint32(n), 1, bounce}
			took, err := once(w)
			for ; err == nil && took < enough*time.Millisecond; took, err = once(w) {
				w.Messages *= 2
			}
			if err != nil {
				return err
			}
			each := took.Seconds() / float64(w.Messages)
			if bounce != 0 {
				fmt.Printf("latency %d %.3f\n", n, each*1e6/2)
			} else {
				fmt.Printf("rate %d %.1f\n", n, 1/each)
			}
		}
	}
	return nil
}
