package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// A set is what one start of the measuring program runs: rounds of a set have the same rows.
type set struct {
	key     string // as results.json names it
	ranks   int
	program string   // -s of programs/rows.c
	only    string   // regular expression of its rows
	impls   []string // nil: all
	rows    []string // "name bytes"
}

// oversubscribed are the rows that are measured with every number of ranks, for curves over ranks.
const oversubscribed = "^(barrier|allreduce|jacobi) [08]$"

// The implementation "get" is libspx when all above 512 bytes is read out of the sender's memory; "stream" when nothing is; "check" when it looks at what the program does.
var variants = map[string][]string{
	"get":    {"SPX_EAGER_MAX=512", "SPX_STREAM_MAX=0"},
	"stream": {"SPX_CMA=0"},
	"check":  {"SPX_CHECK=1"},
}

// overTCP are the rows that are measured over TCP.
const overTCP = "^(pingpong|window|bothways|barrier|bcast|allreduce) "

// sets are those that the options ask for, with their rows; sets without rows are left out.
func (b *bench) sets() (list []set) {
	for _, n := range b.ranks {
		if b.tcp {
			one := set{key: strconv.Itoa(n), ranks: n, program: "plain", only: overTCP}
			if one.rows = b.listRows(one); len(one.rows) > 0 {
				list = append(list, one)
			}
			continue
		}
		all := []set{{key: strconv.Itoa(n), ranks: n, program: "plain"}}
		if n != 2 && n != 4 && n != 16 {
			all[0].only = oversubscribed
		}
		if n == 2 { // Open MPI 6.0rc2 does not come back from two threads that send
			all = append(all, set{key: "2 threads", ranks: 2, program: "threads", impls: []string{"spx", "mpich"}})
		}
		if n == 2 || n == 8 {
			all = append(all, set{key: fmt.Sprintf("%d curve", n), ranks: n, program: "curve", impls: []string{"spx", "get", "stream"}})
		}
		if b.hpcc {
			all = append(all, set{key: fmt.Sprintf("%d hpcc", n), ranks: n, program: "hpcc"})
		}
		for _, s := range all {
			if b.base != "" && s.impls != nil {
				s.impls = append(s.impls, "base")
			}
			if s.rows = b.listRows(s); len(s.rows) > 0 {
				list = append(list, s)
			}
		}
	}
	return list
}

// listRows asks the program which rows the set has, and takes those that -rows names.
func (b *bench) listRows(s set) (rows []string) {
	names := hpccRows
	if s.program != "hpcc" {
		out, err := exec.Command(b.rowsProgram, "-l", strconv.Itoa(s.ranks), "-s", s.program, s.only).Output()
		if err != nil {
			return nil // -l does nothing that could fail; the run itself will say what is wrong
		}
		names = strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	for _, name := range names {
		if name != "" && b.options.rows.MatchString(name) {
			rows = append(rows, name)
		}
	}
	return rows
}
