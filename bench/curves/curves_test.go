package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// sysOf is what the kernel says of a machine: two sockets of four cores with two threads each; the threads of a core are c and c+8; two cores of a socket have a cache of level 2 together if twins, and all cores
// of a socket one of level 3, unless it is split.
func sysOf(twins, split bool) fstest.MapFS {
	sys := fstest.MapFS{}
	put := func(cpu int, name, text string) {
		sys[fmt.Sprintf("cpu%d/%s", cpu, name)] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	for cpu := range 16 {
		core := cpu % 8
		socket := core / 4
		put(cpu, "topology/thread_siblings_list", fmt.Sprintf("%d,%d", core, core+8))
		put(cpu, "topology/physical_package_id", fmt.Sprint(socket))
		own := fmt.Sprintf("%d,%d", core, core+8)
		two, three := own, fmt.Sprintf("%d-%d,%d-%d", socket*4, socket*4+3, socket*4+8, socket*4+11)
		if twins {
			two = fmt.Sprintf("%d-%d,%d-%d", core&^1, core|1, core&^1+8, core|1+8)
		}
		if split {
			three = own
		}
		for i, cache := range []struct{ level, kind, list string }{{"1", "Data", own}, {"1", "Instruction", three}, {"2", "Unified", two}, {"3", "Unified", three}} {
			at := fmt.Sprintf("cache/index%d/", i)
			put(cpu, at+"level", cache.level)
			put(cpu, at+"type", cache.kind)
			put(cpu, at+"shared_cpu_list", cache.list)
		}
	}
	return sys
}

func TestPairs(t *testing.T) {
	all := make([]int, 16)
	for i := range all {
		all[i] = i
	}
	for _, c := range []struct {
		twins, split bool
		cpus         []int
		want         []pair
	}{
		{false, false, all, []pair{{one, [2]int{0, 0}}, {"two threads of a core", [2]int{0, 8}}, {"a common cache of level 3", [2]int{0, 1}}, {"two sockets", [2]int{0, 4}}}},
		{true, false, all, []pair{{one, [2]int{0, 0}}, {"two threads of a core", [2]int{0, 8}}, {"a common cache of level 2", [2]int{0, 1}}, {"a common cache of level 3", [2]int{0, 2}}, {"two sockets", [2]int{0, 4}}}},
		{false, true, all, []pair{{one, [2]int{0, 0}}, {"two threads of a core", [2]int{0, 8}}, {"no common cache, one socket", [2]int{0, 1}}, {"two sockets", [2]int{0, 4}}}},
		{false, false, []int{3, 9}, []pair{{one, [2]int{3, 3}}, {"a common cache of level 3", [2]int{3, 9}}}}, // those alone that may be used
		{false, false, []int{5}, []pair{{one, [2]int{5, 5}}}},
	} {
		if got := pairsOf(sysOf(c.twins, c.split), c.cpus); !reflect.DeepEqual(got, c.want) {
			t.Errorf("twins %v, split %v, processors %v: %v, want %v", c.twins, c.split, c.cpus, got, c.want)
		}
	}
}

func TestParseList(t *testing.T) {
	if got, err := parseList("0-2,8\n"); err != nil || !reflect.DeepEqual(got, []int{0, 1, 2, 8}) {
		t.Error(got, err)
	}
	for _, text := range []string{"", "a", "3-1", "1-"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A page of invented figures: who is better, and by how much it was missed.
func TestPage(t *testing.T) {
	f := figures{Machine: "two abaci", Pair: pair{one, [2]int{0, 0}}, Rounds: 3, Us: map[string]map[int][]float64{}}
	for name, text := range map[string]string{"got": "curve 4096 2\ncurve 65536 8\n", "streamed": "curve 4096 1\ncurve 65536 10\n", "libspx": "curve 4096 1\ncurve 65536 10\n", "limit": "memcpy 4096 0.5\nmemcpy 65536 5\nmemcpy 8 1\n", "cma": "cma 4096 1\ncma 65536 8\n"} {
		row, _, _ := strings.Cut(text, " ")
		for range 3 {
			if err := take(f, map[string]string{row: name}, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := page([]figures{f})
	for _, want := range []string{"| 4 Ki | 2.00 | 1.00 | 1.00 | 0.50 | 1.00 | 1.00 (1.00-1.00) | 2.00 |", "| 64 Ki | 8.00 | 10.0 | 10.0 | 5.00 | 8.00 | 1.25 (1.25-1.25) | 2.00 |", "two abaci", "curves-1.svg"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(plot(f), "polyline") {
		t.Error("no curve is drawn")
	}
	if take(f, map[string]string{"curve": "got"}, "rows: cannot start\n") == nil || take(f, map[string]string{"curve": "got"}, "curve x 1\n") == nil {
		t.Error("what is no figure was taken as one")
	}
	newer := f
	newer.Rounds = 9
	if all := merge([]figures{f, {Machine: "another"}}, []figures{newer}); len(all) != 2 || all[0].Machine != "another" || all[1].Rounds != 9 {
		t.Error("figures that were measured again were not put in place of the old ones:", all)
	}
}
