package hosts

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

// A remote shell whose connections go over the network of the hosts, as those of ssh do, so that they fail with it. The test's own program is both
// ends: "PROGRAM remote HOST LINE" in place of ssh, and "PROGRAM serve" on each host. Frames have a kind, a length, and bytes.
const (
	frameInput = iota
	frameOutput
	frameErrors
	frameStatus
)

const remotePort = 7022

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "remote" {
		os.Exit(callRemote(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		serveRemote()
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "listen" {
		if err := listen(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "greet" {
		if err := greet(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// frames writes frames of several sources to one stream.
type frames struct {
	mu sync.Mutex
	to io.Writer
}

func (f *frames) put(kind byte, text []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.to.Write(append(binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(text))), text...))
	return err
}

// copy sends a stream, and its end as an empty frame.
func (f *frames) copy(kind byte, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && f.put(kind, b[:n]) != nil {
			return
		}
		if err != nil {
			f.put(kind, nil) //nolint:errcheck // whoever reads is gone then
			return
		}
	}
}

func getFrame(from *bufio.Reader) (kind byte, text []byte, err error) {
	head := make([]byte, 5)
	if _, err = io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	text = make([]byte, binary.LittleEndian.Uint32(head[1:]))
	_, err = io.ReadFull(from, text)
	return head[0], text, err
}

// callRemote is the end where ssh would be called.
func callRemote(host, line string) int {
	number := host[strings.LastIndex(host, "-")+1:]
	c, err := net.DialTimeout("tcp", fmt.Sprintf("10.77.0.%s:%d", number, remotePort), 10*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	out := &frames{to: c}
	if out.put(frameInput, []byte(line)) != nil {
		return 255
	}
	go out.copy(frameInput, os.Stdin)
	for in := bufio.NewReader(c); ; {
		kind, text, err := getFrame(in)
		switch {
		case err != nil:
			return 255
		case kind == frameStatus:
			return int(text[0])
		case kind == frameOutput:
			os.Stdout.Write(text) //nolint:errcheck // as ssh
		case kind == frameErrors:
			os.Stderr.Write(text) //nolint:errcheck // as ssh
		}
	}
}

func serveRemote() {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", remotePort))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("serving")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serveOne(c)
	}
}

// serveOne runs a line for a shell. If the connection ends first, the streams of what runs are closed, and nothing else happens to it.
func serveOne(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	_, line, err := getFrame(in)
	if err != nil {
		return
	}
	cmd := exec.Command("sh", "-c", string(line))
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	stderr, err3 := cmd.StderrPipe()
	if err1 != nil || err2 != nil || err3 != nil || cmd.Start() != nil {
		return
	}
	go func() {
		for {
			_, text, err := getFrame(in)
			if err == nil && len(text) > 0 {
				_, err = stdin.Write(text)
			} else if err == nil {
				err = io.EOF
			}
			if err != nil {
				stdin.Close()
				if err != io.EOF { // the connection is broken
					c.Close()
				}
				return
			}
		}
	}()
	out := &frames{to: c}
	var copies sync.WaitGroup
	copies.Go(func() { out.copy(frameOutput, stdout); stdout.Close() })
	copies.Go(func() { out.copy(frameErrors, stderr); stderr.Close() })
	copies.Wait()
	cmd.Wait()                                                      //nolint:errcheck // its status tells
	out.put(frameStatus, []byte{byte(cmd.ProcessState.ExitCode())}) //nolint:errcheck // nobody waits for it then
}

// remotely has jobs reach their hosts over the network: what the returned words are to spxrun's --rsh.
func (b *bed) remotely(n int) string {
	b.t.Helper()
	self := b.Self()
	for i := len(b.servers) + 2; i <= n; i++ {
		cmd := exec.Command(script(), "on", b.host(i), self, "serve")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() {
			cmd.Process.Kill() //nolint:errcheck // the hosts may have gone before
			cmd.Wait()         //nolint:errcheck // killed
		})
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "serving\n" {
			b.t.Fatalf("host %d: %s", i, line)
		}
		b.servers = append(b.servers, b.Pids(i)...)
	}
	return self + " remote"
}

// spxrunOver is spxrun on host 1 of n, which reaches the others over their network.
func (b *bed) spxrunOver(rsh string, args ...string) harness.Command {
	c := b.spxrun(args...)
	for i, w := range c.Args {
		if w == "--rsh" {
			c.Args[i+1] = rsh
		}
	}
	return c
}
