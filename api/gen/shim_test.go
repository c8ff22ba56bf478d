package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/shims.golden as it is now")

// The shims of some functions, as read and agreed: rooted collectives, in place, arrays of counts and types, shared buffers,
// requests, Go bodies with wide counts. After a wanted change: go test ./api/gen -update, and read the difference.
func TestShims(t *testing.T) {
	tt := tables(t)
	b := &bodies{t: tt, c: map[string]bool{}, goFns: map[string]string{
		"MPI_Type_size": "typeSize", "MPI_Comm_spawn": "commSpawn", "MPI_File_write_at": "fileWriteAt",
		"MPI_T_enum_get_item": "enumItem",
	}}
	for _, name := range strings.Fields(`Send Recv Wait Waitall Gather Reduce Allreduce Alltoallw Scatterv Unpack Intercomm_create
		Comm_free Type_get_extent Comm_toint`) {
		b.c[name] = true
	}
	w := &strings.Builder{}
	for _, name := range strings.Fields(`MPI_Send MPI_Send_c MPI_Recv MPI_Wait MPI_Waitall MPI_Gather MPI_Reduce MPI_Allreduce
		MPI_Alltoallw MPI_Scatterv_c MPI_Unpack MPI_Intercomm_create MPI_Comm_free MPI_Type_get_extent_x MPI_Type_size_c MPI_Type_size_x
		MPI_Comm_spawn MPI_File_write_at MPI_Comm_toint MPI_Ssend MPIX_Comm_agree MPI_T_enum_get_info MPI_T_enum_get_item`) {
		f := tt.Function(name)
		w.WriteString(shim(tt, b.of(f), f) + "\n")
	}
	const golden = "testdata/shims.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(w.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), w.String()); diff != "" {
		t.Errorf("shims (-agreed +now):\n%s", diff)
	}
}

// Every function that names a destination or a source and begins or looks for one message has what it does in the table, and no name of the table is
// that of no function.
func TestDoes(t *testing.T) {
	tt := tables(t)
	names := map[string]bool{}
	for _, f := range tt.Functions {
		name := strings.TrimSuffix(strings.TrimPrefix(f.Name, "MPI_"), "_c")
		names[name] = true
		peer := false
		for _, p := range f.Params {
			peer = peer || p.Name == "dest" || p.Name == "source"
		}
		if d := does(f); peer && f.Chapter == "p2p" && d == "" && !strings.HasPrefix(name, "Status_") && !strings.HasSuffix(name, "_init") {
			t.Errorf("%s: what it does with messages is not known (pointToPoint)", f.Name)
		} else if strings.Contains(d, "OBSERVE") != (strings.HasPrefix(name, "Test") && name != "Test_cancelled" || strings.HasPrefix(name, "Request_get_status") ||
			name == "Iprobe" || name == "Improbe" || name == "Cancel") && f.Chapter == "p2p" {
			t.Errorf("%s: %q", f.Name, d)
		}
	}
	for name := range pointToPoint {
		if !names[name] {
			t.Errorf("there is no MPI_%s", name)
		}
	}
}
