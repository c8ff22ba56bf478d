package hosts

import (
	"os/exec"
	"path/filepath"
	"testing"

	"libspx/tests/harness"
)

// Processes of one host share memory, those of different ones communicate over a fabric: each on the interface by which the agents reach its host.
func TestFabric(t *testing.T) {
	if err := exec.Command("fi_info", "-p", "tcp").Run(); err != nil {
		t.Skipf("fi_info -p tcp: %v", err)
	}
	programs := filepath.Join(harness.Root(), "tests/fabric/programs")
	traffic := harness.Compile(t, "fabric/traffic", []string{filepath.Join(programs, "traffic.c")})
	die := harness.Compile(t, "fabric/die", []string{filepath.Join(programs, "die.c")})
	for _, provider := range []string{"tcp", "udp"} {
		t.Run(provider, func(t *testing.T) {
			b := newBed(t, 3)
			settings := []string{"-x", "SPX_FABRIC_PROVIDER=" + provider, "-x", "SPX_TRANSPORTS=shm,fabric"}
			o := b.ran(append(settings, "-host", b.list(2, 2, 2), "-n", "6", traffic)...)
			check(t, o, 0, []string{"pairs: 4, messages: many, refused: 0"})
			o = b.ran(append(settings, "-host", b.list(1, 1, 1), "--with-ft", "-n", "3", die)...)
			check(t, o, 0, []string{"2 left, pairs: fabric"})
		})
	}
}
