package systems

import (
	"fmt"
	"strings"
	"testing"
)

// A rank that is taken over transparently dies at each step of making communicators, be it the first one or another: who takes its place makes them with those that live, and nothing is seen of it.
func TestTransparentCreations(t *testing.T) {
	for _, c := range []struct {
		rank int
		env  string
	}{{0, ""}, {1, "SPX_TRANSPORTS = \"tcp\""}, {3, ""}} {
		t.Run(fmt.Sprintf("rank %d", c.rank), func(t *testing.T) {
			for step := 1; ; step++ {
				o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"%d\"]\nranks = 4\nstandbys = 1\ntakeover = \"transparent\"\nenvironment = { %s }\n", program(t, "creates"), c.rank, step, c.env))
				if o.Status != 0 || !strings.Contains(o.Stdout, "done\n") {
					t.Fatalf("step %d: exit status %d, late: %v\n%s", step, o.Status, o.Late, o.Text())
				}
				if strings.Contains(o.Stdout, "not reached\n") {
					t.Logf("%d steps", step-1)
					if step < 10 {
						t.Errorf("rank %d makes communicators in %d steps", c.rank, step-1)
					}
					return
				}
			}
		})
	}
}
