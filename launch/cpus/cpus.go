// Package cpus determines which processors a job may use on this host, and divides them among its
// ranks (--bind-to).
//
// It owns the reading of /sys and /proc for that. It sets no affinity itself.
package cpus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A CPU is a processor (a hardware thread) and where it is. Cache is the first processor that
// shares its last-level cache, -1: unknown.
type CPU struct{ Number, Core, Socket, Node, Cache int }

// Allowed lists the processors of this process's affinity mask, in order.
func Allowed() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	var out []int
	for i := 0; i < 8*len(set)*8; i++ {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out, nil
}

// Usable is how many processors this process's job may keep busy: the affinity mask, cut by the
// quota of its control groups; at least 1.
func Usable() int {
	n := 1
	if list, err := Allowed(); err == nil && len(list) > 0 {
		n = len(list)
	}
	if q := quota("/"); q > 0 {
		n = min(n, q)
	}
	return n
}

// quota is the number of processors, rounded up, that the control groups of this process allow; 0:
// no limit.
func quota(root string) int {
	data, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	least := 0.0
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		part := strings.SplitN(line, ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[1] == "":
			least = limit(least, root, "sys/fs/cgroup", part[2], readMax)
			least = limit(least, root, "sys/fs/cgroup/unified", part[2], readMax)
		case hasWord(part[1], "cpu"):
			least = limit(least, root, "sys/fs/cgroup/"+part[1], part[2], readCFS)
			least = limit(least, root, "sys/fs/cgroup/cpu", part[2], readCFS)
		}
	}
	return int(least + 0.999)
}

// limit examines a group and all above it; inside a container the path may not be visible, the top
// is.
func limit(least float64, root, mount, path string, read func(dir string) float64) float64 {
	for {
		if q := read(filepath.Join(root, mount, path)); q > 0 && (least == 0 || q < least) {
			least = q
		}
		if path == "/" || path == "." || path == "" {
			return least
		}
		path = filepath.Dir(path)
	}
}

func readMax(dir string) float64 {
	data, _ := os.ReadFile(filepath.Join(dir, "cpu.max"))
	return ratio(strings.Fields(string(data)))
}

func readCFS(dir string) float64 {
	q, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	p, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	return ratio(strings.Fields(string(q) + " " + string(p)))
}

func ratio(f []string) float64 {
	if len(f) != 2 {
		return 0
	}
	q, err1 := strconv.ParseFloat(f[0], 64)
	p, err2 := strconv.ParseFloat(f[1], 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return q / p
}

func hasWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// Read finds out where the processors are, from /sys below root.
func Read(root string, allowed []int) []CPU {
	node := map[int]int{}
	nodes, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*"))
	for _, dir := range nodes {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(dir, "cpulist"))
		for _, c := range ParseList(string(data)) {
			node[c] = n
		}
	}
	var out []CPU
	for _, c := range allowed {
		dir := filepath.Join(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology", c))
		out = append(out, CPU{
			Number: c,
			Core:   readInt(filepath.Join(dir, "core_id"), c),
			Socket: readInt(filepath.Join(dir, "physical_package_id"), 0),
			Node:   node[c],
			Cache:  lastCache(root, c),
		})
	}
	return out
}

// lastCache is the first processor that shares the last-level cache of processor c, -1 if the
// system does not report it.
func lastCache(root string, c int) int {
	for level := 3; level >= 2; level-- {
		data, err := os.ReadFile(filepath.Join(root,
			fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", c, level)))
		if list := ParseList(string(data)); err == nil && len(list) > 0 {
			return list[0]
		}
	}
	return -1
}

func readInt(file string, otherwise int) int {
	data, err := os.ReadFile(file)
	n, err2 := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || err2 != nil || n < 0 {
		return otherwise
	}
	return n
}

const most = 1 << 16 // processors that a host can have

// ParseList reads a list as the kernel writes it: 0-3,8. What is no processor is passed over.
func ParseList(text string) (out []int) {
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		b := a
		if ranged {
			b, _ = strconv.Atoi(to)
		}
		for c := max(a, 0); err == nil && c <= min(b, most); c++ {
			out = append(out, c)
		}
	}
	return out
}

// Shared is what processors have in common, given all of them: the number of their NUMA node and of
// their last-level cache, -1 where they have not one. Caches are numbered by their first processor,
// from 0.
func Shared(all []CPU, of []int) (node, cache int) {
	node, cache = -1, -1
	number := map[int]int{}
	first := true
	for _, c := range all {
		if _, known := number[c.Cache]; c.Cache >= 0 && !known {
			number[c.Cache] = len(number)
		}
		if !slices.Contains(of, c.Number) {
			continue
		}
		k := -1
		if c.Cache >= 0 {
			k = number[c.Cache]
		}
		switch {
		case first:
			node, cache, first = c.Node, k, false
		default:
			if c.Node != node {
				node = -1
			}
			if k != cache {
				cache = -1
			}
		}
	}
	return node, cache
}

// Domains groups the processors by what ranks are bound to: "hwthread", "core", "socket" or "numa";
// nil for anything else. Rank i of the host gets Domains[i % len]: more ranks than domains share.
func Domains(list []CPU, what string) [][]int {
	key := map[string]func(c CPU) [2]int{
		"hwthread": func(c CPU) [2]int { return [2]int{c.Number} },
		"core":     func(c CPU) [2]int { return [2]int{c.Socket, c.Core} },
		"socket":   func(c CPU) [2]int { return [2]int{c.Socket} },
		"numa":     func(c CPU) [2]int { return [2]int{c.Node} },
	}[what]
	if key == nil {
		return nil
	}
	groups := map[[2]int][]int{}
	for _, c := range list {
		groups[key(c)] = append(groups[key(c)], c.Number)
	}
	var out [][]int
	for _, g := range groups {
		sort.Ints(g)
		out = append(out, g)
	}
	sort.Slice(out, func(i, j int) bool { return out[i][0] < out[j][0] })
	return out
}

// Near is Shared in numbers of a byte from 1 on; 0: they have not one, or it has too high a number.
func Near(all []CPU, of []int) (node, cache uint8) {
	one := func(n int) uint8 {
		if n < 0 || n > 254 {
			return 0
		}
		return uint8(n + 1)
	}
	n, c := Shared(all, of)
	return one(n), one(c)
}
