package hosts

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/tests/harness"
)

// listen is this program as one that listens: it reads every frame that passes the switch whose namespace it is in, until its input ends, and says how many
// bytes there were and how often a word of the program's was among them.
func listen() error {
	const everything = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // as it is on the wire
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everything)
	if err != nil {
		return err
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)                      //nolint:errcheck // it misses more then
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50000}) //nolint:errcheck // it would not end, which is seen
	over := make(chan struct{})
	go func() {
		bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // its end counts
		close(over)
	}()
	fmt.Println("listening")
	seen, found, frame := 0, 0, make([]byte, 1<<17)
	for {
		n, _, err := unix.Recvfrom(fd, frame, 0)
		if err == nil {
			seen += n
			found += bytes.Count(frame[:n], []byte("plain-word-of-a-message-"))
			continue
		}
		select {
		case <-over:
			fmt.Printf("%d %d\n", seen, found)
			return nil
		default:
		}
	}
}

// overheard runs the program on two hosts while somebody listens at the switch.
func overheard(t *testing.T, b *bed, env ...string) (bytesSeen, found int) {
	t.Helper()
	ear := exec.Command("ip", "netns", "exec", b.Name+"sw", b.Self(), "listen")
	in, err := ear.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ear.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ear.Stderr, ear.WaitDelay = os.Stderr, 5*time.Second
	if err := ear.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := harness.AfterFunc(2*time.Minute, func() { ear.Process.Kill() }) //nolint:errcheck // it has ended, as a rule
	defer watchdog.Stop()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "listening\n" {
		t.Fatalf("who listens says %q, %v", line, err)
	}
	c := b.spxrun("-host", b.list(2, 2), "-n", "4", program(t, "secret"))
	c.Env = append(c.Env, env...)
	check(t, harness.Run(t, c), 0, []string{"wrong 0"})
	in.Close()
	if _, err := fmt.Fscan(lines, &bytesSeen, &found); err != nil {
		t.Fatalf("who listens: %v", err)
	}
	if err := ear.Wait(); err != nil {
		t.Errorf("who listens: %v", err)
	}
	return bytesSeen, found
}

// Who listens at the switch between two hosts reads the messages of a job, and with SPX_TLS=1 nothing of them.
func TestSealed(t *testing.T) {
	b := newBed(t, 2)
	const long = 24 * 59049 * 2 // a part of what passes
	plain, found := overheard(t, b)
	if plain < long || found < 1000 {
		t.Errorf("without TLS %d bytes and %d words are overheard: the ear is deaf", plain, found)
	}
	sealed, found := overheard(t, b, "SPX_TLS=1")
	if sealed < long || found != 0 {
		t.Errorf("with TLS %d bytes and %d words are overheard", sealed, found)
	}
	t.Logf("overheard: %d bytes without TLS, %d with", plain, sealed)
}

// Programs of tests/c on three hosts whose connections are encrypted: ends, deaths, connections that come and go.
func TestSealedPrograms(t *testing.T) {
	b := newBed(t, 3)
	b.few = 16
	b.env = []string{"SPX_TLS=1"}
	b.programs(t, "coll/death", "ft/recover", "ft/shrink", "io/access", "io/death", "pt2pt/requests", "rma/basics", "spawn/basic", "spawn/ulfm")
	b.inFull(t, "net/routes")
}
