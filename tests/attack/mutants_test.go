package attack

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Where the parts of a hello are (package net/tcp).
const (
	atVersion = 4
	atStream  = 6
	atJob     = 8
	atFrom    = 24 // number, life
	atTo      = 32 // number, life
	atNonce   = 40
	atWays    = 72
)

const (
	someMutants = 20000 // what a run of all tests has time for; SPX_ATTACK_FRAMES says how many else
	atOnce      = 24    // calls of each rank at a time: fewer than it keeps of those that have proved nothing
	hardly      = 30 * time.Second
)

// version is that of the handshake.
const version = 7

// hello is what a rank would say that calls another one of its job.
func hello(from uint32, to target) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x54585053)
	b = append(b, version, 0, 0, 0)
	b = append(b, to.job[:]...)
	for _, word := range []uint32{from, life, to.number, life} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return append(b, make([]byte, helloBytes-atNonce)...)
}

// mutant is a hello with something wrong, and what is to be a proof.
func mutant(r *rand.Rand, from uint32, to target) []byte {
	b := hello(from, to)
	fill := func(part []byte) {
		for i := range part {
			part[i] = byte(r.Uint32())
		}
	}
	fill(b[atNonce:])
	proof := make([]byte, 1+r.IntN(3*proofBytes)) // who hangs up without a byte may have done so before it was answered, or after: then it counts as slow, or as keyless
	fill(proof)
	parts := []int{atVersion, atStream, atJob, atFrom, atFrom + 4, atTo, atTo + 4, atNonce, atWays, helloBytes}
	switch k := r.IntN(len(parts) - 1); r.IntN(6) {
	case 0: // one bit
		b[r.IntN(helloBytes)] ^= 1 << r.IntN(8)
	case 1: // one part
		fill(b[parts[k]:parts[k+1]])
	case 2: // all behind the first word
		fill(b[atVersion:])
	case 3: // cut off
		b, proof = b[:r.IntN(helloBytes)], nil
	case 4: // the least and the most that numbers can be
		binary.LittleEndian.PutUint32(b[atFrom+4*r.IntN(4):], -r.Uint32N(2))
	case 5: // right, but for the proof
	}
	return append(b, proof...)
}

// judge says as what such a call has to be counted by the rank that is called. It is written from the description in package net/tcp.
func judge(b []byte, to target) string {
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	switch {
	case len(b) < atStream:
		return "slow"
	case number(0) != 0x54585053:
		return "strangers"
	case binary.LittleEndian.Uint16(b[atVersion:]) != version:
		return "version"
	case len(b) < helloBytes:
		return "slow"
	case [16]byte(b[atJob:atFrom]) != to.job, number(atTo) != to.number, number(atFrom) == to.number:
		return "strangers"
	case number(atTo+4) != life:
		return "old"
	}
	return "keyless"
}

// mutants calls with what is nearly right, so many times. It knows all that is said in the clear, and counts what it has done.
func mutants(list []target, knows []string) error {
	n, err := strconv.Atoi(knows[0])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(knows[1], 10, 64)
	if err != nil {
		return err
	}
	var callers sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	var failed error
	workers := atOnce * len(list)
	for k := range workers {
		callers.Go(func() {
			r, own, to := rand.New(rand.NewPCG(seed, uint64(k))), map[string]int{}, list[k%len(list)]
			var wrong error
			for i := k; i < n && wrong == nil; i += workers {
				b := mutant(r, list[(k+1)%len(list)].number, to)
				own[judge(b, to)]++
				wrong = callWith(to.at, b)
			}
			mu.Lock()
			defer mu.Unlock()
			for kind, v := range own {
				counts[kind] += v
			}
			if wrong != nil {
				failed = wrong
			}
		})
	}
	callers.Wait()
	if failed != nil {
		return failed
	}
	fmt.Println("done", words(counts))
	return nil
}

