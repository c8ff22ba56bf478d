package main

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// The reserved info keys of MPI_Comm_spawn (MPI-5.0, 11.8.4), and "env". Others have no effect.

// applySpawnHints puts the hints in in into p.
func applySpawnHints(p *service.Program, in *info.Info) error {
	if in == nil {
		return nil
	}
	if file, ok := in.Get("file"); ok {
		more, err := hintFile(file)
		if err != nil {
			return err
		}
		more.Merge(in)
		in = more
	}
	for _, key := range []string{"host", "hosts"} {
		if v, ok := in.Get(key); ok {
			p.Host = v
		}
	}
	if v, ok := in.Get("wdir"); ok {
		p.Dir = v
	}
	if v, ok := in.Get("path"); ok {
		p.Path = v
	}
	if v, ok := in.Get("env"); ok {
		p.Env = withVariables(p.Env, strings.Split(v, "\n"))
	}
	if v, ok := in.Get("arch"); ok && !isThisArch(v) {
		return mpierr.New(mpierr.Spawn, "arch is %q, but this host is %s", v, thisArch())
	}
	if v, ok := in.Get("soft"); ok {
		return softNumbers(p, v)
	}
	return nil
}

// withVariables sets variables, NAME=VALUE, in an environment.
func withVariables(env, set []string) []string {
	for _, kv := range set {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue
		}
		env = slices.DeleteFunc(env,
			func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, kv)
	}
	return env
}

// hintFile reads more hints from a file: a key and its value in each line; # begins a comment.
func hintFile(name string) (*info.Info, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, mpierr.New(mpierr.Spawn, "info key file: %v", err)
	}
	out := info.New()
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		if err := out.Set(key, strings.TrimSpace(value)); err != nil {
			return nil, mpierr.New(mpierr.Spawn, "info key file: %s: %v", name, err)
		}
	}
	return out, nil
}

func isThisArch(name string) bool {
	return name == "" || strings.EqualFold(name, runtime.GOARCH) ||
		strings.EqualFold(name, thisArch()) || name == "linux-"+thisArch()
}

// thisArch is the architecture as uname names it.
func thisArch() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return runtime.GOARCH
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// softNumbers reads the numbers of processes that would do: N, FIRST:LAST or FIRST:LAST:STEP, with
// commas. Those above maxprocs do not count.
func softNumbers(p *service.Program, text string) error {
	bad := mpierr.New(mpierr.Spawn,
		"soft is %q; it must be numbers or ranges FIRST:LAST[:STEP], with commas, of which one "+
			"is at most maxprocs, %d",
		text, p.Procs)
	for part := range strings.SplitSeq(text, ",") {
		var n []int
		for word := range strings.SplitSeq(strings.TrimSpace(part), ":") {
			v, err := strconv.Atoi(word)
			if err != nil {
				return bad
			}
			n = append(n, v)
		}
		switch len(n) {
		case 1:
			n = append(n, n[0], 1)
		case 2:
			n = append(n, 1)
		case 3:
		default:
			return bad
		}
		if n[2] == 0 {
			return bad
		}
		for v := n[0]; n[2] > 0 && v <= min(n[1], int(p.Procs)) || n[2] < 0 &&
			v >= max(n[1], 0); v += n[2] {
			if v >= 0 && v <= int(p.Procs) {
				p.Soft = append(p.Soft, uint32(v))
			}
		}
	}
	if len(p.Soft) == 0 {
		return bad
	}
	slices.Sort(p.Soft)
	return nil
}
