package gates

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Many ranks on one host run every collective and stay within a memory that does not grow as their square. 1,024 ranks take a
// minute and more: `make scale`.
func TestScale(t *testing.T) {
	program := harness.Compile(t, "gates/scale", []string{filepath.Join(harness.Root(), "tests/gates/testdata/scale.c")})
	for _, gate := range []struct {
		ranks int
		bytes float64 // of all ranks
		limit time.Duration
	}{{2, 32 << 20, time.Minute}, {64, 512 << 20, time.Minute}, {256, 2 << 30, 3 * time.Minute}, {1024, 8 << 30, 9 * time.Minute}} {
		t.Run(fmt.Sprintf("n=%d", gate.ranks), func(t *testing.T) {
			if gate.ranks > 64 && os.Getenv("SPX_SCALE") == "" {
				t.Skip("make scale runs 256 and 1,024 ranks")
			}
			o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, strconv.Itoa(gate.ranks), program, "1", "8", "64"), Limit: gate.limit})
			if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, fmt.Sprintf("all collectives on %d ranks\n", gate.ranks)) {
				t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
			}
			t.Logf("%d ranks: %v", gate.ranks, o.Took)
			for _, m := range regexp.MustCompile(`(?m)^memory (\S+) (\d+) = (.*)$`).FindAllStringSubmatch(o.Stdout, -1) {
				total, err := strconv.ParseFloat(m[2], 64)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %.0f MiB, %.0f KiB a rank (%s)", m[1], total/(1<<20), total/1024/float64(gate.ranks), m[3])
				if total > gate.bytes {
					t.Errorf("%s: %.0f bytes, want at most %.0f", m[1], total, gate.bytes)
				}
			}
		})
	}
}
