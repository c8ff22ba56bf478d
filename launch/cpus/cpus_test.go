package cpus

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, root, file, text string) {
	t.Helper()
	file = filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Two sockets of two cores of two threads, numbered as common machines do; one node per socket.
func TestDomains(t *testing.T) {
	root := t.TempDir()
	for c := range 8 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", c)
		write(t, root, dir+"core_id", fmt.Sprint(c%2))
		write(t, root, dir+"physical_package_id", fmt.Sprint(c/2%2))
	}
	write(t, root, "sys/devices/system/node/node0/cpulist", "0-1,4-5\n")
	write(t, root, "sys/devices/system/node/node1/cpulist", "2-3,6-7\n")
	all := Read(root, []int{0, 1, 2, 3, 4, 5, 6, 7})
	for what, want := range map[string][][]int{
		"hwthread": {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}},
		"core":     {{0, 4}, {1, 5}, {2, 6}, {3, 7}},
		"socket":   {{0, 1, 4, 5}, {2, 3, 6, 7}},
		"numa":     {{0, 1, 4, 5}, {2, 3, 6, 7}},
		"none":     nil,
	} {
		if d := cmp.Diff(want, Domains(all, what)); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	if d := cmp.Diff([][]int{{1, 5}, {2}}, Domains(Read(root, []int{1, 2, 5}), "core")); d != "" {
		t.Errorf("an affinity mask: %s", d)
	}
}

// Two nodes of two caches of two processors.
func TestShared(t *testing.T) {
	root := t.TempDir()
	for c := range 8 {
		write(t, root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", c),
			fmt.Sprintf("%d-%d", c/2*2, c/2*2+1))
	}
	write(t, root, "sys/devices/system/node/node0/cpulist", "0-3\n")
	write(t, root, "sys/devices/system/node/node1/cpulist", "4-7\n")
	all := Read(root, []int{0, 1, 2, 3, 4, 5, 6, 7})
	for _, c := range []struct {
		of          []int
		node, cache int
	}{{[]int{0, 1}, 0, 0}, {[]int{3}, 0, 1}, {[]int{1, 2}, 0, -1}, {[]int{6, 7}, 1, 3},
		{[]int{0, 7}, -1, -1}, {nil, -1, -1}} {
		if node, cache := Shared(all, c.of); node != c.node || cache != c.cache {
			t.Errorf("%v: node %d, cache %d, want %d, %d", c.of, node, cache, c.node, c.cache)
		}
	}
	if node, cache := Shared(Read(t.TempDir(), []int{0, 1}), []int{0}); node != 0 || cache != -1 {
		t.Errorf("a system that tells nothing: node %d, cache %d", node, cache)
	}
}

func TestQuota(t *testing.T) {
	v2, v1, none := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, v2, "proc/self/cgroup", "0::/a/b\n")
	write(t, v2, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
	write(t, v2, "sys/fs/cgroup/a/cpu.max", "150000 100000\n")
	write(t, v1, "proc/self/cgroup", "3:cpu,cpuacct:/x\n1:name=systemd:/\n")
	write(t, v1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000")
	write(t, v1, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
	write(t, none, "proc/self/cgroup", "0::/\n")
	for dir, want := range map[string]int{v2: 2, v1: 3, none: 0, t.TempDir(): 0} {
		if got := quota(dir); got != want {
			t.Errorf("quota %d, want %d", got, want)
		}
	}
}

func TestUsable(t *testing.T) {
	list, err := Allowed()
	if err != nil || len(list) == 0 {
		t.Fatalf("allowed processors %v, error %v", list, err)
	}
	if n := Usable(); n < 1 || n > len(list) {
		t.Errorf("%d processors may be used, of %v", n, list)
	}
}
