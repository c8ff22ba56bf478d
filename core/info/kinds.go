package info

import (
	"slices"
	"strings"
)

// Memory allocation kinds (MPI-5.0, section 12.4.3).
const (
	KeyKinds       = "mpi_memory_alloc_kinds"
	KeyAssertKinds = "mpi_assert_memory_alloc_kinds"
	defaultKinds   = "mpi,system"
)

// restrictors are what may follow a kind that is supported.
var restrictors = map[string][]string{
	"mpi":    {"alloc_mem", "win_allocate", "win_allocate_shared"},
	"system": nil,
}

// Kinds answers a request for memory allocation kinds: the defaults, and those of the requested
// that are supported, word for word.
func Kinds(requested string) string {
	out := strings.Split(defaultKinds, ",")
	for _, k := range split(requested) {
		if supported(k) && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return strings.Join(out, ",")
}

// KindsSupported reports whether all kinds of a list are supported.
func KindsSupported(list string) bool {
	return !slices.ContainsFunc(split(list), func(k string) bool { return !supported(k) })
}

func split(list string) []string {
	var out []string
	for _, k := range strings.Split(list, ",") {
		if k = strings.TrimSpace(k); k != "" {
			out = append(out, k)
		}
	}
	return out
}

func supported(kind string) bool {
	part := strings.Split(kind, ":")
	known, ok := restrictors[part[0]]
	return ok && !slices.ContainsFunc(part[1:],
		func(r string) bool { return !slices.Contains(known, r) })
}
