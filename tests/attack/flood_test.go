package attack

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/tests/harness"
)

// eavesdrop listens on a host of the job to the datagrams of its agents, until it has so many to each host, and says them.
func eavesdrop(list []target, knows []string) error {
	n, err := strconv.Atoi(knows[0])
	if err != nil {
		return err
	}
	const all = unix.ETH_P_ALL << 8 // also what leaves the host; in the network's order of bytes
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return err
	}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20}) //nolint:errcheck // the test has a limit of its own
	said := map[string][]string{}                                                         // by where it goes
	b := make([]byte, 65536)
	for enough, end := 0, time.Now().Add(30*time.Second); enough < 2; {
		if time.Now().After(end) {
			return fmt.Errorf("datagrams to %d hosts are heard, of 2", len(said))
		}
		k, _, err := unix.Recvfrom(fd, b, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		to, text, ok := datagram(b[:k])
		if !ok || !bytes.HasPrefix(text, list[0].job[:]) || len(said[to]) == n {
			continue
		}
		if said[to] = append(said[to], hex.EncodeToString(text)); len(said[to]) == n {
			enough++
		}
	}
	for to, texts := range said {
		fmt.Print(to, " ", strings.Join(texts, ","), " ")
	}
	fmt.Println()
	return nil
}

// datagram is where a packet of UDP over IPv4 goes, and what it says.
func datagram(b []byte) (to string, text []byte, ok bool) {
	if len(b) < 28 || b[0]>>4 != 4 || b[9] != unix.IPPROTO_UDP {
		return "", nil, false
	}
	udp := b[int(b[0]&15)*4:]
	if len(udp) < 8 {
		return "", nil, false
	}
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if length < 8 || length > len(udp) {
		return "", nil, false
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), binary.BigEndian.Uint16(udp[2:])).String(), udp[8:length], true
}

// flood sends datagrams as fast as it can for so many milliseconds: what was recorded, the same with a bit changed, and noise, of which some names the job.
func flood(list []target, knows []string) error {
	ms, err := strconv.Atoi(knows[0])
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	var to []net.Conn
	var texts [][][]byte
	for words := knows[1:]; len(words) >= 2; words = words[2:] {
		c, err := net.Dial("udp", words[0])
		if err != nil {
			return err
		}
		var recorded [][]byte
		for _, word := range strings.Split(words[1], ",") {
			text, err := hex.DecodeString(word)
			if err != nil {
				return err
			}
			changed := slices.Clone(text)
			changed[r.IntN(len(changed))] ^= 1 << r.IntN(8)
			noise := make([]byte, r.IntN(1500))
			for i := range noise {
				noise[i] = byte(r.Uint32())
			}
			recorded = append(recorded, text, changed, noise, append(slices.Clone(text[:24]), noise[:min(len(noise), 1000)]...))
		}
		to, texts = append(to, c), append(texts, recorded)
	}
	sent := 0
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); {
		for i, c := range to {
			for _, text := range texts[i] {
				c.Write(text) //nolint:errcheck // what is lost is sent again
				sent++
			}
		}
	}
	fmt.Println("done", sent)
	return nil
}

var heard = regexp.MustCompile(`; (\d+) datagrams were none of the job's or found no room, (\d+) were late or said again`)

// The agents of two hosts of a job get datagrams from a third one for 3 s, as fast as it can send: what they have said to each other, the same with a bit changed, and noise. Neither takes the other for
// silent, the job goes on, and both count what has come.
func TestFlood(t *testing.T) {
	program := harness.Compile(t, "attack/target", []string{"testdata/target.c"})
	bed := harness.NewBed(t, "x", 3, nil)
	var log bytes.Buffer
	job := bed.On(1, filepath.Join(harness.Build(t), "bin/spxrun"), "-v", "--rsh", harness.HostsScript()+" rsh",
		"-host", bed.Host(1)+":2,"+bed.Host(2)+":2", "-n", strconv.Itoa(ranks), program)
	s := scene{harness.Command{Args: job, Env: []string{"SPX_SPIN=0"}}, bed.On(1), "", bed}
	p, list, counters := s.begin(t, &log)
	before := p.exchange()
	ear := s.attack(t, "eavesdrop", list, "50")
	recorded := strings.Fields(ear.line())
	if len(recorded) != 4 {
		t.Fatalf("datagrams to %d hosts are recorded, want 2", len(recorded)/2)
	}
	s.enemy = bed.On(3)
	dropped := func() (n int) { // by the kernels of both hosts, whose sockets a busy machine does not empty in time
		for host := 1; host <= 2; host++ {
			words := bed.On(host, "cat", "/proc/net/snmp")
			text, err := exec.Command(words[0], words[1:]...).Output()
			lines := regexp.MustCompile(`(?m)^Udp: .*`).FindAllString(string(text), -1)
			if err != nil || len(lines) != 2 {
				t.Fatalf("%v\n%s", err, text)
			}
			values := strings.Fields(lines[1])
			for i, name := range strings.Fields(lines[0]) {
				if name == "RcvbufErrors" {
					v, _ := strconv.Atoi(values[i])
					n += v
				}
			}
		}
		return n
	}
	lost := -dropped()
	enemy := s.attack(t, "flood", list, append([]string{"3000"}, recorded...)...)
	said := make(chan string, 1)
	go func() {
		line, _ := enemy.out.ReadString('\n')
		said <- line
	}()
	var worst time.Duration
	sent := 0
	for line := ""; line == ""; {
		worst = max(worst, p.exchange().barrier)
		select {
		case line = <-said:
			fmt.Sscanf(line, "done %d", &sent) //nolint:errcheck // seen by what is read
		default:
		}
	}
	p.exchange()
	lost += dropped()
	p.finish(counters)
	lines := heard.FindAllStringSubmatch(log.String(), -1)
	if len(lines) != 2 || sent == 0 {
		t.Fatalf("%d datagrams were sent, and %d hosts tell of them:\n%s", sent, len(lines), log.String())
	}
	all := 0
	for _, m := range lines {
		strange, _ := strconv.Atoi(m[1])
		again, _ := strconv.Atoi(m[2])
		all += strange + again
		if strange == 0 || again == 0 {
			t.Errorf("a host has counted %d and %d datagrams", strange, again)
		}
	}
	if all+lost < sent/2 {
		t.Errorf("%d datagrams are counted, and %d were dropped before they were read, of %d", all, lost, sent)
	}
	t.Logf("%d datagrams in 3 s, %d counted, %d dropped; barrier %v before, at most %v meanwhile\n%s", sent, all, lost, before.barrier, worst, strings.TrimSpace(log.String()))
}
