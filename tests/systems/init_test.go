package systems

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// A rank dies in MPI_Init, where it waits for another cluster: a standby takes its place, and nobody has to wait longer for that.
func TestDiesInInit(t *testing.T) {
	spxctl := filepath.Join(harness.Build(t), "bin/spxctl")
	for _, mode := range []string{"transparent", "notified"} {
		for rank := range 3 {
			t.Run(fmt.Sprintf("%s/%d", mode, rank), func(t *testing.T) {
				kill := fmt.Sprintf(`until p=$(%[1]s ps $SPX_JOB); echo "$p" | grep -q 'take over' && [ $(echo "$p" | grep -c 'MPI_Init()') = 4 ]; do sleep 0.02; done; %[1]s kill $SPX_JOB work.%[2]d`, spxctl, rank)
				o := file(t, fmt.Sprintf(`
[start]
limit = "20s"
[[cluster]]
name = "work"
program = %q
ranks = 3
standbys = 1
takeover = %q
[[cluster]]
name = "late"
program = "/bin/sh"
args = ["-c", %q]
ranks = 1
`, program(t, "counted"), mode, kill))
				if o.Status != 0 || !strings.Contains(o.Stdout, "3 of 3 ranks\n") || !strings.Contains(o.Stderr, "in MPI_Init; a standby takes its place") {
					t.Errorf("exit status %d\n%s", o.Status, o.Text())
				}
			})
		}
	}
}
