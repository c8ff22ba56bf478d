package systems

import (
	"fmt"
	"strings"
	"testing"
)

// A system that can never go on is ended by --hang-after, and the diagnosis names clusters, links, I/O processes and standbys as the file does.
func TestHang(t *testing.T) {
	stuck := program(t, "stuck")
	o := file(t, fmt.Sprintf(`
[[cluster]]
name = "front"
program = %[1]q
args = ["front"]
ranks = 2
standbys = 1
[[cluster]]
name = "back"
program = %[1]q
args = ["back"]
ranks = 3
[[link]]
from = "front"
to = "back"
iops = 2
`, stuck), "--hang-after", "1")
	if o.Status != 124 {
		t.Errorf("exit status %d", o.Status)
	}
	for _, want := range []string{
		"rank 0 of cluster back is missing in MPI_Barrier on MPI_COMM_WORLD: ranks 1-2 of cluster back are in it",
		"deadlock: rank 0 of cluster front and rank 1 of cluster front wait for each other",
		"rank 0 of cluster back waits for messages from other clusters (MPISP_CLUSTER_IN), which come by I/O processes 0-1 of link front-back",
		"I/O process 1 of link front-back is in MPI_Mprobe(", "; it holds 0 messages of 0 bytes",
		"standby 0 of cluster front waits in MPI_Init for a rank to take over",
		"I/O processes 0-1 of link front-back are in MPI_Mprobe(",
	} {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(o.Text())
	}
}
