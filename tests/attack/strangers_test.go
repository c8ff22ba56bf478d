package attack

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"libspx/net/tcp"
)

// How much of each kind.
const (
	halfOpen = 1000
	keyless  = 200
	replayed = 200
	old      = 200
	frames   = 1000000
	volley   = 500 // frames in one connection: the first bytes are looked at, and end it
	frame    = 72  // bytes
)

// strangers knows where the processes listen and which job they are of, but not its key.
func strangers(list []target, _ []string) error {
	var held []net.Conn
	for i := range halfOpen {
		c, err := net.Dial("tcp", list[i%len(list)].at)
		if err != nil {
			return err
		}
		if i%3 == 0 {
			c.Write([]byte("SPX")) //nolint:errcheck // the beginning of something
		}
		held = append(held, c)
	}
	fmt.Println("holding")
	call := func(t target, life uint32) error {
		id := &tcp.Identity{Job: t.job, Self: tcp.Process{Number: t.number + 1, Life: 1}}
		rand.Read(id.Key[:])
		c, v, err := tcp.Dial(t.at, id, tcp.Process{Number: t.number, Life: life})
		if err == nil {
			c.Close()
			return fmt.Errorf("%v has taken a stranger: %v", t, v)
		}
		return nil
	}
	for i := range keyless {
		if err := call(list[i%len(list)], 1); err != nil {
			return err
		}
	}
	for i := range old {
		if err := call(list[i%len(list)], 7); err != nil {
			return err
		}
	}
	for i := range replayed {
		if err := replay(list[i%len(list)]); err != nil {
			return err
		}
	}
	junk := make([]byte, volley*frame)
	for i := range frames / volley {
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

// replay says a hello and then what was a proof of another call.
func replay(t target) error {
	c, err := net.Dial("tcp", t.at)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it is a TCP connection
	pipe := &recorder{}
	tcp.Call(pipe, &tcp.Identity{Job: t.job, Self: tcp.Process{Number: t.number + 1, Life: 1}}, tcp.Process{Number: t.number, Life: 1}) //nolint:errcheck // nobody answers it
	c.Write(pipe.said)                                                                                                                  //nolint:errcheck // the answer counts
	var challenge [64]byte
	if _, err := io.ReadFull(c, challenge[:]); err != nil {
		return nil // hung up on before: one of many
	}
	c.Write(challenge[32:]) //nolint:errcheck // a proof that the other end itself has given, the only one there is
	if n, _ := c.Read(challenge[:1]); n == 1 {
		return fmt.Errorf("%v answers a proof that was its own with %d", t, challenge[0])
	}
	return nil
}

// recorder keeps what is said, and answers nothing.
type recorder struct{ said []byte }

func (r *recorder) Write(b []byte) (int, error) { r.said = append(r.said, b...); return len(b), nil }
func (*recorder) Read([]byte) (int, error)      { return 0, io.EOF }

// A job is besieged by who knows where its ranks listen and which job they are of, and not its key: connections that say nothing, calls with another key and for another life, the proof
// of the other end as one's own, random bytes. It goes on, and its counters tell.
func TestStrangers(t *testing.T) {
	scenes(t, func(t *testing.T, s scene) {
		p, list, counters := s.begin(t)
		enemy := s.attack(t, "strangers", list)
		if got := enemy.line(); got != "holding" {
			t.Fatal(got)
		}
		before := p.exchange() // the first connections of the job are made behind those that say nothing
		if got := enemy.line(); got != "done" {
			t.Fatal(got)
		}
		after := p.exchange()
		end := p.finish(counters)
		enemy.in.Close()
		enemy.cmd.Wait() //nolint:errcheck // its lines count
		if after.descriptors > before.descriptors+200 {
			t.Errorf("a rank has %d descriptors open, %d before", after.descriptors, before.descriptors)
		}
		for kind, least := range map[string]int{"strangers": frames / volley, "old": old, "keyless": keyless + replayed, "slow": halfOpen - 128*ranks} {
			if end.refused[kind] < least*9/10 { // a caller may be given up for a later one before it is answered
				t.Errorf("%d %s are counted, of at least %d", end.refused[kind], kind, least)
			}
		}
		t.Logf("counted: %v; descriptors of a rank: %d, %d", end.refused, before.descriptors, after.descriptors)
	})
}
