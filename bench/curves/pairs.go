package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// A pair is where two ranks run: on one processor, or on two that are so far from each other.
type pair struct {
	Kind string // what the two have in common, in words
	Cpus [2]int
}

// one is the kind of pair whose ranks take turns.
const one = "one processor"

// kinds are those that a machine may have, the nearest first.
var kinds = []string{one, "two threads of a core", "a common cache of level 2", "a common cache of level 3", "a common cache of level 4", "no common cache, one socket", "two sockets"}

// parseList reads what the kernel says of processors: "0-3,8".
func parseList(text string) (cpus []int, err error) {
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		low, high, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(low)
		if err != nil {
			return nil, fmt.Errorf("%q is no list of processors", text)
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(high); err != nil || b < a {
				return nil, fmt.Errorf("%q is no list of processors", text)
			}
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// has says whether a file of the kernel names a processor in its list; a file that is not there does not.
func has(sys fs.FS, name string, cpu int) bool {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return false
	}
	list, err := parseList(string(text))
	return err == nil && slices.Contains(list, cpu)
}

func read(sys fs.FS, name string) string {
	text, _ := fs.ReadFile(sys, name) // not there: nothing is known
	return strings.TrimSpace(string(text))
}

// kindOf is what two processors have in common. sys: /sys/devices/system/cpu.
func kindOf(sys fs.FS, a, b int) string {
	if a == b {
		return one
	}
	of := fmt.Sprintf("cpu%d/", a)
	if has(sys, of+"topology/thread_siblings_list", b) {
		return "two threads of a core"
	}
	nearest := 0
	for i := 0; ; i++ {
		cache := fmt.Sprintf("%scache/index%d/", of, i)
		level, err := strconv.Atoi(read(sys, cache+"level"))
		if err != nil {
			break
		}
		if read(sys, cache+"type") != "Instruction" && has(sys, cache+"shared_cpu_list", b) && (nearest == 0 || level < nearest) {
			nearest = level
		}
	}
	if nearest > 0 {
		return fmt.Sprint("a common cache of level ", nearest)
	}
	socket := "topology/physical_package_id"
	if x, y := read(sys, of+socket), read(sys, fmt.Sprintf("cpu%d/%s", b, socket)); x != y {
		return "two sockets"
	}
	return "no common cache, one socket"
}

// pairsOf has a pair of each kind that these processors have, the nearest first.
func pairsOf(sys fs.FS, cpus []int) (pairs []pair) {
	for i, a := range cpus {
		for _, b := range cpus[i:] {
			kind := kindOf(sys, a, b)
			if !slices.ContainsFunc(pairs, func(p pair) bool { return p.Kind == kind }) {
				pairs = append(pairs, pair{kind, [2]int{a, b}})
			}
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int { return slices.Index(kinds, p.Kind) - slices.Index(kinds, q.Kind) })
	return pairs
}