// callWith says something, and waits until the other end hangs up, which may say a challenge.
func callWith(at string, b []byte) error {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	defer c.Close()
	tcp := c.(*net.TCPConn)
	tcp.SetLinger(0)                      //nolint:errcheck // no port is kept for what might still come
	c.SetDeadline(time.Now().Add(hardly)) //nolint:errcheck // it is a TCP connection
	c.Write(b)                            //nolint:errcheck // the other end may have hung up
	tcp.CloseWrite()                      //nolint:errcheck // see above
	heard, err := io.Copy(io.Discard, c)
	if e, ok := err.(net.Error); ok && e.Timeout() || heard > challengeBytes {
		return fmt.Errorf("a call with %x is answered with %d bytes (%v)", b, heard, err)
	}
	return nil
}

// undisturbed is how often barriers are measured without callers, before and after.
const undisturbed = 3

// The ranks of a job are called with hellos that are nearly right: bits and parts of them are others, they end too soon, numbers are as large as can be, or only the proof is none. The job goes on
// meanwhile: what it computes is right, it is not slowed down beyond what two more programs would do, its descriptors and memory stay what they were. And each call is counted, as what it is. SPX_ATTACK_FRAMES says
// how many there are (make attack: 10^6).
func TestMutants(t *testing.T) {
	n, seed := someMutants, uint64(time.Now().UnixNano())
	if text := os.Getenv("SPX_ATTACK_FRAMES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("SPX_ATTACK_FRAMES=%s: %v", text, err)
		}
	}
	scenes(t, func(t *testing.T, s scene) {
		p, list, counters := s.begin(t)
		p.exchange()
		before := p.exchange()
		slowest := func(from time.Duration) time.Duration { // that barriers take without callers: other work may have the processors
			for range undisturbed {
				from = max(from, p.exchange().barrier)
			}
			return from
		}
		quiet, began := slowest(before.barrier), time.Now()
		enemy := s.attack(t, "mutants", list, strconv.Itoa(n), strconv.FormatUint(seed, 10))
		said := make(chan string, 1)
		go func() {
			line, _ := enemy.out.ReadString('\n')
			said <- line
		}()
		want, worst, rounds := report{refused: map[string]int{}}, report{}, 0
		var barriers []time.Duration
		for line := ""; line == ""; rounds++ {
			r := p.exchange()
			barriers = append(barriers, r.barrier)
			worst.memory, worst.descriptors = max(worst.memory, r.memory), max(worst.descriptors, r.descriptors)
			select {
			case line = <-said:
				want.add(line)
			default:
			}
		}
		took, total := time.Since(began), 0
		for _, v := range want.refused {
			total += v
		}
		if total != n {
			t.Fatalf("the enemy has called %d times, of %d (seed %d): %v", total, n, seed, want.refused)
		}
		after := p.await(want.refused)
		quiet = slowest(quiet)
		slices.Sort(barriers)
		usual := barriers[len(barriers)/2]
		if end := p.finish(counters); words(end.refused) != words(want.refused) {
			t.Errorf("SPX_COUNTERS has %v, want %v (seed %d)", end.refused, want.refused, seed)
		}
		t.Logf("%d calls in %v, counted: %v; barrier at most %v before and after, %v as a rule in %d exchanges meanwhile, at most %v; descriptors %d, %d, %d; KiB %d, %d, %d", n, took.Round(time.Millisecond),
			want.refused, quiet, usual, rounds, barriers[len(barriers)-1], before.descriptors, worst.descriptors, after.descriptors, before.memory, worst.memory, after.memory)
		if most := harness.Patience(100 * time.Millisecond); usual > quiet+most {
			t.Errorf("a barrier takes %v, at most %v before and after: at most %v more is a slow job and not a stopped one", usual, quiet, most)
		}
		if worst.descriptors > before.descriptors+3*atOnce || after.descriptors > before.descriptors+4 {
			t.Errorf("a rank has %d descriptors open, %d at most, %d in the end", before.descriptors, worst.descriptors, after.descriptors)
		}
		if most := 16 << 10; worst.memory > before.memory+most {
			t.Errorf("a rank has %d KiB, %d at most: calls that were refused cost more than %d KiB", before.memory, worst.memory, most)
		}
	})
}
