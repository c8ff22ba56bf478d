package sim

import (
	"flag"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

var (
	schedules = flag.Int("schedules", 3000, "random schedules of jobs")
	limit     = flag.Duration("limit", 0, "no further schedule is begun after this time; 0: all of them")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
)

// report describes a schedule that has violated a property, and the smallest part of it that does.
func report(job Job, err error) string {
	least := job.Shrink()
	least.Trace = true
	out, why := RunJob(least)
	return fmt.Sprintf("seed %d: %v\n\nthe least of it, for testdata: %v\n%s----\n%s", job.Seed, err, why, least.Text(), strings.Join(out.Trace, "\n"))
}

// TestJobs runs random schedules of whole jobs. Their number is that of -schedules, as far as -limit allows.
func TestJobs(t *testing.T) {
	start := time.Now()
	var next, deaths, agreements, ends atomic.Int64
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for !t.Failed() && (*limit == 0 || time.Since(start) < *limit) {
				k := next.Add(1) - 1
				if k >= int64(*schedules) {
					return
				}
				job := RandomJob(*firstSeed + uint64(k))
				out, err := RunJob(job)
				if err != nil {
					t.Errorf("%s\nrerun: go test ./sim -run TestJobs -seed %d -schedules 1", report(job, err), job.Seed)
					return
				}
				deaths.Add(int64(out.Deaths))
				agreements.Add(int64(out.Agreements))
				if out.Ended {
					ends.Add(1)
				}
			}
		})
	}
	group.Wait()
	done := min(next.Load(), int64(*schedules))
	t.Logf("%d schedules, seeds %d to %d: %d agreements, %d deaths, %d jobs ended", done, *firstSeed, *firstSeed+uint64(done)-1, agreements.Load(), deaths.Load(), ends.Load())
	if done > 1000 && (deaths.Load() < done || agreements.Load() < done || ends.Load() == 0) {
		t.Error("too tame")
	}
}

// Every process dies at every one of its sends, alone and together with another that dies at any of its own.
func TestDeathAtEveryStep(t *testing.T) {
	runs := 0
	try := func(job Job) Outcome {
		runs++
		out, err := RunJob(job)
		if err != nil {
			t.Fatal(report(job, err))
		}
		return out
	}
	for _, ops := range [][]Op{{{Kind: Shrink}}, {{Kind: Grow, N: 1}, {Kind: Agree}}, {{Kind: Both}, {Kind: Shrink}}} {
		for n := 2; n <= 7; n++ {
			for seed := range uint64(3) {
				job := Job{Hosts: 1, Ranks: n, Seed: seed, Ops: ops}
				for a := range n {
					for i := 1; ; i++ {
						job.Faults = []Fault{{Kind: Kill, Who: a, Step: i}}
						if try(job).Deaths == 0 { // so often it does not send
							break
						}
						for b := range a {
							for k := 1; n <= 5; k++ {
								job.Faults = append(job.Faults[:1:1], Fault{Kind: Kill, Who: b, Step: k})
								if try(job).Deaths < 2 {
									break
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d runs", runs)
}

// The scenarios of testdata: what happens in them is written there (go test ./sim -run TestScenarios -rewrite).
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var trace []string
			var err error
			switch d.Cmd {
			case "run":
				trace, err = traceJob(d.Input)
			case "sequence":
				trace, err = traceSequence(d.Input)
			default:
				d.Fatalf(t, "no command is called %s", d.Cmd)
			}
			if err != nil {
				t.Error(err)
			}
			return strings.Join(trace, "\n") + "\n"
		})
	})
}

func traceJob(text string) ([]string, error) {
	job, err := ParseJob(text)
	if err != nil {
		return []string{err.Error()}, nil
	}
	job.Trace = true
	out, err := RunJob(job)
	return out.Trace, err
}

func traceSequence(text string) ([]string, error) {
	s, err := ParseSequence(text)
	if err != nil {
		return []string{err.Error()}, nil
	}
	s.Trace = true
	out, err := RunSequence(s)
	return out.Trace, err
}

// A schedule is the same after it has been written and read, and a run is a function of it.
func TestJobText(t *testing.T) {
	for seed := range uint64(300) {
		job := RandomJob(seed)
		again, err := ParseJob(job.Text())
		if err != nil || !reflect.DeepEqual(again, job) {
			t.Fatalf("%+v\nbecomes\n%+v, %v", job, again, err)
		}
		job.Trace, again.Trace = true, true
		a, errA := RunJob(job)
		b, errB := RunJob(again)
		if !reflect.DeepEqual(a, b) || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("seed %d: %+v, %v and then %+v, %v", seed, a, errA, b, errB)
		}
	}
}
