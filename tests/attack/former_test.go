package attack

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"libspx/net/tcp"
)

// former has the key of the job, and is of another time: it was a process of it. Or it means one. And it has the key of another job.
func former(list []target, knows []string) error {
	var key [32]byte
	if n, err := hex.Decode(key[:], []byte(knows[0])); n != len(key) || err != nil {
		return fmt.Errorf("key %q: %v", knows[0], err)
	}
	var otherKey [32]byte
	var otherJob [16]byte
	rand.Read(otherKey[:])
	rand.Read(otherJob[:])
	counts := map[string]int{}
	for _, to := range list {
		for _, self := range list {
			if self == to {
				continue
			}
			for _, l := range []uint32{life - 1, life + 1, 1 << 31} {
				id := tcp.Identity{Job: to.job, Key: key, Self: tcp.Process{Number: self.number, Life: l}, Ways: knows[1]}
				if _, v, err := tcp.Dial(to.at, &id, to.process()); v != tcp.Gone || err != nil {
					return fmt.Errorf("%v hears %v as %v, %v", to.number, id.Self, v, err)
				}
				id.Self.Life = life
				if c, v, err := tcp.Dial(to.at, &id, tcp.Process{Number: to.number, Life: l}); c != nil || err == nil {
					return fmt.Errorf("%v, which was called as of life %d, says %v", to.number, l, v)
				}
				counts["old"] += 2
			}
			id := tcp.Identity{Job: to.job, Key: otherKey, Self: self.process(), Ways: knows[1]}
			if _, v, err := tcp.Dial(to.at, &id, to.process()); !errors.Is(err, tcp.ErrKey) {
				return fmt.Errorf("%v hears another job's key: %v, %v", to.number, v, err)
			}
			id.Job = otherJob
			if _, v, err := tcp.Dial(to.at, &id, to.process()); err == nil {
				return fmt.Errorf("%v hears another job: %v", to.number, v)
			}
			counts["keyless"]++
			counts["strangers"]++
		}
	}
	fmt.Println("done", words(counts))
	return nil
}

// words are counts as the job says them.
func words(counts map[string]int) (text string) {
	for _, kind := range []string{"strangers", "version", "old", "keyless", "slow"} {
		text += fmt.Sprintf(" %s %d", kind, counts[kind])
	}
	return text
}

// The key alone does not make a process of the job: one of a former life is refused, and so is who means a former life. The enemy has the key from the memory file, as each process
// of the user can. All is counted, before MPI_Finalize too.
func TestOfAnotherTime(t *testing.T) {
	scenes(t, func(t *testing.T, s scene) {
		p, list, counters := s.begin(t)
		p.exchange()
		key := segments(t, list)[0].Key()
		enemy := s.attack(t, "former", list, hex.EncodeToString(key[:]), "SPX_CONNECTIONS=demand")
		want := report{refused: map[string]int{}}
		want.add(enemy.line())
		if want.refused["old"] != ranks*(ranks-1)*6 {
			t.Fatalf("the enemy has done %v", want.refused)
		}
		p.await(want.refused)
		if end := p.finish(counters); words(end.refused) != words(want.refused) {
			t.Errorf("SPX_COUNTERS has %v, want %v", end.refused, want.refused)
		}
	})
}
