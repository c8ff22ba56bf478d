package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"libspx/launch/steer"
)

// A strike is one part of a failure drill.
type strike struct {
	after  time.Duration
	resize int // to so many processes; 0: kill
	rank   int // this one; -1: by chance
	below  int // ranks below this, as far as there are
	count  int // so many different ones
}

// parseStrike reads "m", "sec:rank", "sec:rmaxp" or "sec:Rmaxp:n".
func parseStrike(text string) (s strike, err error) {
	bad := fmt.Errorf("%q is none of M, SEC:RANK, SEC:rMAXP, SEC:RMAXP:N", text)
	number := func(word string, least int) int {
		n, e := strconv.Atoi(word)
		if e != nil || n < least {
			err = bad
		}
		return n
	}
	words := strings.Split(text, ":")
	if len(words) == 1 {
		return strike{resize: number(text, 1)}, err
	}
	seconds, e := strconv.ParseFloat(words[0], 64)
	if e != nil || !(seconds >= 0 && seconds < 1e6) || words[1] == "" {
		return s, bad
	}
	s = strike{after: time.Duration(seconds * float64(time.Second)), rank: -1, count: 1}
	switch kind := words[1][0]; {
	case kind == 'r' && len(words) == 2:
		s.below = number(words[1][1:], 1)
	case kind == 'R' && len(words) == 3:
		s.below, s.count = number(words[1][1:], 1), number(words[2], 1)
	case len(words) == 2:
		s.rank = number(words[1], 0)
	default:
		err = bad
	}
	return s, err
}

// ranks chooses among size processes; one is left alive.
func (s strike) ranks(size int, rng *rand.Rand) []uint32 {
	if s.rank >= 0 {
		return []uint32{uint32(s.rank)}
	}
	var list []uint32
	for _, r := range rng.Perm(min(s.below, size)) {
		if len(list) < min(s.count, size-1) {
			list = append(list, uint32(r))
		}
	}
	return list
}

func drillCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "drill JOB STRIKE...",
		Short: "kills processes of a running program at given times, by chance if wanted",
		Long: `Each STRIKE is one of
  M           makes it M processes, at once
  SEC:RANK    kills that rank after SEC seconds
  SEC:rMAXP   kills one rank below MAXP, by chance, after SEC seconds
  SEC:RMAXP:N kills N of them
Times count from the beginning. A line tells what each has led to, and how long the recovery took.`,
		Args: cobra.MinimumNArgs(2),
	}
	limit := limitFlag(c)
	seed := c.Flags().Uint64("seed", 0, "of the choice by chance; 0: another each time")
	c.RunE = func(_ *cobra.Command, args []string) error {
		var strikes []strike
		for _, text := range args[1:] {
			s, err := parseStrike(text)
			if err != nil {
				return err
			}
			strikes = append(strikes, s)
		}
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		if *seed == 0 {
			*seed = rand.Uint64()
		}
		return drill(job, strikes, *limit, *seed)
	}
	return c
}

func drill(job uint64, strikes []strike, limit time.Duration, seed uint64) error {
	slices.SortStableFunc(strikes, func(a, b strike) int { return int(a.after - b.after) })
	rng := rand.New(rand.NewPCG(seed, 0))
	fmt.Printf("seed %d\n", seed)
	began := time.Now()
	var failed []error
	for _, s := range strikes {
		time.Sleep(time.Until(began.Add(s.after)))
		var what string
		var err error
		if s.resize > 0 {
			what = fmt.Sprintf("resize to %d", s.resize)
			fmt.Printf("%.3f s: %s: ", time.Since(began).Seconds(), what)
			err = tell(steer.Command(job, strconv.Itoa(s.resize), limit))
		} else {
			about, e := steer.Describe(job)
			if e != nil {
				return errors.Join(append(failed, e)...)
			}
			list := s.ranks(about.Procs, rng)
			what = fmt.Sprintf("kill %v", list)
			fmt.Printf("%.3f s: %s: ", time.Since(began).Seconds(), what)
			err = tell(steer.Kill(job, list, limit))
		}
		if err != nil {
			fmt.Println(err)
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	return errors.Join(failed...)
}

// onSignal calls f at SIGINT or SIGTERM; the returned function reports whether that has happened.
func onSignal(f func()) func() bool {
	var was atomic.Bool
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-ch
		was.Store(true)
		f()
	}()
	return was.Load
}
