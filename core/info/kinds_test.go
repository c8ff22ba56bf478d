package info

import "testing"

func TestKinds(t *testing.T) {
	for requested, want := range map[string]string{
		"":                                  "mpi,system",
		"system":                            "mpi,system",
		"gpu:device, mpi:alloc_mem":         "mpi,system,mpi:alloc_mem",
		"mpi:win_allocate:alloc_mem,mpi:no": "mpi,system,mpi:win_allocate:alloc_mem",
		"system:fast,mpi,,":                 "mpi,system",
	} {
		if got := Kinds(requested); got != want {
			t.Errorf("Kinds(%q) = %q instead of %q", requested, got, want)
		}
	}
	for list, want := range map[string]bool{"": true, "system": true, "mpi:alloc_mem,system": true,
		"system,gpu": false} {
		if got := KindsSupported(list); got != want {
			t.Errorf("KindsSupported(%q) = %v", list, got)
		}
	}
}
