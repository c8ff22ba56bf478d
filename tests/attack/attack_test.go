// Package attack has programs that do not belong to a job call its processes, on the same host and from another one: without the key, with what was said once, of
// another time, with random bytes and with calls that are nearly right, and with connections that say nothing. The job goes on, and its counters tell.
package attack

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"libspx/net/tcp"
)

// enemies are who attack: each gets the targets, and what else it knows.
var enemies = map[string]func(list []target, knows []string) error{
	"strangers": strangers, "former": former, "tap": tap, "mutants": mutants, "eavesdrop": eavesdrop, "flood": flood, "outsiders": outsiders,
}

// TestMain is also the attacker.
func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv("ATTACK"))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	of := slices.Index(words, "of")
	list, err := targets(words[of+1:])
	if err == nil {
		err = enemies[words[0]](list, words[1:of])
	}
	if err != nil {
		fmt.Println("error:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// target is a process of the job.
type target struct {
	job    [16]byte
	number uint32
	at     string
	pid    int
}

// targets reads what the ranks of the job say of themselves.
func targets(words []string) (list []target, err error) {
	for ; len(words) >= 4; words = words[4:] {
		t := target{at: words[2]}
		if _, err := hex.Decode(t.job[:], []byte(words[0])); err != nil {
			return nil, err
		}
		number, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			return nil, err
		}
		if t.pid, err = strconv.Atoi(words[3]); err != nil {
			return nil, err
		}
		t.number = uint32(number)
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b target) int { return int(a.number) - int(b.number) })
	return list, nil
}

func (t target) words() []string {
	return []string{hex.EncodeToString(t.job[:]), strconv.Itoa(int(t.number)), t.at, strconv.Itoa(t.pid)}
}

// life is that of all ranks of a job in which nobody has ended.
const life = 1

func (t target) process() tcp.Process { return tcp.Process{Number: t.number, Life: life} }
