package main

/*
#include <mpi.h>
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"libspx/core/info"
	"libspx/launch/cpus"
)

// hwResources are the types of hardware resources that are reported, by hwloc's names, and the
// files under a processor's folder in sysfs that list the processors of its instance.
var hwResources = []struct{ name, list string }{
	{"hwloc://PU", ""},
	{"hwloc://Core", "topology/core_cpus_list"},
	{"hwloc://Die", "topology/die_cpus_list"},
	{"hwloc://Package", "topology/package_cpus_list"},
	{"hwloc://L1Cache", "cache/index0/shared_cpu_list"},
	{"hwloc://L2Cache", "cache/index2/shared_cpu_list"},
	{"hwloc://L3Cache", "cache/index3/shared_cpu_list"},
}

const cpuFolder = "/sys/devices/system/cpu"

// getHwResourceInfo reports for each type of hardware resource whether this process is restricted
// to one instance of it, that is whether all the processors that it may run on are of one.
//
//spx:body MPI_Get_hw_resource_info
func getHwResourceInfo(c *call) error {
	mine, err := cpus.Allowed()
	if err != nil || len(mine) == 0 {
		return fail(C.MPI_ERR_OTHER,
			"the system does not tell which processors this process may use: %v", err)
	}
	in := info.New("hwloc://Machine", "true")
	for _, r := range hwResources {
		list := fmt.Sprint(mine[0])
		if r.list != "" {
			b, err := os.ReadFile(filepath.Join(cpuFolder, fmt.Sprintf("cpu%d", mine[0]), r.list))
			if err != nil {
				continue // this host has no such type
			}
			list = strings.TrimSpace(string(b))
		}
		in.Merge(info.New(r.name, within(mine, list)))
	}
	if nodes, _ := filepath.Glob(fmt.Sprintf("%s/cpu%d/node*/cpulist", cpuFolder, mine[0])); len(
		nodes) == 1 {
		if b, err := os.ReadFile(nodes[0]); err == nil {
			in.Merge(info.New("hwloc://NUMANode", within(mine, strings.TrimSpace(string(b)))))
		}
	}
	return c.setInfo(0, in)
}

// within reports whether all the processors are in a list such as 0-3,8.
func within(mine []int, list string) string {
	instance := cpus.ParseList(list)
	outside := slices.ContainsFunc(mine,
		func(cpu int) bool { return !slices.Contains(instance, cpu) })
	return strconv.FormatBool(!outside)
}
