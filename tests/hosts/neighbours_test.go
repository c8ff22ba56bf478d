package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// The kernel's tables of neighbours, which all hosts of a bed share, grow with it, and never shrink; where they cannot be changed, it is said what to do.
func TestNeighbours(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("hosts of scripts/hosts need root")
	}
	const hosts, need = "5", "50" // room for all pairs, twice
	kernel := t.TempDir()
	table := func(family string) string { return filepath.Join(kernel, "net", family, "neigh/default/gc_thresh3") }
	for _, family := range []string{"ipv4", "ipv6"} {
		if err := os.MkdirAll(filepath.Dir(table(family)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	up := func() (said string) {
		t.Helper()
		bed := harness.NewBed(t, "n", 5, func(name string) []string {
			cmd := exec.Command(harness.HostsScript(), "up", name, hosts)
			cmd.Env = append(harness.HostsEnv(t), "HOSTS_SYSCTL="+kernel)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Skipf("hosts cannot be made here: %v\n%s", err, out)
			}
			said = string(out)
			return []string{"pids", name + "1"}
		})
		if bed.N != 5 {
			t.Fatal("no hosts")
		}
		return said
	}
	write := func(family, text string) {
		t.Helper()
		if err := os.WriteFile(table(family), []byte(text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("ipv4", "49")
	write("ipv6", "51")
	said := up()
	for family, want := range map[string]string{"ipv4": need, "ipv6": "51"} {
		if got, err := os.ReadFile(table(family)); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: %q, %v, not %s", family, got, err, want)
		}
	}
	if said != "" {
		t.Errorf("says %q", said)
	}
	const fixed = "/proc/sys/kernel/cap_last_cap" // a number below, which not even root may change
	if err := os.Remove(table("ipv4")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fixed, table("ipv4")); err != nil {
		t.Fatal(err)
	}
	if said = up(); !strings.Contains(said, "cannot be changed from here: 5 hosts that all talk with all do not all reach each other") ||
		!strings.Contains(said, "sysctl net.ipv4.neigh.default.gc_thresh3="+need) {
		t.Errorf("says %q", said)
	}
}
