package attack

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/net/tcp"
	"libspx/tests/harness"
)

// How much of each kind.
const (
	meshSilent  = 200
	meshKeyless = 100
	meshJunk    = 100
	meshHosts   = 3
)

// outsiders knows where the agents of a job hear each other, which job it is and how they call, but not its key.
func outsiders(list []target, _ []string) error {
	var held []net.Conn
	for i := range meshSilent {
		c, err := net.Dial("tcp", list[i%len(list)].at)
		if err != nil {
			return err
		}
		held = append(held, c)
	}
	for i := range meshKeyless {
		t := list[i%len(list)]
		id := &tcp.Identity{Job: t.job, Self: tcp.Process{Number: (t.number + 1) % meshHosts}, Ways: "agents, sealed, of one sequence", TLS: true}
		rand.Read(id.Key[:])
		if c, v, err := tcp.Dial(t.at, id, tcp.Process{Number: t.number}); err == nil {
			c.Close()
			return fmt.Errorf("%v has taken a stranger: %v", t, v)
		}
	}
	junk := make([]byte, 4096)
	for i := range meshJunk {
		rand.Read(junk)
		if c, err := net.Dial("tcp", list[i%len(list)].at); err == nil {
			c.Write(junk) //nolint:errcheck // it is hung up on
			c.Close()
		}
	}
	fmt.Println("done")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until the test is over
	for _, c := range held {
		c.Close()
	}
	return nil
}

// The agents of a job of three hosts that keep copies are called by a stranger that knows where they listen, and has no key: no call is taken, all are counted, the copies stay alike, and the job goes on.
func TestStrangersAtAgents(t *testing.T) {
	program := harness.Compile(t, "attack/target", []string{"testdata/target.c"})
	bed := harness.NewBed(t, "x", meshHosts+1, nil)
	spxctl := func(args ...string) string {
		t.Helper()
		words := bed.On(1, append([]string{filepath.Join(harness.Build(t), "bin/spxctl")}, args...)...)
		out, err := exec.Command(words[0], words[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	hosts := func() (list []service.Host) {
		t.Helper()
		if err := json.Unmarshal([]byte(spxctl("hosts", ".", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	await := func(what string, is func([]service.Host) bool) (list []service.Host) {
		t.Helper()
		for limit := time.Now().Add(harness.Patience(time.Minute)); ; {
			if list = hosts(); is(list) {
				return list
			}
			if time.Now().After(limit) {
				t.Fatalf("no %s: %s", what, spxctl("hosts", "."))
			}
		}
	}
	job := bed.On(1, filepath.Join(harness.Build(t), "bin/spxrun"), "--rsh", harness.HostsScript()+" rsh", "--with-ft",
		"-host", bed.Host(1)+","+bed.Host(2)+","+bed.Host(3), "-n", strconv.Itoa(meshHosts), program)
	s := scene{harness.Command{Args: job, Env: []string{"SPX_SPIN=0"}}, bed.On(meshHosts + 1), "", bed}
	p, ranks, counters := s.beginWith(t, meshHosts)
	alike := func(list []service.Host) bool {
		for _, h := range list {
			if h.Copy == nil || h.Copy.Digest != list[0].Copy.Digest || h.Copy.Events == 0 {
				return false
			}
		}
		return len(list) == meshHosts
	}
	list := await("copies", alike)
	refused := func(list []service.Host) (total uint64) {
		for _, h := range list {
			if h.Copy != nil {
				total += h.Copy.Refused
			}
		}
		return total
	}
	before := refused(list)
	var agents []target
	for n, h := range list {
		agents = append(agents, target{job: ranks[0].job, number: uint32(n), at: h.Copy.At})
	}
	p.exchange()
	enemy := s.attack(t, "outsiders", agents)
	if got := enemy.line(); got != "done" {
		t.Fatal(got)
	}
	await("count of all strangers", func(list []service.Host) bool {
		return alike(list) && refused(list) >= before+meshKeyless+meshJunk
	})
	p.exchange()
	enemy.in.Close()
	enemy.cmd.Wait() //nolint:errcheck // its lines count
	p.finish(counters)
}
